/** The SDK's `AuthInfo` of a request, for a server of the Model Context Protocol. */
import type { Context } from 'koa'
import { branchesOf, insufficient } from '../core/AuthError.js'
import { withChallenges } from '../core/Description.js'
import { settingsOf } from '../core/Exchange.js'
import { ownFields } from '../core/data.js'
import { nonEmptyStrings } from '../jwt/Provider.js'
import type { Json } from '../jwt/claims.js'
import { scopesOf, acceptedTokenOf } from '../jwt/tokenKind.js'
import { respondFailure } from '../koa/respond.js'
import { headersOfGuard } from '../koa/responseHeaders.js'

/** The SDK's type, written out, so that the SDK need not be installed. */
export interface AuthInfo {
  readonly token: string
  readonly clientId: string
  readonly scopes: string[]
  /** In seconds since 1970. */
  readonly expiresAt?: number
  readonly resource?: URL
  readonly resourceMetadataUrl?: string
  /** The claims of the token. */
  readonly extra: Record<string, unknown>
}

// RFC 9068, OpenID Connect, Okta, Entra
const clientIdOf = ({ client_id, azp, cid, appid }: Json): string =>
  [client_id, azp, cid, appid].find((one) => typeof one === 'string') ?? ''

/**
 * The `AuthInfo` of the token of a request; `undefined` if no token was accepted, such as a good token that `authorize`, `flatMap` or
 * `requireScopes` refused while another alternative passed.
 *
 * @example
 * import type { Context } from 'koa'
 * import { mcpAuth } from 'koa-with-auth/jwt'
 *
 * const handler = (ctx: Context) => {
 *   ctx.body = mcpAuth(ctx)?.scopes
 * }
 */
export const mcpAuth = (ctx: Context): AuthInfo | undefined => {
  const presented = acceptedTokenOf(ctx)
  if (presented === undefined) return undefined
  const { token, resource } = presented
  const claims = presented.claims()
  const own = ownFields(claims)
  const { exp } = own
  return {
    token,
    clientId: clientIdOf(own),
    scopes: [...scopesOf(claims)],
    ...(typeof exp === 'number' && { expiresAt: exp }),
    ...(resource !== undefined && { resource: new URL(resource.resource), resourceMetadataUrl: resource.metadataUrl }),
    extra: claims,
  }
}

/**
 * Answers 403 `error="insufficient_scope"` with these scopes and those of the operation, as the guard would (RFC 6750
 * §3.1). Return its result. Throws a TypeError outside of a guarded operation. It is for a handler that
 * reads from the request which scopes it needs (step-up).
 *
 * @example
 * import type { Context } from 'koa'
 * import { insufficientScope, mcpAuth } from 'koa-with-auth/jwt'
 *
 * const save = (ctx: Context) => {
 *   if (!mcpAuth(ctx)?.scopes.includes('files:write')) return insufficientScope(ctx, ['files:write'])
 *   ctx.body = 'saved'
 * }
 */
export const insufficientScope = (ctx: Context, scopes: readonly [string, ...string[]]): void | Promise<void> => {
  const operation = headersOfGuard(ctx.res)
  if (operation === undefined) {
    throw new TypeError('insufficientScope(ctx, scopes) must be called by the handler of a guarded operation')
  }
  const wanted = nonEmptyStrings('insufficientScope(ctx, scopes)', scopes)
  const error = withChallenges(operation.description, insufficient(wanted))
  const tokens = branchesOf(error).filter(({ challenge }) => /^(?:Bearer|DPoP)$/.test(challenge?.scheme ?? ''))
  const failure = tokens.length === 0 ? error : { ...error, branches: tokens }
  return respondFailure(ctx, failure, settingsOf(ctx.request), operation)
}
