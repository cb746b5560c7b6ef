/** Section 5.4 of the requirements: who passes a session authenticator, with a session of koa-session. */
import {
  sessionAuth,
  sessionAuthIsStaff,
  sessionAuthSuperUser,
  sessionLoginAuth,
  sessionLoginAuthSuperuser,
  withAuth,
} from 'koa-with-auth'
import { describe, expect, test } from 'vitest'
import { challenge, expectDenied, expectPassed, operation } from '../support/models/behavior.js'
import { modes, signIn, signInAs, withSessions } from '../support/models/behaviorSession.js'

const user = { username: 'anna' }
const staff = { username: 'sam', isStaff: true }
const superuser = { username: 'root', isSuperuser: true }
const both = { username: 'boss', isSuperuser: true, isStaff: true }

const table = [
  { name: 'SessionAuth', authenticator: sessionAuth(), passing: [user, staff, superuser, both] },
  { name: 'session_login_auth', authenticator: sessionLoginAuth, passing: [user, staff, superuser, both] },
  { name: 'SessionAuthSuperUser', authenticator: sessionAuthSuperUser(), passing: [superuser, both] },
  { name: 'session_login_auth_superuser', authenticator: sessionLoginAuthSuperuser, passing: [superuser, both] },
  { name: 'SessionAuthIsStaff', authenticator: sessionAuthIsStaff(), passing: [staff, superuser, both] },
]

describe.each(modes)('sessions in %s mode', (mode) => {
  test.each(table)(
    '5.4 $name passes for the users of the table, and for no others',
    async ({ authenticator, passing }) => {
      const api = await operation(withAuth(authenticator), withSessions(mode))
      expectDenied(await api.ask(), 401, [challenge.session])
      for (const someone of [user, staff, superuser, both]) {
        const answer = await api.ask('/x', { headers: { Cookie: await signInAs(api, someone) } })
        if (passing.includes(someone)) expectPassed(answer, someone)
        else expectDenied(answer, 401, [challenge.session])
      }
    },
  )

  test('5.4 a session without a signed-in user does not pass', async () => {
    const api = await operation(withAuth(sessionAuth()), withSessions(mode))
    const Cookie = await signIn(api, { basket: ['a book'] })
    expectDenied(await api.ask('/x', { headers: { Cookie } }), 401, [challenge.session])
  })

  test('5.4 a session cookie without its signature, or with another one, is anonymous', async () => {
    const api = await operation(withAuth(sessionAuth()), withSessions(mode))
    const signed = await signInAs(api, user)
    const [value = '', signature = ''] = signed.split('; ')
    expect(signature).toMatch(/^koa\.sess\.sig=/)
    const tampered = signature.endsWith('A') ? `${signature.slice(0, -1)}B` : `${signature.slice(0, -1)}A`
    for (const Cookie of [value, `${value}; ${tampered}`, signature]) {
      expectDenied(await api.ask('/x', { headers: { Cookie } }), 401, [challenge.session])
    }
    expectPassed(await api.ask('/x', { headers: { Cookie: signed } }), user)
  })

  test('5.4 the name of the cookie is the setting of koa-session', async () => {
    const api = await operation(withAuth(sessionAuth()), withSessions(mode, { key: 'SHOPSESSION' }))
    const Cookie = await signInAs(api, user)
    expect(Cookie).toMatch(/^SHOPSESSION=/)
    expectPassed(await api.ask('/x', { headers: { Cookie } }), user)
    const renamed = Cookie.replaceAll('SHOPSESSION', 'koa.sess')
    expectDenied(await api.ask('/x', { headers: { Cookie: renamed } }), 401, [challenge.session])
  })
})

test('5.4 a session id in another place than the cookie is anonymous', async () => {
  const api = await operation(withAuth(sessionAuth()), withSessions())
  const cookie = await signInAs(api, user)
  expectDenied(await api.ask('/x', { headers: { 'X-Cookie': cookie, Authorization: `Session ${cookie}` } }), 401, [
    challenge.session,
  ])
  expectDenied(await api.ask(`/x?${cookie.replace('; ', '&')}`), 401, [challenge.session])
})
