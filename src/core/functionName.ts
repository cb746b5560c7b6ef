/**
 * What the description of an authenticator calls a function that decides, so that a policy file shows when another one decides.
 *
 * A function has the name that the application gives it, or its own. One without a name is called by a digest of its text. Layout
 * does not count; comments and blanks inside of strings do.
 */
import { hash } from 'node:crypto'
import type { Check } from './options.js'

const MAX_LENGTH = 100

/** The name of a function: one line, without blanks around it. */
export const functionName = (f: Function): string => {
  const own: unknown = f.name
  const name = typeof own === 'string' ? onOneLine(own) : ''
  return name === '' ? `function ${digestOf(f)}` : name
}

/** A digest of the text of a function, without layout. */
export const digestOf = (f: Function): string => digest(withoutLayout(Function.prototype.toString.call(f)))

// A computed name can be any string
const onOneLine = (name: string): string =>
  name
    .replace(/[^\p{L}\p{N}$_.:/ #-]+/gu, '_')
    .trim()
    .slice(0, MAX_LENGTH)

const digest = (text: string): string => hash('sha256', text, 'hex').slice(0, 12)

// A string, a template, what follows `//` on a line, or blanks. A comment can look like a part of a RegExp, so comments count
const piece = /'(?:[^'\\\n]|\\[^])*'|"(?:[^"\\\n]|\\[^])*"|`(?:[^`\\]|\\[^])*`|\/\/[^\n]*\n?|\s+/g

/** @internal The text of a function without layout. */
export const withoutLayout = (text: string): string => {
  const pieces: string[] = []
  let at = 0
  for (const { 0: found, index } of text.matchAll(piece)) {
    pieces.push(text.slice(at, index), /^['"`/]/.test(found) ? found : ' ')
    at = index + found.length
  }
  pieces.push(text.slice(at))
  return pieces.reduce(joined, '').trim()
}

// A blank counts between two words, and between two signs that would become another one
const joined = (before: string, next: string): string => {
  if (next === '') return before
  if (next !== ' ')
    return before.endsWith(' ') && !needsBlank(before.at(-2), next[0]) ? before.slice(0, -1) + next : before + next
  return before.endsWith(' ') ? before : `${before} `
}

const needsBlank = (before: string | undefined, after: string | undefined): boolean => {
  if (before === undefined || after === undefined) return false
  return (/[\w$]/.test(before) && /[\w$]/.test(after)) || (before === after && /[+-]/.test(before))
}

/** A name that an application gives a condition: one line, without signs that the policy file gives a meaning. */
export const conditionName: Check = (where, value) => {
  if (
    typeof value === 'string' &&
    value.length <= MAX_LENGTH &&
    /^[\p{L}\p{N}$_.:/#-]+(?: [\p{L}\p{N}$_.:/#-]+)*$/u.test(value)
  )
    return
  throw new TypeError(
    `${where} must be a name of at most ${MAX_LENGTH} letters, digits, single blanks and "$_.:/#-", such as 'admin'`,
  )
}
