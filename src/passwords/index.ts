/** koa-with-auth/passwords: strong password hashes, which are verified without blocking the event loop. */
export { hash, needsRehash, verify } from './passwords.js'
