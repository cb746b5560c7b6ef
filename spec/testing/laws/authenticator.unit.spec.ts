/** Each law of authenticators: what breaks it is found, with the fix; what only looks wrong is not. */
import { either as E, option as O } from 'fp-ts'
import type { Context, Request } from 'koa'
import {
  anyOf,
  apiKeyHeader,
  AuthError,
  authorize,
  fromHeader,
  httpBasicAuth,
  httpBearer,
  optional,
  sessionAuth,
  type Authenticator,
  allOf,
  apiKeyCookie,
  authenticator,
  fromAuthorization,
  authSettings,
  Challenge,
  fromQuery,
} from 'koa-with-auth'
import { flatMap, BasicCredentials, describedAs, map } from 'koa-with-auth/fp'
import { laws, type LawOptions, type ValidRequest } from 'koa-with-auth/testing/laws'
import { withBearer, withCookie, withHeader, mergeRequests } from 'koa-with-auth/testing'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { bearer, breachesOf, isRight, right, valid } from '../../support/models/brokenLaws.js'

describe('the law "total" finds', () => {
  it.each([
    ['throws', (token: string) => isRight(token) || raise(new Error('no'))],
    ['rejects', async (token: string) => isRight(token) || raise(new Error('no'))],
    ['rejects with undefined', (token: string) => isRight(token) || Promise.reject(undefined)],
    ['returns a function that does not yield an Either', (token: string) => isRight(token) || (() => false)],
  ])('A-30 a hook that %s, which would be a 500 instead of a refusal', async (_way, hook) => {
    const [breach] = await breachesOf(bearer(hook), { valid })
    expect(breach).toMatchObject({ law: expect.stringMatching(/^is total/) })
    expect(breach?.counterexample).toContain('raised')
  })

  it('an authenticator made by hand that throws, rejects or does not return an Either', async () => {
    for (const evaluate of [() => raise(new Error()), () => Promise.reject(new Error()), () => ({ user: 'anna' })]) {
      // Safe: a caller without types could make this
      const made = Object.assign(() => evaluate, {
        description: right.description,
        evaluate,
      }) as unknown as Authenticator<unknown>
      const violations = await breachesOf(made, { valid })
      expect(violations.map(({ law }) => law)).toContainEqual(expect.stringMatching(/^is total/))
    }
  })

  it('a hook that never settles is waited for once as long as `within`', async () => {
    const timers = vi.spyOn(globalThis, 'setTimeout')
    onTestFinished(() => timers.mockRestore())
    const never = httpBearer({ authenticate: () => new Promise(() => {}) })
    expect(await breachesOf(never, { valid, within: 123, runs: 5 })).not.toStrictEqual([])
    const waits = timers.mock.calls.map(([, ms]) => ms)
    expect([waits.filter((ms) => ms === 123).length, waits.includes(25)]).toEqual([1, true])
  })

  it('no hook that settles within the time of `within`', async () => {
    const late = (ms: number) => bearer((token) => new Promise((go) => setTimeout(() => go(isRight(token)), ms)))
    expect(await breachesOf(late(1), { valid, within: 2000, runs: 5 })).toStrictEqual([])
    const [breach] = await breachesOf(late(400), { valid, within: 100, runs: 5 })
    expect(breach?.fix).toContain('within 100 ms')
  })
})

const raise = (error: unknown): never => {
  throw error
}

describe('the law "fails closed" finds', () => {
  it('A-17 a principal that is read from a field that is not a credential', async () => {
    const trusting = (request: Request) =>
      (request.get('X-User') !== '' && { user: request.get('X-User') }) ||
      (request.get('Authorization') === 'Bearer supersecret' && { user: 'anna' })
    const violations = await breachesOf(trusting, { valid: [withBearer('supersecret')] })
    expect(violations.find(({ law }) => /^fails closed/.test(law))?.counterexample).toContain('X-User: admin')
  })

  it('no optional authenticator, which admits anonymous callers as undefined', async () => {
    expect(await breachesOf(optional(right), { valid })).toStrictEqual([])
    const guest = flatMap((who: unknown) => who ?? { user: 'guest' })(optional(right))
    expect((await breachesOf(guest, { valid })).map(({ law }) => law)).toContainEqual(
      expect.stringMatching(/^fails closed/),
    )
  })
})

