/**
 * Translates the paths of @koa/router 12 and 13 (path-to-regexp 6: `/:id(\\d+)`, `/:rest*`, `(.*)`) into the syntax of
 * path-to-regexp 8 (`/:id`, `{/*rest}`, `{*0}`). Later routers have this syntax, and OpenAPI and the audit read it.
 *
 * The translation accepts every path that the original accepts. If `isExact`, it accepts no others. `/:id(\\d+)` becomes
 * `/:id`, which accepts more; `isExact` is then `false`.
 */
import { stringify, TokenData, type Token } from 'path-to-regexp'
import { parse, type Key } from 'path-to-regexp-6'
import { shownByTrial } from './router.js'

interface ModernPath {
  readonly path: string
  /** Whether it accepts the same paths as the original, and no others. */
  readonly isExact: boolean
}

/** The path of a layer as path-to-regexp 8 writes it; `undefined` for a RegExp. */
export const modernPath = (layer: { readonly path: string | RegExp }): ModernPath | undefined => {
  const { path } = layer
  if (typeof path !== 'string') return undefined
  return readsPatterns(layer) ? translated(path) : { path, isExact: true }
}

/** Whether parameters of a layer's router may have patterns (`/:id(\\d+)`). path-to-regexp 8 refuses them. */
const readsPatterns = shownByTrial((type) => {
  try {
    // Safe: a layer of any router is made this way, and anything else is caught
    const { regexp } = Reflect.construct(type, ['/:n(\\d+)', [], []]) as { readonly regexp: RegExp }
    return regexp.test('/1') && !regexp.test('/x')
  } catch {
    return false
  }
}, false)

const translated = (path: string): ModernPath => {
  const parsed = parse(path)
  return {
    path: stringify(
      new TokenData(parsed.flatMap((token) => (typeof token === 'string' ? textToken(token) : keyTokens(token)))),
    ),
    isExact: parsed.every((token) => typeof token === 'string' || isExact(token)),
  }
}

const textToken = (value: string): Token => ({ type: 'text', value })
const groupToken = (...tokens: Token[]): Token => ({ type: 'group', tokens })

// The pattern of a parameter that was given none, and the pattern that matches anything
const SEGMENT_PATTERN = String.raw`[^\/#\?]+?`
const ANY_PATTERN = '.*'
// The same after text in one segment, such as /:a-:b. It stops before that text
const segmentBehindText = /^\(\?:\(\?!.+\)\[\^\\\/#\\\?\]\)\+\?$/
// A character class that has no slash, once or more: digits, words, ranges
const withinSegment = /^(?:\\[dw]|\[[\w-]+\])(?:\+|\{[1-9]\d*(?:,\d*)?\})?$/

const repeats = ({ modifier }: Key): boolean => modifier === '+' || modifier === '*'

const isExact = (key: Key): boolean =>
  key.pattern === '' || ((key.pattern === SEGMENT_PATTERN || key.pattern === ANY_PATTERN) && !repeats(key))

// A group in braces has no name. An optional part becomes a group, because all groups of path-to-regexp 8 are optional
const keyTokens = (key: Key): Token[] => {
  const { prefix, suffix, pattern, modifier } = key
  const tokens = [textToken(prefix), ...(pattern === '' ? [] : [parameterToken(key)]), textToken(suffix)]
  const written = tokens.filter((token) => token.type !== 'text' || token.value !== '')
  return modifier === '?' || modifier === '*' ? [groupToken(...written)] : written
}

const parameterToken = (key: Key): Token => {
  const name = String(key.name)
  const isSegment =
    [withinSegment, segmentBehindText].some((one) => one.test(key.pattern)) || key.pattern === SEGMENT_PATTERN
  if (isSegment) return { type: repeats(key) ? 'wildcard' : 'param', name }
  // An unknown pattern may also match nothing
  return groupToken({ type: 'wildcard', name })
}
