/**
 * koa-with-auth/sign-in: signing in by ceremonies.
 *
 * Reading guide: `Kind.ts` defines a kind. `ceremony.ts` seals, opens and uses each answer once; it knows no Koa. `beginning.ts` and
 * `signIn.ts` make middleware of it: `request.ts` finds the application and the browser, `pages.ts` answers. The kinds are in `mail.ts`
 * and `secondFactor.ts`.
 */
export { begin, askSecondFactor, type BeginOptions, type FirstFactor } from './beginning.js'
export { finish, type Done, type FinishHook, type FinishHooks, type FinishOptions } from './signIn.js'
export { countFailures } from './countFailures.js'
export { passwordSignIn } from './passwordSignIn.js'
export type { PasswordAccount, PasswordDone, PasswordSignInOptions } from './passwordSignIn.js'
export type { KindForm } from './Kind.js'
export { normalizeEmail, emailSignIn, passwordReset, emailVerification } from './mail.js'
export type {
  LinkAccount,
  LinkKind,
  LinkMail,
  EmailVerificationOptions,
  LinkProof,
  EmailSignInOptions,
  PasswordResetOptions,
  SignInMail,
} from './mail.js'
export { secondFactor, recoveryCodes, totp } from './secondFactor.js'
export type { CodeFactor, SecondFactor, SecondFactorOptions, Enrolment } from './secondFactor.js'
export type { RecoveryCodes, RecoveryCodesOptions, RecoverySet, Totp, TotpOptions } from './secondFactor.js'
export { linkPage, type LinkPageOptions } from './pages.js'
export type { Lifetime, LifetimeOptions } from './Lifetimes.js'
export { localPath } from './Kind.js'
export type { Answered, Begun, Ceremony, Display, Incoming, Intent, Kind, Sent, Signer } from './Kind.js'
export type { OneTimeIds } from '../core/OneTimeIds.js'
export type { Proof, ProofDemand, ProofGiven } from '../core/Proof.js'
