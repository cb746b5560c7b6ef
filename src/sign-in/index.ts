/**
 * koa-with-auth/sign-in: signing in by ceremonies.
 *
 * Reading guide: `ceremony.ts` seals, opens and spends; it knows no Koa. `signIn.ts` makes middleware of it.
 */
export { begin, finish, secondly } from './signIn.js'
export type { BeginOptions, Done, FinishOptions, FirstFactor } from './signIn.js'
export { localPath } from './ceremony.js'
export type { Answered, Begun, Ceremony, Incoming, Intent, Kind, Sent, Signer } from './ceremony.js'
export { spentOver, type Spent } from '../sessions/SessionStore.js'
export type { Proof, ProofDemand, ProofGiven } from '../core/Proof.js'
