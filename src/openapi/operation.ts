/** `operation`: describes a route for OpenAPI, except for its security, which is read from the guard. */
import { STATUS_CODES } from 'node:http'
import type { Next } from 'koa'
import type { OpenAPIV3_1 } from 'openapi-types'
import * as is from '../core/checks.js'
import { isPlain, declareFactory, checkOptions, withoutUndefined } from '../core/options.js'
import type { Check, Checks, Given, OrUndefined } from '../core/options.js'
import { isCodec, isStandard, standardOf, type Schema, type StandardSchema } from '../core/Schema.js'
import { aheadOfParams, operationMark, notWrapped } from '../core/data.js'
import { refuseUse, type OperationNote } from '../koa/layer.js'
import type * as t from 'io-ts'

type Body = OpenAPIV3_1.RequestBodyObject | OpenAPIV3_1.ReferenceObject

type ResponseObject = OpenAPIV3_1.ResponseObject | OpenAPIV3_1.ReferenceObject

type ResponseGiven = ResponseObject | Schema<unknown>

/** OpenAPI 3.1's Operation Object without `security`, which comes from the guard. */
export type OperationOptions = OrUndefined<
  Omit<OpenAPIV3_1.OperationObject, 'security' | 'requestBody' | 'responses'>
> & {
  readonly security?: undefined
  /**
   * The Request Body Object, or the decoder of the JSON body in the handler: a codec of io-ts, or a Standard Schema, such as one of
   * zod, valibot and arktype. It is only described, not decoded. The docs page has a field for it.
   */
  readonly requestBody?: Body | Schema<unknown> | undefined
  /**
   * By status: a Response Object, or the encoder of the JSON body: a codec of io-ts, or a Standard Schema, as `requestBody`. So
   * clients that are generated from the document know the type. Nothing is checked at run time.
   */
  readonly responses?: Readonly<Record<string, ResponseGiven | undefined>> | undefined
  /** Leaves the operation out of the document. */
  readonly undocumented?: boolean | undefined
  readonly [extension: `x-${string}`]: unknown
}

/** Middleware that describes its operation, and only calls `next`. */
export interface Described {
  (ctx: unknown, next: Next): Promise<unknown>
}

const bodyLike: Check = (where, value) => {
  if (isStandard(value)) return void standardOf(where, value)
  if (isCodec(value)) return
  is.record(where, value)
  // Safe: `record` has checked it
  const { content, $ref } = value as { readonly content?: unknown; readonly $ref?: unknown }
  if (typeof $ref === 'string') return
  if (typeof content !== 'object' || content === null) {
    throw new TypeError(`${where} must be a schema, a codec, or an object of OpenAPI with \`content\``)
  }
  for (const media of Object.values<{ readonly schema?: unknown } | null>({ ...content })) {
    const schema = media?.schema
    // zod makes JSON Schema that is a Standard Schema, too
    if (isCodec(schema) || (isStandard(schema) && !('$schema' in schema)))
      throw new TypeError(
        `${where}: in \`content\` the schema must be JSON Schema; write the schema or codec itself: requestBody: Pet`,
      )
  }
}

const statusOrRange = /^(?:[1-5]\d\d|[1-5]XX|default)$/

const responsesLike: Check = (where, value) => {
  is.record(where, value)
  // Safe: `record` has checked it
  for (const [status, one] of Object.entries(value as object)) {
    if (!statusOrRange.test(status) && !status.startsWith('x-')) {
      throw new TypeError(`${where}: ${status} is not a status; write one such as 200, 4XX or default`)
    }
    if (one !== undefined && !isStandard(one) && !isCodec(one)) is.record(`${where}: ${status}`, one)
  }
}

const readOff: Check = (where, value) => {
  if (value === undefined) return
  throw new TypeError(`${where}: it comes from the guard of the operation; write withAuth(a) after it`)
}

const operationChecks: Checks<OperationOptions> = {
  tags: is.maybe(is.list),
  summary: is.maybe(is.string),
  description: is.maybe(is.string),
  externalDocs: is.maybe(is.record),
  operationId: is.maybe(is.string),
  parameters: is.maybe(is.list),
  requestBody: is.maybe(bodyLike),
  responses: is.maybe(responsesLike),
  callbacks: is.maybe(is.record),
  deprecated: is.maybe(is.flag),
  servers: is.maybe(is.list),
  undocumented: is.maybe(is.flag),
  security: readOff,
}

