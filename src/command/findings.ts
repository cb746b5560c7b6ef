/**
 * The findings of an audit or a comparison that a reviewer should look at.
 *
 * Unlike `seal`, it has no list of what may be open. So an open operation is a note, and an undecided one is an error.
 */
import type { Audit, AuditedOperation } from '../audit/Audit.js'
import type { Difference } from '../audit/differences.js'
import type { PlacedLine } from '../audit/policyFile.js'
import { visible } from '../audit/visible.js'
import type { DocumentDifference } from './documentDifferences.js'
import type { Finding, Severity } from './sarif.js'

/** The findings of an audit. */
export const findingsOf = ({ operations, middleware }: Audit): ReadonlyArray<Finding> => [
  ...operations.flatMap(ofOperation),
  ...middleware
    .filter(({ guarded }) => guarded === 'no')
    .flatMap(({ path, functions }) =>
      functions.map((name) =>
        finding('unguarded-middleware', `USE ${path}`, `${name} runs where no guard covers it`, 'note'),
      ),
    ),
]

const ofOperation = (audited: AuditedOperation): ReadonlyArray<Finding> => {
  const { operation, access, protection, csrf, shadowedBy } = audited
  const open = shadowedBy.filter((shadow) => access === 'guarded' && shadow.access !== 'guarded')
  return [
    ...(access === 'undecided' ? [finding('undecided-operation', operation, `is ${protection}`, 'error')] : []),
    ...(access === 'public' || access === 'optional'
      ? [
          finding(
            'open-operation',
            operation,
            access === 'public' ? `is ${protection}` : `lets anonymous callers in (${protection})`,
            'note',
          ),
        ]
      : []),
    ...(csrf === 'off'
      ? [finding('csrf-off', operation, 'accepts writes from other sites: csrf is off', 'warning')]
      : []),
    ...open.map((shadow) =>
      finding(
        'answered-first',
        operation,
        `is guarded, but ${shadow.operation}, which is ${shadow.access}, answers first${shadow.extent === 'unknown' ? ', perhaps' : ''}`,
        'error',
      ),
    ),
  ]
}

const finding = (rule: Finding['rule'], operation: string, what: string, severity: Severity): Finding => ({
  rule,
  operation: visible(operation),
  text: visible(`${operation} ${what}`),
  severity,
})

/** Findings for the differences from a policy file. */
export const findingsOfPolicy = (differences: ReadonlyArray<Difference<PlacedLine>>): ReadonlyArray<Finding> =>
  differences.map(({ direction, operation, text, was }) => ({
    rule: `policy-${direction}`,
    operation,
    text,
    severity: ({ opened: 'error', changed: 'warning', closed: 'note' } as const)[direction],
    line: was?.lineNumber,
  }))

/** Findings for the differences from a document. */
export const findingsOfDocument = (differences: ReadonlyArray<DocumentDifference>): ReadonlyArray<Finding> =>
  differences.map(({ isOpener, operation, text }) => ({
    rule: 'document-differs',
    operation,
    text,
    severity: isOpener ? 'error' : 'warning',
  }))
