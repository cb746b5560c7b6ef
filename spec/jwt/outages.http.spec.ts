/** A provider that is down, and keys that change: an outage is never a 401 or a 500, and there are few fetches. */
import { httpJwt, type KeyOptions } from 'koa-with-auth/jwt'
import { describe, expect, it } from 'vitest'
import { countedVerifications } from '../support/models/verifications.js'
import { stoppedClock } from '../support/runs/clock.js'
import {
  API,
  identityProvider,
  processWarnings,
  signedWith,
  signingKey,
  type IdentityProvider,
  type Mood,
  type SigningKey,
} from '../support/servers/identityProvider.js'
import { INVALID, expectRefused, tokenSite, type TokenSite } from '../support/sites/tokenSite.js'

const HOUR = 3_600_000
const MAX_AGE = 600_000
const RETRY = 10_000
const COOLDOWN = 30_000
const TIMEOUT = 2000

const behind = async (keys: KeyOptions = {}, verified: false | undefined = undefined, isDiscovered = false) => {
  const provider = await identityProvider()
  const { issuer, jwksUri } = provider
  const jwt = httpJwt({
    issuer: isDiscovered ? issuer : { issuer, jwksUri },
    audience: API,
    keys: { timeout: TIMEOUT, refreshAhead: false, ...keys },
    ...(verified === false && { verified }),
  })
  const site = await tokenSite(jwt)
  // Valid for longer than any test moves the clock
  const token = (key?: SigningKey, over = {}) =>
    provider.token({ exp: Math.floor(Date.now() / 1000) + 100 * 3600, ...over }, key)
  return { provider, jwt, ...site, token, fetches: () => provider.asked('/jwks') }
}

/** The same whose keys are known, with a token that was good and a clock that is stopped. */
const known = async (...given: Parameters<typeof behind>) => {
  const clock = stoppedClock()
  const made = await behind(...given)
  const sent = await made.token()
  const status = async (): Promise<number> => (await made.get(sent)).status
  expect(await status()).toBe(200)
  return { ...made, clock, sent, status }
}

const unavailable = { type: 'about:blank', title: 'Service Unavailable', status: 503, detail: 'Service Unavailable' }

const expectOutage = (answer: Awaited<ReturnType<TokenSite['get']>>): void => {
  expect({ status: answer.status, ran: answer.ran, challenge: answer.challenge }).toEqual({
    status: 503,
    ran: 0,
    challenge: null,
  })
  expect(JSON.parse(answer.text)).toEqual(unavailable)
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(Number(answer.headers.get('retry-after'))).toBeLessThanOrEqual(RETRY / 1000)
}

const moods: ReadonlyArray<Mood> = ['error', 'hanging', 'rubbish', 'empty', 'shapeless', 'redirecting', 'endless']
const failing: ReadonlyArray<{ what: string; fail: (provider: IdentityProvider) => unknown }> = [
  { what: 'refused', fail: (provider) => provider.stop() },
  ...moods.map((mood) => ({ what: mood, fail: (provider: IdentityProvider) => (provider.mood = mood) })),
]

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
    await new Promise((resolve) => setImmediate(resolve))
    expect(warnings().filter((warning) => warning.includes(provider.issuer))).toEqual([
      expect.stringMatching(/^ProviderWarning: httpJwt: the keys of http:\S+ cannot be loaded: it \S.+503$/),
    ])
    expect(warnings().join()).not.toContain('secret')
  })

  it.each(failing)('with discovery, $what: 503', async ({ fail }) => {
    const { provider, get, token } = await behind({}, undefined, true)
    const sent = await token()
    await fail(provider)
    expectOutage(await get(sent))
  })

  it('a provider that works again is asked again after the pause', async () => {
    const clock = stoppedClock()
    const { provider, get, token } = await behind()
    const sent = await token()
    await provider.stop()
    expectOutage(await get(sent))
    await provider.start()
    clock.move(RETRY - 1)
    expectOutage(await get(sent))
    clock.move(1)
    expect((await get(sent)).status).toBe(200)
  })

  it('a time limit may have a fraction', async () => {
    const { get, token } = await behind({ timeout: 5000.5 })
    expect((await get(await token())).status).toBe(200)
  })

  it('200 parallel requests cost one fetch, whether it succeeds or fails', async () => {
    const { provider, get, token, fetches } = await behind({ timeout: 5000 })
    const sent = await token()
    const all = async () =>
      new Set((await Promise.all(Array.from({ length: 200 }, () => get(sent)))).map(({ status }) => status))
    expect(await all()).toEqual(new Set([200]))
    expect(fetches()).toBe(1)
    const down = await behind({ timeout: 5000 })
    down.provider.mood = 'error'
    const other = await down.token()
    const answers = await Promise.all(Array.from({ length: 200 }, () => down.get(other)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]))
    expect(down.fetches()).toBe(1)
    expect(provider.asked()).toBe(1)
  })
})

