/** A row of a table of cases. */

interface InputRow<I> {
  readonly description: string
  readonly input: I
}

export interface Row<I, E> extends InputRow<I> {
  readonly expected: E
}

/** A case: what it is, what goes in, and what must come out. */
export function row<const I>(description: string, input: I): InputRow<I>
export function row<const I, const E>(description: string, input: I, expected: E): Row<I, E>
export function row(description: string, input: unknown, ...rest: ReadonlyArray<unknown>): object {
  return rest.length === 0 ? { description, input } : { description, input, expected: rest[0] }
}
