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

/**
 * What a function is compared by. Two functions of one text are the same if they use no name from outside of it, such as two
 * `(user) => user.isAdmin`; otherwise a function is like no other, because each can close over other values.
 */
export const identityOf = (f: Function): unknown => {
  const text = withoutLayout(Function.prototype.toString.call(f))
  return isClosed(text) ? text : f
}

const head = /^(?:async\b ?)?(?:function(?: [\w$]+)?\(([^()]*)\)(?=\{)|(?:\(([^()]*)\)|([\w$]+))=>)/
const harmless = new Set(
  'return if else true false null undefined typeof void in instanceof new throw async await Array Boolean Date JSON Math Number Object Promise String'.split(
    ' ',
  ),
)

// Careful rather than clever: what it cannot read is not closed
const isClosed = (text: string): boolean => {
  // a comment, a RegExp, a template or an escape can hide a name
  if (/[/`\\]/.test(text)) return false
  const code = text.replace(/'[^'\n]*'|"[^"\n]*"/g, "''")
  const [start, ...written] = head.exec(code) ?? []
  const parameters = written.find((one) => one !== undefined)
  // a default value uses names, and so does a property that gets another name
  if (start === undefined || parameters === undefined || /[=:]/.test(parameters)) return false
  const known = new Set(namesIn(parameters))
  return namesIn(code.slice(start.length)).every((name) => known.has(name) || harmless.has(name))
}

// Not those of properties
const namesIn = (code: string): ReadonlyArray<string> =>
  Array.from(code.replaceAll('...', ' ').matchAll(/(\.?)([\p{ID_Start}$_][\p{ID_Continue}$]*)/gu)).flatMap(
    ([, dot, name]) => (dot === '' && name !== undefined ? [name] : []),
  )

// A computed name can be any string
const onOneLine = (name: string): string =>
  name
    .replace(/[^\p{L}\p{N}$_.:/ #-]+/gu, '_')
    .trim()
    .slice(0, MAX_LENGTH)

const digest = (text: string): string => hash('sha256', text, 'hex').slice(0, 12)

// A string, a template, what follows `//` on a line, a RegExp, or blanks. A comment can look like a part of a RegExp, so comments
// count. A slash begins a RegExp where a value begins
const piece =
  /'(?:[^'\\\n]|\\[^])*'|"(?:[^"\\\n]|\\[^])*"|`(?:[^`\\]|\\[^])*`|\/\/[^\n]*\n?|(?<=(?:^|[-+*%<>&|^!~?:=,;([{}]|\b(?:return|typeof|case|in|of|void))\s*)\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/|\s+/g

// A template in a template: where its strings end is not known, so all of its text counts
const nestedTemplate = /`[^`]*\$\{[^}]*`/

/** @internal The text of a function without layout. */
export const withoutLayout = (text: string): string => {
  if (nestedTemplate.test(text)) return text
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