describe('the law "refuses others" finds', () => {
  it('no hook that checks the password of the user, although each is valid for another', async () => {
    const users = new Map([['anna', 'secret-of-anna'], ['sam', 'secret-of-sam']]) // prettier-ignore
    const pairs = [...users].map(([username, password]) => ({ username, password }))
    const careful = httpBasicAuth({
      authenticate: (_request, name, password) => users.get(name) === password && { name },
    })
    expect(await breachesOf(careful, { valid: pairs })).toStrictEqual([])
    const careless = httpBasicAuth({
      authenticate: (_request, name, password) => [...users.values()].includes(password) && { name },
    })
    expect((await breachesOf(careless, { valid: pairs })).map(({ law }) => law)).toContainEqual(
      expect.stringMatching(/^refuses wrong/),
    )
  })

  it('a pair without the user name', async () => {
    const careless = httpBasicAuth({
      authenticate: (_request, name, password) => ['', 'admin'].includes(name) && password === 'secret' && { name },
    })
    const [breach] = await breachesOf(careless, { valid: [{ username: 'admin', password: 'secret' }] })
    expect(breach?.law).toMatch(/^refuses wrong/)
  })

  it.each([
    ['the first of two values', (keys: ReadonlyArray<string>) => keys[0] !== keys[1] && keys[0] === 'Partner-Key'],
    ['the last of two values', (keys: ReadonlyArray<string>) => keys[0] !== keys[1] && keys[1] === 'Partner-Key'],
    ['two equal values', (keys: ReadonlyArray<string>) => keys[1] === keys[0] && keys[0] === 'Partner-Key'],
  ])('A-22 an authenticator that accepts %s of one field, and guesses which one counts', async (_which, takes) => {
    const careless = (request: Request) => {
      const sent = fromHeader('X-API-Key')(request)
      if (O.isNone(sent)) return false
      return (typeof sent.value === 'string' ? sent.value === 'Partner-Key' : takes(sent.value)) && { client: 'Acme' }
    }
    const [breach, ...others] = await breachesOf(careless, { valid: [withHeader('X-API-Key', 'Partner-Key')] })
    expect(breach).toMatchObject({
      law: expect.stringMatching(/^refuses wrong/),
      fix: expect.stringMatching(/never guess/),
    })
    expect(others).toStrictEqual([])
  })

  const people = ['sam', 'anna']
  it.each<[name: string, table: object, key: string]>([
    ['an array', people, '1'],
    ['an array whose first field is empty', ['', 'anna'], '1'],
    ['a function', Object.assign((a: unknown) => a, { k1: 'anna' }), 'k1'],
    ['a class', class Table { static readonly k1 = 'anna' }, 'k1'], // prettier-ignore
    ['URLSearchParams', Object.assign(new URLSearchParams('a=b'), { k1: 'anna' }), 'k1'],
    ['a Map that is indexed', Object.assign(new Map([['k2', 'anna']]), { k1: 'anna' }), 'k1'],
    ['a Buffer', Object.assign(Buffer.from('anna'), { k1: 'anna' }), 'k1'],
    ['a typed array without elements', Object.assign(new Uint8Array(new ArrayBuffer(8), 8), { k1: 'anna' }), 'k1'],
    ['a string', Object.assign(new String('anna'), { k1: 'anna' }), 'k1'],
    ['an Error', Object.assign(new Error('no table'), { k1: 'anna' }), 'k1'],
    ['a RegExp', Object.assign(/a/, { k1: 'anna' }), 'k1'],
  ])('%s as a table of keys, which also has values under names that were never issued', async (_name, table, key) => {
    const breaches = await breachesOf(
      bearer((token) => Reflect.get(table, token)),
      { valid: [key] },
    )
    expect(breaches.find(({ law }) => /^refuses wrong/.test(law))?.fix).toContain('Map')
  })

  it('no valid credential that a random one happens to be', async () => {
    const sent: string[] = []
    const of = (secret: string) => bearer((token) => sent.push(token) > 0 && token === secret)
    await breachesOf(of(valid[0]!), { valid })
    const isFixed = (token: string) => token.includes(valid[0]!) || token.includes('redential')
    const random = new Set(sent.filter((token) => /^[A-Za-z0-9]{16,40}$/.test(token) && !isFixed(token)))
    expect(random.size).toBeGreaterThan(5)
    for (const secret of random) {
      expect(await breachesOf(of(secret), { valid: [withBearer(secret)] })).toStrictEqual([])
    }
  })

  it('no list that accepts a valid credential beside a wrong one of another kind', async () => {
    const key = apiKeyHeader({ authenticate: (_request, sent) => sent === 'Partner-Key' && { client: 'Acme' } })
    const both = mergeRequests(withBearer('supersecret'), withHeader('key', 'Partner-Key'))
    expect(await breachesOf(anyOf([right, key]), { valid: [both] })).toStrictEqual([])
  })
})

