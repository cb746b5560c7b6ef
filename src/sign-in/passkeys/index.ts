/**
 * koa-with-auth/sign-in/passkeys: signing in with passkeys (WebAuthn). It needs `@simplewebauthn/server`.
 *
 * Reading guide: `passkeys.ts` makes the kinds of ceremonies. `PasskeyRecord.ts` stores them.
 */

export type { PasskeyRecord, PasskeyUse } from './PasskeyRecord.js'
export { passkeys } from './passkeys.js'
export type { PasskeyKind, PasskeyProof, PasskeyRegistration, Passkeys, PasskeySignals } from './passkeys.js'
export { passkeyOperations, type NamedUser, type PasskeysOptions } from './options.js'
