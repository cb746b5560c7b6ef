/**
 * The shape of a path: its segments, for a quick comparison of two patterns. Most patterns have no path in common.
 * Their shapes show it without a walk of the automata (`PathPattern.ts`).
 */
import type { Token } from 'path-to-regexp'

/** The segments of an alternative, up to the place where anything may follow. */
export interface PathShape {
  /** The text of each, without regard to letter case; `undefined` for one with a capture. */
  readonly segments: ReadonlyArray<string | undefined>
  readonly isOpen: boolean
}

/** Something with a shape for each alternative. */
interface Shaped {
  readonly shapes: ReadonlyArray<PathShape>
}

const capture = '\0'

/** The shape of an alternative; `end`: whether the path ends with it. */
export const shapeOf = (tokens: ReadonlyArray<Token>, end: boolean): PathShape => {
  const wildcardAt = tokens.findIndex(({ type }) => type === 'wildcard')
  const known = wildcardAt < 0 ? tokens : tokens.slice(0, wildcardAt)
  const written = known.map((token) => (token.type === 'text' ? token.value : capture)).join('')
  const segments = written.split('/')
  // a slash at the end does not count, and a segment with a wildcard is not known as a whole
  const whole =
    wildcardAt < 0 ? segments.slice(0, segments.findLastIndex((one) => one !== '') + 1) : segments.slice(0, -1)
  return {
    segments: whole.map((one) => (one.includes(capture) ? undefined : foldedText(one))),
    isOpen: wildcardAt >= 0 || !end,
  }
}

/** The shape of all paths that begin with a string. */
export const shapeBelow = (text: string): PathShape => ({
  segments: text.split('/').slice(0, -1).map(foldedText),
  isOpen: true,
})

/** Whether the shapes prove that no path is accepted by both. */
export const areApart = (one: Shaped, other: Shaped): boolean =>
  one.shapes.every((shape) => other.shapes.every((another) => differ(shape, another)))

const differ = (one: PathShape, other: PathShape): boolean =>
  (!one.isOpen && !other.isOpen && one.segments.length !== other.segments.length) ||
  one.segments.some((segment, at) => {
    const another = other.segments[at]
    return segment !== undefined && another !== undefined && segment !== another
  })

/** A character as a RegExp with the flag `i` compares it (ECMA-262, Canonicalize). */
export const folded = (char: string): string => {
  const upper = char.toUpperCase()
  return upper.length !== 1 || (char > '\x7f' && upper <= '\x7f') ? char : upper
}

const foldedText = (text: string): string => text.split('').map(folded).join('')
