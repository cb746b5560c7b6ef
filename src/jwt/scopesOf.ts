/**
 * The scopes that a token was granted.
 */
import { ownOrGetter } from '../core/ownFields.js'

const isScope = (u: unknown): u is string => typeof u === 'string' && u !== ''

const listed = (claim: unknown): ReadonlyArray<string> => {
  if (typeof claim === 'string') return claim.split(' ').filter(isScope)
  return Array.isArray(claim) ? claim.filter(isScope) : []
}

/**
 * The scopes in the claims of a token: those of `scope` (RFC 9068 §2.2.3, RFC 7662 §2.2), or else of `scp` (Entra,
 * Okta). The claim is a string with blanks, or an array.
 *
 * @example
 * import { scopesOf } from 'koa-with-auth/jwt'
 *
 * assert.deepStrictEqual(scopesOf({ scope: 'files:read files:write' }), ['files:read', 'files:write'])
 * assert.deepStrictEqual(scopesOf({ scp: ['files:read'] }), ['files:read'])
 */
export const scopesOf = <C extends object>(claims: C): ReadonlyArray<string> =>
  listed(ownOrGetter(claims, 'scope') ?? ownOrGetter(claims, 'scp'))
