/**
 * The cache of verified tokens, compared with a model that verifies every token: it never accepts what a verification
 * would refuse, whatever the clock, the keys and the tokens do. No part of a token is in a response, a log line or an
 * error.
 */
import { either as E } from 'fp-ts'
import fc from 'fast-check'
import { decodeJwt, jwtVerify } from 'jose'
import type { Authenticator } from 'koa-with-auth'
import { httpJwt } from 'koa-with-auth/jwt'
import { describe, expect, it } from 'vitest'
import { stoppedClock, type Clock } from '../support/runs/clock.js'
import { API, identityProvider, signedWith, signingKey, type SigningKey } from '../support/servers/identityProvider.js'
import { countedVerifications } from '../support/models/verifications.js'
import { mockRequest } from 'koa-with-auth/testing'
import { occurring, runs } from '../support/runs/samples.js'

const TOLERANCE = 5
const MAX_AGE = 60_000

type Step =
  | { readonly what: 'send'; readonly token: number }
  | { readonly what: 'wait' | 'set'; readonly ms: number }
  | { readonly what: 'publish' | 'withdraw'; readonly key: number }
  | { readonly what: 'fail' | 'recover' }

const KEYS = 2
const TOKENS = 10
const MAX_TOKEN_AGE = 150

const step: fc.Arbitrary<Step> = fc.oneof(
  { arbitrary: fc.record({ what: fc.constant('send'), token: fc.nat(TOKENS - 1) }), weight: 8 },
  { arbitrary: fc.record({ what: fc.constant('wait'), ms: fc.integer({ min: 1, max: 40_000 }) }), weight: 3 },
  { arbitrary: fc.record({ what: fc.constant('set'), ms: fc.integer({ min: -90_000, max: 30_000 }) }), weight: 1 },
  { arbitrary: fc.record({ what: fc.constantFrom('publish', 'withdraw'), key: fc.nat(KEYS - 1) }), weight: 2 },
  { arbitrary: fc.record({ what: fc.constantFrom('fail', 'recover') }), weight: 1 },
)

// Half of the runs have a provider that is always up
const isCalm = (one: Step): boolean => one.what !== 'fail'
const steps = fc
  .tuple(fc.array(step, { minLength: 20, maxLength: 60 }), fc.boolean())
  .map(([all, calm]) => (calm ? all.filter(isCalm) : all))

// In a random run, few requests come before the first keys
const down: Step[] = [{ what: 'fail' }, ...Array.from({ length: 21 }, (): Step => ({ what: 'send', token: 0 }))]

const requestWith = (token: string) => mockRequest({ fields: [['Authorization', `Bearer ${token}`]] })

/** Whether a token is valid, decided without this package: by jose and arithmetic. */
const isGood = async (token: string, keys: ReadonlyArray<SigningKey>, now: number): Promise<boolean> => {
  const { exp = 0, iat = 0, nbf = 0 } = decodeJwt(token)
  if (now / 1000 >= exp + TOLERANCE || iat > now / 1000 + TOLERANCE || nbf > now / 1000 + TOLERANCE) return false
  if (now / 1000 - iat > MAX_TOKEN_AGE + TOLERANCE) return false
  for (const { publicKey } of keys) {
    const options = { audience: API, currentDate: new Date(exp * 1000 - 1000), clockTolerance: 1e9 }
    if (
      await jwtVerify(token, publicKey, options).then(
        () => true,
        () => false,
      )
    )
      return true
  }
  return false
}

