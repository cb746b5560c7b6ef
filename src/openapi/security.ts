/** A requirement for OpenAPI. A name depends only on its scheme, so no operation changes the names of another. */
import { STATUS_CODES } from 'node:http'
import { isDeepStrictEqual } from 'node:util'
import type { Request } from 'koa'
import type { OpenAPIV3_1 } from 'openapi-types'
import { isSafe } from '../core/CrossOrigin.js'
import {
  MAX_FIELD_LENGTH,
  admitsAnonymous,
  children,
  isAmbient,
  isThrottled,
  leaves,
  objectsIn,
  schemeNameOf,
  schemeOf,
} from '../core/Description.js'
import type { Description, Scoped, SecurityScheme } from '../core/Description.js'
import { alternativesOf, type CredentialDemand } from '../core/Alternative.js'
import { effective, type Requirement } from '../core/Requirement.js'
import { ageInWords } from '../core/Proof.js'
import { problemMembers } from '../core/Settings.js'
import type { ListedMethod } from './paths.js'

interface NamedScheme {
  readonly name: string
  readonly scheme: SecurityScheme
}

export interface Security {
  /** The demands of its authenticator; `undefined` if anyone may call. */
  readonly description: Description | undefined
  /** The list for OpenAPI; `undefined` if no alternative has a scheme (plain functions). */
  readonly requirements: OpenAPIV3_1.SecurityRequirementObject[] | undefined
  readonly schemes: ReadonlyArray<NamedScheme>
  /** A sentence in CommonMark about demands that OpenAPI cannot express. */
  readonly remark: string | undefined
}

const publicSecurity: Security = { description: undefined, requirements: [], schemes: [], remark: undefined }

// The page shows a padlock only for a scheme. Without a remark, the operation would look public
const functionsRemark = (description: Description): ReadonlyArray<string> => {
  const all = leaves(description)
  const functions = all.filter(({ scheme, fields }) => scheme === undefined && fields === undefined)
  if (functions.length === 0) return formRemarksOf(description)
  return functions.length === all.length && !admitsAnonymous(description)
    ? ['**Guarded** by a function of the request. It has no security scheme, so there is nothing to enter.']
    : ['A function of the request decides, too. It has no security scheme, so there is nothing to enter for it.']
}

const authenticationRemarks = (description: Description): ReadonlyArray<string> => {
  const inner = children(description).flatMap(authenticationRemarks)
  if (description._tag !== 'Scoped' || description.authentication === undefined) return inner
  const { acr, maxAge } = description.authentication
  const needed = neededInWords('with `acr`', acr, maxAge)
  return [
    ...inner,
    `The user of the token must have authenticated ${needed}. Otherwise the answer is 401 \`insufficient_user_authentication\` (RFC 9470).`,
  ]
}

const proofRemarks = (description: Description): ReadonlyArray<string> =>
  leaves(description).flatMap(({ proof }) =>
    proof === undefined
      ? []
      : `The user must have given a proof ${neededInWords('by', proof.methods, proof.maxAge)}. Otherwise the answer is 403, and its member \`proof\` says which one is needed.`,
  )

const neededInWords = (how: string, ways: ReadonlyArray<string> | undefined, maxAge: number | undefined): string =>
  [
    ...(ways === undefined ? [] : [`${how} ${ways.map((one) => `\`${one}\``).join(' or ')}`]),
    ...(maxAge === undefined ? [] : [`at most ${ageInWords(maxAge * 1000)} ago`]),
  ].join(', ')

const remarkOf = (description: Description): string | undefined => {
  const further = new Set([...authenticationRemarks(description), ...proofRemarks(description)])
  return [...functionsRemark(description), ...further].join(' ') || undefined
}

const formRemarksOf = (description: Description): ReadonlyArray<string> => {
  const { forms, isInEach } = formFields(description)
  const [first, ...others] = forms.map((fields) => fields.map((name) => `\`${name}\``).join(' and '))
  if (first === undefined) return []
  return isInEach && others.length === 0
    ? [`**Guarded** by the fields ${first} of the request body.`]
    : [`The fields ${[first, ...others].join(', or ')} of the request body are a credential, too.`]
}