describe('the law "lets in" finds', () => {
  it.each<[string, object]>([
    ['an Option that is a Some', O.some({ user: 'anna' })],
    ['an Option that is a None', O.none],
    ['an Either that is a Left', E.left('no')],
    ['an Either that is a Right', E.right('anna')],
    ['an object with a promise', { user: Promise.resolve('anna') }],
    ['a function', () => 'anna'],
  ])('a principal that is %s', async (_what, principal) => {
    const [breach] = await breachesOf(map(() => principal)(right), { valid, runs: 1 })
    expect(breach?.law).toBe('lets in valid requests')
    expect(breach?.fix).toMatch(/^a principal/)
  })
})

it('the law "lets in" finds a falsy principal', async () => {
  // Safe: a caller without types could make this
  const made = Object.assign(() => right, right, { evaluate: () => E.right('') }) as unknown as typeof right
  expect((await breachesOf(made, { valid })).map(({ fix }) => fix)).toContainEqual(
    expect.stringMatching(/^a principal must be truthy/),
  )
})

describe('the law "deterministic" finds', () => {
  it('a wrong credential that is refused in two ways', async () => {
    let count = 0
    const moody = bearer((token) => isRight(token) || (count++ % 2 === 0 ? false : E.left(AuthError.expired)))
    expect((await breachesOf(moody, { valid, runs: 1 })).map(({ law }) => law)).toEqual([
      expect.stringMatching(/^is deterministic/),
    ])
  })

  it('A-38 a principal that one request leaves for another', async () => {
    let asked = 0
    // right for one request at a time
    const busy = bearer(async (token) => {
      const isFree = ++asked === 1
      await Promise.resolve()
      asked -= 1
      return isFree && isRight(token)
    })
    const laws = (await breachesOf(busy, { valid, runs: 5 })).map(({ law }) => law)
    expect(laws).toStrictEqual([expect.stringMatching(/^is deterministic/)])
    const global: { user?: unknown } = {}
    const leaky = (request: Request) => {
      if (request.get('Authorization') === 'Bearer supersecret') global.user = { user: 'anna' }
      return global.user
    }
    expect((await breachesOf(leaky, { valid: [withBearer('supersecret')] })).length).toBeGreaterThan(0)
  })
})

