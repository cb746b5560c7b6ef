/** koa-with-auth/sessions: sessions for production, on koa-session. `src/README.md` follows a sign-in through its files. */
export { addProof, logIn, logOut, proofsOf } from './signing.js'
export type { SessionsOptions } from './SessionsOptions.js'
export { sessions, type Sessions } from './sessions.js'
export type { Page, PageField, Pages, PageTexts } from './Page.js'
export type { Signals } from '../signals/signals.js'
export { sessionDigest } from './SignIn.js'
export { SessionUser, type SessionKinds } from '../kinds/session.js'
export type { Proof, ProofDemand, ProofGiven } from '../core/Proof.js'
export type { BearerOptions } from './Bearer.js'
export type {
  BearerLogInOptions,
  BearerSignIn,
  ListedSession,
  LogIn,
  LogInOptions,
  Signing,
  WithRequest,
} from './SignIn.js'
export { SignInRefused } from './SignIn.js'