/** The demands of a requirement. Some schemes depend on the application of the request. */
export const securityOf = (requirement: Requirement, request?: Request): Security => {
  const description = effective(requirement)?.description
  if (description === undefined) return publicSecurity
  const listed = alternativesOf(description)
    // OpenAPI must not say that anonymous callers pass where a plain function may refuse them
    .filter(({ mayBeRefused }) => !mayBeRefused)
    .flatMap(({ demands }) => withDiscovery(demands, request))
    .map((demands) => ({ isAnonymous: demands.length === 0, members: schemeMembers(demands, request) }))
    // Alternatives of plain functions must not become `{}`, which means that anonymous callers pass
    .filter(({ isAnonymous, members }) => isAnonymous || members.length > 0)
    .map(({ members }) => members)
  return {
    description,
    requirements: listed.length === 0 ? undefined : listed.map(requirementObject).filter(isFirst),
    schemes: listed.flat(),
    remark: remarkOf(description),
  }
}

type Demands = ReadonlyArray<CredentialDemand>

// A tool that knows OpenID Connect uses the discovery document, and any other the token
const waysToSay = (demand: CredentialDemand, request: Request | undefined): Demands => {
  const { leaf } = demand
  const { discovery, schemeFor: _schemeFor, alsoFor, ...plain } = leaf
  const other = discovery ?? alsoFor?.(request)
  if (other === undefined) return [demand]
  const schemeName = leaf.schemeName === undefined ? {} : { schemeName: `${leaf.schemeName}_${other.type}` }
  return [demand, { ...demand, leaf: { ...plain, scheme: other, ...schemeName } }]
}

const withDiscovery = (demands: Demands, request: Request | undefined): ReadonlyArray<Demands> =>
  demands.reduce<ReadonlyArray<Demands>>(
    (some, demand) => some.flatMap((one) => waysToSay(demand, request).map((way) => [...one, way])),
    [[]],
  )

interface Member extends NamedScheme {
  readonly scopes: ReadonlyArray<string>
}

const schemeMembers = (demands: Demands, request: Request | undefined): ReadonlyArray<Member> =>
  demands.flatMap(({ leaf, scopes }) => {
    const scheme = schemeOf(leaf, request)
    const name = schemeNameOf(leaf, request)
    return scheme === undefined || name === undefined ? [] : [{ name, scheme, scopes }]
  })

// If one scheme is demanded twice, all its scopes are listed
const requirementObject = (members: ReadonlyArray<Member>): OpenAPIV3_1.SecurityRequirementObject => {
  const scopesOf = (scheme: string) => members.flatMap(({ name, scopes }) => (name === scheme ? scopes : []))
  return Object.fromEntries(members.map(({ name }) => [name, [...new Set(scopesOf(name))]]))
}

const isFirst = (one: object, at: number, all: ReadonlyArray<object>): boolean =>
  all.findIndex((other) => isDeepStrictEqual(one, other)) === at

interface SchemeUse extends NamedScheme {
  readonly where: string
}

type Schemes = Record<string, OpenAPIV3_1.SecuritySchemeObject>

/** The schemes of all operations by name. Throws a TypeError if two that differ have one name. */
export const securitySchemesOf = (uses: ReadonlyArray<SchemeUse>): Schemes => {
  const byName = new Map<string, SchemeUse>()
  for (const use of uses) {
    const other = byName.get(use.name)
    if (other === undefined) byName.set(use.name, use)
    else if (other.scheme !== use.scheme && !isDeepStrictEqual(other.scheme, use.scheme)) throw clash(other, use)
  }
  // Safe: it is OpenAPI's own model, but openapi-types does not know mutualTLS, or flows that are written as data
  return Object.fromEntries([...byName].map(([name, { scheme }]) => [name, structuredClone(scheme)])) as Schemes
}