describe('the verified cache', () => {
  it('accepts exactly the tokens that are valid by keys no older than maxAge, or by known keys in an outage', async () => {
    const [clock, provider] = [stoppedClock(), await identityProvider()]
    const all = [provider.keys[0]!, await signingKey('ES256', 'k2')]
    const start = Date.now()
    const at = Math.floor(start / 1000)
    const tokens = await Promise.all(
      Array.from({ length: TOKENS }, (_, index) =>
        signedWith(
          all[index % KEYS]!,
          provider.claims({
            jti: String(index),
            iat: at + ((index * 7) % 40) - 20,
            nbf: at + ((index * 11) % 60) - 50,
            exp: at + 20 + ((index * 97) % 400),
            ...(index === 9 && { aud: 'other' }),
          }),
        ),
      ),
    )
    const verified = countedVerifications()
    const met = { hit: 0, refused: 0, admitted: 0, stale: 0 }
    await fc.assert(
      fc.asyncProperty(steps, fc.boolean(), async (steps, isSmall) => {
        clock.set(start - Date.now())
        provider.mood = 'well'
        provider.keys.splice(0, Infinity, ...all)
        const { issuer, jwksUri } = provider
        const jwt = httpJwt({
          issuer: { issuer, jwksUri },
          audience: API,
          keys: { maxAge: MAX_AGE, refreshAhead: false, cooldown: 0, retry: 1 },
          verified: { size: isSmall ? 2 : 100, maxAge: 300_000 },
          maxTokenAge: MAX_TOKEN_AGE * 1000,
        })
        // The keys that the provider published within the last maxAge, and all earlier ones in an outage
        const published: { readonly keys: ReadonlyArray<SigningKey>; readonly until: { at: number } }[] = [
          { keys: [...provider.keys], until: { at: Infinity } },
        ]
        let hasFailed = false
        const change = () => {
          published.at(-1)!.until.at = performance.now()
          published.push({ keys: [...provider.keys], until: { at: Infinity } })
        }
        for (const one of steps) {
          await apply(one, clock, provider, all, change)
          if (one.what === 'fail') hasFailed = true
          if (one.what !== 'send') continue
          const token = tokens[one.token]!
          const now = Date.now()
          const before = verified()
          const result = await jwt.evaluate(requestWith(token))
          const isHit = verified() === before
          // If the provider failed, any key that was ever published may be in use
          const inForce = published
            .filter(({ until }) => hasFailed || until.at > performance.now() - MAX_AGE)
            .flatMap(({ keys }) => keys)
          const ever = await isGood(token, inForce, now)
          if (E.isRight(result)) expect(ever).toBe(true)
          // The cache does not refuse every token: what is valid by the keys published now is accepted, unless the
          // provider is down
          else if (!hasFailed && (await isGood(token, provider.keys, now))) expect.fail(`${result.left._tag}: refused`)
          if (E.isRight(result)) met[isHit ? 'hit' : 'admitted']++
          else met[result.left._tag === 'unavailable' ? 'stale' : 'refused']++
        }
      }),
      { numRuns: runs(150), examples: [[down, false]] },
    )
    for (const [what, times] of Object.entries(met)) expect(times, what).toBeGreaterThan(occurring(20))
  })

  const apply = async (
    one: Step,
    clock: Clock,
    provider: Awaited<ReturnType<typeof identityProvider>>,
    all: ReadonlyArray<SigningKey>,
    change: () => void,
  ): Promise<void> => {
    switch (one.what) {
      case 'wait':
        return clock.move(one.ms)
      case 'set':
        return clock.set(one.ms)
      case 'fail':
      case 'recover':
        provider.mood = one.what === 'fail' ? 'error' : 'well'
        return
      case 'publish':
        if (provider.keys.includes(all[one.key]!)) return
        provider.keys.push(all[one.key]!)
        return change()
      case 'withdraw':
        // A provider that publishes no key counts as down
        if (provider.keys.length === 1 || !provider.keys.includes(all[one.key]!)) return
        provider.keys.splice(provider.keys.indexOf(all[one.key]!), 1)
        return change()
      case 'send':
        return
    }
  }

  const settled = async (options: object = {}) => {
    const provider = await identityProvider()
    const { issuer, jwksUri } = provider
    const jwt = httpJwt({ issuer: { issuer, jwksUri }, audience: API, ...options })
    const ask = (token: string) => jwt.evaluate(requestWith(token))
    return { provider, ask, jwt: jwt as Authenticator<unknown> }
  }

  it('accepts a verified token without another verification; a refused token is verified again', async () => {
    const { provider, ask } = await settled()
    const [good, bad] = [await provider.token(), await signedWith(await signingKey('ES256', 'k1'), provider.claims())]
    const verified = countedVerifications()
    for (const token of [good, bad]) await ask(token)
    expect(verified()).toBe(2)
    await ask(good)
    expect(verified()).toBe(2)
    await ask(bad)
    expect(verified()).toBe(3)
  })

  it('keeps nothing if `verified` is false', async () => {
    const { provider, ask } = await settled({ verified: false })
    const token = await provider.token()
    const verified = countedVerifications()
    for (let time = 0; time < 2; time++) expect(E.isRight(await ask(token))).toBe(true)
    expect(verified()).toBe(2)
  })

  it('keeps a token until exp or maxAge, and keeps at most `size` tokens', async () => {
    const clock = stoppedClock()
    const { provider, ask } = await settled({ verified: { size: 2, maxAge: 30_000 } })
    const now = Math.floor(Date.now() / 1000)
    const tokens = await Promise.all(
      [10, 1000, 1001].map((left) => provider.token({ exp: now + left, iat: now, jti: String(left) })),
    )
    const verified = countedVerifications()
    const isKept = async (at: number) => {
      const before = verified()
      await ask(tokens[at]!)
      return verified() === before
    }
    for (const at of [0, 1]) await ask(tokens[at]!)
    expect([await isKept(0), await isKept(1)]).toEqual([true, true])
    clock.move(now * 1000 + 10_000 - Date.now())
    expect([await isKept(0), await isKept(1)]).toEqual([false, true])
    clock.move(21_001)
    expect(await isKept(1)).toBe(false)
    for (const at of [1, 2]) await ask(tokens[at]!)
    expect([await isKept(1), await isKept(2)]).toEqual([true, true])
    const more = await provider.token({ exp: now + 1002, iat: now })
    await ask(more)
    // the younger one first, because a token that is verified again drops the oldest one
    expect([await isKept(2), await isKept(1)]).toEqual([true, false])
  })

  it('the hook is called for every request, and cannot change the claims that are kept', async () => {
    const seen: unknown[] = []
    const authenticate = (_request: unknown, claims: Record<string, unknown>) => {
      seen.push(structuredClone(claims))
      claims['sub'] = 'root'
      // Safe: the token has them
      const roles = claims['roles'] as (string | { of: string })[]
      Object.assign(roles[1]!, { of: 'all' })
      roles.push('admin')
      return claims
    }
    const { provider, ask } = await settled({ authenticate })
    const roles = ['user', { of: 'shop' }]
    const token = await provider.token({ roles })
    for (let time = 0; time < 3; time++) await ask(token)
    expect(seen).toEqual(Array(3).fill(expect.objectContaining({ sub: 'anna', roles })))
  })
})
