/**
 * The request body of an operation from what the application decodes it with: a codec of io-ts, or a Standard Schema.
 *
 * It describes the body, so that a docs page has a field for it. It decodes nothing: that stays with the handler. What has no
 * JSON Schema is described as any JSON.
 */
import type * as t from 'io-ts'
import type { OpenAPIV3_1 } from 'openapi-types'
import { isCodec, isStandard, standardOf, type Schema, type StandardSchema } from '../core/Schema.js'

/** What a JSON body must look like (JSON Schema 2020-12); empty: anything. */
type JsonSchema = Readonly<Record<string, unknown>>

type Body = OpenAPIV3_1.RequestBodyObject | OpenAPIV3_1.ReferenceObject

/** The Request Body Object for a schema or a codec. An object of OpenAPI is returned unchanged. */
export const requestBodyOf = (place: string, given: Body | Schema<unknown>): Body => {
  if (isStandard(given)) return jsonBody(fromStandard(standardOf(place, given)))
  return isCodec(given) ? jsonBody(fromCodec(given)) : given
}

const jsonBody = (schema: JsonSchema): OpenAPIV3_1.RequestBodyObject => ({
  required: true,
  content: {
    'application/json': {
      schema,
      // a docs page has a field for any JSON, too, if it knows what to show in it
      ...(Object.keys(schema).length === 0 && { example: {} }),
    },
  },
})

// -------------------------------------------------------------------------------------
// Standard Schema
// -------------------------------------------------------------------------------------

// Standard JSON Schema (https://standardschema.dev/json-schema): zod from 4.2 on, arktype, and `toStandardJsonSchema` of valibot.
// It throws for what JSON Schema cannot say, such as a Date
const fromStandard = (standard: StandardSchema['~standard']): JsonSchema => {
  try {
    // Safe: whatever it returns is made plain data, and anything else throws
    const { jsonSchema } = standard as unknown as {
      readonly jsonSchema: { readonly input: (options: { readonly target: string }) => object }
    }
    const text = JSON.stringify(jsonSchema.input({ target: 'draft-2020-12' }))
    const parsed: unknown = JSON.parse(text)
    // a reference would be to the root of the document that the schema becomes a part of
    if (typeof parsed !== 'object' || Array.isArray(parsed) || text.includes('"$ref"')) return {}
    const { $schema: _, ...schema } = { $schema: undefined, ...parsed }
    return schema
  } catch {
    return {}
  }
}

// -------------------------------------------------------------------------------------
// io-ts
// -------------------------------------------------------------------------------------

// The parts of io-ts's classes that are read, which their tag names
interface Tagged extends t.Decoder<unknown, unknown> {
  readonly _tag?: unknown
  readonly is?: (u: unknown) => boolean
  readonly type?: Tagged
  readonly types?: ReadonlyArray<Tagged>
  readonly props?: Readonly<Record<string, Tagged>>
  readonly keys?: object
  readonly codomain?: Tagged
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
const fromCodec = (codec: Tagged): JsonSchema => {
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
      return objectOf(
        props,
        Object.keys(props).filter((name) => isRequired(props[name])),
      )
    case 'PartialType':
      return objectOf(props, [])
    case 'IntersectionType':
      return { allOf: types.map(fromCodec) }
    case 'UnionType':
      return anyOf(types.filter((one) => one._tag !== 'UndefinedType').map(fromCodec))
    default:
      return primitives.get(tag) ?? {}
  }
}

const anyOf = (members: ReadonlyArray<JsonSchema>): JsonSchema => {
  const [only = {}, ...others] = members
  return others.length === 0 ? only : { anyOf: members }
}

const objectOf = (props: Readonly<Record<string, Tagged>>, required: ReadonlyArray<string>): JsonSchema => ({
  type: 'object',
  properties: Object.fromEntries(Object.entries(props).map(([name, one]) => [name, fromCodec(one)])),
  ...(required.length > 0 && { required }),
})

// `t.type` lets a property be left out whose codec accepts undefined
const isRequired = (codec: Tagged | undefined): boolean => {
  const { _tag: tag, type: inner, types = [] } = codec ?? {}
  if (tag === 'UnionType') return types.every(isRequired)
  if (tag === 'RefinementType' || tag === 'ReadonlyType') return isRequired(inner)
  return !['UndefinedType', 'UnknownType', 'AnyType', 'VoidType'].includes(String(tag))
}
