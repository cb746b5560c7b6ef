/**
 * koa-with-auth/passwords: hashes that hold, verified beside the event loop.
 *
 * Reading guide: `passwords.ts` is what users call; `StoredPassword.ts` what is kept; `algorithms.ts` who computes; `line.ts` who
 * waits.
 */
export { hash, needsRehash, verify } from './passwords.js'
