/** The points that a reviewer should look at. The command prints all findings; `seal` refuses a router with others than its lists allow. */
import * as Requirement from '../core/Requirement.js'
import { unreadNote, type Audit, type AuditedMiddleware, type AuditedOperation, type Shadow } from './Audit.js'
import { shadows, type Difference } from './Difference.js'
import { originRules, type CrossOriginPolicy } from '../core/CrossOrigin.js'
import { isAmbient } from '../core/Description.js'
import { functionName, NOT_COMPARED } from '../core/functionName.js'
import { byOperation, lineText, type PlacedLine, type PolicyLine } from './policy.js'
import { namedIn, withoutThose, type NamedDecider } from './Way.js'

/** The rules, with SARIF's `shortDescription`. */
export const findingRules = {
  'undecided-operation': 'No level decides about an operation.',
  'open-operation': 'Anonymous callers get into an operation.',
  'answered-first': 'An open operation answers requests to a guarded operation.',
  'csrf-off': 'Writes from other sites are accepted with credentials that browsers send by themselves.',
  'unguarded-middleware': 'Middleware runs where no guard covers it.',
  'unchecked-parameter': 'No condition says whose object a path parameter names.',
  'same-words': 'A policy file would have the same words for two authenticators.',
  'policy-opened': 'More callers get in than the policy file says.',
  'policy-changed': 'An operation is not protected as the policy file says.',
  'policy-closed': 'Fewer callers get in than the policy file says.',
  'document-differs': 'The OpenAPI document and the guards differ.',
} as const

export type RuleName = keyof typeof findingRules

/** One finding. Its strings are not escaped. */
export interface AuditFinding {
  readonly rule: RuleName
  /** SARIF 2.1.0 §3.27.10. */
  readonly severity: 'error' | 'warning' | 'note'
  /** The operation: `GET /export`, or `USE /api/*` for middleware. */
  readonly operation: string
  readonly message: string
  readonly fix?: string
  /** The line in the policy file, from 1, if it is known. */
  readonly line?: number | undefined
  /** Where it is in the audit: the index of an operation or of a layer of middleware, and of one of its functions. */
  readonly at?: readonly [index: number, functionIndex?: number]
}

export const findingsOf = ({ operations, middleware }: Audit): ReadonlyArray<AuditFinding> => [
  ...operations.flatMap((operation, at) => [...accessFindings(operation, at), ...orderFindings(operation, at)]),
  ...operations.flatMap(beforeGuard),
  ...middleware.flatMap(unguarded),
]

const accessFindings = (audited: AuditedOperation, index: number): ReadonlyArray<AuditFinding> => {
  const { operation, access, protection, decidedBy, csrf, unread } = audited
  const at = [index] as const
  const open = { rule: 'open-operation', severity: 'note', operation, at } as const
  const found: AuditFinding[] = []
  if (access === 'public') found.push({ ...open, message: `${operation} is ${protection}`, fix: 'guard it' })
  if (access === 'optional')
    found.push({ ...open, message: `${operation} lets anonymous callers in (${protection})`, fix: 'remove that' })
  if (access === 'undecided') {
    const late = `${operation}: its withAuth(...) comes after the handler and guards nothing; write it right after the path`
    const fix = 'guard it or its router, or write withAuth(null) and list it'
    const said = decidedBy.length > 0 ? { message: late } : { message: `${operation} is undecided`, fix }
    found.push({ ...open, rule: 'undecided-operation', severity: 'error', ...said })
  }
  for (const param of unread) {
    const read = /^\d/.test(param) ? 'give it a name, for owned(...)' : `add owned(...) with param: '${param}'`
    const fix = `${read}, or unchecked('${param}', 'why')`
    const message = `${operation}: ${unreadNote(audited, param)}`
    found.push({ rule: 'unchecked-parameter', severity: 'warning', operation, message, fix, at })
  }
  if (csrf === 'off') {
    const message = `${operation} accepts writes from other sites: csrf is off`
    found.push({ rule: 'csrf-off', severity: 'warning', operation, message, at })
  }
  return found
}

const orderFindings = ({ operation, access, shadowedBy }: AuditedOperation, at: number): ReadonlyArray<AuditFinding> =>
  (access === 'guarded' ? shadowedBy.filter((one) => one.access !== 'guarded') : []).map((shadow) => ({
    rule: 'answered-first',
    severity: 'error',
    operation,
    message: `${operation} is guarded, ${inFront(shadow)}`,
    fix: `register ${operation} where it is tried before ${shadow.operation}`,
    at: [at],
  }))

const inFront = ({ operation, access, extent, example }: Shadow): string => {
  const other = `${operation}, which is ${access},`
  return extent === 'unknown'
    ? `and it is not known whether ${other} answers it first, because of a RegExp or of several captures in one segment`
    : `but ${other} answers ${extent === 'all' ? 'it' : (example ?? 'some of it')} first`
}

