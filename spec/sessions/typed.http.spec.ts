/**
 * Sessions with the application's own type of user: the principal is what `loadUser` returned, rights are functions,
 * and users of another application do not pass.
 */
import Router from '@koa/router'
import Koa from 'koa'
import koaSession from 'koa-session'
import mount from 'koa-mount'
import {
  authSettings,
  onError,
  sessionAuth as anySessionAuth,
  sessionAuthIsStaff as anySessionAuthIsStaff,
  sessionAuthSuperUser as anySessionAuthSuperUser,
  UnavailableError,
  withAuth,
  type AuthenticatorLike,
} from 'koa-with-auth'
import { audit } from 'koa-with-auth/audit'
import { openApi } from 'koa-with-auth/openapi'
import { logIn, logOut, sessions, type Sessions } from 'koa-with-auth/sessions'
import { describe, expect, it, vi } from 'vitest'
import {
  challenge,
  expectCrashed,
  expectDenied,
  expectPassed,
  running,
  type Answering,
  type Running,
} from '../support/models/behavior.js'
import { strongKey, visitorOf } from '../support/sites/sessionsApp.js'

interface Member {
  readonly id: number
  readonly role?: string
  readonly state?: string
}

const members: ReadonlyArray<Member> = [
  { id: 1, role: 'admin' },
  { id: 2, role: 'editor' },
  { id: 3, role: 'reader' },
  { id: 4, role: 'admin', state: 'banned' },
]
const [admin, editor, reader, banned] = members as [Member, Member, Member, Member]

interface Site extends Running {
  readonly app: Koa
  /** A browser that is signed in as a member. */
  readonly as: (member: Member) => Promise<Asking>
  readonly typed: Sessions<Member>
  readonly warnings: ReadonlyArray<string>
}

interface Asking {
  readonly ask: (path: string) => ReturnType<Running['ask']>
  readonly header: string
}

type Rights = Partial<Record<'isActive' | 'isStaff' | 'isSuperuser', unknown>>

const byRole = {
  isActive: (user: Member) => user.state !== 'banned',
  isStaff: (user: Member) => user.role === 'editor',
  isSuperuser: (user: Member) => user.role === 'admin',
}

const paths = ['/me', '/staff', '/super', '/staff403', '/super403']

const routesOf = (typed: Sessions<Member>): Readonly<Record<string, AuthenticatorLike>> => ({
  '/me': typed.sessionAuth(),
  '/staff': typed.sessionAuthIsStaff(),
  '/super': typed.sessionAuthSuperUser(),
  '/staff403': typed.sessionAuthIsStaff({ refuse: 'insufficient' }),
  '/super403': typed.sessionAuthSuperUser({ refuse: 'insufficient' }),
})

const site = async (
  rights: Rights = byRole,
  { keys = [strongKey], load = (id: string): unknown => members.find((one) => String(one.id) === id) } = {},
): Promise<Site> => {
  const warnings: string[] = []
  let made: { app: Koa; typed: Sessions<Member> } | undefined
  const emitted = vi.spyOn(process, 'emitWarning').mockImplementation((text) => void warnings.push(String(text)))
  const api = await running((app, answering) => {
    app.keys = keys
    app.silent = true
    const typed = sessions<Member>(app, {
      // Safe: a program without types could load and write this
      loadUser: load as () => Member,
      identify: (user) => String(user.id),
      ...(rights as typeof byRole),
    })
    made = { app, typed }
    const router = new Router()
    router.post('/login/:id', withAuth(null), async (ctx) => {
      await logIn(
        ctx,
        members.find(({ id }) => String(id) === ctx.params['id'])!,
      )
      ctx.status = 204
    })
    router.post('/logout', withAuth(null), async (ctx) => {
      await logOut(ctx)
      ctx.status = 204
    })
    for (const [path, kind] of Object.entries(routesOf(typed))) router.get(path, withAuth(kind), answering)
    router.get('/any', withAuth(anySessionAuth()), answering)
    router.get('/anyStaff', withAuth(anySessionAuthIsStaff()), answering)
    app.use(router.routes())
  })
  emitted.mockRestore()
  const as = async ({ id }: Member): Promise<Asking> => {
    const one = visitorOf(api.port)
    expect((await one.post(`/login/${id}`)).status).toBe(204)
    const header = one.header()
    return { header, ask: (path) => api.ask(path, { headers: { Cookie: header } }) }
  }
  return { ...api, ...made!, as, warnings }
}

