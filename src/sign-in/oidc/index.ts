/**
 * Signing in with an OpenID or OAuth 2.0 provider, by openid-client.
 *
 * @module
 */
export { oidc, type OidcKind, type OidcOptions } from './oidc.js'
export { oauth2, type OAuth2Kind, type OAuth2Options, type OAuth2Proof, type SubjectAnswer } from './oauth2.js'
export { endSession, signedOut, type EndSessionOptions } from './endSession.js'
export { backChannel, type BackChannelOptions, type SignedOutIdentity } from './backChannel.js'
export { providerAnswer, type ProviderAnswer } from './answers.js'
export type { Asking } from './AuthorizationRequest.js'
export type { Client, ClientAuthentication } from './Client.js'
export type { OidcProof } from './IdToken.js'
