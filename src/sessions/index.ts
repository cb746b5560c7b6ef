/**
 * koa-with-auth/sessions: sessions that hold in production, on koa-session.
 *
 * Reading guide: `sessions.ts` puts it together; `signing.ts` signs in and out; `SessionStore.ts` says what a database has
 * to fit; `commit.ts` decides what is kept when.
 */
export { memoryStore } from './memoryStore.js'
export type { SessionsOptions } from './options.js'
export { sessions } from './sessions.js'
export { koaSessionStore, type KoaSessionStore, type SessionStore, type StoreLimits } from './SessionStore.js'
export type { LogInOptions, Signing, WithRequest } from './signing.js'
export { SignInRefused } from './SignInRefused.js'
