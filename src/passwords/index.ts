/**
 * koa-with-auth/passwords: strong password hashes, which are verified without blocking the event loop.
 *
 * Reading guide: `passwords.ts` is the API, with the algorithms and the queue. `StoredPassword.ts` is the stored form.
 */
export { hash, needsRehash, verify } from './passwords.js'
