/** The testing kit itself: what it makes keeps the laws that it checks, and nothing right is called wrong. */
import { request as send } from 'node:http'
import { either as E } from 'fp-ts'
import fc from 'fast-check'
import Koa from 'koa'
import { BasicCredentials, BearerToken, CookieKey, HeaderKey, QueryKey } from 'koa-with-auth'
import {
  apiKeys,
  authenticators,
  basicCredentials,
  bearerTokens,
  checkAuthenticator,
  expectGuarded,
  failures,
  hostileTexts,
  plainRequest,
  requests,
  routers,
  secrets,
  sendBasic,
  sendBearer,
  sendCookie,
  sendHeader,
  sendQuery,
  sketches,
  together,
  type PlannedOperation,
} from 'koa-with-auth/testing'
import { describe, expect, it } from 'vitest'
import { AuthError, fromCookie, fromHeader, fromQuery } from 'koa-with-auth'
import { misspellings } from '../../src/testing/misspellings.js'
import { placesIn, putting, valuesAt, without } from '../../src/testing/Place.js'
import { listen } from '../support/server.js'

describe('credentials', () => {
  it('right ones are admitted by their codecs, and hostile ones fit into a field', () => {
    fc.assert(fc.property(bearerTokens(), (token) => BearerToken.is(token)))
    fc.assert(fc.property(basicCredentials(), (credentials) => BasicCredentials.is(credentials)))
    fc.assert(
      fc.property(apiKeys(), secrets(), (...keys) =>
        keys.every((key) => [CookieKey, HeaderKey, QueryKey].every((codec) => codec.is(key))),
      ),
    )
    // RFC 9110 §5.5
    fc.assert(fc.property(hostileTexts(), (text) => /^[\t\x20-\x7e\x80-\xff]*$/.test(text)))
  })

  it('nearly right ones are none of them right', () => {
    const places = [
      { in: 'header', name: 'X-API-Key' },
      { in: 'authorization', name: 'Bearer' },
    ] as const
    fc.assert(
      fc.property(secrets(), fc.constantFrom(...places), (secret, place) => {
        expect(misspellings(place, secret)).not.toContain(secret)
        expect(misspellings(place, secret).length).toBeGreaterThan(10)
      }),
    )
  })
})

describe('sketches', () => {
  const credentials = fc.oneof(
    bearerTokens().map(sendBearer),
    basicCredentials().map(({ username, password }) => sendBasic(username, password)),
    apiKeys().map((key) => sendHeader('X-API-Key', key)),
    apiKeys().map((key) => sendCookie('sid', key)),
    apiKeys().map((key) => sendQuery('key', key)),
  )

  it('what is sent is what the readers of fields find, beside anything else', () => {
    fc.assert(
      fc.property(sketches(), apiKeys(), apiKeys(), apiKeys(), (about, header, inCookie, parameter) => {
        const whole = together(
          about,
          sendHeader('X-API-Key', header),
          sendCookie('sid', inCookie),
          sendQuery('key', parameter),
        )
        const request = plainRequest(whole)
        expect(fromHeader('X-API-Key')(request)).toMatchObject({ value: header })
        expect(fromCookie('sid')(request)).toMatchObject({ value: CookieKey.encode(inCookie) })
        expect(fromQuery('key')(request)).toMatchObject({ value: parameter })
      }),
    )
  })

  it('a place that is put holds that, and one that is emptied holds nothing', () => {
    fc.assert(
      fc.property(sketches(), credentials, apiKeys(), (about, sent, other) => {
        const sketch = together(about, sent)
        for (const place of placesIn(sent)) {
          expect(valuesAt(place, sketch)).toHaveLength(1)
          expect(valuesAt(place, putting(place, [other, other], sketch))).toStrictEqual([other, other])
          expect(valuesAt(place, without(place, sketch))).toStrictEqual([])
          expect(placesIn(without(place, sketch))).toStrictEqual(placesIn(about))
        }
      }),
    )
  })

  it('a request carries its credentials alone, and is printed as it was sent', () => {
    fc.assert(
      fc.property(requests(bearerTokens().map(sendBearer)), requests(), (signedIn, bare) => {
        expect(signedIn.get('Authorization')).toMatch(/^Bearer /)
        expect(bare.get('Authorization') + bare.get('Cookie') + bare.querystring).toBe('')
        expect(fc.stringify(signedIn)).toContain('Authorization: Bearer ')
      }),
    )
  })
})

it('every failure of the arbitrary is one', () => {
  fc.assert(fc.property(failures(), (error) => AuthError.is(error)))
})

describe('authenticators', () => {
  it('the built-in kinds keep every law, alone and composed', async () => {
    await fc.assert(
      fc.asyncProperty(authenticators(), ({ authenticator, valid }) =>
        checkAuthenticator(authenticator, { valid, runs: 20, within: 10_000 }),
      ),
      { numRuns: 60 },
    )
  }, 120_000)

  it('each lets in what it says', async () => {
    await fc.assert(
      fc.asyncProperty(authenticators(), async ({ authenticator, valid }) => {
        for (const sketch of valid) expect(E.isRight(await authenticator.evaluate(plainRequest(sketch)))).toBe(true)
      }),
    )
  })
})

const call = (port: number, { method, path }: PlannedOperation, token?: string) =>
  new Promise<string>((resolve, reject) => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const asking = send({ host: '127.0.0.1', port, method, path, headers }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => resolve(`${response.statusCode} ${Buffer.concat(chunks).toString()}`))
    })
    asking.on('error', reject).end()
  })

describe('routers', () => {
  it('5.6 every operation answers to the token that the innermost decision demands', async () => {
    await fc.assert(
      fc.asyncProperty(routers(), async ({ router, operations }) => {
        const { port, close } = await listen(new Koa().use(router.routes()))
        try {
          for (const operation of operations) {
            const { token } = operation
            expect(await call(port, operation, token)).toBe(`200 ${token ?? 'public'}`)
            expect(await call(port, operation)).toMatch(token === undefined ? /^200 public$/ : /^401 /)
          }
        } finally {
          await close()
        }
      }),
      { numRuns: 25 },
    )
  }, 60_000)

  it('expectGuarded finds them guarded, and every operation that is public and not listed', async () => {
    const seen = { open: 0, guarded: 0 }
    await fc.assert(
      fc.asyncProperty(routers(), async ({ router, operations }) => {
        const app = new Koa().use(router.routes())
        const nameOf = ({ method, path }: PlannedOperation) => `${method} ${path}`
        const open = operations.filter(({ token }) => token === undefined).map(nameOf)
        const checked = await expectGuarded(app, router, { public: open })
        expect(checked.map(({ operation }) => operation).sort()).toStrictEqual(operations.map(nameOf).sort())
        seen.open += open.length
        seen.guarded += operations.length - open.length
        if (open.length === 0) return
        await expect(expectGuarded(app, router, { public: open.slice(1) })).rejects.toThrow(
          `${open[0]}: public, but not listed`,
        )
      }),
      { numRuns: 12 },
    )
    expect(Math.min(seen.open, seen.guarded)).toBeGreaterThan(5)
  }, 60_000)
})
