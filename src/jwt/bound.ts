/**
 * Tokens that are bound to their client: to a key (RFC 9449), to a TLS certificate (RFC 8705), or to both.
 *
 * | the token is bound to       | it is accepted                                                  |
 * |-----------------------------|-----------------------------------------------------------------|
 * | nothing                     | as a bearer token, unless `required`                            |
 * | a key                       | under the scheme DPoP with a proof, never as a bearer token     |
 * | a certificate               | as a bearer token on a connection with this certificate         |
 * | a key and a certificate     | under the scheme DPoP, if both hold                             |
 * | anything else, or more      | never (RFC 7800 §3.1)                                           |
 */
import * as E from 'fp-ts/lib/Either.js'
import type { Request } from 'koa'
import { invalid, type AuthError } from '../core/AuthError.js'
import type { HttpScheme } from '../core/Description.js'
import { ownField } from '../core/data.js'
import { checkOptions, flag, maybe, unchecked } from '../core/options.js'
import { objectOf, type Json } from './claims.js'
import { dpopOf, type DpopOptions } from './dpop.js'
import type { Confirm, TokenScheme } from './tokenKind.js'

/** Which bindings of tokens are checked. At least one. */
export interface BoundOptions {
  /** Tokens that are bound to a key (`cnf.jkt`), with a proof of possession for each request. */
  readonly dpop?: DpopOptions | undefined
  /** Whether tokens that are bound to nothing are refused. Default `false`. */
  readonly required?: boolean | undefined
}

/** What the option `bound` means for tokens. */
export interface Bound {
  /** The members of `cnf` that are checked. */
  readonly confirmations: ReadonlyArray<string>
  readonly isRequired: boolean
  /** The schemes of the Authorization field, in the order of the challenges. */
  readonly schemes: readonly [TokenScheme, ...TokenScheme[]]
}

const JKT = 'jkt'

const place = 'httpJwt({ bound: { ... } })'

const dpopScheme: HttpScheme = { type: 'http', scheme: 'dpop' }

const refused: E.Either<AuthError, never> = E.left(invalid)

const confirmed: E.Either<AuthError, true> = E.right(true)

/** The value of a member of `cnf`; the claims were checked before. */
const memberOf = (claims: Json, name: string): string | undefined => {
  const value = ownField(objectOf(ownField(claims, 'cnf')) ?? {}, name)
  return typeof value === 'string' ? value : undefined
}

// RFC 9449 §7.2: never downgraded
const confirmBearer: Confirm = (_request: Request, _token, claims) =>
  memberOf(claims, JKT) === undefined ? confirmed : refused

/** Checks the option. Throws a TypeError for one that cannot work. `bearer`: the scheme of tokens that are bound to no key. */
export const boundOf = (given: BoundOptions, bearer: TokenScheme, clockTolerance: number): Bound => {
  const checks = { dpop: unchecked, required: maybe(flag) }
  const { dpop: dpopOptions, required = false } = checkOptions(place, given, checks)
  if (dpopOptions === undefined) {
    throw new TypeError(`${place} must have dpop: a token that is bound to anything else is refused`)
  }
  const dpop = dpopOf(dpopOptions, clockTolerance)
  const confirming: TokenScheme['confirming'] = (own) => {
    const check = dpop.checking(own)
    return (request, token, claims) => check(request, token, memberOf(claims, JKT))
  }
  const keys: TokenScheme = {
    ...bearer,
    scheme: dpopScheme,
    name: 'DPoP',
    discovery: undefined,
    parameters: dpop.parameters,
    reads: ['DPoP'],
    responseFields: dpop.responseFields,
    notes: [...bearer.notes, 'bound to a key'],
    confirming,
  }
  return {
    confirmations: [JKT],
    isRequired: required,
    schemes: required ? [keys] : [{ ...bearer, confirming: () => confirmBearer }, keys],
  }
}
