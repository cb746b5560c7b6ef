/**
 * koa-with-auth/audit: what protects each operation of a router, and a router that does not start with one left open.
 *
 * Reading guide: `auditRouter.ts` reads a router, `words.ts` says what protects it, `shadows.ts` what answers first, and
 * `findings.ts` is what `seal` refuses.
 */
export { audit } from './auditRouter.js'
export type { Access, Audit, AuditedMiddleware, AuditedOperation, Shadow } from './Audit.js'
export { seal, type SealOptions } from './seal.js'
export type { Extent } from './shadows.js'
export type { AnyRouter, RouterLayer } from '../koa/RoutedOperation.js'
