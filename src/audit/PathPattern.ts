/**
 * The paths that a pattern of path-to-regexp accepts, as a nondeterministic finite automaton (NFA) over characters.
 * `comparePatterns.ts` walks two of them together, to find a path that both accept.
 *
 * It accepts every path that the pattern accepts. If `isExact`, it accepts no others. One rule is left out:
 * path-to-regexp does not let the second capture of a segment contain the text between the two. It does not read RegExp
 * paths.
 *
 * @see https://github.com/pillarjs/path-to-regexp
 */
import { parse, type Token } from 'path-to-regexp'
import { folded, shapeBelow, shapeOf, type PathShape } from './PathShape.js'

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
export interface State {
  /** The transition to the next state; `undefined` in an accepting state. */
  readonly next: Step | undefined
  /** The transition back to this state, for a character that may be repeated. */
  readonly again: Step | undefined
}

/** The label of a transition: this character, any character but a slash, or any character. */
export type Step =
  | { readonly _tag: 'Text'; readonly char: string; readonly isSensitive: boolean }
  | { readonly _tag: 'Segment' }
  | { readonly _tag: 'Anything' }

/** How a router compiles its paths. */
export interface PathOptions {
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
  const text = (chars: string): Step[] => stepsOfText(chars, sensitive)
  const stepsOf = (token: Token): Step[] =>
    token.type === 'text' ? text(token.value) : token.type === 'param' ? [{ _tag: 'Segment' }] : [{ _tag: 'Anything' }]
  // What may follow: a slash, and if the path is only a beginning, everything below it
  const endings: Step[][] = end
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
export const startingWith = (text: string): PathPattern => ({
  states: [...statesOf(stepsOfText(text, false)), ...statesOf([...stepsOfText(text, false), { _tag: 'Anything' }])],
  starts: [0, text.length + 1],
  isExact: true,
  isLiteral: false,
  isSensitive: false,
  shapes: [shapeBelow(text)],
  samples: [],
})

const stepsOfText = (chars: string, isSensitive: boolean): Step[] =>
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

const statesOf = (steps: ReadonlyArray<Step>): State[] =>
  [...steps, undefined].map((next, at) => {
    const before = steps[at - 1]
    return { next, again: before?._tag === 'Text' ? undefined : before }
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
export const takes = (step: Step, char: string): boolean => {
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
    if (state?.again !== undefined && takes(state.again, char)) reached.add(index)
    if (state?.next !== undefined && takes(state.next, char)) reached.add(index + 1)
  }
  return [...reached].sort((one, other) => one - other)
}

/** Whether a set of states contains an accepting one. */
export const accepts = ({ states }: PathPattern, indexes: ReadonlyArray<number>): boolean =>
  indexes.some((index) => states[index]?.next === undefined)
