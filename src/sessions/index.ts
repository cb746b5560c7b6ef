/**
 * koa-with-auth/sessions: sessions for production, on koa-session.
 *
 * Reading guide: `sessions.ts` puts it together. `koaSessionStore.ts` reads sessions, `signing.ts` signs in and out.
 * `commit.ts` decides when a session is saved, and undoes changes. `RequestSession.ts` knows who is signed in
 * by one request, and what the store has of it. `SignIn.ts` binds a sign-in to its session.
 * `SessionStore.ts` is the interface of a database, `koaSessionStore.ts` makes koa-session's store of it.
 */
export { addProof, logIn, logOut, proofsOf } from './signing.js'
export { memoryStore } from './SessionStore.js'
export type { SessionsOptions } from './SessionsOptions.js'
export { sessions, type Sessions } from './sessions.js'
export type { Page, PageField, Pages, PageTexts } from './Page.js'
export type { SessionStore } from './SessionStore.js'
export type { Signals } from '../stores/signals.js'
export { signInDigests } from './SignIn.js'
export { SessionUser, type SessionKinds } from '../kinds/session.js'
export type { Proof, ProofDemand, ProofGiven } from '../core/Proof.js'
export type { ListedSession, LogInOptions, Signing, WithRequest } from './SignIn.js'
export { SignInRefused } from './SignIn.js'
