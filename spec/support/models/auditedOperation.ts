/** Operations of an audit, made without a router. */
import type { Audit, AuditedOperation } from 'koa-with-auth/audit'
import { demandOf } from '../../../src/audit/Way.js'

/** A way in by one credential. */
export const wayOf = (credential: string, scopes?: ReadonlyArray<string>): AuditedOperation['ways'][number] => ({
  demands: [demandOf(credential, scopes)],
  takesAnything: false,
})

/** An operation that a bearer token guards, with the given changes. */
export const audited = (given: Partial<AuditedOperation> = {}): AuditedOperation => {
  const { method = 'GET', path = '/x' } = given
  return {
    operation: `${method} ${path}`,
    method,
    path,
    access: 'guarded',
    protection: 'bearer',
    ways: [wayOf('bearer')],
    csrf: 'not needed',
    trustedOrigins: [],
    docs: 'listed',
    decidedBy: ['operation'],
    shadowedBy: [],
    objects: [],
    unchecked: [],
    unread: [],
    beforeGuard: [],
    behindGuard: [],
    undescribed: [],
    ...given,
  }
}

/** An audit of these operations, and of unguarded middleware. */
export const auditWith = (
  operations: ReadonlyArray<AuditedOperation>,
  functions: ReadonlyArray<string> = [],
): Omit<Audit, 'toString'> => ({
  operations,
  middleware: functions.map((name) => ({ path: '/*', functions: [name], guarded: 'no' })),
})
