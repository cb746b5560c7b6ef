/** What a session authenticator reads from the context, as koa-session or a replacement has left it, and the rights of its user. */
import { either as E, option as O } from 'fp-ts'
import Koa from 'koa'
import {
  anyOf,
  apiKeyCookie,
  AuthError,
  sessionAuth,
  sessionAuthIsStaff,
  sessionAuthSuperUser,
  type Authenticator,
} from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { leaves } from '../../src/core/Description.js'
import { exchangeOf } from '../../src/core/Exchange.js'
import { typedKinds } from '../../src/kinds/session.js'
import {
  rightsByFlags,
  rightsChecks,
  rightsFrom,
  signInDigestsOf,
  type SessionSource,
} from '../../src/kinds/sessionUser.js'
import { mockRequest } from 'koa-with-auth/testing'

const app = new Koa()
app.keys = ['0123456789abcdef0123456789abcdef']

const anna = { username: 'anna' }

interface Left {
  readonly session: unknown
  readonly sessionOptions?: unknown
  readonly cookie?: string
  readonly source?: SessionSource
}

const requestWith = ({ source, cookie, ...left }: Left) => {
  const request = mockRequest({ fields: cookie === undefined ? [] : [['Cookie', cookie]] }, app)
  // koa-session defines its properties as accessors
  for (const [name, value] of Object.entries(left)) Object.defineProperty(request.ctx, name, { value })
  if (source !== undefined) exchangeOf(request.ctx).source = source
  return request
}

const evaluated = async (kind: Authenticator<object>, left: Left) => {
  const result = await kind.evaluate(requestWith(left))
  return E.isLeft(result) ? result.left._tag : result.right
}

const source = (reported: Partial<SessionSource> = {}): SessionSource => ({
  owner: app,
  rights: rightsByFlags,
  sessionOf: (ctx) => ctx['session'] as unknown,
  sent: () => O.none,
  isUnavailable: () => false,
  digests: () => undefined,
  isSignedIn: () => true,
  load: () => ({ username: 'loaded' }),
  ...reported,
})

describe('the session on the context', () => {
  it.each([
    ['null', null],
    ['text', 'anna'],
    ['without a user', {}],
    ['whose user is undefined', { user: undefined }],
    ['whose user is null', { user: null }],
    ['that was not populated', { user: anna, populated: false }],
  ])('%s: no user is signed in', async (_, session) => {
    expect(await evaluated(sessionAuth(), { session })).toBe('absent')
  })

  it('whose user is false: the user is refused, not absent', async () => {
    expect(await evaluated(sessionAuth(), { session: { user: false } })).toBe('invalid')
  })

  it('with a user: the user passes', async () => {
    expect(await evaluated(sessionAuth(), { session: { user: anna } })).toStrictEqual(anna)
    expect(await evaluated(sessionAuth(), { session: { user: anna, populated: true } })).toStrictEqual(anna)
  })

  it('is passed to loadUser, whatever it contains', async () => {
    const loading = sessionAuth({ loadUser: ({ id }) => (id === 7 ? anna : undefined) })
    expect(await evaluated(loading, { session: { id: 7 } })).toStrictEqual(anna)
    expect(await evaluated(loading, { session: { user: anna } })).toBe('invalid')
    const told: object[] = []
    const telling = sessionAuth({ loadUser: (data) => (told.push(data), anna) })
    await evaluated(telling, { session: { id: 7, isNew: true, _expire: 1, save: () => undefined } })
    expect(told).toEqual([{ id: 7 }])
    const anybody = sessionAuth({ loadUser: () => anna })
    expect(await evaluated(anybody, { session: {}, source: source({ isSignedIn: () => false }) })).toStrictEqual(anna)
  })
})

describe('R09 a session with copies of fields that every object inherits', () => {
  const user = { username: 'root', isSuperuser: true }
  const polluted = async (kind: ReturnType<typeof sessionAuth>, session: object) => {
    Object.defineProperty(Object.prototype, 'user', { value: user, enumerable: true, configurable: true })
    try {
      return await evaluated(kind, { session })
    } finally {
      Reflect.deleteProperty(Object.prototype, 'user')
    }
  }

  it('signs no user in', async () => {
    expect(await polluted(sessionAuth(), { visits: 1 })).toBe('absent')
    expect(await polluted(sessionAuth(), { visits: 1, user: { ...user } })).toBe('absent')
    expect(await polluted(sessionAuth(), { user: anna })).toStrictEqual(anna)
  })

  it('passes none of them to loadUser', async () => {
    const loading = sessionAuth({ loadUser: (data) => ({ username: Object.keys(data).join() }) })
    expect(await polluted(loading, { visits: 1, user: { ...user } })).toStrictEqual({ username: 'visits' })
  })
})

