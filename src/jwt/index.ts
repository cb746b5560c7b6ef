/**
 * koa-with-auth/jwt: access tokens of an identity provider, with jose.
 *
 * Reading guide: `httpJwt.ts` puts it together. `verifier.ts` decides about a token. `claims.ts` has the rules.
 * `keySet.ts` fetches keys, and decides what happens in an outage. `protectedResource.ts` is what MCP requires of a
 * server.
 */
export { httpJwt, type HttpJwt, type HttpJwtOptions } from './httpJwt.js'
export { httpIntrospection, type HttpIntrospectionOptions, type IntrospectionClaims } from './httpIntrospection.js'
export { protectedResource, type ProtectedResource, type ProtectedResourceOptions } from './protectedResource.js'
export { insufficientScope } from './insufficientScope.js'
export { mcpAuth, type AuthInfo } from './mcpAuth.js'
export { scopesOf } from './scopesOf.js'
export type { Algorithm, AsymmetricAlgorithm, SecretAlgorithm } from './algorithms.js'
export type { JwtClaims } from './claims.js'
export type { Issuer, IssuerWithKeys, OneOrMore } from './Issuer.js'
export type { Origins } from './origins.js'
export type { CacheOptions, KeyOptions } from './policies.js'
export type { TokenOptions } from './tokenKind.js'