describe('the law "leaks nothing" finds a credential', () => {
  it.each([
    ['the message of an exception', (token: string) => isRight(token) || raise(new Error(`no user ${token}`))],
    ['a property of an exception', (token: string) => isRight(token) || raise({ why: { token } })],
    ['the scope of an insufficient', (token: string) => isRight(token) || E.left(AuthError.insufficient([token]))],
    [
      'a failure, as base64',
      (token: string) =>
        isRight(token) || E.left({ ...AuthError.invalid, sent: Buffer.from(token).toString('base64') }),
    ],
  ])('A-37 in %s', async (_where, hook) => {
    const violations = await breachesOf(bearer(hook), { valid })
    expect(violations.map(({ law }) => law)).toContainEqual(expect.stringMatching(/^leaks nothing/))
  })

  it('A-37 if it is only a password, not the whole field', async () => {
    const basic = httpBasicAuth({
      authenticate: (_request, user, password) =>
        (user === 'admin' && password === 'secret') || E.left({ ...AuthError.invalid, password }),
    })
    const violations = await breachesOf(basic, { valid: [{ username: 'admin', password: 'secret' }] })
    expect(violations.map(({ law }) => law)).toStrictEqual([expect.stringMatching(/^leaks nothing/)])
  })
})

describe('options of the laws', () => {
  it('above and app: middleware can make a session of a cookie', async () => {
    const sessions = new Map([['sid-of-anna', { populated: true, user: { username: 'anna' } }]])
    const above = [
      (ctx: Context, next: () => Promise<unknown>) => {
        ctx.app.keys = ['k'.repeat(32)]
        ctx['sessionOptions'] = { key: 'koa.sess' }
        ctx['session'] = sessions.get(ctx.cookies.get('koa.sess') ?? '') ?? { populated: false }
        return next()
      },
    ]
    const options = { valid: [withCookie('koa.sess', 'sid-of-anna')], above }
    expect(await breachesOf(sessionAuth(), options)).toStrictEqual([])
    expect(await breachesOf(authorize(() => true)(sessionAuth()), options)).toStrictEqual([])
    expect((await breachesOf(sessionAuth(), { ...options, valid: [withCookie('koa.sess', 'other')] })).length).toBe(1)
  })

  it.each([
    { wrong: { valid: [] }, expected: /valid.*one request or credential/ },
    { wrong: { valid, within: 0 }, expected: /within/ },
    { wrong: { valid, runs: -1 }, expected: /runs/ },
    { wrong: { valid, tries: 3 }, expected: /no option "tries"/ },
  ])('a wrong option is a TypeError that names the place: $expected', async ({ wrong, expected }) => {
    // Safe: a caller without types could pass this
    const options = wrong as unknown as LawOptions
    expect(() => laws.authenticator(right, options)).toThrow(TypeError)
    expect(() => laws.authenticator(right, options)).toThrow(expected)
  })

  it('a bare credential without one clear place is a TypeError that names the fix', () => {
    const bare = (request: Request) => request.get('X') === 'x' && { user: 'anna' }
    expect(() => laws.authenticator(bare, { valid: ['x'] })).toThrow(/withHeader/)
    expect(() => laws.authenticator(anyOf([right, right]), { valid: ['x'] })).toThrow(/withBearer/)
    expect(() => laws.authenticator(httpBearer as never, { valid })).toThrow(/call it/)
  })

  it('sends the same requests each time', async () => {
    const asked = async () => {
      const seen: string[] = []
      await breachesOf(
        bearer((token) => (seen.push(token), isRight(token))),
        { valid, runs: 30 },
      )
      return seen
    }
    expect(await asked()).toStrictEqual(await asked())
  })
})

const kind = {
  scheme: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
  challenge: Challenge.make('ApiKey'),
  ambient: false,
  extract: fromHeader('X-API-Key'),
  authenticate: (_request: Request, key: unknown) => key === 'Partner-Key' && { client: 'Acme' },
} as const
const key = [withHeader('X-API-Key', 'Partner-Key')]

