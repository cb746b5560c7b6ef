/** koa-with-auth/jwt: access tokens of an identity provider. `src/README.md` follows one through its files. */
export {
  httpJwt,
  type BoundCertificateOptions,
  type BoundOptions,
  type HttpJwt,
  type HttpJwtOptions,
} from './httpJwt.js'
export { httpIntrospection, type HttpIntrospectionOptions, type IntrospectionClaims } from './httpIntrospection.js'
export {
  protectedResource,
  type AllowedOrigins,
  type ProtectedResource,
  type ProtectedResourceOptions,
} from '../mcp/protectedResource.js'
export { mcpScopes, type McpScopes } from '../mcp/mcpScopes.js'
export { insufficientScope, mcpAuth, type AuthInfo } from '../mcp/mcpAuth.js'
export { requireAuthentication, type RequireAuthenticationOptions } from './requireAuthentication.js'
export type { CertificateHeader, CertificateSource } from '../kinds/clientCertificate.js'
export type { DpopNonceOptions, DpopOptions } from './dpop.js'
export type { Actor, AuthenticationClaims, JwtClaims } from './claims.js'
export type { FindIssuer, FindIssuerAlone, Issuer, IssuerWithKeys, StringOrStrings } from './Provider.js'
export type { Algorithm, AsymmetricAlgorithm, SecretAlgorithm } from './signature.js'
export type { CacheOptions, KeyOptions } from './keySet.js'
export { scopesOf, type TokenOptions } from './tokenKind.js'
