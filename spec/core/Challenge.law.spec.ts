/** Challenges: what is rendered can be parsed again (RFC 9110 §11.3), and is one line of ASCII, whatever the input. */
import fc from 'fast-check'
import { Challenge } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { challenge, token } from '../support/models/arbitraries.js'
import { parseChallenge } from '../support/models/challengeParser.js'

const realm = fc.stringMatching(/^[\x20-\x7e]{0,20}$/)
const anyText = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('a\r\nSet-Cookie: b=c', 'é', '\u0000', 'a\nb'))
const anyName = fc.oneof({ weight: 3, arbitrary: token }, anyText, fc.constantFrom('', 'A\n', 'a b'))

describe('Challenge.render', () => {
  it('B-05 parses to the scheme, the realm first, and every parameter', () => {
    fc.assert(
      fc.property(challenge, realm, (made, substitute) => {
        const { scheme, parameters } = parseChallenge(Challenge.render(substitute)(made))
        expect(scheme).toBe(made.scheme)
        const isRealm = ([name]: readonly [string, string]) => name.toLowerCase() === 'realm'
        const own = Object.entries(made.parameters)
        expect(parameters).toStrictEqual([
          own.find(isRealm) ?? ['realm', substitute],
          ...own.filter((parameter) => !isRealm(parameter)),
        ])
      }),
      { numRuns: 300 },
    )
  })

  it('B-04 a realm in any letter case is the realm, once', () => {
    const made = Challenge.make('ApiKey', { Realm: 'pets' })
    expect(parseChallenge(Challenge.render('api')(made)).parameters).toHaveLength(1)
  })

  it('B-05 never contains CR, LF or a character outside of ASCII: a realm is valid, or refused', () => {
    fc.assert(
      fc.property(challenge, anyText, (made, substitute) => {
        const rendered = attempt(() => Challenge.render(substitute)(made))
        if (rendered !== undefined) expect(rendered).toMatch(/^[\t\x20-\x7e]*$/)
      }),
    )
  })
})

describe('Challenge.make', () => {
  it('B-05 refuses with a TypeError exactly what is not valid in a header', () => {
    fc.assert(
      fc.property(anyName, anyName, anyText, (scheme, name, value) => {
        const isToken = (text: string) => /^[A-Za-z0-9!#$%&'*+\-.^_`|~]+$/.test(text)
        const isQuotable = /^[\t\x20-\x7e]*$/.test(value)
        const made = attempt(() => Challenge.make(scheme, { [name]: value }))
        expect(made !== undefined).toBe(isToken(scheme) && isToken(name) && isQuotable)
      }),
      { numRuns: 600 },
    )
  })
})

const attempt = <A>(f: () => A): A | undefined => {
  try {
    return f()
  } catch (error) {
    expect(error).toBeInstanceOf(TypeError)
    return undefined
  }
}
