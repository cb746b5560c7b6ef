/** The testing kit itself: what it makes keeps the laws that it checks, and nothing right is reported. */
import Router, { type RouterInstance } from '@koa/router'
import { either as E } from 'fp-ts'
import fc, { type Arbitrary } from 'fast-check'
import Koa from 'koa'
import { apiKeys, basicCredentials, bearerTokens } from '../support/models/arbitrary/credentials.js'
import { authenticators } from '../support/models/arbitrary/authenticators.js'
import { laws } from 'koa-with-auth/testing/laws'
import {
  expectGuarded,
  mockRequest,
  withBasic,
  withBearer,
  withCookie,
  withHeader,
  withQuery,
  mergeRequests,
} from 'koa-with-auth/testing'
import { randomFailures, hostileTexts, secretTexts, requestSpecs } from '../../src/testing/laws/random.js'
import { describe, expect, it } from 'vitest'
import { AuthError, httpBearer, type Guard } from 'koa-with-auth'
import { guardOf } from '../support/models/levels.js'
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

describe('arbitraries of authenticators', () => {
  it('the built-in kinds keep every law, alone and composed', async () => {
    await fc.assert(
      fc.asyncProperty(authenticators(), ({ authenticator, valid }) =>
        laws.authenticator(authenticator, { valid, runs: 20, within: 10_000 }).check(),
      ),
      { numRuns: 60 },
    )
  })

  it('each passes with its valid credentials', async () => {
    await fc.assert(
      fc.asyncProperty(authenticators(), async ({ authenticator, valid }) => {
        for (const sketch of valid) expect(E.isRight(await authenticator.evaluate(mockRequest(sketch)))).toBe(true)
      }),
    )
  })
})

// The decision of a level: none, public, or a token
const decision = fc.constantFrom(undefined, guardOf(null), guardOf(httpBearer({ authenticate: () => false })))
type Decision = Guard<unknown>
interface Plan {
  readonly level: Decision | undefined
  readonly operations: ReadonlyArray<Decision | undefined>
  readonly inner: ReadonlyArray<Plan>
}
const plan = (depth: number): Arbitrary<Plan> =>
  fc.record({
    level: decision,
    operations: fc.array(decision, { minLength: 1, maxLength: 3 }),
    inner: depth === 0 ? fc.constant([]) : fc.array(plan(depth - 1), { maxLength: 2 }),
  })

/** The routers of a plan, and each operation with the decision that counts: the innermost. */
const built = ({ level, operations, inner }: Plan, prefix: string, above?: Decision) => {
  const effective = level ?? above
  const router: RouterInstance = level?.(new Router({ prefix })) ?? new Router({ prefix })
  const found = operations.map((own, at): readonly [path: string, decision: Decision | undefined] => {
    router.get(`/o${at}`, ...(own === undefined ? [] : [own as never]), () => {})
    return [`${prefix}/o${at}`, own ?? effective]
  })
  for (const [at, one] of inner.entries()) {
    const below = built(one, `/c${at}`, effective)
    router.use(below.router.routes())
    found.push(...below.found.map(([path, decided]) => [prefix + path, decided] as const))
  }
  return { router, found }
}

it('expectGuarded finds operations guarded, and finds every public operation that is not listed', async () => {
  const seen = { open: 0, guarded: 0 }
  await fc.assert(
    fc.asyncProperty(plan(2), async (given) => {
      const { router, found } = built(given, '/api')
      const app = new Koa().use(router.routes())
      const namesOf = (some: typeof found) => some.map(([path]) => `GET ${path}`)
      const open = namesOf(found.filter(([, decided]) => decided?.requirement._tag !== 'Require'))
      const checked = await expectGuarded(app, router, { public: open })
      expect(checked.map(({ operation }) => operation).sort()).toStrictEqual(namesOf(found).sort())
      seen.open += open.length
      seen.guarded += found.length - open.length
      if (open.length === 0) return
      await expect(expectGuarded(app, router, { public: open.slice(1) })).rejects.toThrow(
        `${open[0]}: public, but not listed`,
      )
    }),
    { numRuns: 12 },
  )
  expect(Math.min(seen.open, seen.guarded)).toBeGreaterThan(5)
})
