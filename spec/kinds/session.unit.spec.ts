/**
 * Sessions: which users of a real koa-session pass which kind (spec 5.4). Others are a 401, and a value that is not a
 * user is a 500, before the handler.
 */
import Router from '@koa/router'
import { either as E } from 'fp-ts'
import Koa from 'koa'
import session from 'koa-session'
import {
  sessionAuth,
  sessionAuthIsStaff,
  sessionAuthSuperUser,
  sessionLoginAuth,
  sessionLoginAuthSuperuser,
  withAuth,
  type AuthError,
} from 'koa-with-auth'
import { SessionUser } from 'koa-with-auth/sessions'
import { mockRequest } from 'koa-with-auth/testing'
import { describe, expect, it } from 'vitest'
import { ask, serve } from '../support/servers/server.js'

const kinds = {
  user: sessionAuth(),
  superuser: sessionAuthSuperUser(),
  staff: sessionAuthIsStaff(),
  readyMade: sessionLoginAuth,
  readyMadeSuperuser: sessionLoginAuthSuperuser,
  loaded: sessionAuth({ loadUser: (data) => Promise.resolve(data['stored']) }),
  broken: sessionAuth({ loadUser: () => ({ username: 1 }) as never }),
}
type Kind = keyof typeof kinds

interface Row {
  readonly description: string
  readonly input: object
  readonly expected: ReadonlyArray<Kind>
}

const everyone: ReadonlyArray<Kind> = ['user', 'readyMade']
const superuser: ReadonlyArray<Kind> = [...everyone, 'superuser', 'readyMadeSuperuser', 'staff']

const table: ReadonlyArray<Row> = [
  { description: '5.4 a user', input: { user: { username: 'anna' } }, expected: everyone },
  { description: '5.4 a superuser', input: { user: { username: 'anna', isSuperuser: true } }, expected: superuser },
  {
    description: '5.4 a staff member',
    input: { user: { username: 'anna', isStaff: true } },
    expected: [...everyone, 'staff'],
  },
  {
    description: 'rights that are false',
    input: { user: { username: 'a', isSuperuser: false, isStaff: false } },
    expected: everyone,
  },
  {
    description: 'rights that are null',
    input: { user: { username: 'a', isSuperuser: null, isStaff: null } },
    expected: everyone,
  },
  { description: 'an active user', input: { user: { username: 'a', isActive: true } }, expected: everyone },
  {
    description: 'decision "inactive, deleted user"',
    input: { user: { username: 'a', isActive: false } },
    expected: [],
  },
  {
    description: 'decision "inactive, deleted user" a superuser',
    input: { user: { username: 'a', isSuperuser: true, isActive: false } },
    expected: [],
  },
  { description: 'a user whose isActive is null', input: { user: { username: 'a', isActive: null } }, expected: [] },
  {
    description: 'A-32 a right that is a string',
    input: { user: { username: 'a', isSuperuser: 'false' } },
    expected: [],
  },
  { description: 'A-32 a right that is 1', input: { user: { username: 'a', isStaff: 1 } }, expected: [] },
  { description: 'A-32 a right that is {}', input: { user: { username: 'a', isSuperuser: {} } }, expected: [] },
  {
    description: 'A-32 an isActive that is a string',
    input: { user: { username: 'a', isActive: 'yes' } },
    expected: [],
  },
  { description: 'no user', input: { visits: 1 }, expected: [] },
  { description: 'a user that is null', input: { user: null }, expected: [] },
  { description: 'a user that is a string', input: { user: 'anna' }, expected: [] },
  { description: 'a user that is true', input: { user: true }, expected: [] },
  { description: 'a user that is a list', input: { user: [{ username: 'anna' }] }, expected: [] },
  { description: 'a user without a name', input: { user: { isSuperuser: true } }, expected: [] },
  { description: 'a user with an empty name', input: { user: { username: '' } }, expected: [] },
  { description: 'a user whose name is a number', input: { user: { username: 1 } }, expected: [] },
  {
    description: 'A-17 rights beside the user',
    input: { user: { username: 'a' }, isSuperuser: true },
    expected: everyone,
  },
  { description: 'a user that loadUser returns', input: { stored: { username: 'anna' } }, expected: ['loaded'] },
  {
    description: 'an inactive user that loadUser returns',
    input: { stored: { username: 'a', isActive: false } },
    expected: [],
  },
]

