/**
 * The answers that a guard gives instead of the operation, as OpenAPI Responses: 401, 403, 429 and 503. Each is written once, as a
 * component.
 *
 * If an operation describes the same status itself, its description stays. Its own 401 still names the challenge.
 */
import type { OpenAPIV3_1 } from 'openapi-types'
import { isSafe } from '../core/CrossOrigin.js'
import { children, isAmbient, isThrottled, type Description } from '../core/Description.js'
import type { ListedMethod } from './methods.js'

type Responses = OpenAPIV3_1.ResponsesObject

const names = { 401: 'Unauthorized', 403: 'Forbidden', 429: 'TooManyRequests', 503: 'ServiceUnavailable' } as const

/** A status that a guard answers. */
export type FailureStatus = keyof typeof names

const isScoped = (description: Description): boolean =>
  description._tag === 'Scoped' || children(description).some(isScoped)

// Whether a request can be answered 401: not if bad credentials also count as absent
const canRefuse = (description: Description): boolean => {
  switch (description._tag) {
    case 'Leaf':
      return true
    case 'AnyOf':
    case 'AllOf':
      return description.members.some(canRefuse)
    case 'Optional':
      return !description.lenient
    case 'Scoped':
      return canRefuse(description.member)
  }
}

/** The statuses that the guard of an operation can answer. Only a request shows whether CSRF is checked. */
export const failuresOf = (description: Description | undefined, method: ListedMethod): ReadonlyArray<FailureStatus> =>
  description === undefined
    ? []
    : [
        ...(canRefuse(description) ? [401 as const] : []),
        ...(isScoped(description) || (isAmbient(description) && !isSafe(method.toUpperCase())) ? [403 as const] : []),
        ...(isThrottled(description) ? [429 as const] : []),
        // any hook can be async, and take too long
        503,
      ]

const challenge = '#/components/headers/WWW-Authenticate'
const challengeHeader = () => ({ 'WWW-Authenticate': { $ref: challenge } })

/** The responses of an operation: its own, and those of its guard. */
export const responsesOf = (own: Responses | undefined, failures: ReadonlyArray<FailureStatus>): Responses => {
  const isBare = own === undefined || Object.keys(own).length === 0
  const responses: Responses = isBare ? { 200: { description: 'OK' } } : { ...own }
  for (const status of failures) {
    const response = responses[status]
    if (response === undefined) responses[status] = { $ref: `#/components/responses/${names[status]}` }
    else if (status === 401 && !('$ref' in response) && response.headers === undefined) {
      responses[status] = { ...response, headers: challengeHeader() }
    }
  }
  return responses
}

const problem = (status: FailureStatus, title: string, description: string, headers?: Headers) => ({
  description,
  ...(headers !== undefined && { headers }),
  content: {
    'application/problem+json': {
      schema: { $ref: '#/components/schemas/Problem' },
      example: { type: 'about:blank', title, status, detail: title },
    },
  },
})
type Headers = Readonly<Record<string, { readonly $ref: string }>>

const retryAfter: Headers = { 'Retry-After': { $ref: '#/components/headers/Retry-After' } }

const responses: Readonly<Record<FailureStatus, OpenAPIV3_1.ResponseObject>> = {
  401: problem(401, 'Unauthorized', 'Not authenticated: no credentials, or no valid ones', challengeHeader()),
  403: problem(403, 'Forbidden', 'Authenticated, but not allowed, or sent by another site'),
  429: problem(429, 'Too Many Requests', 'Too many guesses were made; no hook was called', retryAfter),
  503: problem(503, 'Service Unavailable', 'The caller cannot be authenticated now', retryAfter),
}

const headers: Readonly<Record<string, OpenAPIV3_1.HeaderObject>> = {
  'WWW-Authenticate': {
    description: 'A challenge for every alternative (RFC 9110 §11.6.1)',
    schema: { type: 'string' },
  },
  'Retry-After': { description: 'Seconds to wait (RFC 9110 §10.2.3)', schema: { type: 'integer', minimum: 0 } },
}

const Problem: OpenAPIV3_1.SchemaObject = {
  type: 'object',
  description: 'Problem details (RFC 9457)',
  properties: {
    type: { type: 'string', format: 'uri-reference', default: 'about:blank' },
    title: { type: 'string' },
    status: { type: 'integer', minimum: 100, maximum: 599 },
    detail: { type: 'string' },
    instance: { type: 'string', format: 'uri-reference' },
  },
}

/** The components that these operations' responses refer to, and no others. They are copies for the caller. */
export const failureComponents = (operations: ReadonlyArray<Responses>): OpenAPIV3_1.ComponentsObject => {
  const used = new Set<FailureStatus>()
  const written = new Set<string>()
  for (const all of operations) {
    for (const status of statuses) if (refersTo(all[status], `responses/${names[status]}`)) used.add(status)
    const own = all[401]
    const header = own !== undefined && 'headers' in own ? own.headers?.['WWW-Authenticate'] : undefined
    if (header !== undefined && '$ref' in header && header.$ref === challenge) written.add('WWW-Authenticate')
  }
  for (const status of used) for (const name of Object.keys(responses[status].headers ?? {})) written.add(name)
  if (used.size === 0 && written.size === 0) return {}
  return structuredClone({
    ...(used.size > 0 && { schemas: { Problem } }),
    ...(used.size > 0 && {
      responses: Object.fromEntries([...used].sort().map((status) => [names[status], responses[status]])),
    }),
    headers: Object.fromEntries(Object.entries(headers).filter(([name]) => written.has(name))),
  })
}

const statuses: ReadonlyArray<FailureStatus> = [401, 403, 429, 503]

const refersTo = (response: Responses[string] | undefined, component: string): boolean =>
  response !== undefined && '$ref' in response && response.$ref === `#/components/${component}`