const unguardedFunction = { rule: 'unguarded-middleware', severity: 'note' } as const

// Middleware before the guard of a public operation is as public as the operation
const beforeGuard = ({ operation, access, beforeGuard, ways }: AuditedOperation, at: number): AuditFinding[] => {
  const readsForm = ways.some(({ demands }) => demands.some(({ credential }) => credential.startsWith('form (')))
  return (access === 'guarded' ? beforeGuard : []).flatMap((name, functionAt) => {
    // formAuth reads the body that a parser has parsed
    if (readsForm && /body/i.test(name)) return []
    return {
      ...unguardedFunction,
      operation,
      message: `${operation}: ${name} runs before the guard`,
      fix: 'put it after withAuth(...), or list the function in middleware',
      at: [at, functionAt],
    }
  })
}

const unguarded = ({ path, functions, guarded }: AuditedMiddleware, at: number): ReadonlyArray<AuditFinding> =>
  (guarded === 'no' ? functions : []).map((name, functionAt) => ({
    ...unguardedFunction,
    operation: `USE ${path}`,
    message: `use ${path}: no guard covers ${name}`,
    fix: 'list the function itself in middleware, or remove it',
    at: [at, functionAt],
  }))

export interface Decider {
  readonly name: string
  readonly requirement: Requirement.Requirement
  /** Which sites may send its credentials. */
  readonly policy?: CrossOriginPolicy
}

/** Two authenticators, or functions, of the same words in a policy file: if they were exchanged, it would be no difference. */
export const sameWordsIn = (deciders: ReadonlyArray<Decider>): ReadonlyArray<AuditFinding> => {
  const first = new Map<string, NamedDecider & { readonly operation: string }>()
  const found = new Map<string, AuditFinding>()
  for (const { name: operation, requirement, policy } of deciders) {
    const description = Requirement.effective(requirement)?.description
    if (description === undefined) continue
    const trusting = policy?.csrf === true && isAmbient(description) ? originRules.in(policy.trustedOrigins) : []
    for (const named of [...namedIn(description), ...trusting.map(trusted)]) {
      const { words, by, fix } = named
      const other = first.get(words) ?? { ...named, operation }
      first.set(words, other)
      if (other.by === by || found.has(words)) continue
      found.set(words, {
        rule: 'same-words',
        severity: 'error',
        operation,
        message: `${operation}: "${words}" is not the same as in ${other.operation}, and the policy file has the same words for both`,
        fix,
      })
    }
  }
  return [...found.values()]
}

const trusted = (rule: Function): NamedDecider => ({
  words: `trusts ${functionName(rule)}`,
  by: rule,
  fix: "give the functions different names: named('a name', f)",
})

/** The functions that a policy file cannot tell from others: bound functions without a name. */
export const uncomparedIn = (lines: ReadonlyArray<PolicyLine>): ReadonlyArray<string> =>
  lines
    .filter((one) => lineText(one).includes(NOT_COMPARED))
    .map(
      ({ operation }) =>
        `${operation}: the policy file cannot tell a bound function from another; give it a name: owned(..., { name }), authorize(f, { name }), or named('a name', f) for an option`,
    )

const severities = { opened: 'error', changed: 'warning', closed: 'note' } as const

export const findingsOfDifferences = (
  differences: ReadonlyArray<Difference<PolicyLine & Partial<PlacedLine>>>,
  of: 'policy' | 'document' = 'policy',
): ReadonlyArray<AuditFinding> =>
  differences.map(({ direction, operation, text, was }) => ({
    rule: of === 'document' ? 'document-differs' : `policy-${direction}`,
    severity: severities[direction],
    operation,
    message: text,
    line: was?.lineNumber,
  }))

/** The lines of an application's file as a router of it knows them: without operations that may answer first in another router. */
export const linesOfRouter = (file: ReadonlyArray<PolicyLine>, own: ReadonlyArray<PolicyLine>): PolicyLine[] => {
  const [all, mine] = [byOperation(file), byOperation(own)]
  const countIn = (lines: typeof all, operation: string) => lines.get(operation)?.length ?? 0
  const known = new Map(own.map((line) => [callersOf(line), line]))
  return file.map((line) => {
    const kept = shadows.map((name) => {
      const mayBeElsewhere = line[name].filter((ahead) => countIn(all, ahead) > countIn(mine, ahead))
      return [name, withoutThose(line[name], withoutThose(mayBeElsewhere, known.get(callersOf(line))?.[name] ?? []))]
    })
    return { ...line, ...Object.fromEntries(kept) }
  })
}

const callersOf = ({ operation, who }: PolicyLine): string => [operation, ...who].join('; ')