describe('a provider fails whose keys are known', () => {
  it.each(failing)('$what: the known keys are used for staleIfError, then 503', async ({ fail }) => {
    const { clock, provider, get, sent, status } = await known({}, false)
    await fail(provider)
    for (const ms of [MAX_AGE, HOUR / 2, HOUR / 2 - 1]) {
      clock.move(ms)
      expect(await status()).toBe(200)
    }
    clock.move(1)
    expectOutage(await get(sent))
  })

  it('a system clock that is set back during an outage does not extend staleIfError', async () => {
    const clock = stoppedClock()
    const { provider, get, token } = await behind({ staleIfError: 1000, maxAge: 20_000 })
    const sent = await token(undefined, { iat: Math.floor((Date.now() - 2 * HOUR) / 1000) })
    expect((await get(sent)).status).toBe(200)
    provider.mood = 'error'
    clock.move(20_000)
    clock.set(-HOUR)
    clock.move(999)
    expect((await get(sent)).status).toBe(200)
    clock.move(1)
    expectOutage(await get(sent))
    // Nor does it extend the pause after the failure
    provider.mood = 'well'
    clock.set(-HOUR)
    clock.move(RETRY - 2)
    expectOutage(await get(sent))
    clock.move(1)
    expect((await get(sent)).status).toBe(200)
  })

  it('after a machine slept, keys that are too old are not used: performance.now() stopped, the system clock did not', async () => {
    const { clock, provider, get, sent, status } = await known({ staleIfError: 1000, maxAge: 20_000 })
    provider.mood = 'error'
    clock.set(20_999)
    expect(await status()).toBe(200)
    clock.set(1)
    expectOutage(await get(sent))
  })

  it('keys that are too old are a 503 for tokens that were verified before, too', async () => {
    const { clock, provider, get, sent, status } = await known({ staleIfError: 1000, maxAge: 20_000 })
    provider.mood = 'error'
    clock.move(20_999)
    expect(await status()).toBe(200)
    clock.move(1)
    expectOutage(await get(sent))
    // The provider is asked again, and the token is valid again
    provider.mood = 'well'
    clock.move(RETRY)
    expect(await status()).toBe(200)
  })

  it('in an outage only the first request waits for the provider', async () => {
    const { clock, provider, fetches, status } = await known({ timeout: 60_000 }, false)
    provider.mood = 'error'
    clock.move(MAX_AGE)
    expect(await status()).toBe(200)
    // If it waited for the provider, the test would time out
    provider.mood = 'hanging'
    clock.move(RETRY)
    for (let time = 0; time < 2; time++) expect(await status()).toBe(200)
    await expect.poll(fetches).toBe(3)
  })

  it.each(failing)('$what: an unknown kid is a 503, also in the pause, and known keys still work', async ({ fail }) => {
    const { provider, get, token } = await behind()
    const known = await token()
    expect((await get(known)).status).toBe(200)
    const other = await token(await signingKey('ES256', 'k2'))
    await fail(provider)
    for (let time = 0; time < 2; time++) {
      expectOutage(await get(other))
      expect((await get(known)).status).toBe(200)
    }
  })
})

