/**
 * Writes findings as a SARIF 2.1.0 log, for code scanning.
 *
 * @see https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
 */
import { createHash } from 'node:crypto'
import { isAbsolute, relative, resolve, sep } from 'node:path'
import { pathToFileURL } from 'node:url'

/** How bad a result is (SARIF §3.27.10). */
export type Severity = 'error' | 'warning' | 'note'

/** A finding for a reviewer. Its strings can be printed (`visible`). */
export interface Finding {
  readonly rule: RuleName
  /** The operation: `GET /export`. */
  readonly operation: string
  readonly text: string
  readonly severity: Severity
  /** The line in the file, from 1, if it is known. */
  readonly line?: number | undefined
}

/** The rules, with SARIF's `shortDescription`. */
const rules = {
  'undecided-operation': 'No level decides who may call an operation.',
  'open-operation': 'Anonymous callers get into an operation.',
  'answered-first': 'An open operation answers requests to a guarded one.',
  'csrf-off': 'Writes from other sites are accepted with credentials that browsers send by themselves.',
  'unguarded-middleware': 'Middleware runs where no guard covers it.',
  'policy-opened': 'More callers get in than the policy file says.',
  'policy-changed': 'An operation is not protected as the policy file says.',
  'policy-closed': 'Fewer callers get in than the policy file says.',
  'document-differs': 'The OpenAPI document and the guards differ.',
} as const

/** The name of a rule. */
export type RuleName = keyof typeof rules

/** The findings about a file as a log; `version` is that of this package. */
export const sarifOf = (findings: ReadonlyArray<Finding>, file: string, version: string): object => ({
  $schema: 'https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json',
  version: '2.1.0',
  runs: [
    {
      tool: {
        driver: {
          name: 'koa-with-auth',
          version,
          rules: Object.entries(rules).map(([id, text]) => ({ id, shortDescription: { text } })),
        },
      },
      results: findings.map((finding) => resultOf(finding, uriOf(file))),
    },
  ],
})

const resultOf = ({ rule, operation, text, severity, line }: Finding, uri: string): object => ({
  ruleId: rule,
  ruleIndex: Object.keys(rules).indexOf(rule),
  level: severity,
  message: { text: messageOf(text) },
  locations: [
    {
      physicalLocation: { artifactLocation: { uri }, region: { startLine: line ?? 1 } },
      logicalLocations: [{ fullyQualifiedName: operation, kind: 'function' }],
    },
  ],
  // so that a finding keeps its identity when lines move
  partialFingerprints: { 'koaWithAuth/v1': digest(`${rule} ${operation}`) },
})

// §3.11.5: braces are placeholders, unless they are doubled
const messageOf = (text: string): string => text.replace(/[{}]/g, '$&$&')

const digest = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 32)

/** A file as a URI: relative to the working directory, if it is in it. */
const uriOf = (file: string): string => {
  const path = relative(process.cwd(), resolve(file))
  if (path.startsWith('..') || isAbsolute(path)) return pathToFileURL(file).href
  return path.split(sep).map(encodeURIComponent).join('/')
}
