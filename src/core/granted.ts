/** The scopes that a credential says itself: claims of a token, `scopes` of an API key. Known while a combinator keeps the principal. */

/** Scopes: an array, a set, or a string with blanks between them, such as the `scope` of a token (RFC 6749 §3.3). */
export type Granted = ReadonlyArray<string> | ReadonlySet<string> | string | undefined

type ScopesReader = (principal: unknown) => ReadonlyArray<string> | undefined

// Another copy of this package knows the mark, too
const grantedMark = Symbol.for('koa-with-auth/granted')

/** The readers of the scopes of its principals: one for each kind of principal, none if it names no scopes. */
export const readersOf = (from: object): ReadonlyArray<ScopesReader> =>
  // Safe: only `marked` writes it
  (Reflect.get(from, grantedMark) as ReadonlyArray<ScopesReader> | undefined) ?? []

const marked = <A extends object>(made: A, readers: ReadonlyArray<ScopesReader>): A =>
  readers.length === 0
    ? made
    : Object.defineProperty(made, grantedMark, { value: [...new Set(readers)], configurable: true })

/** Marks a hook, or an authenticator: `read` reads the scopes of its principals. */
export const sayingScopes = <A extends object>(made: A, read: ScopesReader): A => marked(made, [read])

/** Marks an authenticator whose principals are those of these members. Each must say its scopes. */
export const keepingScopes = <A extends object>(made: A, ...members: ReadonlyArray<object>): A => {
  const all = members.map(readersOf)
  return all.every((readers) => readers.length > 0) ? marked(made, all.flat()) : made
}