describe('a provider changes its keys', () => {
  it('a new kid costs one fetch, for any number of parallel requests', async () => {
    const { provider, get, token, fetches } = await behind()
    expect((await get(await token())).status).toBe(200)
    const next = await signingKey('ES256', 'k2')
    provider.keys.push(next)
    const sent = await token(next)
    const answers = await Promise.all(Array.from({ length: 50 }, () => get(sent)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(fetches()).toBe(2)
    expect((await get(await token())).status).toBe(200)
  })

  it('a new key is found although unknown kids come in every cooldown; until then its tokens are 503, not 401', async () => {
    const clock = stoppedClock()
    const { provider, get, token } = await behind()
    const stranger = await signingKey('ES256', 'x')
    const unknown = (at: number) => signedWith({ ...stranger, kid: `x${at}` }, provider.claims())
    await get(await token())
    expect((await get(await unknown(0))).status).toBe(401)
    const next = await signingKey('ES256', 'k2')
    provider.keys.push(next)
    const early = await get(await token(next))
    expect([early.status, early.challenge, early.ran]).toEqual([503, null, 0])
    expect(early.headers.get('retry-after')).toBe(String(COOLDOWN / 1000))
    clock.move(COOLDOWN - 1000)
    const late = await get(await token(next))
    expect([late.status, late.headers.get('retry-after')]).toEqual([503, '1'])
    expect((await get(await token())).status).toBe(200)
    clock.move(1000)
    expect((await get(await unknown(1))).status).toBe(401)
    expect((await get(await token(next))).status).toBe(200)
  })

  it('200 unknown kids cost one fetch in each cooldown; those that came after it are 503', async () => {
    const clock = stoppedClock()
    const { provider, get, token, fetches } = await behind()
    await get(await token())
    const stranger = await signingKey('ES256', 'x')
    const strangers = await Promise.all(
      Array.from({ length: 200 }, (_, at) => signedWith({ ...stranger, kid: `x${at}` }, provider.claims())),
    )
    const half = async (from: number, expected: string) => {
      const answers = await Promise.all(strangers.slice(from, from + 100).map((one) => get(one)))
      const seen = new Set(answers.map(({ status, challenge }) => `${status} ${challenge}`))
      expect([...seen]).toContain(expected)
      expect([...seen].every((one) => [`401 ${INVALID}`, '503 null'].includes(one))).toBe(true)
    }
    await half(0, `401 ${INVALID}`)
    await half(100, '503 null')
    expect(fetches()).toBe(2)
    clock.move(COOLDOWN - 1)
    await get(strangers[0])
    expect(fetches()).toBe(2)
    clock.move(1)
    await get(strangers[0])
    await get(strangers[1])
    expect(fetches()).toBe(3)
  })

  it('before the keys are loaded, unknown kids cost one fetch in all', async () => {
    const { provider, get, fetches } = await behind()
    const stranger = await signingKey('ES256', 'x')
    for (let at = 0; at < 20; at++) {
      const { status } = await get(await signedWith({ ...stranger, kid: `x${at}` }, provider.claims()))
      expect(status).toBe(at === 0 ? 401 : 503)
    }
    expect(fetches()).toBe(1)
  })

  it('a withdrawn key and its verified tokens are refused after maxAge', async () => {
    const clock = stoppedClock()
    const { provider, get, token } = await behind({ maxAge: 20_000 })
    const [first] = provider.keys
    const next = await signingKey('ES256', 'k2')
    provider.keys.push(next)
    const [withdrawn, other] = [await token(first), await token(next)]
    expect([(await get(withdrawn)).status, (await get(other)).status]).toEqual([200, 200])
    provider.keys.shift()
    clock.move(19_999)
    expect((await get(withdrawn)).status).toBe(200)
    clock.move(1)
    const refused = await get(withdrawn)
    expectRefused(refused, INVALID)
    expect((await get(other)).status).toBe(200)
  })

  it('a key that is replaced under its kid is refused after maxAge', async () => {
    const { clock, provider, get, token, status } = await known({ maxAge: 20_000 })
    provider.keys.splice(0, 1, await signingKey('ES256', 'k1'))
    clock.move(20_000)
    expect(await status()).toBe(401)
    expect((await get(await token())).status).toBe(200)
  })

  it('keys are fetched ahead, late in their lifetime, while the old ones are used', async () => {
    const { clock, provider, get, fetches, sent, status } = await known({ refreshAhead: true, timeout: 60_000 }, false)
    clock.move(MAX_AGE * 0.79)
    await get(sent)
    expect(fetches()).toBe(1)
    provider.mood = 'hanging'
    clock.move(MAX_AGE * 0.01)
    // If it waited for the provider, the test would time out
    for (let time = 0; time < 2; time++) expect(await status()).toBe(200)
    await expect.poll(fetches).toBe(2)
  })

  it('if the same keys are fetched again, no token is verified again', async () => {
    const { clock, fetches, status } = await known({ maxAge: 20_000 })
    const verified = countedVerifications()
    clock.move(20_000)
    expect([await status(), fetches(), verified()]).toEqual([200, 2, 0])
  })
})

describe('discovery', () => {
  const found = async (
    path: string,
    document?: (provider: IdentityProvider) => Record<string, unknown> | undefined,
  ) => {
    const provider = await identityProvider(path)
    const bare = path.replace(/\/$/, '')
    const documents = [`/.well-known/oauth-authorization-server${bare}`, `${bare}/.well-known/openid-configuration`]
    const { issuer } = provider
    const { get } = await tokenSite(httpJwt({ issuer, audience: API, keys: { timeout: TIMEOUT } }))
    if (document !== undefined) provider.documents[documents[0]!] = document(provider)
    return { provider, get, documents }
  }

  it.each(['', '/', '/tenant', '/tenant/', '/a/b'])('issuer with the path %j: OpenID Connect', async (path) => {
    const { provider, get, documents } = await found(path)
    expect((await get(await provider.token())).status).toBe(200)
    expect(documents.map(provider.asked)).toEqual([1, 1])
  })

  it.each(['', '/', '/tenant', '/tenant/'])('issuer with the path %j: RFC 8414 first', async (path) => {
    const { provider, get, documents } = await found(path, () => ({}))
    expect((await get(await provider.token())).status).toBe(200)
    expect(documents.map(provider.asked)).toEqual([1, 0])
  })

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
    const { provider, get } = await found('')
    const long = { exp: Math.floor(Date.now() / 1000) + 3600 }
    expect((await get(await provider.token(long))).status).toBe(200)
    provider.documents['/.well-known/openid-configuration'] = { jwks_uri: `${provider.issuer}/moved` }
    provider.documents['/moved'] = { keys: provider.keys.map(({ jwk }) => jwk) }
    clock.move(MAX_AGE)
    expect((await get(await provider.token(long))).status).toBe(200)
    expect(provider.asked('/moved')).toBe(1)
  })
})

describe('ready', () => {
  it('loads the keys, so no request waits for them', async () => {
    const { provider, jwt, get, token } = await behind()
    await jwt.ready()
    expect(provider.asked('/jwks')).toBe(1)
    expect((await get(await token())).status).toBe(200)
    await jwt.ready()
    expect(provider.asked('/jwks')).toBe(1)
  })

  it.each(failing)('$what: resolves within the time limit, with a process warning', async ({ fail }) => {
    const warnings = processWarnings()
    const { provider, jwt } = await behind()
    await fail(provider)
    expect(await jwt.ready()).toBeUndefined()
    await new Promise((resolve) => setImmediate(resolve))
    expect(warnings().filter((warning) => warning.includes(provider.issuer))).toHaveLength(1)
  })
})
