/**
 * The SDK's `AuthInfo` of a request, for a server of the Model Context Protocol.
 */
import type { Context } from 'koa'
import { ownField } from '../core/ownFields.js'
import type { Json } from './claims.js'
import { tokenOf } from './presented.js'
import { scopesOf } from './scopesOf.js'

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
const clientOf = (claims: Json): string =>
  ['client_id', 'azp', 'cid', 'appid']
    .map((name) => ownField(claims, name))
    .find((one): one is string => typeof one === 'string') ?? ''

/**
 * The `AuthInfo` of the token that let a request in; `undefined` if no token did. In a list, it may also be that of a
 * good token whose scopes `requireScopes` refused, while another alternative passed.
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
  const presented = tokenOf(ctx)
  if (presented === undefined) return undefined
  const { token, resource } = presented
  const claims = presented.claims()
  const exp = ownField(claims, 'exp')
  return {
    token,
    clientId: clientOf(claims),
    scopes: [...scopesOf(claims)],
    ...(typeof exp === 'number' && { expiresAt: exp }),
    ...(resource !== undefined && { resource: new URL(resource.resource), resourceMetadataUrl: resource.metadataUrl }),
    extra: claims,
  }
}
