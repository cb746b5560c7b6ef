/**
 * How a kind reads its credential, for combinators that must see it before the hook does: a mark on the leaf of the kind.
 *
 * It reads and decodes; it asks no hook. A plain function has none: what it reads is unknown.
 */
import type * as E from 'fp-ts/lib/Either.js'
import type * as O from 'fp-ts/lib/Option.js'
import type { Request } from 'koa'

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
