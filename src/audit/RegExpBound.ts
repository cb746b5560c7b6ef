/**
 * What can be proven of a RegExp without reading all of it: which paths it cannot accept.
 *
 * Two proofs are known. What it accepts begins with its literal beginning; and where it accepts a path in no letter case, it
 * does not accept it. A RegExp that neither one settles is `unknown` to the audit.
 */
import { startingWith, type PathPattern } from './PathPattern.js'

/** A pattern that accepts all that a RegExp accepts, and more. */
export const boundOf = (regexp: RegExp): PathPattern => startingWith(literalBeginning(regexp))

// Up to the first character that is syntax, or that something behind it repeats or makes optional
const literalBeginning = ({ source, flags }: RegExp): string => {
  // with these flags `^` is not the beginning, and letter case is another one
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

// Outside of all groups, where the whole expression is one of several
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
  // what a RegExp must not find, it finds more often with the flag i
  if (/\(\?<?!|\[\^/.test(source)) return false
  const anyCase = new RegExp(source, `${flags}i`)
  return !paths.some((path) => anyCase.test(path))
}