/** An application with sessions, whose `/in` signs the first member in, or what it is given. */
const small = <U>(
  options: Parameters<typeof sessions<U>>[1],
  build: (router: Router, made: ReturnType<typeof sessions<U>>, answering: Answering, app: Koa) => void = () => {},
  user: unknown = admin,
) =>
  running((app, answering) => {
    app.keys = [strongKey]
    const made = sessions(app, options)
    // Safe: a program without types could pass any user
    const router = new Router().post('/in', withAuth(null), (ctx) => made.logIn(ctx, user as never))
    build(router, made, answering, app)
    app.use(router.routes())
  })

/** The cookie of a visitor who has signed in at `/in`. */
const signedInAt = async ({ port }: Running, path = '/in') => {
  const one = visitorOf(port)
  await one.post(path)
  return { headers: { Cookie: one.header() } }
}

const denied = async (asked: ReturnType<Running['ask']>) => expectDenied(await asked, 401, [challenge.session])
const forbidden = async (asked: ReturnType<Running['ask']>) => expectDenied(await asked, 403, [challenge.session])

describe('the principal of typed sessions', () => {
  it('is the same object that loadUser returned; no username is needed', async () => {
    const { as } = await site()
    const { seen } = await (await as(reader)).ask('/me')
    expect(seen).toHaveLength(1)
    expect(seen[0]).toBe(reader)
  })

  it('does not exist without a session, or after a sign-out, even with a copy of the cookie', async () => {
    const api = await site()
    for (const path of paths) await denied(api.ask(path))
    const { ask, header } = await api.as(admin)
    for (const path of paths) expectPassed(await ask(path), admin)
    const out = await api.ask('/logout', { method: 'POST', headers: { Cookie: header } })
    expect(out.status).toBe(204)
    for (const path of paths) await denied(ask(path))
  })
})

describe('rights as functions of the user', () => {
  it.each<readonly [string, Member, ReadonlyArray<string>]>([
    ['a superuser', admin, paths],
    ['a staff member', editor, ['/me', '/staff', '/staff403']],
    ['anyone else', reader, ['/me']],
    ['an inactive user', banned, []],
  ])('%s', async (_who, member, passes) => {
    const { as } = await site()
    const { ask } = await as(member)
    for (const path of paths) {
      if (passes.includes(path)) expectPassed(await ask(path), member)
      else if (path.endsWith('403') && member !== banned) await forbidden(ask(path))
      else await denied(ask(path))
    }
  })

  it('are not called without a session, and isActive is called first', async () => {
    const asked: string[] = []
    const noting = (name: string, answer: boolean) => () => asked.push(name) > 0 && answer
    const rights = {
      isActive: noting('active', false),
      isStaff: noting('staff', true),
      isSuperuser: noting('super', true),
    }
    const { as, ask } = await site(rights)
    await denied(ask('/super'))
    expect(asked).toStrictEqual([])
    await denied((await as(admin)).ask('/super'))
    await denied((await as(admin)).ask('/super403'))
    expect(asked).toStrictEqual(['active', 'active'])
  })

  const names = ['isActive', 'isStaff', 'isSuperuser'] as const
  const pathFor = { isActive: '/me', isStaff: '/staff', isSuperuser: '/super' }
  const others = { isActive: () => true, isStaff: () => false, isSuperuser: () => false }

  it.each(names.flatMap((name) => [name, `${name}403`]))(
    '%s that throws is a 500, and no handler runs',
    async (what) => {
      const name = names.find((one) => what.startsWith(one))!
      const path = what.endsWith('403') && name !== 'isActive' ? `${pathFor[name]}403` : pathFor[name]
      const bug = new RangeError('a bug')
      const { as, errors } = await site({
        ...others,
        [name]: () => {
          throw bug
        },
      })
      expectCrashed(await (await as(reader)).ask(path))
      expect(errors).toStrictEqual([bug])
    },
  )

  it.each(names)('%s that returns a promise is a 500 that says so, and no handler runs', async (name) => {
    const { as, errors } = await site({ ...others, [name]: () => Promise.reject(new Error('late')) })
    expectCrashed(await (await as(reader)).ask(pathFor[name]))
    expect(errors.map(String)).toEqual([
      `TypeError: sessions(app, { ... }): ${name} must return true or false; load slow data in loadUser`,
    ])
  })

  it('a function that throws UnavailableError is a 503', async () => {
    const { as } = await site({
      ...others,
      isStaff: () => {
        throw new UnavailableError('the directory is down')
      },
    })
    expectDenied(await (await as(reader)).ask('/staff'), 503, [])
  })
})

