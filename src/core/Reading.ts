/**
 * How a kind reads its credential, for combinators that must see it before the hook does: a mark on the leaf of the kind.
 *
 * It reads and decodes; it asks no hook. A plain function has none: what it reads is unknown.
 */
import type * as E from 'fp-ts/lib/Either.js'
import type * as O from 'fp-ts/lib/Option.js'
import type { Request } from 'koa'
import { decodedMark } from './marks.js'

/** @internal The two steps before a kind's hook. */
export interface Reading {
  /** What the client sent. */
  readonly extract: (request: Request) => O.Option<unknown>
  /** The credentials in it; a Left is malformed. */
  readonly decode: (sent: unknown) => E.Either<unknown, unknown>
  /**
   * Where guesses are counted (`throttled`): from where this one comes, as far as it counts. `undefined` where the limiter
   * must be asked first, whatever else is known of the credential.
   */
  readonly origin?: (request: Request, sent: unknown) => string | undefined
}

const mark = Symbol.for('koa-with-auth/reading')

/** @internal Marks a leaf whose kind reads so; the mark is no part of what descriptions are compared by. */
export const readBy = <L extends object>(leaf: L, reading: Reading): L =>
  Object.defineProperty(leaf, mark, { value: reading })

/** @internal How the kind of a leaf reads; `undefined` for a plain function. */
export const readingOf = (leaf: object): Reading | undefined => {
  // Safe: only `readBy` writes the mark
  const { [mark]: reading } = leaf as { readonly [mark]?: Reading }
  return reading
}

interface Decoded {
  readonly decode: Reading['decode']
  readonly sent: unknown
  readonly credentials: ReturnType<Reading['decode']>
}

type Decoding = Request & { [decodedMark]?: Decoded | undefined }

/** @internal Decodes, and keeps the credentials on the request for the kind that is asked next; see `forgetDecoded`. */
export const decodeAhead = (request: Decoding, decode: Reading['decode'], sent: unknown): Decoded['credentials'] => {
  const credentials = decode(sent)
  request[decodedMark] = { decode, sent, credentials }
  return credentials
}

/** @internal The credentials that were decoded ahead; `undefined` where these were not. */
export const decodedAhead = (
  request: Decoding,
  decode: Reading['decode'],
  sent: unknown,
): Decoded['credentials'] | undefined => {
  const ahead = request[decodedMark]
  return ahead !== undefined && ahead.decode === decode && ahead.sent === sent ? ahead.credentials : undefined
}

/** @internal Takes the credentials off the request. */
export const forgetDecoded = (request: Decoding): void => {
  if (request[decodedMark] !== undefined) request[decodedMark] = undefined
}
