/**
 * The paths that a pattern accepts: a few texts, in which two special characters are captures. The rest of the texts
 * behind the beginning of a path is a state of an automaton (NFA). Two patterns are walked together, to find a path that
 * both accept, or only one.
 *
 * It accepts every path that the pattern of path-to-regexp accepts. If `isExact`, it accepts no others. One rule is left
 * out: path-to-regexp does not let the second capture of a segment contain the text between the two.
 *
 * @see https://github.com/pillarjs/path-to-regexp
 */
import { parse, type Token } from 'path-to-regexp'
import type { RouterLayer } from '../koa/layer.js'

// One or more characters of a segment, one or more of any kind, the end, and a character that no pattern names. No
// request has them
const SEGMENT_CHARACTERS = '\0'
const ANY_CHARACTERS = '\x01'
const END = '\x02'
const UNNAMED = '\x03'

const captures = { param: SEGMENT_CHARACTERS, wildcard: ANY_CHARACTERS }

export interface PathPattern {
  /** The alternatives, as they were written. */
  readonly texts: ReadonlyArray<string>
  /** Whether it accepts no other paths than the pattern. */
  readonly isExact: boolean
  /** Whether it has no captures: then it accepts one path, in its spellings. */
  readonly isLiteral: boolean
  readonly isSensitive: boolean
  /** The shape of each alternative, for a quick comparison. */
  readonly shapes: ReadonlyArray<PathShape>
  /** A few paths that it accepts, as different as possible. */
  readonly samples: ReadonlyArray<string>
}

// path-to-regexp refuses more
const MAX_ALTERNATIVES = 256

/** Reads a path; `undefined` for a path that path-to-regexp refuses. */
export const pathPattern = (
  path: string,
  { sensitive = false, strict = false, end = true }: RouterLayer['opts'],
): PathPattern | undefined => {
  // The possible endings: a slash, and if the path is only a beginning, everything below it
  const endings = end ? (strict ? [''] : ['', '/']) : ['', '/', `/${ANY_CHARACTERS}`]
  try {
    const texts = textsOf(parse(path).tokens)
    const isRefused = texts.length > MAX_ALTERNATIVES || /[\0-\x03]/.test(path)
    return isRefused ? undefined : patternFrom(texts, endings, sensitive)
  } catch {
    return undefined
  }
}

// With each optional group and without it
const textsOf = (tokens: ReadonlyArray<Token>): ReadonlyArray<string> =>
  tokens.reduce<ReadonlyArray<string>>(
    (texts, token) =>
      texts.length > MAX_ALTERNATIVES
        ? texts
        : token.type === 'group'
          ? texts.flatMap((text) => [...textsOf(token.tokens).map((more) => text + more), text])
          : texts.map((text) => text + (token.type === 'text' ? token.value : captures[token.type])),
    [''],
  )

/** The paths that are one of the texts and one of the endings. The last ending has the shape of all. */
const patternFrom = (beginnings: ReadonlyArray<string>, endings: string[], isSensitive: boolean): PathPattern => {
  const texts = beginnings.flatMap((text) => endings.map((ending) => text + ending))
  return {
    texts,
    isExact: beginnings.every(hasIndependentCaptures),
    isLiteral: !/[\0\x01]/.test(texts.join()),
    isSensitive,
    shapes: beginnings.map((text) => shapeOf(text + endings.at(-1))),
    samples: samplesOf(texts),
  }
}

// At most one capture in each segment, and at most one wildcard: then no capture limits another
const hasIndependentCaptures = (text: string): boolean => !/[\0\x01][^/]*[\0\x01]|\x01.*\x01/s.test(text)

const samplesOf = (texts: ReadonlyArray<string>): ReadonlyArray<string> => {
  const paths = texts.flatMap((text) =>
    ['x', '1', 'x/x'].map((some) => text.replaceAll(SEGMENT_CHARACTERS, some[0]!).replaceAll(ANY_CHARACTERS, some)),
  )
  return [...new Set(paths.flatMap((path) => [path, path.toLowerCase(), path.toUpperCase()]))]
}

/** A character as a RegExp with the flag `i` compares it (ECMA-262, Canonicalize). */
const folded = (char: string): string => {
  const upper = char.toUpperCase()
  return upper.length !== 1 || (char > '\x7f' && upper <= '\x7f') ? char : upper
}