/**
 * Describes an operation: summary, parameters, request body, responses. Write it after the path, before or after
 * `withAuth`. The document adds `security`, the parameters of the path, and the responses of the guard. It does nothing to a
 * request. Throws a TypeError for a member that OpenAPI's Operation Object does not have, and for `security`.
 *
 * @example
 * import Router from '@koa/router'
 * import * as t from 'io-ts'
 * import { operation, withAuth } from 'koa-with-auth'
 *
 * const router = withAuth(() => ({ user: 'anna' }))(new Router())
 * router.get('/me', operation({ summary: 'Who is signed in', tags: ['users'] }), (ctx) => {
 *   ctx.body = ctx.request.auth.user
 * })
 * const Pet = t.type({ name: t.string })
 * router.post('/pets', operation({ requestBody: Pet }), (ctx) => {
 *   ctx.status = 201
 * })
 */
export const operation = (description: OperationOptions): Described => {
  checkOptions('operation', withoutExtensions(description), operationChecks)
  const { requestBody: body, responses: given, ...options } = withoutUndefined(description)
  const requestBody = body && requestBodyObject(body)
  const responses = given && responsesFrom(given)
  const own = { ...options, ...(requestBody && { requestBody }), ...(responses && { responses }) }
  return describingMiddleware({ options: own })
}

declareFactory('operation', operation)

/** Middleware that serves a part of a docs page, or a file of it. It is not in the document. */
export const docsOperation = (docs: OperationNote['docs']): Described =>
  describingMiddleware({ options: { undocumented: true }, docs })

const describingMiddleware = (note: OperationNote): Described => {
  // Levels wrap middleware that is before a guard, unless it has this `param`
  const marks = { [operationMark]: note, param: aheadOfParams }
  const f = notWrapped(Object.assign((_ctx: unknown, next: Next) => next(), marks))
  refuseUse(
    f,
    (caller) => `${caller}(operation({ ... })) describes nothing; write router.get(path, operation({ ... }), handler)`,
  )
  return f
}

/** Options without those whose name begins with `x-`, which OpenAPI allows everywhere. */
export const withoutExtensions = <T>(options: T): T =>
  isPlain(options)
    ? // Safe: only extensions are left out
      (Object.fromEntries(Object.entries(options).filter(([name]) => !name.startsWith('x-'))) as T)
    : options

/** A description: the same options, with the Request Body Object of a schema. */
export type DescribedOperation = Given<Omit<OperationOptions, 'requestBody' | 'responses'>> & {
  readonly requestBody?: Body
  readonly responses?: OpenAPIV3_1.ResponsesObject
}

/** The form of a JSON body (JSON Schema 2020-12); empty: anything. */
type JsonSchema = Readonly<Record<string, unknown>>

// It describes the body, so that a docs page has a field for it. It decodes nothing: that stays with the handler
const requestBodyObject = (given: Body | Schema<unknown>): Body => {
  const schema = schemaOf('operation({ requestBody })', given, 'input')
  // Safe: anything else is an object of OpenAPI
  if (schema === undefined) return given as Body
  // a docs page has a field for any JSON, too, if it knows an example to show in it
  const isAny = Object.keys(schema).length === 0
  return { required: true, content: { 'application/json': { schema, ...(isAny && { example: {} }) } } }
}

const responsesFrom = (given: NonNullable<OperationOptions['responses']>): OpenAPIV3_1.ResponsesObject =>
  Object.fromEntries(
    Object.entries(given).flatMap(([status, one]) => (one ? [[status, responseObject(status, one)]] : [])),
  )

const responseObject = (status: string, given: ResponseGiven): ResponseObject => {
  const schema = schemaOf(`operation({ responses: { ${status} } })`, given, 'output')
  // Safe: anything else is an object of OpenAPI
  if (schema === undefined) return given as ResponseObject
  return { description: STATUS_CODES[status] ?? 'Response', content: { 'application/json': { schema } } }
}

/** The JSON Schema of a schema or a codec; any JSON if there is none. `undefined` for an object of OpenAPI. */
const schemaOf = (where: string, given: object, direction: 'input' | 'output'): JsonSchema | undefined => {
  if (isStandard(given)) return fromStandard(standardOf(where, given), direction)
  return isCodec(given) ? fromCodec(given) : undefined
}