const keys = ['0123456789abcdef0123456789abcdef']

describe('session authenticators', () => {
  let handled = 0
  const served = serve(() => {
    const app = new Koa()
    app.keys = keys
    app.silent = true
    app.use(session(app))
    const router = new Router()
    router.get('/sign-in', (ctx) => {
      Object.assign(ctx['session'] as object, JSON.parse(String(ctx.query['session'])))
      ctx.body = 'ok'
    })
    for (const [path, kind] of Object.entries(kinds)) {
      router.get(`/${path}`, withAuth(kind), (ctx) => {
        handled++
        ctx.body = ctx.request.auth.username
      })
    }
    app.use(router.routes())
    return app
  })

  const signIn = async (data: object): Promise<string> => {
    const { headers } = await ask(`${served.url}/sign-in?session=${encodeURIComponent(JSON.stringify(data))}`)
    return headers
      .getSetCookie()
      .map((line) => line.split(';')[0])
      .join('; ')
  }

  it.each(table)('$description', async ({ input, expected }) => {
    const cookie = await signIn(input)
    for (const path of Object.keys(kinds) as Kind[]) {
      handled = 0
      const { status, challenge } = await ask(`${served.url}/${path}`, { headers: { cookie } })
      const passes = expected.includes(path)
      const refused = path === 'broken' ? 500 : 401
      expect([path, status, handled]).toStrictEqual([path, passes ? 200 : refused, passes ? 1 : 0])
      expect(challenge).toBe(passes || refused === 500 ? null : 'Session realm="api"')
    }
  })

  it.each(table)('SessionUser accepts the same users as the kinds: $description', async ({ input }) => {
    const { user }: { readonly user?: unknown } = input
    const request = mockRequest()
    Object.assign(request.ctx.app, { keys })
    Object.assign(request.ctx, { session: { visits: 1 } })
    // of a loaded value that is no user, the kind says why
    const result: E.Either<AuthError, unknown> = await sessionAuth({ loadUser: () => user as never }).evaluate(request)
    const isRaised = E.isLeft(result) && result.left._tag === 'raised'
    expect(SessionUser.is(user)).toBe(typeof user === 'object' && user !== null && !isRaised)
  })

  it('section 7: a request without a session is a 401', async () => {
    handled = 0
    for (const path of Object.keys(kinds)) {
      const { status, challenge } = await ask(`${served.url}/${path}`)
      expect([status, challenge, handled]).toStrictEqual([401, 'Session realm="api"', 0])
    }
  })

  it('describes the session cookie as ambient, because browsers send it by themselves', () => {
    expect(kinds.user.description).toMatchObject({
      scheme: { type: 'apiKey', in: 'cookie', name: 'koa.sess' },
      ambient: true,
    })
    expect(sessionAuth({ cookieName: 'sid' }).description).toMatchObject({ scheme: { name: 'sid' } })
  })

  it.each([
    { description: 'an unknown option', input: { loaduser: () => null } },
    { description: 'a loadUser with two parameters', input: { loadUser: (_a: 1, _b: 2) => null } },
    { description: 'a loadUser that is not a function', input: { loadUser: 'user' } },
    { description: 'a cookie name with a blank', input: { cookieName: 'a b' } },
    { description: 'a realm with a line break', input: { realm: 'a\nb' } },
    { description: 'a proof of nothing', input: { proof: {} } },
    { description: 'a proof by no method', input: { proof: { methods: [] } } },
    { description: 'a proof by a method without a name', input: { proof: { methods: ['totp', ''] } } },
    { description: 'a proof by a method that is no string', input: { proof: { methods: ['totp', 1] } } },
    { description: 'a proof by a string', input: { proof: { methods: 'totp' } } },
  ])('is a TypeError for $description', ({ input }) => {
    // Safe: a caller without types could write this
    for (const make of [sessionAuth, sessionAuthSuperUser, sessionAuthIsStaff]) {
      expect(() => make(input as never)).toThrow(TypeError)
    }
  })
})