describe('the law about the description', () => {
  const lawsBroken = async (...args: Parameters<typeof breachesOf>) => (await breachesOf(...args)).map(({ law }) => law)

  const inQuery = fromQuery('X-API-Key')
  const twice = (request: Request) => O.alt(() => inQuery(request))(fromHeader('X-API-Key')(request))
  const always = (request: Request) => O.some(request.get('X-API-Key'))
  const unread = authenticator({
    ...kind,
    scheme: { ...kind.scheme, name: 'X-Other' },
    extract: fromHeader('X-Unknown'),
  })
  const lying = describedAs(right)(
    (request: Request) => async () =>
      request.get('X-API-Key') === 'Partner-Key' ? E.right({ user: 'anna' }) : E.left(AuthError.absent),
  )
  const digest = { scheme: { type: 'http', scheme: 'digest' }, extract: () => O.none } as const
  const badChallenge = (error: AuthError) =>
    error._tag === 'invalid' ? { scheme: 'ApiKey', parameters: { why: 'a\r\nb' } } : Challenge.make('ApiKey')

  it('is kept by a kind with a true description', async () => {
    expect(await lawsBroken(authenticator(kind), { valid: key })).toStrictEqual([])
  })

  it.each<
    [
      what: string,
      authenticator: Parameters<typeof breachesOf>[0],
      valid: ReadonlyArray<ValidRequest>,
      law: RegExp,
      says?: string,
    ]
  >([
    [
      'another header than the described one',
      authenticator({ ...kind, extract: fromHeader('X-Key') }),
      ['Partner-Key'],
      /^lets in/,
    ],
    ['a second place that is not described', authenticator({ ...kind, extract: twice }), key, /^its description/],
    [
      'an extract that never returns none',
      authenticator({ ...kind, extract: always }),
      key,
      /^its description/,
      'return none',
    ],
    [
      'an alternative that no valid request covers, and that reads something else',
      anyOf([right, unread]),
      [withBearer('supersecret')],
      /^its description/,
      'X-Other',
    ],
    ['describedAs(a) around something that reads something else', lying, key, /^its description/],
    ['B-01 a challenge of another scheme', authenticator({ ...kind, ...digest }), key, /^offers a challenge/],
    ['B-05 an unwritable challenge', authenticator({ ...kind, challenge: badChallenge }), key, /^offers a challenge/],
  ])('finds %s', async (_what, wrong, valid, law, says = '') => {
    const breaches = await breachesOf(wrong, { valid })
    const breach = breaches.find((one) => law.test(one.law))
    expect(`${breach?.counterexample} ${breach?.fix}`).toContain(says)
    expect(breach).toBeDefined()
  })

  it('finds a group of which one member is enough', async () => {
    const both = allOf([right, authenticator(kind)])
    const request = mergeRequests(withBearer('supersecret'), key[0]!)
    expect(await lawsBroken(both, { valid: [request] })).toStrictEqual([])
    const half = Object.assign((...given: Parameters<typeof both>) => both(...given), both, {
      evaluate: right.evaluate,
    })
    expect(await lawsBroken(half, { valid: [request] })).toContainEqual(
      expect.stringMatching(/^its description is true/),
    )
  })
})

describe('the law about other sites', () => {
  it('finds your own Basic kind that is not ambient, although browsers send it by themselves', async () => {
    const own = authenticator({
      scheme: { type: 'http', scheme: 'basic' },
      challenge: Challenge.make('Basic'),
      ambient: false,
      extract: fromAuthorization('Basic'),
      credentials: BasicCredentials,
      authenticate: (_request, { username, password }) => username === 'admin' && password === 'secret' && { username },
    })
    const broken = await breachesOf(own, { valid: [{ username: 'admin', password: 'secret' }] })
    expect(broken).toMatchObject([
      { law: expect.stringMatching(/^refuses writes/), fix: expect.stringContaining('ambient: true') },
    ])
  })

  it('is kept with csrf: false, because the application decided so', async () => {
    const cookie = apiKeyCookie({ authenticate: (_request, sent) => sent === 'Partner-Key' && { client: 'Acme' } })
    const above = [authSettings({ csrf: false })]
    expect(await breachesOf(cookie, { valid: [withCookie('key', 'Partner-Key')], above })).toStrictEqual([])
  })
})