/** How many segments there are, if that is known, and the text of each, or `undefined` for a capture: tells patterns apart without a walk. */
type PathShape = ReadonlyArray<string | number | undefined>

const shapeOf = (text: string): PathShape => {
  const [known = '', ...open] = text.replace(/[^]/g, folded).split(ANY_CHARACTERS)
  // a segment with a wildcard is not known as a whole, and slashes at the end do not count: a route may take one more
  const whole = open.length > 0 ? known.replace(/[^/]*$/, '') : known
  const segments = whole.replace(/\/+$/, '').split('/')
  const count = open.length > 0 ? undefined : segments.length
  return [count, ...segments.map((segment) => (segment.includes(SEGMENT_CHARACTERS) ? undefined : segment))]
}

/** Whether the shapes prove that no path is accepted by both. */
export const areApart = (one: PathPattern, other: PathPattern): boolean =>
  one.shapes.every((shape) => other.shapes.every((another) => shape.some((part, at) => differ(part, another[at]))))

/** A tree of segments: the places of patterns that end there, and of those that go on in any way. */
interface Branch {
  readonly below: Map<PathShape[number], Branch>
  readonly ended: number[]
  readonly open: number[]
}

const newBranch = (): Branch => ({ below: new Map(), ended: [], open: [] })

/** Finds those of many patterns that are not apart from another pattern, in their order: of thousands of routes, each has few. */
export const nearbyAmong = <A extends { readonly accepted: PathPattern }>(
  all: ReadonlyArray<A>,
): ((pattern: PathPattern) => ReadonlyArray<A>) => {
  const root = newBranch()
  for (const [place, { accepted }] of all.entries()) {
    for (const [count, ...segments] of accepted.shapes) {
      let here = root
      for (const segment of segments) {
        const next = here.below.get(segment) ?? newBranch()
        here.below.set(segment, next)
        here = next
      }
      ;(count === undefined ? here.open : here.ended).push(place)
    }
  }
  return ({ shapes }) => {
    const found = new Set<number>()
    const visit = ({ below, ended, open }: Branch, shape: PathShape, at: number): void => {
      const isOver = at === shape.length
      const isOpen = isOver && shape[0] === undefined
      for (const place of isOver ? [...open, ...ended] : open) found.add(place)
      if (isOver && !isOpen) return
      const segment = shape[at]
      const next = segment === undefined ? below.values() : [below.get(segment), below.get(undefined)]
      for (const branch of next) if (branch !== undefined) visit(branch, shape, isOpen ? at : at + 1)
    }
    for (const shape of shapes) visit(root, shape, 1)
    return [...found].sort((a, b) => a - b).flatMap((place) => all[place] ?? [])
  }
}

const differ = (one: PathShape[number], other: PathShape[number]): boolean =>
  one !== undefined && other !== undefined && one !== other

/** The rests of texts behind a character, for those that begin with it. */
export const behind = ({ isSensitive }: PathPattern, texts: ReadonlyArray<string>, char: string): string[] => {
  const rests = new Set<string>()
  for (const text of texts) {
    const atom = text.charAt(0)
    const isCaptured = atom === ANY_CHARACTERS || (atom === SEGMENT_CHARACTERS && char !== '/')
    // a capture may have more characters
    if (isCaptured) rests.add(text)
    if (isCaptured || atom === char || (!isSensitive && folded(atom) === folded(char))) rests.add(text.slice(1))
  }
  return [...rests]
}

// Pairs of states. The patterns of a hundred routers stay far below it
const MAX_PAIRS = 5000

