/**
 * A JSON Schema for the parts of SARIF 2.1.0 that the command writes. It refuses all other properties. It was written
 * by hand, from §3.13 (sarifLog), §3.14 (run), §3.19 (toolComponent), §3.27 (result), §3.28 (location) and §3.49
 * (reportingDescriptor).
 *
 * @see https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
 */
const closed = (properties: object, ...required: ReadonlyArray<string>) => ({
  type: 'object',
  additionalProperties: false,
  properties,
  required,
})
const text = { type: 'string', minLength: 1 }
const message = closed({ text }, 'text')
// RFC 3986: the characters of a URI reference
const uri = { type: 'string', pattern: "^[A-Za-z0-9._~:/?#@!$&'()*+,;=%-]+$" }

const location = closed({
  physicalLocation: closed(
    {
      artifactLocation: closed({ uri }, 'uri'),
      region: closed({ startLine: { type: 'integer', minimum: 1 } }, 'startLine'),
    },
    'artifactLocation',
  ),
  logicalLocations: {
    type: 'array',
    uniqueItems: true,
    items: closed({ fullyQualifiedName: text, kind: text }),
  },
})

const result = closed(
  {
    ruleId: text,
    ruleIndex: { type: 'integer', minimum: 0 },
    level: { enum: ['none', 'note', 'warning', 'error'] },
    message,
    locations: { type: 'array', items: location },
    partialFingerprints: { type: 'object', additionalProperties: { type: 'string' } },
  },
  'message',
)

const driver = closed(
  {
    name: text,
    version: text,
    rules: { type: 'array', uniqueItems: true, items: closed({ id: text, shortDescription: message }, 'id') },
  },
  'name',
)

/** The schema of a log. */
export const sarifSchema = closed(
  {
    $schema: uri,
    version: { const: '2.1.0' },
    runs: {
      type: 'array',
      items: closed({ tool: closed({ driver }, 'driver'), results: { type: 'array', items: result } }, 'tool'),
    },
  },
  'version',
  'runs',
)