const clash = ({ name, where }: SchemeUse, other: SchemeUse): TypeError =>
  new TypeError(
    where === other.where
      ? `openApi: ${where} demands two security schemes called "${name}" that differ; give each its own schemeName`
      : `openApi: the security schemes called "${name}" of ${where} and of ${other.where} differ; give each its own schemeName`,
  )

/** The fields of each alternative that demands some, each once, and whether each alternative does. */
const formFields = (description: Description) => {
  const all = alternativesOf(description).map(
    ({ demands }) => new Set(demands.flatMap(({ leaf }) => leaf.fields ?? [])),
  )
  const some = all.filter(({ size }) => size > 0).map((fields) => [...fields])
  const forms = [...new Map(some.map((fields) => [fields.join(' '), fields])).values()]
  return { forms, isInEach: some.length === all.length }
}

const formSchema = (fields: ReadonlyArray<string>): OpenAPIV3_1.SchemaObject => ({
  type: 'object',
  required: [...fields],
  properties: Object.fromEntries(
    fields.map((name) => {
      const format = /passw|passphrase/i.test(name) && { format: 'password' }
      return [name, { type: 'string', minLength: 1, maxLength: MAX_FIELD_LENGTH, ...format }]
    }),
  ),
})

/** The request body that an operation's guard demands, such as `formAuth`; `undefined` if it reads none. */
export const requestBodyOf = (description: Description | undefined, method: ListedMethod) => {
  if (description === undefined || !/^(?:post|put|patch)$/.test(method)) return undefined
  const { forms, isInEach } = formFields(description)
  const [first, ...others] = forms.map(formSchema)
  if (first === undefined) return undefined
  const schema = () => structuredClone(others.length === 0 ? first : { anyOf: [first, ...others] })
  return {
    required: isInEach,
    content: { 'application/x-www-form-urlencoded': { schema: schema() }, 'application/json': { schema: schema() } },
  }
}

/** The fields that a guard reads beside those of its schemes, such as the time of a webhook. Those of all alternatives are required. */
export const headerParametersOf = (description?: Description): ReadonlyArray<OpenAPIV3_1.ParameterObject> => {
  if (description === undefined) return []
  const each = alternativesOf(description).map(({ demands }) => demands.flatMap(({ leaf }) => leaf.headers ?? []))
  return [...new Set(each.flat())].map((name) => ({
    name,
    in: 'header',
    required: each.every((names) => names.includes(name)),
    schema: { type: 'string' },
  }))
}

const headers = {
  'WWW-Authenticate': {
    description: 'A challenge for every alternative (RFC 9110 §11.6.1)',
    schema: { type: 'string' },
  },
  'Retry-After': { description: 'Seconds to wait (RFC 9110 §10.2.3)', schema: { type: 'integer', minimum: 0 } },
} satisfies Record<string, OpenAPIV3_1.HeaderObject>

type HeaderName = keyof typeof headers

const pathToHeader = (name: string): string => `#/components/headers/${name}`

const withHeaderReference = (name: HeaderName) => ({ headers: { [name]: { $ref: pathToHeader(name) } } })

const problemResponse = (status: number, description: string, header?: HeaderName): OpenAPIV3_1.ResponseObject => {
  const title = STATUS_CODES[status]
  return {
    description,
    ...(header !== undefined && withHeaderReference(header)),
    content: {
      'application/problem+json': {
        schema: { $ref: '#/components/schemas/Problem' },
        example: { type: 'about:blank', title, status, detail: title },
      },
    },
  }
}

const guardResponses = {
  401: problemResponse(401, 'Not authenticated: no credentials, or no valid ones', 'WWW-Authenticate'),
  403: problemResponse(403, 'Authenticated, but not allowed, or sent by another site'),
  404: problemResponse(404, 'There is no such object, or it is not for the caller'),
  429: problemResponse(429, 'Too many guesses were made; no hook was called', 'Retry-After'),
  503: problemResponse(503, 'The caller cannot be authenticated now', 'Retry-After'),
}

type FailureStatus = keyof typeof guardResponses

// `NotFound`
const responseName = (status: string | number): string => String(STATUS_CODES[status]).replaceAll(' ', '')

