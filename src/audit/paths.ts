/**
 * The paths that a pattern of path-to-regexp accepts, as a nondeterministic finite automaton (NFA) over characters.
 * Two of them are walked together, to find a path that both accept.
 *
 * It accepts every path that the pattern accepts. If `isExact`, it accepts no others. One rule is left out:
 * path-to-regexp does not let the second capture of a segment contain the text between the two. It does not read RegExp
 * paths.
 *
 * @see https://github.com/pillarjs/path-to-regexp
 */
import { parse, type Token } from 'path-to-regexp'

/*
 * The shape of a path: its segments, for a quick comparison of two patterns. Most patterns have no path in common.
 * Their shapes show it without a walk of the automata.
 */

/** The segments of an alternative, up to the place where anything may follow. */
interface PathShape {
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
const shapeOf = (tokens: ReadonlyArray<Token>, end: boolean): PathShape => {
  const wildcardAt = tokens.findIndex(({ type }) => type === 'wildcard')
  const fixed = wildcardAt < 0 ? tokens : tokens.slice(0, wildcardAt)
  const written = fixed.map((token) => (token.type === 'text' ? token.value : capture)).join('')
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
const shapeBelow = (text: string): PathShape => ({
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
const folded = (char: string): string => {
  const upper = char.toUpperCase()
  return upper.length !== 1 || (char > '\x7f' && upper <= '\x7f') ? char : upper
}

const foldedText = (text: string): string => text.split('').map(folded).join('')

/** The paths of a pattern. */
export interface PathPattern {
  readonly states: ReadonlyArray<State>
  /** Where each alternative begins. */
  readonly starts: ReadonlyArray<number>
  /** Whether it accepts no other paths than the pattern. */
  readonly isExact: boolean
  /** Whether it has no captures: then it accepts one path, in its spellings. */
  readonly isLiteral: boolean
  /** Whether letter case counts. */
  readonly isSensitive: boolean
  /** Its segments, for a quick comparison. */
  readonly shapes: ReadonlyArray<PathShape>
  /** A few paths that it accepts, as different as possible. */
  readonly samples: ReadonlyArray<string>
}

/** A state: a place between two characters of an alternative. */
interface State {
  /** The transition to the next state; `undefined` in an accepting state. */
  readonly next: Transition | undefined
  /** The transition back to this state, for a character that may be repeated. */
  readonly repeated: Transition | undefined
}

/** The label of a transition: this character, any character but a slash, or any character. */
type Transition =
  | { readonly _tag: 'Text'; readonly char: string; readonly isSensitive: boolean }
  | { readonly _tag: 'Segment' }
  | { readonly _tag: 'Anything' }

/** How a router compiles its paths. */
interface PathOptions {
  readonly sensitive?: boolean | undefined
  readonly strict?: boolean | undefined
  readonly end?: boolean | undefined
}

// path-to-regexp refuses more
const MAX_ALTERNATIVES = 256

/** The automaton of a path; `undefined` for a path that path-to-regexp refuses. */
export const make = (
  path: string,
  { sensitive = false, strict = false, end = true }: PathOptions,
): PathPattern | undefined => {
  const flat = flattened(path)
  if (flat === undefined || flat.length > MAX_ALTERNATIVES) return undefined
  const text = (chars: string): Transition[] => stepsOfText(chars, sensitive)
  const stepsOf = (token: Token): Transition[] =>
    token.type === 'text' ? text(token.value) : token.type === 'param' ? [{ _tag: 'Segment' }] : [{ _tag: 'Anything' }]
  // What may follow: a slash, and if the path is only a beginning, everything below it
  const endings: Transition[][] = end
    ? [[], ...(strict ? [] : [text('/')])]
    : [[], text('/'), [...text('/'), { _tag: 'Anything' }]]
  const alternatives = flat.flatMap((tokens) => endings.map((ending) => [...tokens.flatMap(stepsOf), ...ending]))
  const states = alternatives.map(statesOf)
  return {
    states: states.flat(),
    starts: states.map((_, at) => states.slice(0, at).reduce((sum, { length }) => sum + length, 0)),
    isExact: flat.every(isPlain),
    isLiteral: end && flat.every((tokens) => tokens.every(({ type }) => type === 'text')),
    isSensitive: sensitive,
    shapes: flat.map((tokens) => shapeOf(tokens, end)),
    samples: samplesOf(flat, end ? (strict ? [''] : ['', '/']) : ['', '/x']),
  }
}

/** The automaton of all paths that begin with a string, in any letter case. */
const startingWith = (text: string): PathPattern => ({
  states: [...statesOf(stepsOfText(text, false)), ...statesOf([...stepsOfText(text, false), { _tag: 'Anything' }])],
  starts: [0, text.length + 1],
  isExact: true,
  isLiteral: false,
  isSensitive: false,
  shapes: [shapeBelow(text)],
  samples: [],
})

const stepsOfText = (chars: string, isSensitive: boolean): Transition[] =>
  chars.split('').map((char) => ({ _tag: 'Text', char, isSensitive }))

const flattened = (path: string): Token[][] | undefined => {
  try {
    return alternativesOf(parse(path).tokens)
  } catch {
    return undefined
  }
}

// With each optional group and without it
const alternativesOf = (tokens: ReadonlyArray<Token>): Token[][] =>
  tokens.reduce<Token[][]>(
    (some, token) =>
      some.length > MAX_ALTERNATIVES
        ? some
        : token.type === 'group'
          ? some.flatMap((before) => [...alternativesOf(token.tokens).map((more) => [...before, ...more]), before])
          : some.map((before) => [...before, token]),
    [[]],
  )

// At most one capture in each segment, and at most one wildcard: then no capture limits another
const isPlain = (tokens: ReadonlyArray<Token>): boolean => {
  const wildcards = tokens.filter(({ type }) => type === 'wildcard').length
  const segments = tokens
    .map((token) => (token.type === 'text' ? token.value : ':'))
    .join('')
    .split('/')
  const captures = tokens.filter(({ type }) => type !== 'text').length
  return captures < 2 || (wildcards < 2 && segments.every((segment) => segment.split(':').length < 3))
}

const statesOf = (steps: ReadonlyArray<Transition>): State[] =>
  [...steps, undefined].map((next, at) => {
    const before = steps[at - 1]
    return { next, repeated: before?._tag === 'Text' ? undefined : before }
  })

const samplesOf = (flat: ReadonlyArray<ReadonlyArray<Token>>, endings: ReadonlyArray<string>): string[] => {
  const filled = (tokens: ReadonlyArray<Token>, word: string, rest: string): string =>
    tokens.map((token) => (token.type === 'text' ? token.value : token.type === 'param' ? word : rest)).join('')
  const paths = flat.flatMap((tokens) => [
    filled(tokens, 'x', 'x'),
    filled(tokens, '1', '1'),
    filled(tokens, 'x', 'x/x'),
  ])
  const spellings = paths.flatMap((path) => [path, path.toLowerCase(), path.toUpperCase()])
  return [...new Set(spellings.flatMap((path) => endings.map((ending) => path + ending)))]
}

// -------------------------------------------------------------------------------------
// destructors
// -------------------------------------------------------------------------------------

/** Whether a step accepts a character. */
const takes = (step: Transition, char: string): boolean => {
  switch (step._tag) {
    case 'Text':
      return step.char === char || (!step.isSensitive && folded(step.char) === folded(char))
    case 'Segment':
      return char !== '/'
    case 'Anything':
      return true
  }
}

/** The states that a character leads to from a set of states. */
export const move = ({ states }: PathPattern, from: ReadonlyArray<number>, char: string): ReadonlyArray<number> => {
  const reached = new Set<number>()
  for (const index of from) {
    const state = states[index]
    if (state?.repeated !== undefined && takes(state.repeated, char)) reached.add(index)
    if (state?.next !== undefined && takes(state.next, char)) reached.add(index + 1)
  }
  return [...reached].sort((one, other) => one - other)
}

/** Whether a set of states contains an accepting one. */
export const accepts = ({ states }: PathPattern, indexes: ReadonlyArray<number>): boolean =>
  indexes.some((index) => states[index]?.next === undefined)

/*
 * Compares two patterns by the product construction: both automata read the same path, and the pairs of their state
 * sets are searched breadth first, for a path that both accept, or that only the first accepts.
 *
 * The alphabet is finite, because one character can represent all that neither pattern names: they have the same
 * transitions. A result is a shortest path, confirmed by the RegExps of the router. No result is a proof that there is
 * no such path.
 *
 * @see https://en.wikipedia.org/wiki/Powerset_construction
 */

/** The result of a search. */
export type Found = { readonly path: string } | 'none' | 'unknown'

/** Which paths to search for. */
type Wanted = 'of both' | 'of the first alone'

// Pairs of state sets. The patterns of a hundred routers stay far below it
const MAX_PAIRS = 5000

/** A pair of state sets, and a path that leads to it. */
interface Reached {
  readonly path: string
  readonly first: ReadonlyArray<number>
  readonly second: ReadonlyArray<number>
}

/** Searches for a path that `confirm` confirms. */
export const findPath = (
  wanted: Wanted,
  first: PathPattern,
  second: PathPattern,
  confirm: (path: string) => boolean,
): Found => {
  const unnamed = unusedCharacter(first, second)
  const queue: Reached[] = [{ path: '', first: first.starts, second: second.starts }]
  const seen = new Set<string>()
  let isRefuted = false
  for (const reached of queue) {
    if (isWanted(wanted, accepts(first, reached.first), accepts(second, reached.second))) {
      if (confirm(reached.path)) return { path: reached.path }
      isRefuted = true
    }
    for (const char of charsAt(reached, first, second, unnamed)) {
      const next = {
        path: reached.path + char,
        first: move(first, reached.first, char),
        second: move(second, reached.second, char),
      }
      const pair = `${next.first.join()}|${next.second.join()}`
      const isDead = next.first.length === 0 || (wanted === 'of both' && next.second.length === 0)
      if (isDead || seen.has(pair)) continue
      if (seen.size > MAX_PAIRS) return 'unknown'
      seen.add(pair)
      queue.push(next)
    }
  }
  return isRefuted ? 'unknown' : 'none'
}

const isWanted = (wanted: Wanted, first: boolean, second: boolean): boolean =>
  first && (wanted === 'of both' ? second : !second)

// The characters that are named here, in both cases, and one for all others
const charsAt = (reached: Reached, first: PathPattern, second: PathPattern, unnamed: string): ReadonlySet<string> => {
  const named = [...namedAt(first, reached.first), ...namedAt(second, reached.second)]
  const cases = named.flatMap((char) => [char.toLowerCase(), char.toUpperCase()]).filter(({ length }) => length === 1)
  return new Set([unnamed, '/', ...named, ...cases])
}

const namedAt = ({ states }: PathPattern, indexes: ReadonlyArray<number>): ReadonlyArray<string> =>
  indexes.flatMap((index) => {
    const next = states[index]?.next
    return next?._tag === 'Text' ? [next.char] : []
  })

// A character that neither pattern names
const unusedCharacter = (...patterns: ReadonlyArray<PathPattern>): string => {
  const named = new Set(
    patterns.flatMap(({ states }) => states.flatMap(({ next }) => (next?._tag === 'Text' ? [next.char] : []))),
  )
  const isNamed = (char: string): boolean => named.has(char) || named.has(char.toUpperCase())
  const plain = 'xyzabcdefghijklmnopqrstuvw0123456789'.split('').find((char) => !isNamed(char))
  return plain ?? privateUse.find((char) => !named.has(char))!
}

// A path of a router has fewer characters than these
const privateUse = Array.from({ length: 0x1900 }, (_, at) => String.fromCharCode(0xe000 + at))

/*
 * Proves which paths a RegExp cannot accept, without reading all of it.
 *
 * There are two proofs. Each path that it accepts begins with its literal beginning. And if it refuses a path in every
 * letter case, it does not accept the path. If both fail, the audit says `unknown`.
 */

/** A pattern that accepts all paths that a RegExp accepts, and more. */
export const boundOf = (regexp: RegExp): PathPattern => startingWith(literalBeginning(regexp))

// Up to the first character of syntax, or one that a quantifier repeats or makes optional
const literalBeginning = ({ source, flags }: RegExp): string => {
  // with these flags, `^` is not the beginning, or letter case works in another way
  if (!source.startsWith('^') || /[muv]/.test(flags) || hasAlternatives(source)) return ''
  let text = ''
  for (const [token, escaped, plain] of source.slice(1).matchAll(/\\(.)|(.)/gs)) {
    const char = escaped === undefined ? (/[\^$.*+?()[\]{}|]/.test(plain!) ? undefined : plain) : punctuation(escaped)
    if (char === undefined || char > '\x7f') return /^[*+?{]/.test(token) ? text.slice(0, -1) : text
    text += char
  }
  return text
}

const punctuation = (char: string): string | undefined => (/\w/.test(char) ? undefined : char)

// Outside of all groups, where `|` makes the whole expression one of several
const hasAlternatives = (source: string): boolean => {
  let rest = source.replace(/\\./gs, '').replace(/\[[^\]]*\]/g, '')
  for (let before = ''; before !== rest;) {
    before = rest
    rest = rest.replace(/\([^()]*\)/g, '')
  }
  return rest.includes('|')
}

/** Whether a RegExp that refuses these paths refuses them in every letter case. */
export const refusesInEveryCase = (regexp: RegExp, paths: ReadonlyArray<string>): boolean => {
  const { source, flags } = regexp
  // without `u` a RegExp with the flag i treats all spellings alike
  if (flags.includes('i')) return !/[uv]/.test(flags)
  // a negation matches less with the flag i, so the test with the flag would prove nothing
  if (/\(\?<?!|\[\^/.test(source)) return false
  const anyCase = new RegExp(source, `${flags}i`)
  return !paths.some((path) => anyCase.test(path))
}