// Standard JSON Schema (https://standardschema.dev/json-schema): zod from 4.2 on, arktype, and `toStandardJsonSchema` of valibot.
// It throws for types that JSON Schema does not have, such as a Date
const fromStandard = (standard: StandardSchema['~standard'], direction: 'input' | 'output'): JsonSchema => {
  try {
    // Safe: whatever it returns is made plain data, and anything else throws
    const { jsonSchema } = standard as unknown as {
      readonly jsonSchema: Readonly<Record<typeof direction, (options: { readonly target: string }) => object>>
    }
    const text = JSON.stringify(jsonSchema[direction]({ target: 'draft-2020-12' }))
    const parsed: unknown = JSON.parse(text)
    // a reference would be to the root of the document that the schema becomes a part of
    if (typeof parsed !== 'object' || Array.isArray(parsed) || text.includes('"$ref"')) return {}
    const { $schema: _, ...schema } = { $schema: undefined, ...parsed }
    return schema
  } catch {
    return {}
  }
}

// The parts of io-ts's classes that are read, which their tag names
interface TaggedCodec extends t.Decoder<unknown, unknown> {
  readonly _tag?: unknown
  readonly is?: (u: unknown) => boolean
  readonly type?: TaggedCodec
  readonly types?: ReadonlyArray<TaggedCodec>
  readonly props?: Readonly<Record<string, TaggedCodec>>
  readonly keys?: object
  readonly codomain?: TaggedCodec
  readonly value?: unknown
}

const primitives: ReadonlyMap<unknown, JsonSchema> = new Map([
  ['StringType', { type: 'string' }],
  ['NumberType', { type: 'number' }],
  ['BooleanType', { type: 'boolean' }],
  ['NullType', { type: 'null' }],
  ['AnyArrayType', { type: 'array' }],
  ['AnyDictionaryType', { type: 'object' }],
])

/** The JSON Schema of a codec, by the tags of io-ts. A codec of another class accepts anything. */
const fromCodec = (codec: TaggedCodec): JsonSchema => {
  const { _tag: tag, type: inner, types = [], props = {}, keys = {}, codomain, value } = codec
  switch (tag) {
    case 'LiteralType':
      return { const: value }
    case 'KeyofType':
      return { enum: Object.keys(keys) }
    case 'RefinementType':
    case 'ExactType':
    case 'ReadonlyType':
      return inner === undefined ? {} : fromCodec(inner)
    case 'ArrayType':
    case 'ReadonlyArrayType':
      return { type: 'array', ...(inner !== undefined && { items: fromCodec(inner) }) }
    case 'TupleType':
      return { type: 'array', prefixItems: types.map(fromCodec), minItems: types.length, maxItems: types.length }
    case 'DictionaryType':
      return { type: 'object', ...(codomain !== undefined && { additionalProperties: fromCodec(codomain) }) }
    case 'InterfaceType':
    case 'StrictType':
      return objectSchema(props, isRequired)
    case 'PartialType':
      return objectSchema(props, () => false)
    case 'IntersectionType':
      return { allOf: types.map(fromCodec) }
    case 'UnionType':
      return anyOfSchemas(types.filter((one) => one._tag !== 'UndefinedType').map(fromCodec))
    default:
      return primitives.get(tag) ?? {}
  }
}

const anyOfSchemas = (members: ReadonlyArray<JsonSchema>): JsonSchema => {
  const [only = {}, ...others] = members
  return others.length === 0 ? only : { anyOf: members }
}

const objectSchema = (props: object, needs: (codec: TaggedCodec) => boolean): JsonSchema => {
  const members = Object.entries<TaggedCodec>({ ...props })
  const required = members.flatMap(([name, one]) => (needs(one) ? name : []))
  const properties = Object.fromEntries(members.map(([name, one]) => [name, fromCodec(one)]))
  return { type: 'object', properties, ...(required.length > 0 && { required }) }
}

// `t.type` lets a property be left out whose codec accepts undefined
const isRequired = (codec: TaggedCodec | undefined): boolean => {
  const { _tag: tag, type: inner, types = [] } = codec ?? {}
  if (tag === 'UnionType') return types.every(isRequired)
  if (tag === 'RefinementType' || tag === 'ReadonlyType') return isRequired(inner)
  return !['UndefinedType', 'UnknownType', 'AnyType', 'VoidType'].includes(String(tag))
}