const pathToResponse = (status: string | number): string => `#/components/responses/${responseName(status)}`

type Responses = OpenAPIV3_1.ResponsesObject

// `requireAuthentication` answers 401
const mayForbid = ({ authentication, object, unchecked }: Scoped): boolean =>
  authentication === undefined && unchecked === undefined && object?.refuse !== 404

const isScoped = (description: Description): boolean =>
  (description._tag === 'Scoped' && mayForbid(description)) ||
  (description._tag === 'Leaf' && description.proof !== undefined) ||
  children(description).some(isScoped)

// Whether a request can be answered 401: not if bad credentials also count as absent
const canRefuse = (description: Description): boolean =>
  description._tag === 'Optional'
    ? !description.lenient
    : description._tag === 'Leaf' || children(description).some(canRefuse)

/** The statuses that the guard of an operation can answer. Only a request shows whether CSRF is checked. */
export const failuresOf = (description: Description | undefined, method: ListedMethod): ReadonlyArray<FailureStatus> =>
  description === undefined
    ? []
    : [
        ...(canRefuse(description) ? [401 as const] : []),
        ...(isScoped(description) || refusesOrigins(description, method) ? [403 as const] : []),
        ...(objectsIn(description).length > 0 ? [404 as const] : []),
        ...(isThrottled(description) ? [429 as const] : []),
        // any hook can be async, and take too long
        503,
      ]

// A write of another site, or any request of an origin that a protected resource does not list
const refusesOrigins = (description: Description, method: ListedMethod): boolean =>
  (isAmbient(description) && !isSafe(method.toUpperCase())) ||
  leaves(description).some(({ exposesChallenges }) => exposesChallenges !== undefined)

/** The responses of an operation: its own, and those of its guard. Its own of the same status stays, but its own 401 names the challenge. */
export const responsesOf = (own: Responses | undefined, failures: ReadonlyArray<FailureStatus>): Responses => {
  const isBare = own === undefined || Object.keys(own).length === 0
  const responses: Responses = isBare ? { 200: { description: 'OK' } } : { ...own }
  for (const status of failures) {
    const response = responses[status]
    if (response === undefined) responses[status] = { $ref: pathToResponse(status) }
    else if (status === 401 && !('$ref' in response) && response.headers === undefined) {
      responses[status] = { ...response, ...withHeaderReference('WWW-Authenticate') }
    }
  }
  return responses
}

const Problem = {
  type: 'object',
  description: 'Problem details (RFC 9457)',
  properties: {
    type: { type: 'string', format: 'uri-reference', default: 'about:blank' },
    title: { type: 'string' },
    status: { type: 'integer', minimum: 100, maximum: 599 },
    detail: { type: 'string' },
    instance: { type: 'string', format: 'uri-reference' },
    ...problemMembers,
  },
} as const

/** The components that these operations' responses refer to, and no others. They are copies for the caller. */
export const failureComponents = (operations: ReadonlyArray<Responses>): OpenAPIV3_1.ComponentsObject => {
  const used = Object.entries(guardResponses).filter(([status]) =>
    operations.some((own) => refersTo(own[status], pathToResponse(status))),
  )
  const own401s = operations.map((own) => own[401])
  const written = Object.entries(headers).filter(([name]) =>
    [...own401s, ...used.map(([, one]) => one)].some(
      (one) => one !== undefined && 'headers' in one && refersTo(one.headers?.[name], pathToHeader(name)),
    ),
  )
  if (used.length === 0 && written.length === 0) return {}
  return structuredClone({
    // Safe: it is only data, and the copy is not readonly
    ...(used.length > 0 && { schemas: { Problem: Problem as unknown as OpenAPIV3_1.SchemaObject } }),
    ...(used.length > 0 && { responses: Object.fromEntries(used.map(([status, one]) => [responseName(status), one])) }),
    headers: Object.fromEntries(written),
  })
}

const refersTo = (one: object | undefined, path: string): boolean =>
  one !== undefined && '$ref' in one && one.$ref === path
