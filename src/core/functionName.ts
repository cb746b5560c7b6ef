/**
 * The name of a deciding function in the description of an authenticator, so that a policy file shows when another function decides: its
 * name, and a digest of its text. Blanks, comments and quotes are not in the digest, so another layout is the same function.
 *
 * All bound functions have the same text. The label of a bound function says `bound, not compared`; only a name that the
 * application gives it tells it from others.
 */
import { digest } from '../crypto/secrets.js'
import { that } from './checks.js'
import { checkHook, declareFactory } from './options.js'

const LONGEST_FUNCTION_NAME = 100

/** The label of functions that `seal(app, { lock })` refuses. */
export const NOT_COMPARED = '(no name, bound, not compared)'

/**
 * Gives a function a name that policy files call it by, and returns the function. Use it for functions that their text does not tell
 * apart: bound methods, and functions that one factory made of different values. Any option that is a function takes it. Throws a TypeError for a
 * string that cannot be a name, and for a function that has another name already, or is frozen.
 *
 * @example
 * import { named } from 'koa-with-auth'
 *
 * const plans = { of: (user: { plan: string }) => user.plan }
 * const by = named('the plan of the user', plans.of.bind(plans))
 */
export const named = <F extends Function>(name: string, f: F): F => {
  conditionName('named(name, f)', name)
  checkHook('named(name, f): f', f, Infinity)
  if (f.name === name && !isNameable(f)) return f
  if (!isNameable(f))
    throw new TypeError(
      `named('${name}', f): f has a name that cannot change; write named('${name}', (...all) => f(...all))`,
    )
  // it cannot change again, so one function has one name
  return Object.defineProperty(f, 'name', { value: name, configurable: false })
}

declareFactory('named', named)

const isNameable = (f: Function): boolean =>
  Object.isExtensible(f) && Object.getOwnPropertyDescriptor(f, 'name')?.configurable !== false

const ownFunctions = new WeakSet<Function>()

/** A function of this package, which its name tells apart: its text changes with each release. */
export const ofThisPackage = <F extends Function>(f: F): F => {
  ownFunctions.add(f)
  return f
}

/** Whether the text of a function says nothing about it: a bound function, or a proxy of a function. */
const isBound = (f: Function): boolean => /^function\s*\(\)\s*\{\s*\[native code\]\s*\}$/.test(functionText(f))

const functionText = (f: Function): string => Function.prototype.toString.call(f)

/** The label of a function in policy files: the name that was given to it, or its own, and a digest of its text. */
export const functionName = (f: Function, name = ownName(f)): string => {
  if (ownFunctions.has(f)) return name
  if (isBound(f)) return /^(?:bound(?: |$)|$)/.test(name) ? `${name} ${NOT_COMPARED}` : `${name} (bound, not compared)`
  return `${name === '' ? 'function' : name} ${functionDigest(f)}`
}

/** The same for the value of an option, whose name a function without its own one has from there. */
export const functionOf = (option: string, f: Function, name = ownName(f)): string =>
  name === option && !isBound(f) ? functionDigest(f) : functionName(f, name)

const ownName = (f: Function): string => {
  const own: unknown = f.name
  return typeof own === 'string' ? onOneLine(own) : ''
}

export const functionDigest = (f: Function): string => {
  const text = functionText(f)
  return digest(functionTokens(text)?.join('\n') ?? text, 'hex').slice(0, 12)
}

/** Options in words, for the policy file: `maxTokenAge 300`, a function by its name. Never call it with a secret. */
export const optionWords = (options: object): ReadonlyArray<string> =>
  Object.entries(options).flatMap(([name, value]: [string, unknown]) =>
    value === undefined ? [] : [`${name} ${optionValueInWords(value)}`],
  )

const optionValueInWords = (value: unknown): string => {
  if (typeof value === 'function') return functionName(value)
  if (Array.isArray(value)) return value.map(optionValueInWords).join(' ')
  return typeof value === 'object' && value !== null ? `(${optionWords(value).join(' ')})` : String(value)
}