// The product construction: both patterns read the same path, and the pairs of their states are searched breadth first. The alphabet is
// finite, because one character can represent all that neither pattern names: they lead to the same states
// (https://en.wikipedia.org/wiki/Powerset_construction)
/** The shortest path that `confirm` confirms, by the RegExps of the router. `false`: there is none; `undefined`: it is not known. */
export const findPath = (
  wanted: 'of both' | 'of the first alone',
  first: PathPattern,
  second: PathPattern,
  confirm: (path: string) => boolean,
): string | false | undefined => {
  const isOfBoth = wanted === 'of both'
  const unnamed = characterOutsideOf([...first.texts, ...second.texts])
  const queue = [{ path: '', ones: withEnds(first), others: withEnds(second) }]
  const seen = new Set<string>()
  let isRefuted = false
  // also of a pair of states that was seen, because the RegExps know more
  const isFound = ({ path, ones, others }: (typeof queue)[number]): boolean => {
    if (!ones.some(isAtEnd) || others.some(isAtEnd) !== isOfBoth) return false
    isRefuted = true
    return confirm(path)
  }
  if (queue.some(isFound)) return ''
  for (const { path, ones, others } of queue) {
    for (const char of charactersAt([...ones, ...others], unnamed)) {
      const next = { path: path + char, ones: behind(first, ones, char), others: behind(second, others, char) }
      if (isFound(next)) return next.path
      const pair = JSON.stringify([next.ones, next.others])
      if (next.ones.length === 0 || (isOfBoth && next.others.length === 0) || seen.has(pair)) continue
      if (seen.size > MAX_PAIRS) return undefined
      seen.add(pair)
      queue.push(next)
    }
  }
  return isRefuted ? undefined : false
}

// Alternatives that end alike stay apart, because the RegExps may refuse a path of one of them only
const withEnds = ({ texts }: PathPattern): ReadonlyArray<string> => texts.map((text, at) => `${text}${END}${at}`)

const isAtEnd = (text: string): boolean => text.startsWith(END)

// The first characters of texts, in both cases, and one for all others
const charactersAt = (texts: ReadonlyArray<string>, unnamed: string): ReadonlySet<string> => {
  const named = texts.map((text) => text.charAt(0)).filter((char) => char > UNNAMED)
  const spelled = named.flatMap((char) => [char, char.toLowerCase(), char.toUpperCase()])
  return new Set([unnamed, '/', ...spelled.filter(({ length }) => length === 1)])
}

// A character that no text names, and no other case of it
const characterOutsideOf = (texts: ReadonlyArray<string>): string => {
  const named = texts.join('').toUpperCase()
  return [...'xyzabcdefghijklmnopqrstuvw0123456789'].find((char) => !named.includes(char.toUpperCase())) ?? UNNAMED
}

/** A pattern that accepts all paths that a RegExp accepts, and more: all that begin as it does. Where this does not tell, it is `unknown`. */
export const patternAround = (regexp: RegExp): PathPattern => ({
  ...patternFrom([literalBeginning(regexp)], ['', ANY_CHARACTERS], false),
  isExact: false,
  samples: ['/', '/x', '/1', '/x/x', '/1/1', '/x/x/x'],
})

// Up to the first character of syntax, or one that a quantifier repeats or makes optional
const literalBeginning = ({ source, flags }: RegExp): string => {
  // with these flags, `^` is not the beginning, or letter case works in another way
  if (/[muv]/.test(flags) || hasAlternatives(source)) return ''
  const [, text = ''] = /^\^((?:(?:\\[^\w\x80-\uffff]|[^\\^$.*+?()[\]{}|\x80-\uffff])(?![*+?{]))*)/.exec(source) ?? []
  return text.replace(/\\(.)/gs, '$1')
}

// Outside of all groups, where `|` makes the whole expression one of several
const hasAlternatives = (source: string): boolean => {
  const outer = source.replace(/\\.|\[(?:\\.|[^\\\]])*\]|\([^()[\]\\]*\)/gs, '')
  return outer === source ? source.includes('|') : hasAlternatives(outer)
}

/** Whether a RegExp treats all spellings of a path alike. The flags u and v only make more letters alike; `(?-i:...)` has case again. */
export const ignoresCase = ({ source, flags }: RegExp): boolean => flags.includes('i') && !/\(\?[ims]*-/.test(source)

/** Whether a RegExp that refuses these paths refuses them in every letter case. */
export const refusesInEveryCase = (regexp: RegExp, paths: ReadonlyArray<string>): boolean => {
  if (ignoresCase(regexp)) return true
  const { source, flags } = regexp
  // a negation matches less with the flag i, so the test with the flag would prove nothing; in sets of the flag v there are more kinds of it
  if (flags.includes('v') || /\(\?<?!|\[\^|\(\?[ims]*-/.test(source)) return false
  const anyCase = new RegExp(source, `${flags}i`)
  return !paths.some((path) => anyCase.test(path))
}
