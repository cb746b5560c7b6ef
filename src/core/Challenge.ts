/**
 * A challenge of a 401: a scheme and its parameters (RFC 9110 §11.3), and how `WWW-Authenticate` has them.
 *
 * A challenge without a realm gets the application's when it is rendered. This module does not decide which challenges
 * a response has.
 *
 * @example
 * import { Challenge } from 'koa-with-auth'
 *
 * const challenge = Challenge.make('ApiKey', { in: 'header', name: 'X-API-Key' })
 * assert.strictEqual(Challenge.render('pets')(challenge), 'ApiKey realm="pets", in="header", name="X-API-Key"')
 */

import { checkPlain, isQuotable, token } from './options.js'
import { deepFreeze, frozenCopy } from './data.js'

/** A scheme and its parameters; `realm` comes first when rendered. */
export interface Challenge {
  readonly scheme: string
  readonly parameters: Readonly<Record<string, string>>
}

/**
 * Makes a challenge. Throws a TypeError if the scheme or a parameter name is not a token (RFC 9110 §5.6.2), or if a
 * value does not fit a quoted-string of ASCII. So no value can put a line break into the header.
 */
export const make = (scheme: string, parameters: Readonly<Record<string, string>> = {}): Challenge => {
  if (!token.test(scheme)) {
    throw new TypeError(
      `Challenge: the scheme ${JSON.stringify(scheme)} is not a token; use letters, digits and hyphens`,
    )
  }
  checkPlain(`Challenge.make('${scheme}', parameters)`, parameters)
  const seen = new Set<string>()
  for (const [name, value] of Object.entries(parameters)) {
    if (!token.test(name)) throw new TypeError(`Challenge: the parameter name ${JSON.stringify(name)} is not a token`)
    checkValue(name, value)
    // RFC 9110 §11.2: names compare case-insensitively and occur once
    if (seen.has(name.toLowerCase())) throw new TypeError(`Challenge: the parameter "${name}" is given twice`)
    seen.add(name.toLowerCase())
  }
  return deepFreeze({ scheme, parameters: { ...parameters } })
}

/**
 * @internal A frozen challenge: the same challenge, or a copy if it is not frozen, such as the challenge of a custom kind.
 */
export const frozen = (challenge: Challenge): Challenge =>
  Object.isFrozen(challenge) && Object.isFrozen(challenge.parameters) ? challenge : frozenCopy(challenge)

const checkValue = (name: string, value: unknown): void => {
  if (!isQuotable(value)) {
    throw new TypeError(`Challenge: the parameter "${name}" must be printable ASCII on one line`)
  }
}

// RFC 9110 §5.6.4: only the quote and the backslash need escaping
const quote = (value: string): string => `"${value.replace(/["\\]/g, '\\$&')}"`

/** Writes a challenge as one `WWW-Authenticate` value; `realm` is used where the challenge has none. */
export const render = (realm: string) => {
  checkValue('realm', realm)
  return ({ scheme, parameters }: Challenge): string => {
    const given = Object.entries(parameters)
    const isRealm = ([name]: readonly [string, string]) => name.toLowerCase() === 'realm'
    const lines = [given.find(isRealm) ?? ['realm', realm], ...given.filter((parameter) => !isRealm(parameter))]
    return `${scheme} ${lines.map(([name = '', value = '']) => `${name}=${quote(value)}`).join(', ')}`
  }
}
