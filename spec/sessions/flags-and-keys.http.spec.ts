/** A-32 and A-33: rights of a session's user that are not booleans, and signing keys that could be guessed. */
import Keygrip from 'keygrip'
import type Koa from 'koa'
import { type Middleware } from 'koa'
import { createSession } from 'koa-session'
import { httpBearer, sessionAuth, sessionAuthIsStaff, sessionAuthSuperUser } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { expectAccepted, expectDenied, guardedApp, sendCounted } from '../support/sites/guardedApp.js'
import { valuesOf } from '../support/servers/rawSocket.js'
import { listen, serve } from '../support/servers/server.js'

const STRONG = 'a signing key of at least 32 characters'

describe('A-32 the flags of a session’s user', () => {
  let user: unknown
  const loadUser = () => user
  const signIn: Middleware = async (ctx, next) => {
    if (ctx.path === '/sign-in') {
      ctx.session = { user }
      ctx.body = 'ok'
    } else await next()
  }
  const under = guardedApp(
    {
      '/user': sessionAuth(),
      '/super': sessionAuthSuperUser(),
      '/staff': sessionAuthIsStaff(),
      '/loaded/user': sessionAuth({ loadUser }),
      '/loaded/super': sessionAuthSuperUser({ loadUser: async () => loadUser() }),
      '/loaded/staff': sessionAuthIsStaff({ loadUser: async () => loadUser() }),
    },
    {
      above: (app) => {
        app.keys = [STRONG]
        return [createSession(app), signIn]
      },
    },
  )
  const served = serve(() => under.app)
  const outcomes = async (signedIn: unknown) => {
    user = signedIn
    const cookies = (await fetch(`${served.url}/sign-in`)).headers.getSetCookie().map((cookie) => cookie.split(';')[0])
    const request = (path: string) => sendCounted(under, served.port, `GET ${path}`, [`Cookie: ${cookies.join('; ')}`])
    return { request }
  }
  const everywhere = ['/user', '/super', '/staff', '/loaded/user', '/loaded/super', '/loaded/staff']
  // Data of a session that are not a user are refused. A loader that returns such data is a mistake of the program.
  const expectUnreadable = async (request: (path: string) => ReturnType<typeof sendCounted>) => {
    for (const path of everywhere) {
      const answer = await request(path)
      if (!path.startsWith('/loaded')) expectDenied(answer)
      else expect({ status: answer.status, ran: answer.ran }).toEqual({ status: 500, ran: 0 })
    }
  }

  const loose: ReadonlyArray<unknown> = ['false', 'true', '', 'yes', 1, 0, {}, [], [true], { valueOf: true }]
  it.each(
    ['isSuperuser', 'isStaff', 'isActive'].flatMap((flag) =>
      loose.map((value) => [flag, JSON.stringify(value), value] as const),
    ),
  )('A-32 a user whose %s is %s is a 401, and a 500 if loadUser returns it', async (flag, _text, value) => {
    const { request } = await outcomes({ username: 'anna', isStaff: true, isSuperuser: true, [flag]: value })
    await expectUnreadable(request)
  })

  it.each([
    ['no flags at all', {}, ['/user']],
    ['false', { isSuperuser: false, isStaff: false }, ['/user']],
    ['null', { isSuperuser: null, isStaff: null }, ['/user']],
    [
      'flags with other names',
      { is_superuser: true, superuser: true, admin: true, is_staff: true, role: 'admin' },
      ['/user'],
    ],
    ['flags in another letter case', { issuperuser: true, ISSTAFF: true }, ['/user']],
    ['staff', { isStaff: true }, ['/user', '/staff']],
    ['superuser', { isSuperuser: true }, ['/user', '/super', '/staff']],
    ['active superuser', { isSuperuser: true, isActive: true }, ['/user', '/super', '/staff']],
    ['inactive superuser', { isSuperuser: true, isStaff: true, isActive: false }, []],
    ['a superuser whose isActive is null', { isSuperuser: true, isActive: null }, []],
  ])('A-32 only true grants a right: %s', async (_what, flags, open) => {
    const { request } = await outcomes({ username: 'anna', ...flags })
    for (const path of everywhere) {
      const answer = await request(path)
      if (open.some((suffix) => path.endsWith(suffix))) expectAccepted(answer)
      else expectDenied(answer)
    }
  })

  it.each([
    ['a string', 'anna'],
    ['true', true],
    ['a number', 1],
    ['a list', [{ username: 'anna', isSuperuser: true }]],
    ['no user name', { isSuperuser: true }],
    ['a user name that is not a string', { username: { $ne: '' }, isSuperuser: true }],
    ['flags one level deeper', { user: { username: 'anna', isSuperuser: true } }],
    ['a prototype key', JSON.parse('{"__proto__":{"username":"anna","isSuperuser":true}}') as unknown],
  ])('A-32 a value that is not a user is refused: %s', async (_what, signedIn) => {
    const { request } = await outcomes(signedIn)
    await expectUnreadable(request)
  })

  it('A-32 an empty user name is refused', async () => {
    const { request } = await outcomes({ username: '', isSuperuser: true })
    for (const path of everywhere) expectDenied(await request(path))
  })
})

