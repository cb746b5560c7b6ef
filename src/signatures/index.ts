/** Signed requests: HTTP Message Signatures (RFC 9421), and Web Bot Auth: entry point `koa-with-auth/signatures`. */
export { httpSignature, type HttpSignatureOptions, type SignatureKey, type SignedRequest } from './httpSignature.js'
export { webBotAuth, type SignedAgent, type WebBotAuthOptions } from './webBotAuth.js'
export type { DirectoryOptions } from './directory.js'
export type { SignatureAlgorithm } from './verification.js'
