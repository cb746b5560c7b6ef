/**
 * The text of a function without its layout: blanks, comments, quotes, commas and semicolons at an end, parentheses around one parameter.
 * Formatters change only these.
 */

// What can stand before a regular expression, other than an operator
const beforeExpression: ReadonlySet<string> = new Set(
  'return typeof case in of delete void throw new instanceof do else yield await'.split(' '),
)
// A line break behind these ends the statement
const restricted: ReadonlySet<string> = new Set(['return', 'break', 'continue', 'throw', 'yield', 'async'])

const blank = /[\s\ufeff]+/y
const comment = /\/\/[^\n\r\u2028\u2029]*|\/\*[^]*?\*\//y
const quoted = /'(?:[^'\\\n\r]|\\[^])*'|"(?:[^"\\\n\r]|\\[^])*"/y
const word = /[\p{ID_Continue}$#@\u200c\u200d\\]+/uy
const expression = /\/(?:[^[/\\\n\r]|\\.|\[(?:[^\]\\\n\r]|\\.)*\])+\//y
const operator = /=>|\+\+|--|\?\.|[^]/y

const matching = (shape: RegExp, text: string, at: number): string | undefined => {
  shape.lastIndex = at
  return shape.exec(text)?.[0]
}

/** The tokens of a function's text; `undefined` if it cannot be told what is one, such as a regular expression behind a parenthesis. */
export const tokensOf = (text: string): ReadonlyArray<string> | undefined => {
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
    // the rest of a statement that has ended is another one
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
  if (first === '`') return templateAt(text, at)
  if (first === "'" || first === '"') return matching(quoted, text, at)
  if (first !== '/') return matching(word, text, at) ?? matching(operator, text, at)
  // behind a value it divides; behind these it can be both
  if ([')', '}', '++', '--'].includes(last)) return undefined
  const isValue = /[\p{ID_Continue}$'"`\]]$/u.test(last) && !beforeExpression.has(last)
  return isValue ? '/' : matching(expression, text, at)
}

// A template is kept as it is written
const templateAt = (text: string, start: number): string | undefined => {
  for (let at = start + 1; at < text.length; at++) {
    const sign = text.charAt(at)
    if (sign === '\\') at++
    else if (sign === '`') return text.slice(start, at + 1)
    // with strings in a template it is not known where it ends
    else if (sign === '$' && text.charAt(at + 1) === '{' && /[`{'"/]/.test(text.slice(at + 2, text.indexOf('}', at))))
      return undefined
  }
  return undefined
}

/** Drops what a formatter writes or leaves out before a token. */
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
