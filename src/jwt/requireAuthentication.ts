/** `requireAuthentication`: how, and how long ago, the user of an access token must have authenticated (RFC 9470). */
import type { Request } from '../core/Request.js'
import type { NeededAuthentication } from '../core/AuthError.js'
import { fromFunction, type Authenticator } from '../core/Authenticator.js'
import { isToken, leaves } from '../core/Description.js'
import { ageInWords } from '../core/Proof.js'
import { scoped } from '../core/authorize.js'
import { ownFields } from '../core/data.js'
import { functionName } from '../core/functionName.js'
import * as is from '../core/checks.js'
import { checkMember, checkOptions, declareCondition, declareFactory, isScope, type Checks } from '../core/options.js'
import type { AuthenticationClaims } from './claims.js'

/** How the user of a token must have authenticated. */
export interface RequireAuthenticationOptions<A = AuthenticationClaims> {
  /** The authentication context classes that are accepted, the preferred one first. Default: any. */
  readonly acr?: readonly [string, ...string[]] | ReadonlyArray<string> | undefined
  /** How long ago the user may have authenticated, in milliseconds. The challenge has it in whole seconds. Default: any time. */
  readonly maxAge?: number | undefined
  /** Finds the claims if the principal is not the claims. */
  readonly claims?: ((principal: A, request: Request) => AuthenticationClaims) | undefined
}

// OpenID Connect Core §3.1.2.1: separated by blanks, as scopes are; RFC 9110 §5.6.4: the characters of a quoted-string
const classes = is.listOf(
  isScope,
  "must be an array of classes, such as ['urn:example:loa2'], in printable ASCII without blanks",
  1,
)

const checks: Checks<RequireAuthenticationOptions> = {
  acr: is.maybe(classes),
  maxAge: is.maybe(is.milliseconds),
  claims: is.maybe(is.hook(2)),
}

// The clocks of two machines differ a little
const AUTH_TIME_TOLERANCE = 5

const isRecent = (authTime: unknown, maxAge: number): boolean => {
  if (typeof authTime !== 'number' || !Number.isFinite(authTime)) return false
  const age = Date.now() / 1000 - authTime
  // the claim has whole seconds
  return age >= -AUTH_TIME_TOLERANCE && age < maxAge + 1
}

const isAuthenticated = (claims: unknown, { acr, maxAge }: NeededAuthentication): boolean => {
  if (typeof claims !== 'object' || claims === null) return false
  const { acr: own, auth_time } = ownFields(claims)
  return (
    (acr === undefined || (typeof own === 'string' && acr.includes(own))) &&
    (maxAge === undefined || isRecent(auth_time, maxAge))
  )
}

const needWords = ({ acr, maxAge }: NeededAuthentication): string =>
  [
    `an authentication${acr === undefined ? '' : ` of ${acr.join(' or ')}`}`,
    ...(maxAge === undefined ? [] : [`at most ${ageInWords(maxAge * 1000)} old`]),
  ].join(', ')

/**
 * Requires that the user of an access token authenticated in one of these classes (`acr`), at most `maxAge` milliseconds ago (`auth_time`).
 * Otherwise it is a 401 `insufficient_user_authentication` whose challenge has `acr_values` and `max_age`, so that the client can send
 * the user to the authorization server again (RFC 9470 §3). A missing claim is refused. A missing scope stays a 403. OpenAPI, the
 * audit and the policy file say it. For sessions, see `sessionAuth({ proof })`. Throws a TypeError for options that cannot work, and
 * for an authenticator that takes no tokens.
 *
 * @example
 * import { withAuth } from 'koa-with-auth'
 * import { httpJwt, requireAuthentication } from 'koa-with-auth/jwt'
 *
 * const jwt = httpJwt({ issuer: 'https://login.example/', audience: 'https://api.example' })
 * const careful = withAuth(jwt, requireAuthentication({ acr: ['urn:example:loa2'], maxAge: 300_000 }))
 */
export function requireAuthentication<A>(
  options: RequireAuthenticationOptions<A> & {
    readonly claims: (principal: A, request: Request) => AuthenticationClaims
  },
): (self: Authenticator<A>) => Authenticator<A>
export function requireAuthentication(
  options: RequireAuthenticationOptions & { readonly claims?: undefined },
): <A extends AuthenticationClaims>(self: Authenticator<A>) => Authenticator<A>
export function requireAuthentication(
  options: RequireAuthenticationOptions<never>,
): <A>(self: Authenticator<A>) => Authenticator<A> {
  const { acr, maxAge, claims } = checkOptions('requireAuthentication', options, checks)
  if (acr === undefined && maxAge === undefined) {
    throw new TypeError('requireAuthentication({ acr, maxAge }) needs acr or maxAge')
  }
  const needed: NeededAuthentication = {
    ...(acr !== undefined && { acr: [...acr] }),
    // `max_age` of the challenge
    ...(maxAge !== undefined && { maxAge: Math.floor(maxAge / 1000) }),
  }
  const claimsOf: (principal: never, request: Request) => unknown = claims ?? ((principal) => principal)
  const required = scoped({
    caller: 'requireAuthentication(...)',
    scopes: [],
    decidedBy: claims === undefined ? needWords(needed) : `${needWords(needed)}, claims by ${functionName(claims)}`,
    f: claims,
    authentication: needed,
    decide: (principal, request) => isAuthenticated(claimsOf(principal, request), needed),
  })
  return declareCondition('requireAuthentication', <A>(self: Authenticator<A>) => {
    checkMember('requireAuthentication(...)(a)', self)
    if (!leaves(fromFunction(self).description).some(isToken)) {
      throw new TypeError(
        'requireAuthentication(...)(a): a takes no tokens, such as those of httpJwt; for sessions, write sessionAuth({ proof: { maxAge } })',
      )
    }
    // Safe: the principal does not change
    return required(self) as Authenticator<A>
  })
}

declareFactory('requireAuthentication', requireAuthentication)
