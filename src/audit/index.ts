/**
 * koa-with-auth/audit: the protection of each operation of a router, and `seal`, which refuses a router with an unlisted
 * open operation.
 */
export { audit } from './application.js'
export type { Access, Audit, AuditedMiddleware, AuditedOperation, Protection, Shadow } from './Audit.js'
export type { AuditedUpstream } from '../koa/upstreams.js'
export { seal, type SealOptions } from './seal.js'

// Types that TypeScript writes into your declarations. Do not import them: any version may change them
export type { AnyApplication, AnyRouter, RouterLayer } from '../koa/layer.js'
export type { ShadowExtent } from './Audit.js'