// A computed name can be any string
const onOneLine = (name: string): string =>
  name
    .replace(/[^\p{L}\p{N}$_.:/ #-]+/gu, '_')
    .trim()
    .slice(0, LONGEST_FUNCTION_NAME)

/** A name that an application gives a condition: one line, without signs that the policy file gives a meaning. */
export const conditionName = that(
  (value) =>
    typeof value === 'string' &&
    value.length <= LONGEST_FUNCTION_NAME &&
    /^[\p{L}\p{N}$_.:/#-]+(?: [\p{L}\p{N}$_.:/#-]+)*$/u.test(value),
  `must be a name of at most ${LONGEST_FUNCTION_NAME} letters, digits, single blanks and "$_.:/#-", such as 'admin'`,
)

// Words that can stand before a regular expression
const beforeExpression: ReadonlySet<string> = new Set(
  'return typeof case in of delete void throw new instanceof do else yield await'.split(' '),
)
// A line break behind these ends the statement
const restricted: ReadonlySet<string> = new Set(['return', 'break', 'continue', 'throw', 'yield', 'async'])

const blank = /[\s\ufeff]+/y
const comment = /\/\/[^\n\r\u2028\u2029]*|\/\*[^]*?\*\//y
const quotedString = /'(?:[^'\\\n\r]|\\[^])*'|"(?:[^"\\\n\r]|\\[^])*"/y
// It is kept as it is written. With strings in it, it is not known where it ends
const template = /`(?:[^`\\$]|\\[^]|\$(?!\{)|\$\{[^`{'"/}]*\})*`/y
const word = /[\p{ID_Continue}$#@\u200c\u200d\\]+/uy
const expression = /\/(?:[^[/\\\n\r]|\\.|\[(?:[^\]\\\n\r]|\\.)*\])+\//y
const operator = /=>|\+\+|--|\?\.|[^]/y

const matching = (shape: RegExp, text: string, at: number): string | undefined => {
  shape.lastIndex = at
  return shape.exec(text)?.[0]
}

/**
 * The tokens of a function's text, without the parts that only a formatter changes: blanks, comments, quotes, commas and semicolons at an end,
 * parentheses around one parameter; `undefined` if tokens cannot be told apart, such as a regular expression behind a parenthesis.
 */
const functionTokens = (text: string): ReadonlyArray<string> | undefined => {
  const tokens: string[] = []
  let isBroken = false
  for (let at = 0; at < text.length;) {
    const last = tokens.at(-1) ?? ''
    const skipped = matching(blank, text, at) ?? matching(comment, text, at)
    if (skipped !== undefined) {
      isBroken ||= /[\n\r\u2028\u2029]/.test(skipped)
      at += skipped.length
      continue
    }
    const token = tokenAt(text, at, last)
    if (token === undefined) return undefined
    // the rest after the end of a statement is another statement
    if (isBroken && (restricted.has(last) || token === '++' || token === '--')) tokens.push('line break')
    isBroken = false
    dropBefore(token, tokens)
    tokens.push(/^['"]/.test(token) ? plainString(token) : token)
    at += token.length
  }
  return tokens
}

const tokenAt = (text: string, at: number, last: string): string | undefined => {
  const first = text.charAt(at)
  if (first === '`') return matching(template, text, at)
  if (first === "'" || first === '"') return matching(quotedString, text, at)
  if (first !== '/') return matching(word, text, at) ?? matching(operator, text, at)
  // behind a value it divides; behind these it can be both
  if ([')', '}', '++', '--'].includes(last)) return undefined
  const isValue = /[\p{ID_Continue}$'"`\]]$/u.test(last) && !beforeExpression.has(last)
  return isValue ? '/' : matching(expression, text, at)
}

/** Drops tokens that a formatter writes or leaves out before this token. */
const dropBefore = (token: string, tokens: string[]): void => {
  const last = tokens.at(-1)
  // `[,]` and `(;)` are something else
  if (last === ',' && (token === '}' || token === ')')) tokens.pop()
  else if (last === ',' && token === ']' && tokens.at(-2) !== ',' && tokens.at(-2) !== '[') tokens.pop()
  else if (last === ';' && token === '}' && !/^[){;]$/.test(tokens.at(-2) ?? '')) tokens.pop()
  else if (token === '=>' && last === ')' && tokens.at(-3) === '(' && tokens.at(-2) !== '(')
    tokens.splice(-3, 3, tokens.at(-2) ?? '')
}

// Its quotes are those of a formatter
const plainString = (token: string): string => {
  const inner = token
    .slice(1, -1)
    .replace(/\\([^])/g, (pair, sign: string) => (sign === '"' || sign === "'" ? sign : pair))
  return JSON.stringify(inner)
}
