/**
 * A provider that is down, and keys that change: an outage is never a 401 or a 500. `keySet.unit` counts the fetches, and knows the times.
 */
import { httpJwt } from 'koa-with-auth/jwt'
import { describe, expect, it } from 'vitest'
import { countedVerifications } from '../support/models/verifications.js'
import { stoppedClock } from '../support/runs/clock.js'
import {
  API,
  identityProvider,
  processWarnings,
  seconds,
  signedWith,
  signingKey,
  type IdentityProvider,
  type Mood,
  type SigningKey,
} from '../support/servers/identityProvider.js'
import {
  INVALID,
  expectRefused,
  jwtSite,
  tokenSite,
  type JwtOptions,
  type TokenSite,
} from '../support/sites/tokenSite.js'

const HOUR = 3_600_000
const MAX_AGE = 600_000
const RETRY = 10_000
const COOLDOWN = 30_000
const TIMEOUT = 2000

const behind = async ({ keys, ...options }: JwtOptions = {}) => {
  const site = await jwtSite({ keys: { timeout: TIMEOUT, refreshAhead: false, ...keys }, ...options })
  // Valid for longer than any test moves the clock
  const token = (key?: SigningKey) => site.provider.token({ exp: seconds() + 100 * 3600 }, key)
  return { ...site, token, fetches: () => site.provider.asked('/jwks') }
}

/** The same whose keys are known, with a token that was good and a clock that is stopped. */
const known = async (options?: JwtOptions) => {
  const clock = stoppedClock()
  const made = await behind(options)
  const sent = await made.token()
  const isGood = async () => (await made.status(sent)) === 200
  expect(await isGood()).toBe(true)
  return { ...made, clock, sent, isGood }
}

const unavailable = { type: 'about:blank', title: 'Service Unavailable', status: 503, detail: 'Service Unavailable' }

const expectOutage = (answer: Awaited<ReturnType<TokenSite['get']>>): void => {
  expectRefused(answer, null, 503)
  expect(JSON.parse(answer.text)).toEqual(unavailable)
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(Number(answer.headers.get('retry-after'))).toBeLessThanOrEqual(RETRY / 1000)
}

const moods: ReadonlyArray<Mood> = ['error', 'hanging', 'rubbish', 'empty', 'shapeless', 'redirecting', 'endless']
const failing: ReadonlyArray<{ what: string; fail: (provider: IdentityProvider) => unknown }> = [
  { what: 'refused', fail: (provider) => provider.stop() },
  ...moods.map((mood) => ({ what: mood, fail: (provider: IdentityProvider) => (provider.mood = mood) })),
]

const warningsOf = async (warnings: () => ReadonlyArray<string>, { issuer }: IdentityProvider) => {
  await new Promise((resolve) => setImmediate(resolve))
  return warnings().filter((warning) => warning.includes(issuer))
}

describe('a provider fails whose keys were never loaded', () => {
  it.each(failing)('$what: 503 within the time limit, and the response does not show the cause', async ({ fail }) => {
    const warnings = processWarnings()
    const { provider, get, token, errors } = await behind()
    const sent = await token()
    await fail(provider)
    expectOutage(await get(sent))
    expect(errors).toEqual([])
    // In the pause the response is immediate, without a fetch
    const asked = provider.asked()
    expectOutage(await get(sent))
    expect(provider.asked()).toBe(asked)
    expect(await warningsOf(warnings, provider)).toEqual([
      expect.stringMatching(/^ProviderWarning: httpJwt: the keys of http:\S+ cannot be loaded: it \S.+503$/),
    ])
    expect(warnings().join()).not.toContain('secret')
  })

  it('a time limit may have a fraction', async () => {
    const { status, token } = await behind({ keys: { timeout: 5000.5 } })
    expect(await status(await token())).toBe(200)
  })
})

describe('a provider fails whose keys are known', () => {
  it.each(failing)('$what: the known keys are used for staleIfError, then 503', async ({ fail }) => {
    const { clock, provider, get, sent, isGood } = await known({ verified: false })
    await fail(provider)
    for (const ms of [MAX_AGE, HOUR / 2, HOUR / 2 - 1]) {
      clock.move(ms)
      expect(await isGood()).toBe(true)
    }
    clock.move(1)
    expectOutage(await get(sent))
  })

  it('keys that are too old are a 503 for tokens that were verified before, too', async () => {
    const { clock, provider, get, sent, isGood } = await known({ keys: { staleIfError: 1000, maxAge: 20_000 } })
    provider.mood = 'error'
    clock.move(20_999)
    expect(await isGood()).toBe(true)
    clock.move(1)
    expectOutage(await get(sent))
    // The provider is asked again, and the token is valid again
    provider.mood = 'well'
    clock.move(RETRY)
    expect(await isGood()).toBe(true)
  })

  it.each(failing)('$what: an unknown kid is a 503, also in the pause, and known keys still work', async ({ fail }) => {
    const { provider, get, token, isGood } = await known()
    const other = await token(await signingKey('ES256', 'k2'))
    await fail(provider)
    for (let time = 0; time < 2; time++) {
      expectOutage(await get(other))
      expect(await isGood()).toBe(true)
    }
  })
})

