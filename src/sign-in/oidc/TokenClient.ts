/** The client that an application is at the token endpoint of a provider, after a sign-in: refreshes and exchanges (RFC 6749 §6, RFC 8693). */
import * as E from 'fp-ts/lib/Either.js'
import type { Configuration, TokenEndpointResponse, TokenEndpointResponseHelpers } from 'openid-client' with {
  'resolution-mode': 'import',
}
import { UnavailableError, type Result } from '../../core/Result.js'
import { GrantEnded, type Tokens } from './Grant.js'
import { openidClient } from './openidClient.js'

export interface TokenClient {
  /** Whose tokens they are: the issuer, or the name of the provider. */
  readonly issuer: string
  /** openid-client, set up for the provider. A Left is an outage. */
  readonly configured: () => Promise<Result<Configuration>>
  readonly askFor: (scope: ReadonlyArray<string>) => void
}

const clients = new WeakMap<object, TokenClient>()

export const declareTokenClient = (kind: object, client: TokenClient): void => void clients.set(kind, client)

export const addingTo =
  (scopes: Set<string>): TokenClient['askFor'] =>
  (scope) => {
    for (const one of scope) scopes.add(one)
  }

/** The client of a kind. Throws a TypeError for a kind that `oidc` and `oauth2` did not make. */
export const tokenClientOf = (where: string, kind: unknown): TokenClient => {
  const client = typeof kind === 'object' && kind !== null ? clients.get(kind) : undefined
  if (client === undefined) throw new TypeError(`${where} must be what oidc(...) or oauth2(...) returned`)
  return client
}

/** The longest time that is believed of an access token, in seconds: ten years. */
const MAX_LIFETIME = 315_360_000

export const grantedTokens = (answer: TokenEndpointResponse & Partial<TokenEndpointResponseHelpers>): Tokens => {
  const { access_token: access, refresh_token: refresh, expires_in: seconds, scope } = answer
  const lasts = typeof seconds === 'number' && seconds > 0 && seconds < MAX_LIFETIME
  const subject = answer.claims?.()?.sub
  return {
    access,
    ...(lasts && { until: Date.now() + seconds * 1000 }),
    ...(refresh !== undefined && { refresh }),
    ...(typeof scope === 'string' && { scope }),
    ...(subject !== undefined && { subject }),
  }
}

/**
 * Asks the token endpoint. Throws `GrantEnded` for `invalid_grant` alone. Whatever else goes wrong is an outage: the grant may be good
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

/**
 * Revokes what ended here (RFC 7009): the refresh token, else the access token. It is not awaited, and whatever goes wrong changes nothing:
 * the tokens are gone from the store already.
 */
export const revokedBy =
  (client: TokenClient) =>
  ({ refresh, access }: Tokens): void => {
    const revoke = async (): Promise<void> => {
      const configured = await client.configured()
      if (E.isLeft(configured) || configured.right.serverMetadata().revocation_endpoint === undefined) return
      const hint = refresh === undefined ? 'access_token' : 'refresh_token'
      await openidClient().tokenRevocation(configured.right, refresh ?? access, { token_type_hint: hint })
    }
    revoke().catch(() => undefined)
  }

/** Refreshes tokens. An ID token of another subject is garbage (OpenID Connect Core §12.2). */
export const refreshedBy =
  (client: TokenClient) =>
  async ({ refresh = '', subject }: Tokens): Promise<Tokens> => {
    const next = await askedForTokens(client, (configuration) =>
      openidClient().refreshTokenGrant(configuration, refresh),
    )
    if (subject !== undefined && next.subject !== undefined && next.subject !== subject) {
      throw new UnavailableError('the provider answered with tokens of another user')
    }
    return next
  }