describe('the result of loadUser', () => {
  it.each([undefined, null, {}])('%j: 401', async (value) => {
    const { as } = await site(byRole, { load: () => value })
    await denied((await as(admin)).ask('/me'))
  })

  it.each(['anna', 7, true, [admin]])('%j is not a user: a 500 that says so', async (value) => {
    const { as, errors } = await site(byRole, { load: () => value })
    expectCrashed(await (await as(admin)).ask('/me'))
    expect(String(errors[0])).toMatch(/^TypeError: sessionAuth, loadUser: loadUser must load an object, or undefined/)
  })

  it('that is an outage is a 503, also in a list before a weaker kind; an error is a 500', async () => {
    let failure: Error = new UnavailableError('down', { retryAfter: 7 })
    const { as, errors } = await site(byRole, {
      load: () => {
        throw failure
      },
    })
    const { ask } = await as(admin)
    for (const path of ['/me', '/staff403']) {
      const answer = await ask(path)
      expectDenied(answer, 503, [])
      expect(answer.headers['retry-after']).toBe('7')
    }
    failure = new Error('a bug')
    expectCrashed(await ask('/me'))
    expect(errors).toStrictEqual([failure])
  })

  it('without a username is a 500 for the kinds of the root, which names the fix', async () => {
    const { as, errors } = await site()
    expectCrashed(await (await as(admin)).ask('/any'))
    expect(String(errors[0])).toMatch(
      /no username that is a string; .* kinds that sessions\(app, \{ identify \}\) returns/,
    )
  })

  it('with a username passes the kinds of the root by the same rights', async () => {
    const users = [
      { id: 1, username: 'anna', role: 'editor' },
      { id: 2, username: 'bob', role: 'reader' },
      { id: 4, username: 'eve', role: 'editor', state: 'banned' },
    ]
    const { as } = await site(byRole, { load: (id) => users.find((one) => String(one.id) === id) })
    expectPassed(await (await as(admin)).ask('/anyStaff'), users[0])
    const bob = await as(editor)
    expectPassed(await bob.ask('/any'), users[1])
    await denied(bob.ask('/anyStaff'))
    await denied((await as(banned)).ask('/any'))
    await denied((await as(banned)).ask('/anyStaff'))
  })
})