describe('a provider changes its keys', () => {
  it('in the cooldown after an unknown kid, another one is a 503 and not a 401: its key may be new', async () => {
    const { clock, provider, get, token, isGood } = await known()
    const stranger = await signingKey('ES256', 'x')
    expectRefused(await get(await signedWith(stranger, provider.claims())), INVALID)
    const next = await signingKey('ES256', 'k2')
    provider.keys.push(next)
    const early = await get(await token(next))
    expectRefused(early, null, 503)
    expect(early.headers.get('retry-after')).toBe(String(COOLDOWN / 1000))
    expect(await isGood()).toBe(true)
    clock.move(COOLDOWN)
    expect((await get(await token(next))).status).toBe(200)
  })

  it.each(['withdrawn', 'replaced under its kid'])(
    'a key that is %s and its verified tokens are refused after maxAge',
    async (how) => {
      const { clock, provider, get, token, sent, isGood, status } = await known({ keys: { maxAge: 20_000 } })
      const next = await signingKey('ES256', how === 'withdrawn' ? 'k2' : 'k1')
      provider.keys.splice(0, 1, next)
      clock.move(19_999)
      expect(await isGood()).toBe(true)
      clock.move(1)
      expectRefused(await get(sent), INVALID)
      expect(await status(await token(next))).toBe(200)
    },
  )

  it('if the same keys are fetched again, no token is verified again', async () => {
    const { clock, fetches, isGood } = await known({ keys: { maxAge: 20_000 } })
    const verified = countedVerifications()
    clock.move(20_000)
    expect([await isGood(), fetches(), verified()]).toEqual([true, 2, 0])
  })
})

describe('discovery', () => {
  const found = async (path = '', document?: (provider: IdentityProvider) => Record<string, unknown>) => {
    const provider = await identityProvider(path)
    const bare = path.replace(/\/$/, '')
    const documents = [`/.well-known/oauth-authorization-server${bare}`, `${bare}/.well-known/openid-configuration`]
    const { issuer } = provider
    const site = await tokenSite(httpJwt({ issuer, audience: API, keys: { timeout: TIMEOUT } }))
    if (document !== undefined) provider.documents[documents[0]!] = document(provider)
    return { ...site, provider, asked: () => documents.map(provider.asked) }
  }

  it.each(failing)('$what: 503', async ({ fail }) => {
    const { provider, get } = await found()
    const sent = await provider.token()
    await fail(provider)
    expectOutage(await get(sent))
  })

  it.each(['', '/', '/tenant', '/tenant/', '/a/b'])(
    'issuer with the path %j: the document of RFC 8414 first, then that of OpenID Connect',
    async (path) => {
      for (const first of [undefined, () => ({})]) {
        const { provider, status, asked } = await found(path, first)
        expect(await status(await provider.token())).toBe(200)
        expect(asked()).toEqual([1, first === undefined ? 1 : 0])
      }
    },
  )

  it.each<[string, (provider: IdentityProvider) => Record<string, unknown>]>([
    ['of another issuer', ({ issuer }) => ({ issuer: `${issuer}/` })],
    ['without an issuer', () => ({ issuer: undefined })],
    ['without jwks_uri', () => ({ jwks_uri: undefined })],
    ['whose jwks_uri is not a URL', () => ({ jwks_uri: 'jwks' })],
    ['whose jwks_uri is http', () => ({ jwks_uri: 'http://keys.example/jwks' })],
  ])('a document %s is an outage, and no keys are fetched', async (_what, document) => {
    const { provider, get } = await found('', document)
    expectOutage(await get(await provider.token()))
    expect(provider.asked('/jwks')).toBe(0)
  })

  it('a key set that has moved is found again', async () => {
    const clock = stoppedClock()
    const { provider, status } = await found()
    const long = await provider.token({ exp: seconds() + 3600 })
    expect(await status(long)).toBe(200)
    provider.documents['/.well-known/openid-configuration'] = { jwks_uri: `${provider.issuer}/moved` }
    provider.documents['/moved'] = { keys: provider.keys.map(({ jwk }) => jwk) }
    clock.move(MAX_AGE)
    expect(await status(long)).toBe(200)
    expect(provider.asked('/moved')).toBe(1)
  })
})

describe('ready', () => {
  it('loads the keys once, so no request waits for them', async () => {
    const { jwt, status, token, fetches } = await behind()
    for (let time = 0; time < 2; time++) {
      await jwt.ready()
      expect(fetches()).toBe(1)
      expect(await status(await token())).toBe(200)
    }
  })

  it.each(failing)('$what: resolves within the time limit, with a process warning', async ({ fail }) => {
    const warnings = processWarnings()
    const { provider, jwt } = await behind()
    await fail(provider)
    expect(await jwt.ready()).toBeUndefined()
    expect(await warningsOf(warnings, provider)).toHaveLength(1)
  })
})
