/**
 * Paths of @koa/router 12 and 13, which path-to-regexp 6 reads (`/:id(\\d+)`, `/:rest*`, `(.*)`), in the words of
 * path-to-regexp 8, which later routers and the readers of this layer take (`/:id`, `{/*rest}`, `{*0}`).
 *
 * The translation accepts every path that the original accepts. It accepts no others where `isExact`; a parameter with a
 * pattern of its own is one that it makes wider.
 */
import { stringify, TokenData, type Token } from 'path-to-regexp'
import { parse, type Key } from 'path-to-regexp-6'

/** A path in the words of path-to-regexp 8. */
export interface ModernPath {
  readonly path: string
  /** Whether it accepts the same paths as the original, and no others. */
  readonly isExact: boolean
}

/** What is read of a layer. */
export interface PathLayer {
  readonly path: string | RegExp
}

/** The path of a layer as path-to-regexp 8 writes it; `undefined` for a RegExp. */
export const modernPath = (layer: PathLayer): ModernPath | undefined => {
  const { path } = layer
  if (typeof path !== 'string') return undefined
  return readsPatterns(layer) ? translated(path) : { path, isExact: true }
}

// Only a cache of the answers
const known = new WeakMap<object, boolean>()

/** Whether a layer's router gives parameters patterns of their own: path-to-regexp 8 refuses them. */
const readsPatterns = ({ constructor: type }: object): boolean => {
  if (typeof type !== 'function' || type === Object) return false
  const before = known.get(type)
  if (before !== undefined) return before
  const answer = tried(type)
  known.set(type, answer)
  return answer
}

const tried = (type: Function): boolean => {
  try {
    // Safe: a layer of any router is made this way, and anything else is caught
    const { regexp } = Reflect.construct(type, ['/:n(\\d+)', [], []]) as { readonly regexp: RegExp }
    return regexp.test('/1') && !regexp.test('/x')
  } catch {
    return false
  }
}

/** @internal A path of path-to-regexp 6 in the words of 8. */
export const translated = (path: string): ModernPath => {
  const parsed = parse(path)
  return {
    path: stringify(
      new TokenData(parsed.flatMap((token) => (typeof token === 'string' ? textOf(token) : tokensOf(token)))),
    ),
    isExact: parsed.every((token) => typeof token === 'string' || isExact(token)),
  }
}

const textOf = (value: string): Token => ({ type: 'text', value })
const whole = (...tokens: Token[]): Token => ({ type: 'group', tokens })

// What a parameter takes that was given no pattern, and what takes anything
const SEGMENT = String.raw`[^\/#\?]+?`
const ANYTHING = '.*'
// The same behind text in one segment, as in /:a-:b: it stops before that text
const segmentBehindText = /^\(\?:\(\?!.+\)\[\^\\\/#\\\?\]\)\+\?$/
// A character class that has no slash, once or more: digits, words, ranges
const withinSegment = /^(?:\\[dw]|\[[\w-]+\])(?:\+|\{[1-9]\d*(?:,\d*)?\})?$/

const repeats = ({ modifier }: Key): boolean => modifier === '+' || modifier === '*'

const isExact = (key: Key): boolean =>
  key.pattern === '' || ((key.pattern === SEGMENT || key.pattern === ANYTHING) && !repeats(key))

// A group in braces has no name; what may be left out is an optional group of path-to-regexp 8, all of whose groups are
const tokensOf = (key: Key): Token[] => {
  const { prefix, suffix, pattern, modifier } = key
  const tokens = [textOf(prefix), ...(pattern === '' ? [] : [parameterOf(key)]), textOf(suffix)]
  const written = tokens.filter((token) => token.type !== 'text' || token.value !== '')
  return modifier === '?' || modifier === '*' ? [whole(...written)] : written
}

const parameterOf = (key: Key): Token => {
  const name = String(key.name)
  const isSegment = [withinSegment, segmentBehindText].some((one) => one.test(key.pattern)) || key.pattern === SEGMENT
  if (isSegment) return { type: repeats(key) ? 'wildcard' : 'param', name }
  // A pattern that is not known may take nothing at all
  return whole({ type: 'wildcard', name })
}
