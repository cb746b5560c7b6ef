/** The client that an application is at the token endpoint of a provider, after a sign-in: refreshes and exchanges (RFC 6749 §6, RFC 8693). */
import * as E from 'fp-ts/lib/Either.js'
import type { Configuration, TokenEndpointResponse, TokenEndpointResponseHelpers } from 'openid-client' with {
  'resolution-mode': 'import',
}
import { withoutUndefined } from '../../core/options.js'
import { UnavailableError, type Result } from '../../core/Result.js'
import { GrantEnded, type Tokens } from './Grant.js'
import { openidClient } from './openidClient.js'

export interface TokenClient {
  /** Whose tokens they are: the issuer, or the name of the provider. */
  readonly issuer: string
  /** openid-client, set up for the provider. A Left is an outage. */
  readonly configured: () => Promise<Result<Configuration>>
  /** The scopes that sign-ins ask for. An upstream adds those of its calls. */
  readonly scopes: Set<string>
}

/** The clients of the kinds of `oidc` and `oauth2`. */
export const tokenClients = new WeakMap<object, TokenClient>()

/** The client of a kind. Throws a TypeError for a kind that `oidc` and `oauth2` did not make. */
export const tokenClientOf = (where: string, kind: unknown): TokenClient => {
  const client = typeof kind === 'object' && kind !== null ? tokenClients.get(kind) : undefined
  if (client === undefined) throw new TypeError(`${where} must be the result of oidc(...) or oauth2(...)`)
  return client
}

// The longest time that is believed of an access token, in seconds: ten years
const MAX_LIFETIME = 315_360_000

export const grantedTokens = (answer: TokenEndpointResponse & Partial<TokenEndpointResponseHelpers>): Tokens => {
  const { access_token: access, refresh_token: refresh, expires_in: seconds, scope } = answer
  const lasts = typeof seconds === 'number' && seconds > 0 && seconds < MAX_LIFETIME
  const at = Date.now()
  const until = lasts ? at + seconds * 1000 : undefined
  return withoutUndefined({ access, until, at, refresh, scope, subject: answer.claims?.()?.sub })
}

/**
 * Asks the token endpoint. Throws `GrantEnded` for `invalid_grant` alone. Any other failure is an outage: the grant may be good
 * (RFC 6749 §5.2). No message has anything that was sent or received.
 */
export const askedForTokens = async (
  client: TokenClient,
  ask: (configuration: Configuration) => Promise<TokenEndpointResponse & Partial<TokenEndpointResponseHelpers>>,
): Promise<Tokens> => {
  const configured = await client.configured()
  if (E.isLeft(configured)) throw new UnavailableError('the provider cannot be used')
  try {
    return grantedTokens(await ask(configured.right))
  } catch (error) {
    const { ResponseBodyError } = openidClient()
    if (error instanceof ResponseBodyError && error.error === 'invalid_grant') {
      throw new GrantEnded('the provider has ended the grant')
    }
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'no answer'
    throw new UnavailableError(`the provider did not answer with tokens (${code})`)
  }
}
