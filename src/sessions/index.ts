/**
 * koa-with-auth/sessions: sessions that hold in production, on koa-session.
 *
 * Reading guide: `sessions.ts` puts it together; `recognizing.ts` reads; `signing.ts` signs in and out; `RequestSession.ts` is who is signed
 * in by one request, `StoredSession.ts` what the store has of it; `commit.ts` decides what is kept when, `takeBack.ts` what is not; `SignedIn.ts` binds a sign-in to its session;
 * `SessionStore.ts` says what a database has to fit, `koaSessionStore.ts` what koa-session makes of it.
 */
export { logIn, logOut } from './logIn.js'
export { memoryStore } from './memoryStore.js'
export type { SessionsOptions } from './options.js'
export { sessions, type Sessions } from './sessions.js'
export type { SessionStore } from './SessionStore.js'
export { signInDigests } from './signInDigests.js'
export type { SessionKinds } from './typedKinds.js'
export type { LogInOptions, Signing, WithRequest } from './SignInFunctions.js'
export { SignInRefused } from './SignInRefused.js'
