/**
 * Reads one challenge as a client would (RFC 9110 §11.3): `scheme [ 1*SP #auth-param ]`. It is strict: anything outside
 * of the grammar is an error, and so is a parameter that occurs twice (§11.2).
 */

const token = "[A-Za-z0-9!#$%&'*+\\-.^_`|~]+"
const head = new RegExp(`^(${token})(?: +|$)`)
const parameter = new RegExp(
  `^(${token})[ \\t]*=[ \\t]*(?:(${token})|"((?:[\\t \\x21\\x23-\\x5b\\x5d-\\x7e]|\\\\[\\t -~])*)")`,
)
const comma = /^[ \t]*,[ \t]*/

/** The scheme, and the parameters in order; names as they were sent. */
export const parseChallenge = (field: string) => {
  const [opening, scheme] = head.exec(field) ?? []
  if (opening === undefined || scheme === undefined) throw new Error(`no scheme: ${field}`)
  const parameters: Array<readonly [name: string, value: string]> = []
  for (let rest = field.slice(opening.length); rest !== '';) {
    const found = parameter.exec(rest)
    if (found === null) throw new Error(`no parameter: ${rest}`)
    const [all, name = '', bare, quoted = ''] = found
    if (parameters.some(([known]) => known.toLowerCase() === name.toLowerCase())) throw new Error(`twice: ${name}`)
    parameters.push([name, bare ?? quoted.replace(/\\(.)/g, '$1')])
    rest = rest.slice(all.length)
    const separator = comma.exec(rest)
    if (rest !== '' && separator === null) throw new Error(`no comma: ${rest}`)
    rest = rest.slice(separator?.[0].length ?? 0)
  }
  return { scheme, parameters }
}
