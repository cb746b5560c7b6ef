/**
 * koa-with-auth/passwords: strong password hashes, which are verified without blocking the event loop.
 *
 * Reading guide: `passwords.ts` is the API. `StoredPassword.ts` is the stored form and hashes, `passwords.ts`
 * is the queue.
 */
export { hash, needsRehash, verify } from './passwords.js'