describe('a source of signed-in users on the context', () => {
  it('the user is the one that it loads, not the one in the session', async () => {
    expect(await evaluated(sessionAuth(), { session: { user: anna }, source: source() })).toStrictEqual({
      username: 'loaded',
    })
    const empty = source({ isSignedIn: () => false })
    expect(await evaluated(sessionAuth(), { session: { user: anna }, source: empty })).toBe('absent')
  })

  it('its rights do not apply to users that a kind loads itself', async () => {
    const everything = () => true
    const rights = { ...rightsByFlags, isStaff: everything, isSuperuser: everything }
    const session = { id: 7 }
    expect(await evaluated(sessionAuthSuperUser(), { session, source: source({ rights }) })).toStrictEqual({
      username: 'loaded',
    })
    for (const kindOf of [sessionAuthSuperUser, sessionAuthIsStaff]) {
      expect(await evaluated(kindOf({ loadUser: () => anna }), { session, source: source({ rights }) })).toBe('invalid')
    }
  })

  it.each([{ user: anna }, {}, { populated: false }])('is not anonymous if its store fails: %j', async (session) => {
    const down = source({ isUnavailable: () => true, isSignedIn: () => false })
    expect(await evaluated(sessionAuth(), { session, source: down })).toBe('unavailable')
    expect(await evaluated(sessionAuth({ loadUser: () => anna }), { session, source: down })).toBe('unavailable')
  })
})

it('sessionDigest are those of the source; there are none without a session, or without a source', () => {
  const digests = { user: 'u', session: 's' }
  const naming = source({ digests: (session) => ('user' in session ? digests : undefined) })
  const named = (left: Left) => signInDigestsOf(requestWith(left).ctx)
  expect(named({ session: { user: anna }, source: naming })).toBe(digests)
  for (const session of [undefined, null, 'anna', {}]) expect(named({ session, source: naming })).toBeUndefined()
  expect(named({ session: { user: anna } })).toBeUndefined()
})

describe('the name of the cookie', () => {
  const session = { user: anna }

  it.each([
    ['nothing', undefined],
    ['null', null],
    ['text', 'sid'],
    ['no name', {}],
    ['a name that is not a string', { key: 1 }],
  ])('is the default if the options have %s', async (_, sessionOptions) => {
    const twice = { session, sessionOptions, cookie: 'koa.sess=a; koa.sess=b' }
    expect(await evaluated(sessionAuth(), twice)).toBe('malformed')
    expect(await evaluated(sessionAuth(), { ...twice, cookie: 'sid=a; sid=b' })).toStrictEqual(anna)
  })

  it('is the one in the options of koa-session', async () => {
    const twice = { session, sessionOptions: { key: 'sid' }, cookie: 'sid=a; sid=b' }
    expect(await evaluated(sessionAuth(), twice)).toBe('malformed')
    expect(await evaluated(sessionAuth(), { ...twice, cookie: 'koa.sess=a; koa.sess=b' })).toStrictEqual(anna)
  })

  it('is documented as in the options of a request, unless the kind has its own', () => {
    const request = requestWith({ session, sessionOptions: { key: 'sid' } })
    const nameFrom = ({ description }: ReturnType<typeof sessionAuth>) =>
      description._tag === 'Leaf' ? description.schemeFor?.(request) : 'no leaf'
    expect(nameFrom(sessionAuth())).toMatchObject({ type: 'apiKey', in: 'cookie', name: 'sid' })
    expect(nameFrom(sessionAuth({ cookieName: 'own' }))).toBeUndefined()
  })
})

