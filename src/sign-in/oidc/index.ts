/**
 * Signing in with an OpenID or OAuth 2.0 provider, by openid-client.
 *
 * @module
 */
export { oidc, type OidcKind, type OidcOptions } from './oidc.js'
export { oauth2, type OAuth2Kind, type OAuth2Options, type OAuth2Proof, type SubjectAnswer } from './oauth2.js'
export { backChannelLogout, rpLogout, afterRpLogout } from './signOut.js'
export type { BackChannelLogoutOptions, RpLogoutOptions, SignedOutIdentity } from './signOut.js'
export { providerAnswer, type OidcProof, type ProviderAnswer } from './ProviderAnswer.js'
export type { IdTokenAlgorithm, ProviderMetadata, ProviderPlace } from './RemoteProvider.js'
export type { Asking, Client, ClientAuthentication } from './Client.js'
export { exchange, type ExchangeOptions, type TokenExchange } from './exchange.js'
export { upstream, UpstreamGone, type Upstream, type UpstreamOptions } from './upstream.js'
