/**
 * The owners of API keys as the application's type, to and from the strings in a store. No error contains an owner.
 *
 * A codec of io-ts writes a string for an owner. A Standard Schema cannot write, so it is one of strings, which it returns as it gets them.
 */
import * as E from 'fp-ts/lib/Either.js'
import { identity } from 'fp-ts/lib/function.js'
import * as t from 'io-ts'
import { decoderOf, isStandard, standardOf, type StandardSchema } from '../core/Schema.js'
import { andThen, type Decoded } from '../core/Result.js'
import * as is from '../core/checks.js'
import type { Check } from '../core/options.js'

/** How owners become strings, and strings owners. */
export interface Owners {
  /** Rejects with a TypeError for an owner that the schema refuses, or that cannot be kept. */
  readonly encode: (where: string, owner: unknown) => Promise<string>
  /** Async if the schema is. Throws for an owner that it refuses. */
  readonly decode: (text: string) => unknown
}

// Databases cut a string at NUL, and replace a lone surrogate. Then two owners could become the same
export const isKeepable = (u: unknown): u is string => typeof u === 'string' && !u.includes('\0') && u.isWellFormed()

export const keepable = is.that(isKeepable, 'must be a string of well-formed Unicode without NUL')

// Standard JSON Schema describes the output of a schema; a schema without it is checked with each owner
const isOfOthers = (standard: object): boolean => {
  try {
    // Safe: any other value throws, or is compared with strings
    const { jsonSchema } = standard as {
      readonly jsonSchema: { readonly output: (options: { readonly target: string }) => { readonly type?: unknown } }
    }
    const { type } = jsonSchema.output({ target: 'draft-2020-12' })
    return typeof type === 'string' && type !== 'string'
  } catch {
    return false
  }
}

export const ownerSchema: Check = (where, value) => {
  const isSchema = isStandard(value)
  if (isSchema ? !isOfOthers(standardOf(where, value)) : value instanceof t.Type) return
  throw new TypeError(
    `${where} must be an io-ts codec, such as t.string, or a schema of strings, such as z.uuid() of zod, or one of valibot or arktype`,
  )
}

/** The owners of a codec or a schema; without either, they are strings. */
export const ownersOf = (owner: t.Type<unknown, string, unknown> | StandardSchema | undefined): Owners => {
  const { encode, decode } = owner === undefined ? stringOwners : isStandard(owner) ? ofSchema(owner) : ofCodec(owner)
  return {
    encode: async (where, given) => {
      const text = await encode(where, given)
      keepable(where, text)
      if (text === '') throw new TypeError(`${where} must not be empty`)
      return text
    },
    decode,
  }
}

interface Written extends Pick<Owners, 'decode'> {
  readonly encode: (where: string, owner: unknown) => string | Promise<string>
}

const refusedAt = (where: string): TypeError => new TypeError(`${where} is refused by the schema of apiKeys({ owner })`)

// A record's owner is a string already
const stringOwners: Written = {
  encode: (where, owner) => {
    if (typeof owner === 'string') return owner
    throw refusedAt(where)
  },
  decode: identity,
}

const stored = 'apiKeys({ owner }): the owner of a stored key'

const ofCodec = (codec: t.Type<unknown, string, unknown>): Written => {
  const decode = decoderOf('apiKeys({ owner })', codec)
  const accepted = (decoded: Decoded): unknown => {
    if (E.isRight(decoded)) return decoded.right
    throw refusedAt(stored)
  }
  return {
    encode: (where, owner) => {
      if (codec.is(owner)) return codec.encode(owner)
      throw refusedAt(where)
    },
    decode: (text) => andThen(decode(text), accepted),
  }
}

const ofSchema = (schema: StandardSchema): Written => {
  const decode = decoderOf('apiKeys({ owner })', schema)
  const unchanged = (where: string, owner: unknown): string | Promise<string> => {
    if (typeof owner !== 'string') throw refusedAt(where)
    return andThen(decode(owner), (decoded) => {
      if (E.isLeft(decoded)) throw refusedAt(where)
      if (decoded.right === owner) return owner
      throw new TypeError(
        `${where} is changed by the schema of apiKeys({ owner }), which must return the string that it gets`,
      )
    })
  }
  return { encode: unchanged, decode: (text) => unchanged(stored, text) }
}
