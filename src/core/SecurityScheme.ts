/**
 * What a scheme looks like to an OpenAPI 3.1 tool: where a credential travels, and under which name.
 *
 * Pure data. It also says which request fields an authenticator reads, so that `Vary` needs no second list.
 */

/** OpenAPI 3.1's Security Scheme Object. */
export type SecurityScheme = ApiKeyScheme | HttpScheme | OAuth2Scheme | OpenIdConnectScheme | MutualTlsScheme

/** A key in a query parameter, a header or a cookie. */
export interface ApiKeyScheme {
  readonly type: 'apiKey'
  readonly in: 'query' | 'header' | 'cookie'
  readonly name: string
  readonly description?: string
}

/** A scheme of the `Authorization` header (RFC 9110 §11.6.2). */
export interface HttpScheme {
  readonly type: 'http'
  readonly scheme: string
  readonly bearerFormat?: string
  readonly description?: string
}

/** OAuth 2.0; the flows as OpenAPI writes them. */
export interface OAuth2Scheme {
  readonly type: 'oauth2'
  readonly flows: Readonly<Record<string, unknown>>
  readonly description?: string
}

/** OpenID Connect discovery. */
export interface OpenIdConnectScheme {
  readonly type: 'openIdConnect'
  readonly openIdConnectUrl: string
  readonly description?: string
}

/** A client certificate. */
export interface MutualTlsScheme {
  readonly type: 'mutualTLS'
  readonly description?: string
}

/**
 * The request field that a scheme reads, for `Vary` (RFC 9110 §12.5.5): `undefined` for a query, which is part of the
 * URL; `*` if it is unknown.
 */
export const fieldOf = (scheme: SecurityScheme | undefined): string | undefined => {
  switch (scheme?.type) {
    case 'apiKey':
      return scheme.in === 'query' ? undefined : scheme.in === 'cookie' ? 'Cookie' : scheme.name
    case 'http':
    case 'oauth2':
    case 'openIdConnect':
      return 'Authorization'
    default:
      return '*'
  }
}