describe('A-33 signing keys that could be guessed', () => {
  const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { username: 'anna' } })
  const withKeys = async (
    keys: unknown,
    use: (app: ReturnType<typeof guardedApp>, port: number, errors: unknown[]) => Promise<void>,
  ) => {
    const under = guardedApp(
      { '/session': sessionAuth(), '/list': [bearer, sessionAuth()], '/bearer': bearer, '/public': null },
      {
        above: (app: Koa) => {
          // Safe: a program without types could do this
          if (keys !== undefined) app.keys = keys as string[]
          return [createSession(app)]
        },
      },
    )
    const own = await listen(under.app)
    try {
      await use(under, own.port, own.errors)
    } finally {
      await own.close()
    }
  }
  const forgedWith = (key: string) => {
    const value = Buffer.from(JSON.stringify({ user: { username: 'root', isSuperuser: true } })).toString('base64')
    return `Cookie: koa.sess=${value}; koa.sess.sig=${new Keygrip([key]).sign(`koa.sess=${value}`)}`
  }

  it.each([
    ['missing', undefined],
    ['without a list', STRONG],
    ['empty', []],
    ['an empty key', ['']],
    ['short', ['keyboard cat']],
    ['that are one character too short', ['k'.repeat(31)]],
    ['with a short key before a strong one', ['legacy-key', STRONG]],
    ['with an empty key after a strong one', [STRONG, '']],
    ['undefined in the list', [undefined]],
    ['with undefined after a strong key', [STRONG, undefined]],
    ['a number', [12345678901234567890]],
    ['a list in the list', [[STRONG]]],
  ])('A-33 app.keys %s: a 500 with an error that names the fix, and no request passes', (_what, keys) =>
    withKeys(keys, async (under, port, errors) => {
      for (const lines of [[], [forgedWith('')], [forgedWith('keyboard cat')]]) {
        errors.length = 0
        const answer = await sendCounted(under, port, 'GET /session', lines)
        expect([answer.status, answer.ran, answer.body]).toEqual([500, 0, 'Internal Server Error'])
        expect(String(errors[0])).toMatch(/app\.keys .*32 characters/)
        expect(valuesOf(answer, 'Cache-Control')).toEqual(['no-store'])
        for (const key of Array.isArray(keys) ? keys : []) {
          if (typeof key === 'string' && key !== '') expect(String(errors[0])).not.toContain(key)
        }
      }
    }),
  )

  it('A-33 a weak key that is added later is noticed', () => {
    const keys = [STRONG]
    return withKeys(keys, async (under, port) => {
      expectDenied(await sendCounted(under, port, 'GET /session'))
      keys.push('')
      expect((await sendCounted(under, port, 'GET /session', [forgedWith('')])).status).toBe(500)
    })
  })

  it('A-33 a request without a session authenticator is not affected', () =>
    withKeys([''], async (under, port) => {
      const right = ['Authorization: Bearer supersecret']
      for (const path of ['/bearer', '/list']) expectAccepted(await sendCounted(under, port, `GET ${path}`, right))
      expectAccepted(await sendCounted(under, port, 'GET /public'))
      expect((await sendCounted(under, port, 'GET /list')).status).toBe(500)
    }))

  it.each([
    ['strong keys', [STRONG, 'k'.repeat(32)]],
    ['a Keygrip', new Keygrip([STRONG], 'sha256')],
  ])('A-33 %s are accepted', (_what, keys) =>
    withKeys(keys, async (under, port, errors) => {
      expectDenied(await sendCounted(under, port, 'GET /session'))
      expect(errors).toEqual([])
    }),
  )
})