describe("refuse: 'insufficient'", () => {
  it('is documented and audited: a 403 beside the 401, which are not there by default', async () => {
    const { typed } = await site()
    const router = new Router()
    for (const [path, kind] of Object.entries(routesOf(typed))) router.get(path, withAuth(kind), () => {})
    const { paths, components } = openApi(router, { title: 'Shop', version: '1.0.0' })
    const statuses = (path: string) =>
      Object.keys(paths?.[path]?.get?.responses ?? {}).filter((status) => /^4/.test(status))
    expect(statuses('/staff')).toStrictEqual(['401'])
    expect(statuses('/staff403')).toStrictEqual(['401', '403'])
    expect(statuses('/super403')).toStrictEqual(['401', '403'])
    // One scheme, with the name of the cookie
    expect(Object.values(components?.securitySchemes ?? {})).toMatchObject([
      { type: 'apiKey', in: 'cookie', name: 'session' },
    ])
    expect(audit(router).operations.map(({ path, protection }) => [path, protection])).toStrictEqual([
      ['/me', 'session in cookie session'],
      ['/staff', 'session in cookie session of a superuser or staff member'],
      ['/super', 'session in cookie session of a superuser'],
      [
        '/staff403',
        'session in cookie session of a superuser or staff member authorized by a superuser or staff member',
      ],
      ['/super403', 'session in cookie session of a superuser authorized by a superuser'],
    ])
  })

  it('is an option of the kinds that demand a right, with two values', () => {
    const call = (f: unknown, options: object) => () => (f as (options: object) => unknown)(options)
    for (const kind of [anySessionAuthIsStaff, anySessionAuthSuperUser]) {
      expect(call(kind, { refuse: 'forbidden' })).toThrow(/refuse \}\) must be 'invalid' or 'insufficient'/)
      expect(call(kind, { refuse: 403 })).toThrow(TypeError)
      expect(call(kind, { refuse: 'invalid' })).not.toThrow()
      expect(call(kind, { refuse: undefined })).not.toThrow()
    }
    expect(call(anySessionAuth, { refuse: 'insufficient' })).toThrow(/sessionAuth: no option "refuse"/)
    const { sessionAuth, sessionAuthIsStaff } = sessions(new Koa({ keys: [strongKey] }), {
      loadUser: (username) => ({ username }),
    })
    expect(call(sessionAuth, { refuse: 'insufficient' })).toThrow(/sessionAuth: no option "refuse"/)
    expect(call(sessionAuthIsStaff, { refuse: 'no' })).toThrow(TypeError)
    expect(call(sessionAuthIsStaff, { loadUser: () => admin })).toThrow(/no option "loadUser"/)
    expect(call(withAuth, sessionAuthIsStaff)).toThrow(/sessionAuthIsStaff itself; call it/)
  })
})

describe('sessions of several applications', () => {
  const twoSites = async () => {
    let theirs: Sessions<Member> | undefined
    const other = await running((app) => {
      app.keys = [strongKey]
      theirs = sessions(app, { loadUser: () => admin, identify: () => 'root' })
    })
    return { other, theirs: theirs! }
  }

  it('a kind of one application in another is a 500, and no user is loaded', async () => {
    const { theirs } = await twoSites()
    let loaded = 0
    const load = (id: string) => (++loaded > 0 ? { id: Number(id) } : undefined)
    const api = await small({ loadUser: load, identify: (user) => String(user.id) }, (router, _made, answering) => {
      router.post('/theirs', withAuth(null), (ctx) => theirs.logIn(ctx, admin))
      router.get('/me', withAuth(theirs.sessionAuth()), answering)
      router.get('/super', withAuth(theirs.sessionAuthSuperUser({ refuse: 'insufficient' })), answering)
    })
    const sending = await signedInAt(api)
    for (const path of ['/me', '/super']) {
      expectCrashed(await api.ask(path, sending))
      expectCrashed(await api.ask(path))
    }
    expectCrashed(await api.ask('/theirs', { method: 'POST' }))
    expect(loaded).toBe(0)
    expect(api.errors.map(String)).toMatchObject([
      expect.stringMatching(/sessionAuth: it belongs to the sessions of another application/),
      expect.stringMatching(/another application/),
      expect.stringMatching(/sessionAuthSuperUser: .*another application/),
      expect.stringMatching(/another application/),
      expect.stringMatching(/did not come through this sessions\(app, ...\)/),
    ])
  })

  it('a kind, logIn and logOut in an application without sessions are a 500 that says so', async () => {
    const { theirs } = await twoSites()
    for (const mountSessions of [() => {}, (app: Koa) => app.use(koaSession(app))]) {
      const api = await running((app, answering) => {
        app.keys = [strongKey]
        mountSessions(app)
        const router = new Router().get('/me', withAuth(theirs.sessionAuth()), answering)
        router.post('/in', withAuth(null), (ctx) => logIn(ctx, admin))
        router.post('/out', withAuth(null), (ctx) => logOut(ctx))
        app.use(router.routes())
      })
      expectCrashed(await api.ask('/me'))
      for (const path of ['/in', '/out']) expectCrashed(await api.ask(path, { method: 'POST' }))
      expect(api.errors.map(String)).toMatchObject([
        expect.stringMatching(
          /sessionAuth: it belongs to a call of sessions\(app, ...\), which this request did not pass/,
        ),
        expect.stringMatching(/logIn\(ctx, user\): the application has no sessions; call sessions\(app, ...\)/),
        expect.stringMatching(/logOut\(ctx\): the application has no sessions/),
      ])
    }
  })

  it('logIn in a mounted application without sessions signs in to the outer one', async () => {
    const inner = new Koa().use(new Router().post('/', withAuth(null), (ctx) => logIn(ctx, { id: 2 })).routes())
    const api = await small(
      { loadUser: (id) => ({ id }), identify: ({ id }) => String(id) },
      (router, { sessionAuth }, answering, app) => {
        app.use(mount('/inner', inner))
        router.get('/me', withAuth(sessionAuth()), answering)
      },
    )
    expectPassed(await api.ask('/me', await signedInAt(api, '/inner')), { id: '2' })
  })

  it.each<readonly [string, unknown]>([
    ['nothing', undefined],
    ['an empty object', {}],
    ['a request of Node', { request: {} }],
  ])('logIn and logOut with %s instead of a context are a TypeError', async (_what, ctx) => {
    await expect(logIn(ctx as never, admin)).rejects.toThrow(
      /^logIn\(ctx, user\): ctx must be the context of a request/,
    )
    await expect(logOut(ctx as never)).rejects.toThrow(TypeError)
    const own = sessions(new Koa({ keys: [strongKey] }), { loadUser: () => admin, identify: () => '7' })
    await expect(own.logIn(ctx as never, admin)).rejects.toThrow(
      /^logIn, logOut, addProof: ctx must be the context of a request/,
    )
    await expect(own.logOut(ctx as never)).rejects.toThrow(TypeError)
  })

  it('a user without an identity is a 500, and no user is signed in', async () => {
    const api = await small({ loadUser: (username) => ({ username }) }, undefined, { id: 7 })
    const answer = await api.ask('/in', { method: 'POST' })
    expectCrashed(answer)
    expect(answer.headers['set-cookie']).toBeUndefined()
    expect(String(api.errors[0])).toMatch(
      /the id of the user must be a string that is not empty; it is user.username, or the result of/,
    )
  })
})

