/** Findings for code scanning. */
import { digest } from '../crypto/secrets.js'
import { isAbsolute, relative, resolve, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { visible } from '../audit/Audit.js'
import { findingRules, type AuditFinding } from '../audit/findings.js'

/**
 * The findings about a file as a SARIF 2.1.0 log, for code scanning; `version` is that of this package.
 *
 * @see https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
 */
export const sarifOf = (findings: ReadonlyArray<AuditFinding>, file: string, version: string): object => ({
  $schema: 'https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json',
  version: '2.1.0',
  runs: [
    {
      tool: {
        driver: {
          name: 'koa-with-auth',
          version,
          rules: Object.entries(findingRules).map(([id, text]) => ({ id, shortDescription: { text } })),
        },
      },
      results: findings.map((finding) => sarifResult(finding, uriOf(file))),
    },
  ],
})

const sarifResult = ({ rule, operation, message, severity, line }: AuditFinding, uri: string): object => ({
  ruleId: rule,
  ruleIndex: Object.keys(findingRules).indexOf(rule),
  level: severity,
  // §3.11.5: braces are placeholders, unless they are doubled
  message: { text: visible(message).replace(/[{}]/g, '$&$&') },
  locations: [
    {
      physicalLocation: { artifactLocation: { uri }, region: { startLine: line ?? 1 } },
      logicalLocations: [{ fullyQualifiedName: visible(operation), kind: 'function' }],
    },
  ],
  // so that a finding keeps its identity when lines move
  partialFingerprints: { 'koaWithAuth/v1': digest(`${rule} ${visible(operation)}`, 'hex').slice(0, 32) },
})

const uriOf = (file: string): string => {
  const path = relative(process.cwd(), resolve(file))
  if (path.startsWith('..') || isAbsolute(path)) return pathToFileURL(file).href
  return path.split(sep).map(encodeURIComponent).join('/')
}