describe('a session that a token carries', () => {
  const bearer = { scheme: 'Bearer', parameters: {} } as const
  const { sessionAuth: kind } = typedKinds<object>({ owner: app, bearer, needsUsername: false })
  const asked = async (given: Partial<SessionSource>, options: Parameters<typeof kind>[0] = {}, sent = 'Bearer t') => {
    const fields = [['Sec-Fetch-Site', 'cross-site'], ['Authorization', sent]] as const // prettier-ignore
    const request = mockRequest({ method: 'POST', fields }, app)
    const own = { token: 't', carrier: bearer, sessionOf: () => ({}), ...given }
    exchangeOf(request.ctx).source = source(own)
    const result = await kind(options).evaluate(request)
    return E.isLeft(result) ? result.left._tag : result.right
  }
  const passed = { username: 'loaded' }

  it.each<[what: string, reported: Partial<SessionSource>, expected: unknown]>([
    ['its own token, also from another site', {}, passed],
    ['the token of another session', { token: 'other' }, 'invalid'],
    ['a token that is none of this application', { token: '', isTokenWrong: true, isSignedIn: () => false }, 'invalid'],
    ['a session in which nobody is signed in', { isSignedIn: () => false }, 'invalid'],
    ['a token that is refused', { refusal: { _tag: 'Left', left: AuthError.expired } }, 'expired'],
    ['a store that fails', { isUnavailable: () => true }, 'unavailable'],
    ['the sessions of another application', { owner: {} }, 'raised'],
    ['a user that is a list', { load: () => ['anna'] }, 'raised'],
    ['a user who is gone', { load: () => undefined }, 'invalid'],
  ])('%s', async (_what, reported, expected) => {
    expect(await asked(reported)).toStrictEqual(expected)
  })

  it('is that of the token alone: a field of another scheme leaves no user of the cookie', async () => {
    expect(await asked({ token: '' }, {}, 'Basic YTpi')).toBe('absent')
    // that of the cookie, which browsers send
    expect(await asked({ token: undefined }, {}, 'Basic YTpi')).toBe('forged')
  })

  it('is refused by the kinds of the root, too: a wrong token, and one whose proof is missing, is not absent', async () => {
    const wrong = { isTokenWrong: true, isSignedIn: () => false }
    const of = (reported: Partial<SessionSource>) =>
      evaluated(sessionAuth(), { session: null, source: source(reported) })
    expect(await of({ ...wrong, token: '' })).toBe('invalid')
    expect(await of({ token: 't', isSignedIn: () => false })).toBe('invalid')
    const refusal = { _tag: 'Left', left: AuthError.expired } as const
    expect(await of({ token: 't', isSignedIn: () => false, refusal })).toBe('expired')
    expect(await of({ isSignedIn: () => false })).toBe('absent')
  })

  it('is described by its scheme, with a name of its own and the field of its proof', () => {
    const bound = typedKinds<object>({ bearer: { ...bearer, scheme: 'DPoP' }, needsUsername: false }).sessionAuth
    expect(leaves(bound({ schemeName: 'login' }).description)).toMatchObject([
      { schemeName: 'login' },
      { schemeName: 'loginDPoP', reads: ['DPoP'], scheme: { type: 'http', scheme: 'dpop' } },
    ])
  })

  it('must have the proof that is demanded', async () => {
    const demand = { proof: { methods: ['totp'] } }
    const done = (method: string) => ({ proofs: () => [{ method, at: 1 }] })
    expect([await asked(done('password'), demand), await asked(done('totp'), demand)]).toEqual(['insufficient', passed])
  })
})

const flags = ['isActive', 'isStaff', 'isSuperuser'] as const

describe.each(flags)('%s that a function decides', (name) => {
  const decided = (answer: unknown) => rightsFrom('sessions', { [name]: () => answer })

  it('is no other value than true or false', () => {
    for (const answer of ['yes', 1, {}, [], () => false, Promise.resolve(true), Promise.reject(new Error('late'))])
      expect(() => decided(answer)[name]({})).toThrow(`sessions: ${name} must return true or false`)
  })

  it('is true for true alone, whatever the user has in its flag', () => {
    for (const value of [false, undefined, null, 0, '', NaN]) expect(decided(value)[name]({ [name]: true })).toBe(false)
    const rights = decided(true)
    const odd = { [name]: 'no' }
    expect([rights[name](odd), rights.mistakeOf(odd)]).toEqual([true, undefined])
  })

  it('is that of the flag without a function, and a flag that is no boolean is a mistake', () => {
    const isLeftOut = name === 'isActive'
    expect([true, false, null, 1].map((flag) => rightsByFlags[name]({ [name]: flag }))).toEqual([
      true,
      false,
      false,
      false,
    ])
    expect(rightsByFlags[name]({})).toBe(isLeftOut)
    expect(rightsByFlags.mistakeOf({ [name]: 1 })).toContain(`${name} of the loaded user is not a boolean`)
    for (const flag of [true, null, undefined]) expect(rightsByFlags.mistakeOf({ [name]: flag })).toBeUndefined()
    expect(() => rightsChecks[name](name, async () => true)).toThrow(`${name} is async`)
  })
})

describe("refuse: 'insufficient', of the kinds of the root with a loadUser of their own", () => {
  const users = [
    { username: 'anna', isStaff: true },
    { username: 'bob' },
    { username: 'eve', isStaff: true, isActive: false },
  ]
  const loadUser = ({ id }: Readonly<Record<string, unknown>>) => users[Number(id)]
  const staff = sessionAuthIsStaff({ loadUser, refuse: 'insufficient' })

  it.each([
    [0, users[0], 'insufficient'],
    [1, 'insufficient', 'insufficient'],
    [2, 'invalid', 'invalid'],
    [undefined, 'absent', 'absent'],
  ])('user %s', async (id, asStaff, asSuperuser) => {
    const session = id === undefined ? null : { id }
    expect(await evaluated(staff, { session })).toEqual(asStaff)
    expect(await evaluated(sessionAuthSuperUser({ loadUser, refuse: 'insufficient' }), { session })).toBe(asSuperuser)
  })

  it('is the strongest failure of a list, which goes on after it', async () => {
    const key = apiKeyCookie({ authenticate: (_request, sent) => sent === 'good' && { username: sent } })
    const of = (sent: string) => evaluated(anyOf([staff, key]), { session: { id: 1 }, cookie: `key=${sent}` })
    expect([await of('good'), await of('bad')]).toEqual([{ username: 'good' }, 'insufficient'])
  })
})