describe('rotated keys', () => {
  const SHORT = 'keyboard cat'

  it('a cookie signed with an older, short key is accepted and signed again; there is one warning, without a key', async () => {
    const api = await site(byRole)
    const emitted = vi.spyOn(process, 'emitWarning').mockReturnValue(undefined)
    try {
      // As before the short key was replaced
      api.app.keys = [SHORT]
      const { ask } = await api.as(reader)
      api.app.keys = [strongKey, SHORT]
      expectPassed(await ask('/me'), reader)
      expectPassed(await ask('/me'), reader)
      await denied(ask('/super'))
      expect(emitted.mock.calls.map(([text, type]) => [String(text), type])).toStrictEqual([
        [expect.stringMatching(/^app\.keys: an older key has fewer than 32 characters/), 'SessionWarning'],
      ])
      expect(JSON.stringify(emitted.mock.calls)).not.toContain(SHORT)
      api.app.keys = [strongKey]
      await denied(ask('/me'))
    } finally {
      emitted.mockRestore()
    }
  })

  it('sessions(app) accepts an older short key, and warns once when it is called', async () => {
    const { warnings, as, errors } = await site(byRole, { keys: [strongKey, SHORT, 'x'] })
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).not.toContain(SHORT)
    const emitted = vi.spyOn(process, 'emitWarning')
    expectPassed(await (await as(reader)).ask('/me'), reader)
    expect(emitted).not.toHaveBeenCalled()
    emitted.mockRestore()
    expect(errors).toStrictEqual([])
  })
})

it('the handler for the class of an exception that a right throws answers it', async () => {
  class Locked extends Error {}
  const isActive = (): never => {
    throw new Locked()
  }
  const api = await small(
    { loadUser: (id) => ({ id }), identify: ({ id }) => String(id), isActive },
    (router, { sessionAuth }, answering, app) => {
      app.use(authSettings({ onError: [onError(Locked, () => ({ status: 423, body: { detail: 'Locked' } }))] }))
      router.get('/me', withAuth(sessionAuth()), answering)
    },
  )
  const answer = await api.ask('/me', await signedInAt(api))
  expect([answer.status, answer.body, answer.seen]).toStrictEqual([423, { detail: 'Locked' }, []])
})
