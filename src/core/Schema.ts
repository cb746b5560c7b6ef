/**
 * A schema says which values are accepted, and decodes them: a codec of io-ts, or a Standard Schema (https://standardschema.dev), such as
 * those of zod, valibot and arktype.
 *
 * Whatever a schema does, a value is accepted only by a result that has `value` and no `issues`. The texts of issues are not
 * kept: they may contain values that a client sent.
 */
import { types } from 'node:util'
import * as E from 'fp-ts/lib/Either.js'
import type * as t from 'io-ts'
import { type Decode, type Decoded, failureOf, isObject, isThenable, toPromise } from './Result.js'
import { typeName, type Check } from './options.js'

/** A Standard Schema, version 1 (https://standardschema.dev): an object or a function whose `~standard` validates. */
export interface StandardSchema<A = unknown> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    /** Returns `{ value }` or `{ issues }`, or a promise of either. */
    readonly validate: (value: unknown) => Validated<A> | Promise<Validated<A>>
    /** Only types: no such values exist. */
    readonly types?: { readonly input: unknown; readonly output: A } | undefined
  }
}

type Validated<A> =
  { readonly value: A; readonly issues?: undefined } | { readonly issues: ReadonlyArray<{ readonly message: string }> }

/** A decoder of io-ts, or a Standard Schema, whose values are of type `A`. */
export type Schema<A> = t.Decoder<unknown, A> | StandardSchema<A>

export const isStandard = (u: unknown): u is StandardSchema => isObject(u) && '~standard' in u

/** @internal Whether a value is a decoder of io-ts. The module of a library such as zod has functions of these names, too. */
export const isCodec = (u: unknown): u is t.Decoder<unknown, unknown> =>
  typeof u === 'object' && u !== null && 'validate' in u && 'decode' in u && types.isModuleNamespaceObject(u) === false

/** @internal The name of a schema in a policy file: the name of a codec, the library of a Standard Schema. */
export const schemaLabel = (schema: Schema<never>): string => {
  if (isStandard(schema)) return `of ${String(schema['~standard'].vendor)}, not compared`
  return 'name' in schema && typeof schema.name === 'string' ? schema.name : 'of io-ts, not compared'
}

/** @internal The face of a Standard Schema. Throws a TypeError that names `where` for another version. */
export const standardOf = (where: string, schema: StandardSchema): StandardSchema['~standard'] => {
  const standard: unknown = schema['~standard']
  const isKnown = isObject(standard) && 'validate' in standard && typeof standard.validate === 'function'
  if (!isKnown || Reflect.get(standard, 'version') !== 1) {
    throw new TypeError(`${where} has a "~standard" that is not version 1 of Standard Schema; update its library`)
  }
  // Safe: only `validate` and `version` are relied on, and its results are checked
  return standard as StandardSchema['~standard']
}

/** @internal A schema or a codec; `example` is the suggestion of a message. */
export const schemaLike =
  (example: string): Check =>
  (where, value) => {
    if (isStandard(value)) standardOf(where, value)
    else if (!isCodec(value)) {
      throw new TypeError(
        `${where} must be an io-ts codec, such as ${example}, or a schema of zod, valibot or arktype, not ${typeName(value)}`,
      )
    }
  }

// io-ts would keep the value in this context, and nothing reads it
const noContext: t.Context = []
const refusedBySchema: E.Either<unknown, never> = E.left('refused by its schema')

/** @internal How a schema or a codec decodes. The value may not be changed afterwards. */
export const decoderOf = <A>(where: string, schema: Schema<A>): Decode<A> => {
  if (!isStandard(schema)) return (value) => schema.validate(value, noContext)
  const standard = standardOf(where, schema)
  const { validate } = standard
  const failed = (error: unknown): never => {
    // an error with a status, such as one of http-errors, would show its message
    throw failureOf(error)._tag === 'unavailable' ? error : new Error(`${where}: the schema threw`, { cause: error })
  }
  // Safe: a Standard Schema says that its values are of this type
  const verdict = (result: unknown) => validatedResult(result) as Decoded<A>
  return (value) => {
    try {
      const result: unknown = Reflect.apply(validate, standard, [value])
      if (!isThenable(result)) return verdict(result)
      // a result that is like a promise of another result must not hide its issues
      if (!types.isPromise(result) && isRefusal(result)) return refusedBySchema
      return toPromise(result).then(verdict).catch(failed)
    } catch (error) {
      return failed(error)
    }
  }
}

const isRefusal = (result: object): boolean => 'issues' in result && result.issues !== undefined

const validatedResult = (result: unknown): Decoded =>
  typeof result !== 'object' || result === null || isRefusal(result) || !('value' in result)
    ? refusedBySchema
    : E.right(result.value)
