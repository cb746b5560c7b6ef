/**
 * The kinds of sessions with a real koa-session and cookies of real sign-ins. session.unit has the table of users. Titles begin with the
 * question.
 */
import Router from '@koa/router'
import Keygrip from 'keygrip'
import type Koa from 'koa'
import {
  httpBearer,
  sessionAuth,
  sessionAuthSuperUser,
  sessionLoginAuth,
  withAuth,
  type Authenticator,
} from 'koa-with-auth'
import { describe, expect, test, vi } from 'vitest'
import {
  challenge,
  expectCrashed,
  expectDenied,
  expectPassed,
  operation,
  running,
  type Running,
} from '../support/models/behavior.js'
import { modes, signIn, signInAs, signingKey, withSessions } from '../support/models/behaviorSession.js'

const ask = async (api: Running, user: unknown) => api.ask('/x', { headers: { Cookie: await signInAs(api, user) } })
const denied = async (asked: ReturnType<Running['ask']>) => expectDenied(await asked, 401, [challenge.session])
const start = (authenticator: Authenticator<unknown>, mode: (typeof modes)[number] = 'cookie') =>
  operation(withAuth(authenticator), withSessions(mode))

const anna = { username: 'anna' }
const root = { username: 'root', isSuperuser: true }
describe.each(modes)('in %s mode', (mode) => {
  test('5.4 a session cookie without its signature, or with another one, is anonymous', async () => {
    const api = await start(sessionAuth(), mode)
    const signed = await signInAs(api, anna)
    const [value = '', signature = ''] = signed.split('; ')
    expect(signature).toMatch(/^koa\.sess\.sig=/)
    const tampered = `${signature.slice(0, -1)}${signature.endsWith('A') ? 'B' : 'A'}`
    for (const Cookie of [value, `${value}; ${tampered}`, signature]) {
      await denied(api.ask('/x', { headers: { Cookie } }))
    }
    expectPassed(await api.ask('/x', { headers: { Cookie: signed } }), anna)
  })

  test('5.4 the name of the cookie is the setting of koa-session', async () => {
    const api = await operation(withAuth(sessionAuth()), withSessions(mode, { key: 'SHOPSESSION' }))
    const Cookie = await signInAs(api, anna)
    expect(Cookie).toMatch(/^SHOPSESSION=/)
    expectPassed(await api.ask('/x', { headers: { Cookie } }), anna)
    const renamed = Cookie.replaceAll('SHOPSESSION', 'koa.sess')
    await denied(api.ask('/x', { headers: { Cookie: renamed } }))
  })

  test('inactive, deleted user: it is a 401 at the next request', async () => {
    const inactive = await start(sessionAuth(), mode)
    await denied(ask(inactive, { username: 'anna', isActive: false }))
    expectPassed(await ask(inactive, { username: 'anna', isActive: true }), { username: 'anna', isActive: true })

    const users = new Map([['7', { username: 'anna', isActive: true, isSuperuser: true }]])
    const loadUser = async (session: Readonly<Record<string, unknown>>) => users.get(String(session['userId']))
    for (const authenticator of [sessionAuth({ loadUser }), sessionAuthSuperUser({ loadUser })]) {
      users.set('7', { username: 'anna', isActive: true, isSuperuser: true })
      const api = await start(authenticator, mode)
      const headers = { Cookie: await signIn(api, { userId: 7 }) }
      expectPassed(await api.ask('/x', { headers }), { username: 'anna', isActive: true, isSuperuser: true })
      users.set('7', { username: 'anna', isActive: false, isSuperuser: true })
      await denied(api.ask('/x', { headers }))
      users.delete('7')
      await denied(api.ask('/x', { headers }))
    }
  })
})

test('5.4 a session id in another place than the cookie is anonymous', async () => {
  const api = await start(sessionAuth())
  const cookie = await signInAs(api, anna)
  const headers = { 'X-Cookie': cookie, Authorization: `Session ${cookie}` }
  await denied(api.ask('/x', { headers }))
  await denied(api.ask(`/x?${cookie.replace('; ', '&')}`))
})

test.each(['POST', 'PUT', 'PATCH', 'DELETE'])('anonymous unsafe request on session auth: %s', async (method) => {
  const api = await start(sessionAuth())
  const strange = await signIn(api, { basket: [] })
  for (const Cookie of ['', strange, 'koa.sess=forged; koa.sess.sig=forged']) {
    for (const site of ['cross-site', 'same-origin']) {
      const headers = { ...(Cookie && { Cookie }), 'Sec-Fetch-Site': site }
      await denied(api.ask('/x', { method, headers }))
    }
  }
})

test('where the session keeps its user: or it is what loadUser(session) resolves to', async () => {
  const user = { username: 'anna', id: 7 }
  const loadUser = vi.fn(async (session: Readonly<Record<string, unknown>>) =>
    session['userId'] === 7 ? user : undefined,
  )
  const api = await start(sessionAuth({ loadUser }))
  const passed = await api.ask('/x', { headers: { Cookie: await signIn(api, { userId: 7 }) } })
  expectPassed(passed, user)
  expect(passed.seen[0]).toBe(user)
  await denied(api.ask('/x', { headers: { Cookie: await signIn(api, { userId: 8 }) } }))
  expect(loadUser).toHaveBeenCalledTimes(2)
  await denied(api.ask())
  expect(loadUser).toHaveBeenCalledTimes(2)
})

