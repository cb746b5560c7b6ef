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
import { ask, cookiesIn, serve } from '../support/servers/server.js'
import { row } from '../support/models/row.js'

const stored = (data: Readonly<Record<string, unknown>>) => Promise.resolve(data['stored'])

const kinds = {
  user: sessionAuth(),
  superuser: sessionAuthSuperUser(),
  staff: sessionAuthIsStaff(),
  readyMade: sessionLoginAuth,
  readyMadeSuperuser: sessionLoginAuthSuperuser,
  loaded: sessionAuth({ loadUser: stored }),
  loadedSuperuser: sessionAuthSuperUser({ loadUser: stored }),
  loadedStaff: sessionAuthIsStaff({ loadUser: stored }),
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
  row('5.4 a user', { user: { username: 'anna' } }, everyone),
  row('5.4 a superuser', { user: { username: 'anna', isSuperuser: true } }, superuser),
  row('5.4 a staff member', { user: { username: 'anna', isStaff: true } }, [...everyone, 'staff']),
  row('rights that are false', { user: { username: 'a', isSuperuser: false, isStaff: false } }, everyone),
  row('rights that are null', { user: { username: 'a', isSuperuser: null, isStaff: null } }, everyone),
  row('an active user', { user: { username: 'a', isActive: true } }, everyone),
  row('decision "inactive, deleted user"', { user: { username: 'a', isActive: false } }, []),
  row('an inactive superuser', { user: { username: 'a', isSuperuser: true, isActive: false } }, []),
  row('a user whose isActive is null', { user: { username: 'a', isActive: null } }, []),
  row('A-32 a right that is a string', { user: { username: 'a', isSuperuser: 'false' } }, []),
  row('A-32 a right that is 1', { user: { username: 'a', isStaff: 1 } }, []),
  row('A-32 a right that is {}', { user: { username: 'a', isSuperuser: {} } }, []),
  row('A-32 an isActive that is a string', { user: { username: 'a', isActive: 'yes' } }, []),
  row('no user', { visits: 1 }, []),
  row('a user that is null', { user: null }, []),
  row('a user that is a string', { user: 'anna' }, []),
  row('a user that is true', { user: true }, []),
  row('a user that is a list', { user: [{ username: 'anna' }] }, []),
  row('a user without a name', { user: { isSuperuser: true } }, []),
  row('a user with an empty name', { user: { username: '' } }, []),
  row('a user whose name is a number', { user: { username: 1 } }, []),
  row('A-17 rights beside the user', { user: { username: 'a' }, isSuperuser: true }, everyone),
  row('rights by other names', { user: { username: 'a', is_superuser: true, ISSTAFF: true, role: 'admin' } }, everyone),
  row('a user in another place', { auth: { username: 'anna' }, User: { username: 'anna' }, username: 'anna' }, []),
  row('a user that loadUser returns', { stored: { username: 'anna' } }, ['loaded']),
  row('a superuser that it returns', { stored: { username: 'a', isSuperuser: true, isStaff: null } }, [
    ...(['loaded', 'loadedSuperuser', 'loadedStaff'] as const),
  ]),
  row('a staff member that it returns', { stored: { username: 'a', isStaff: true } }, ['loaded', 'loadedStaff']),
  row('an inactive user that it returns', { stored: { username: 'a', isActive: false, isSuperuser: true } }, []),
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
    return cookiesIn(headers)
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
    if (isRaised) expect(result.left.challenge?.scheme).toBe('Session')
    expect(SessionUser.is(user)).toBe(typeof user === 'object' && user !== null && !isRaised)
  })

  it.each([
    row('a cookie name with a blank', { cookieName: 'a b' }),
    row('a proof of nothing', { proof: {} }),
    row('a proof by no method', { proof: { methods: [] } }),
    row('a proof by a method without a name', { proof: { methods: ['totp', ''] } }),
    row('a proof by a method that is no string', { proof: { methods: ['totp', 1] } }),
    row('a proof by a string', { proof: { methods: 'totp' } }),
  ])('is a TypeError for $description', ({ input }) => {
    // Safe: a caller without types could write this
    for (const make of [sessionAuth, sessionAuthSuperUser, sessionAuthIsStaff]) {
      expect(() => make(input as never)).toThrow(TypeError)
    }
  })
})

it('a session that anybody can sign is an error, not a user', async () => {
  const evaluated = async (keys: ReadonlyArray<string>) => {
    const request = mockRequest()
    Object.assign(request.ctx, { session: { user: { username: 'anna' } } })
    Object.assign(request.ctx.app, { keys })
    return sessionAuth().evaluate(request)
  }
  expect(await evaluated(['k'.repeat(32)])).toMatchObject(E.right({ username: 'anna' }))
  expect(await evaluated(['secret'])).toMatchObject(E.left({ _tag: 'raised' }))
})
