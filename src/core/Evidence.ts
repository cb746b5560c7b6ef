/**
 * The grounds of a decision. A Right of an authenticator has it beside the principal, hidden, so the Right equals any other.
 *
 * Combinators merge it. It is a monoid (spec/core/Evidence.law.spec.ts): `merge` is associative, and `nothingSent` is its identity.
 * An alternative that fails takes its evidence with it, because nothing of it is kept anywhere else.
 */
import type * as E from 'fp-ts/lib/Either.js'
import type { EndSource } from './ends.js'

/** Objects by the names that `owned` gave them, without a prototype. */
export type Objects = Readonly<Record<string, unknown>>

/** Is called once all conditions of a guard have let the request in. It never rejects. */
export type Charge = () => Promise<Charged>

/** The result of a charge: the `AuthError` that refuses the request after all, or a function that takes it back if the request is refused. */
export interface Charged {
  readonly refusal?: unknown
  readonly takeBack?: () => void
}

export interface Evidence {
  /** The accepted credentials, in order: tokens, sessions, keys, and whatever else can end. */
  readonly accepted: ReadonlyArray<EndSource>
  /** The objects that `owned` has found; `undefined` if nothing was looked up. */
  readonly objects: Objects | undefined
  readonly charges: ReadonlyArray<Charge>
  readonly isAnonymous: boolean
  /** Whether `recoverUnavailable` has decided. */
  readonly isRecovered: boolean
  /** Whether a verification that was kept has answered. */
  readonly isCached: boolean
}

const noEntries: ReadonlyArray<never> = Object.freeze([])

/** No credential: the evidence of an anonymous caller. */
export const nothingSent: Evidence = Object.freeze({
  accepted: noEntries,
  objects: undefined,
  charges: noEntries,
  isAnonymous: true,
  isRecovered: false,
  isCached: false,
})

/** A credential of which nothing else is known. Most decisions share it, and make no evidence of their own. */
export const plainEvidence: Evidence = Object.freeze({ ...nothingSent, isAnonymous: false })

export const evidence = (more: Partial<Evidence>): Evidence => ({ ...plainEvidence, ...more })

/** A credential that can end. Field by field, because a spread takes a measurable part of a request. */
export const restsOn = (source: EndSource): Evidence => ({
  accepted: [source],
  objects: undefined,
  charges: noEntries,
  isAnonymous: false,
  isRecovered: false,
  isCached: false,
})

export const merge = (one: Evidence, other: Evidence): Evidence => {
  if (one === nothingSent || (one === plainEvidence && !other.isAnonymous)) return other
  if (other === nothingSent || (other === plainEvidence && !one.isAnonymous)) return one
  return {
    accepted: joinLists(one.accepted, other.accepted),
    objects: objectsOf(one.objects, other.objects),
    charges: joinLists(one.charges, other.charges),
    isAnonymous: one.isAnonymous && other.isAnonymous,
    isRecovered: one.isRecovered || other.isRecovered,
    isCached: one.isCached || other.isCached,
  }
}

const joinLists = <A>(one: ReadonlyArray<A>, other: ReadonlyArray<A>): ReadonlyArray<A> =>
  one.length === 0 ? other : other.length === 0 ? one : [...one, ...other]

/** Objects of both; of one name, those that were found later. */
export const objectsOf = (one: Objects | undefined, other: Objects | undefined): Objects | undefined =>
  one === undefined ? other : other === undefined ? one : { __proto__: null, ...one, ...other }

class GivenObject {
  constructor(given: object) {
    // the field of the subclass is put on this object: unlike a WeakMap or a property, that costs next to nothing
    return given
  }
}

class Beside extends GivenObject {
  readonly #evidence: Evidence
  constructor(right: object, own: Evidence) {
    super(right)
    this.#evidence = own
  }
  static of(right: object): Evidence | undefined {
    return #evidence in right ? right.#evidence : undefined
  }
}

const evidenceMark = Symbol.for('koa-with-auth/evidence')
// Safe: nothing else is kept under this symbol. Two copies of this package in one process read each other's
const globalWithEvidence = globalThis as { [evidenceMark]?: typeof Beside }
const beside = (globalWithEvidence[evidenceMark] ??= Beside)

/** The evidence that a Right was given; `undefined` if it has none. */
export const givenWith = (right: object): Evidence | undefined => beside.of(right)

export const evidenceOf = (right: object): Evidence => beside.of(right) ?? plainEvidence

export const accept = <P>(principal: P, own: Evidence): E.Right<P> => {
  const right: E.Right<P> = { _tag: 'Right', right: principal }
  if (own !== plainEvidence) new beside(right, own)
  return right
}

export const withEvidence = <P>(right: E.Right<P>, more: Evidence): E.Right<P> =>
  accept(right.right, merge(evidenceOf(right), more))

/** Another principal, which rests on the same evidence, and on the result of its own hook. */
export const restingOn = <P>(right: E.Right<P>, before: object): E.Right<P> => {
  const [own, said] = [evidenceOf(before), givenWith(right)]
  return own === plainEvidence || said === own
    ? right
    : accept(right.right, said === undefined ? own : merge(own, said))
}