test.each<readonly [unknown, RegExp]>([
  ['anna', /loadUser must load an object with a username/],
  [7, /loadUser must load an object/],
  [[{ username: 'anna' }], /loadUser must load an object/],
  [{ username: 7 }, /no username that is a string/],
  [{ id: 7, email: 'anna@example.com' }, /no username that is a string/],
  [{ username: 'anna', isSuperuser: 1 }, /isSuperuser of the loaded user is not a boolean/],
  [{ username: 'anna', isStaff: 'yes' }, /isStaff of the loaded user is not a boolean/],
  [{ username: 'anna', isActive: 1 }, /isActive of the loaded user is not a boolean; load .*Boolean/],
])('session user: %j of loadUser can never sign in: it is a 500 that names the field', async (value, message) => {
  // Safe: it does not compile (spec/types), but a program without types could do it
  const api = await start(sessionAuth({ loadUser: async () => value as never }))
  const headers = { Cookie: await signIn(api, { userId: 7 }) }
  expectCrashed(await api.ask('/x', { headers }))
  expect(String(api.errors)).toMatch(message)
  expect(String(api.errors)).toMatch(/^TypeError: sessionAuth, loadUser: /)
  expect(String(api.errors)).not.toContain('example.com')
})

test('A-21 B-28 credential sent twice: two session cookies are malformed, whichever comes first', async () => {
  const api = await start(sessionAuth())
  const anna = await signInAs(api, { username: 'anna' })
  const mallory = (await signInAs(api, { username: 'mallory' })).split('; ')[0]
  for (const Cookie of [`${anna}; ${mallory}`, `${mallory}; ${anna}`]) {
    await denied(api.ask('/x', { headers: { Cookie } }))
  }
})

describe('`app.keys` where session auth is used', () => {
  const forgedWith = (key: string) => {
    const value = Buffer.from(JSON.stringify({ user: root })).toString('base64')
    return { headers: { Cookie: `koa.sess=${value}; koa.sess.sig=${new Keygrip([key]).sign(`koa.sess=${value}`)}` } }
  }
  const bearer = httpBearer({ authenticate: (_request, token) => token === 't' && { token } })
  const serving = (keys: unknown) =>
    running((app, answering) => {
      withSessions()(app)
      // Safe: plain JavaScript may write this
      app.keys = keys as Koa['keys']
      const router = new Router().get('/session', withAuth(sessionLoginAuth), answering)
      router.get('/list', withAuth([bearer, sessionLoginAuth]), answering)
      router.get('/open', answering)
      app.use(router.routes())
    })

  // crypto/appKeys.unit has all weak keys
  test.each([
    ['missing', undefined],
    ['a key under 32 characters', ['x'.repeat(31)]],
    ['an empty key after a strong one', [signingKey, '']],
  ])('A-33 `app.keys` %s: it is a 500 that names the fix, and no handler runs', async (_what, keys) => {
    const { ask, errors } = await serving(keys)
    for (const path of ['/session', '/list']) {
      for (const init of [{}, forgedWith(''), forgedWith('keyboard cat')]) {
        const answer = await ask(path, init)
        expectCrashed(answer)
        expect(answer.headers['cache-control']).toBe('no-store')
      }
    }
    expect(errors).toHaveLength(6)
    for (const error of errors) {
      expect(error).toMatchObject({ message: expect.stringMatching(/app\.keys .*32 characters/) as string })
      expect(String(error)).not.toMatch(/x{31}|keyboard cat/)
    }
    // what asks no session is not affected
    expectPassed(await ask('/open'), undefined)
    expectPassed(await ask('/list', { headers: { Authorization: 'Bearer t' } }), { token: 't' })
  })

  test('A-33 a weak key that is added later is noticed', async () => {
    const keys = [signingKey]
    const { ask } = await serving(keys)
    await denied(ask('/session'))
    keys.push('')
    expectCrashed(await ask('/session', forgedWith('')))
  })

  test.each([
    ['32 characters', ['x'.repeat(32)]],
    ['two keys', [signingKey, 'y'.repeat(64)]],
    ['a Keygrip, which cannot be inspected', new Keygrip([signingKey])],
  ])('`app.keys` %s: accepted', async (_what, keys) => {
    const api = await serving(keys)
    const headers = { Cookie: await signInAs(api, { username: 'anna' }) }
    expectPassed(await api.ask('/session', { headers }), { username: 'anna' })
    await denied(api.ask('/session'))
  })
})

test.each([
  ['with keys', [signingKey]],
  ['without keys', undefined],
])('D-S12 session auth without sessions above it is a 500 that names the fix: an app %s', async (_what, keys) => {
  const { ask, errors } = await operation(withAuth(sessionAuth()), (app) => {
    Object.assign(app, { keys })
  })
  expectCrashed(await ask())
  expect(errors).toMatchObject([
    {
      message:
        'sessionAuth: the request has no session; call sessions(app, { loadUser }) of koa-with-auth/sessions before the routers are mounted, or mount your own koa-session above them',
    },
  ])
})
