/**
 * Proves which paths a RegExp cannot accept, without reading all of it.
 *
 * There are two proofs. Each path that it accepts begins with its literal beginning. And if it refuses a path in every
 * letter case, it does not accept the path. If both fail, the audit says `unknown`.
 */
import { startingWith, type PathPattern } from './PathPattern.js'

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
