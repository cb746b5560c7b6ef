/**
 * How a kind reads its credential, as a mark on its leaf. `throttled` and `remembered` need it, because they must see
 * the credential before the hook does.
 *
 * A plain function has no such mark, because what it reads is unknown.
 */
import type * as E from 'fp-ts/lib/Either.js'
import type * as O from 'fp-ts/lib/Option.js'
import type { Request } from 'koa'
import { decodedMark, recoveredMark } from './marks.js'

/** @internal The two steps before a kind's hook. */
export interface Reading {
  /** What the client sent. */
  readonly extract: (request: Request) => O.Option<unknown>
  /** The credentials in it; a Left is malformed. */
  readonly decode: (sent: unknown) => E.Either<unknown, unknown>
  /**
   * Set by `throttled`: the address that the credential counts under. `undefined` if the limiter must be asked first,
   * even if the credential is remembered.
   */
  readonly origin?: (request: Request, sent: unknown) => string | undefined
  /** Set by `recoverUnavailable`: something else than the credential may decide. */
  readonly recovers?: true
}

const mark = Symbol.for('koa-with-auth/reading')

/** @internal Marks a leaf. The mark is not enumerable, so comparisons of descriptions ignore it. */
export const readBy = <L extends object>(leaf: L, reading: Reading): L =>
  Object.defineProperty(leaf, mark, { value: reading })

/** @internal How the kind of a leaf reads; `undefined` for a plain function. */
export const readingOf = (leaf: object): Reading | undefined => {
  // Safe: only `readBy` writes the mark
  const { [mark]: reading } = leaf as { readonly [mark]?: Reading }
  return reading
}

type Recovering = Request & { [recoveredMark]?: true }

/** @internal Notes that something else than the credential decided about a request. */
export const noteRecovered = (request: Recovering): void => void (request[recoveredMark] = true)

/**
 * @internal Whether something else than the credential decided. Nothing removes the note: `recoverUnavailable` may ask another
 * kind that is remembered, too, before the outer kind reads it.
 */
export const isRecovered = (request: Recovering): boolean => request[recoveredMark] === true

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

/** @internal The credentials that were decoded ahead from the same value; otherwise `undefined`. */
export const decodedAhead = (
  request: Decoding,
  decode: Reading['decode'],
  sent: unknown,
): Decoded['credentials'] | undefined => {
  const ahead = request[decodedMark]
  return ahead !== undefined && ahead.decode === decode && ahead.sent === sent ? ahead.credentials : undefined
}

/** @internal Removes the credentials from the request. */
export const forgetDecoded = (request: Decoding): void => {
  if (request[decodedMark] !== undefined) request[decodedMark] = undefined
}
