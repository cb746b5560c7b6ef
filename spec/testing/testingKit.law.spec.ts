/** The testing kit itself: what it makes keeps the laws that it checks, and nothing right is reported. */
import fc from 'fast-check'
import { apiKeys, basicCredentials, bearerTokens } from '../support/models/arbitrary/credentials.js'
import { authenticators } from '../support/models/arbitrary/authenticators.js'
import { laws } from 'koa-with-auth/testing/laws'
import { withBasic, withBearer, withCookie, withHeader, withQuery, mergeRequests } from 'koa-with-auth/testing'
import { randomFailures, hostileTexts, secretTexts, requestSpecs } from '../../src/testing/laws/random.js'
import { describe, expect, it } from 'vitest'
import { AuthError } from 'koa-with-auth'
import { informedAttacks } from '../../src/testing/attacks.js'
import { locationsIn, putCredentials, valuesAt, withoutCredential } from '../../src/testing/CredentialLocation.js'

describe('arbitraries of credentials', () => {
  it('make hostile credentials that fit into a field', () => {
    // RFC 9110 §5.5
    fc.assert(fc.property(hostileTexts(), (text) => /^[\t\x20-\x7e\x80-\xff]*$/.test(text)))
  })

  it('make nearly right credentials that are never right', () => {
    const places = [
      { in: 'header', name: 'X-API-Key' },
      { in: 'authorization', name: 'Bearer' },
    ] as const
    fc.assert(
      fc.property(secretTexts(), fc.constantFrom(...places), (secret, place) => {
        const attacks = informedAttacks({ locations: [place], valid: [putCredentials(place, [secret], {})] })
        const wrong = attacks
          .filter(({ what }) => what.includes('nearly right'))
          .map(({ spec }) => valuesAt(place, spec))
        expect(wrong.flat()).not.toContain(secret)
        expect(wrong.length).toBeGreaterThan(10)
      }),
    )
  })
})

describe('arbitraries of requests', () => {
  const credentials = fc.oneof(
    bearerTokens().map(withBearer),
    basicCredentials().map(({ username, password }) => withBasic(username, password)),
    apiKeys().map((key) => withHeader('X-API-Key', key)),
    apiKeys().map((key) => withCookie('sid', key)),
    apiKeys().map((key) => withQuery('key', key)),
  )

  it('a place that is filled has the new value, and a place that is emptied has none', () => {
    fc.assert(
      fc.property(requestSpecs(), credentials, apiKeys(), (about, sent, other) => {
        const sketch = mergeRequests(about, sent)
        for (const place of locationsIn(sent)) {
          expect(valuesAt(place, sketch)).toHaveLength(1)
          expect(valuesAt(place, putCredentials(place, [other, other], sketch))).toStrictEqual([other, other])
          expect(valuesAt(place, withoutCredential(place, sketch))).toStrictEqual([])
          expect(locationsIn(withoutCredential(place, sketch))).toStrictEqual(locationsIn(about))
        }
      }),
    )
  })
})

it('every arbitrary failure is an AuthError', () => {
  fc.assert(fc.property(randomFailures(), (error) => AuthError.is(error)))
})

it('the built-in kinds keep every law, alone and composed', async () => {
  await fc.assert(
    fc.asyncProperty(authenticators(), ({ authenticator, valid }) =>
      laws.authenticator(authenticator, { valid, runs: 20, within: 10_000 }).check(),
    ),
    { numRuns: 60 },
  )
})
