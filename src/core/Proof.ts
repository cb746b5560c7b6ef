/** The proofs of a user, with their times. A session keeps its proofs, so an operation can ask for a fresh one or for a second factor. */
import { ownField, ownFields } from './data.js'
import type { NeededProof } from './AuthError.js'

/** A proof of a sign-in method. It does not identify a user of the application. */
export interface Proof {
  /** How: `password`, `mail`, `totp`, `recovery`, `passkey`, `oidc`, `oauth2`, `other`, or a name of your own. */
  readonly method: string
  /** When, in milliseconds since 1970. */
  readonly at: number
  /** The party that vouches for it, such as the issuer of an ID token. */
  readonly issuer?: string | undefined
  /** The user, as the method or the issuer identifies the user. */
  readonly subject?: string | undefined
  /** Whether an authenticator verified its user (WebAuthn). */
  readonly userVerified?: boolean | undefined
  /** Whether a passkey is backed up (WebAuthn). */
  readonly backedUp?: boolean | undefined
  /** The authentication context class and methods that a provider reports (OpenID Connect Core §2). */
  readonly acr?: string | undefined
  readonly amr?: ReadonlyArray<string> | undefined
  /** When the user signed in at the provider, in milliseconds since 1970. */
  readonly authTime?: number | undefined
  /** The session at the provider. */
  readonly sid?: string | undefined
}

/** A proof to be kept; `at` is now if it is left out, and never in the future. */
export type ProofGiven = Omit<Proof, 'at'> & { readonly at?: number | undefined }

/**
 * Which proof an operation asks for. `maxAge`, in milliseconds, is how long ago the user did something for it. The proof of a
 * provider is as old as its `authTime`; without an `authTime`, it is fresh for no `maxAge`.
 */
export interface ProofDemand {
  readonly methods?: ReadonlyArray<string> | undefined
  readonly maxAge?: number | undefined
}

const memberTypes: Readonly<Record<string, (u: unknown) => boolean>> = {
  method: (u) => typeof u === 'string' && u !== '',
  at: Number.isFinite,
  issuer: (u) => typeof u === 'string',
  subject: (u) => typeof u === 'string',
  userVerified: (u) => typeof u === 'boolean',
  backedUp: (u) => typeof u === 'boolean',
  acr: (u) => typeof u === 'string',
  amr: (u) => Array.isArray(u) && u.every((one) => typeof one === 'string'),
  authTime: Number.isFinite,
  sid: (u) => typeof u === 'string',
}

/** The proof with only its own members, dated now at the latest. Throws a TypeError for a member of a wrong type. */
export const proofFrom = (where: string, given: ProofGiven, now: number): Proof => {
  if (typeof given !== 'object' || given === null) throw new TypeError(`${where} must be an object { method, ... }`)
  const own = ownFields(given)
  const proof: Record<string, unknown> = {}
  for (const [name, isRight] of Object.entries(memberTypes)) {
    const value = own[name] ?? (name === 'at' ? now : undefined)
    if (value === undefined) continue
    if (!isRight(value)) throw new TypeError(`${where}: ${name} has a wrong type`)
    proof[name] = name === 'at' || name === 'authTime' ? Math.min(Number(value), now) : value
  }
  if (proof['method'] === undefined) throw new TypeError(`${where} must have a method, such as 'password'`)
  // Safe: each member was checked
  return proof as unknown as Proof
}

/** Whether two proofs are of the same identity, by the same method. */
export const isSameWay = (one: Proof, other: Proof): boolean =>
  one.method === other.method && one.issuer === other.issuer && one.subject === other.subject

/**
 * When the user did something for a proof. A provider that still knows its user answers without asking, so its proof is as old as
 * it says (`authTime`), and of unknown age if it says nothing. Inherited properties do not count.
 */
const doneAt = (proof: Proof): number => {
  const authTime = ownField(proof, 'authTime')
  if (typeof authTime === 'number') return authTime
  return ownField(proof, 'issuer') === undefined ? proof.at : -Infinity
}

/** Adds a proof; a newer one replaces that of the same method, issuer and subject. The acts of the user for the older proof stay known. */
export const addedTo = (proofs: ReadonlyArray<Proof>, proof: Proof): ReadonlyArray<Proof> => {
  const older = proofs.find((one) => isSameWay(one, proof))
  if (older === undefined) return [...proofs, proof]
  const newer = older.at > proof.at ? older : proof
  const isKnown = older.authTime !== undefined || proof.authTime !== undefined
  const kept = isKnown ? { ...newer, authTime: Math.max(doneAt(older), doneAt(proof)) } : newer
  return [...proofs.filter((one) => one !== older), kept]
}

// The clocks of two processes differ a little
const AHEAD = 5000

/** Whether some proof meets a demand. A proof whose time lies ahead of the clock, by more than clocks differ, is not fresh. */
export const isProven = (proofs: ReadonlyArray<Proof>, { methods, maxAge }: ProofDemand, now: number): boolean =>
  proofs.some((proof) => {
    const { method, at } = proof
    if (at > now + AHEAD || (methods !== undefined && !methods.includes(method))) return false
    if (maxAge === undefined) return true
    const age = now - doneAt(proof)
    return age >= -AHEAD && age <= maxAge
  })

export const neededBy = ({ methods, maxAge }: ProofDemand): NeededProof => ({
  ...(methods !== undefined && { methods: [...methods] }),
  ...(maxAge !== undefined && { maxAge: maxAge / 1000 }),
})

export const ageInWords = (ms: number): string =>
  ms % 60_000 === 0 ? `${ms / 60_000} min` : ms % 1000 === 0 ? `${ms / 1000} s` : `${ms} ms`
