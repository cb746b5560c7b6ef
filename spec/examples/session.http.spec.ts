import { beforeEach, describe, expect, it } from 'vitest'
import { application } from '../../examples/app.js'
import { router, users } from '../../examples/session.js'
import { countHandlers } from '../support/papers/examples.js'
import { ask, cookiesIn, serve } from '../support/servers/server.js'

const handlers = countHandlers([router])

const served = serve(() => application(['k'.repeat(32)]))

beforeEach(() => {
  handlers.calls = 0
})

const form = (fields: string, headers: Record<string, string> = {}) =>
  ask(`${served.url}/examples/sign-in`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded', ...headers },
    body: fields,
  })

const get = (path: string, cookie: string) => ask(`${served.url}${path}`, { headers: { Cookie: cookie } })

const signIn = async (name: string, headers: Record<string, string> = {}): Promise<string> => {
  const answer = await form(`username=${name}&password=${name}secret`, headers)
  expect(answer).toMatchObject({ status: 200, text: `Welcome ${name}` })
  return cookiesIn(answer.headers)
}

const expectRefusal = (answer: Awaited<ReturnType<typeof ask>>, challenge: string) => {
  expect(answer.status).toBe(401)
  expect(answer.challenge).toBe(challenge)
  expect(JSON.parse(answer.text)).toMatchObject({ status: 401, detail: 'Unauthorized' })
  // koa-session may delete a cookie with a bad signature; it must not set another one
  expect(answer.headers.getSetCookie().filter((line) => !line.startsWith('koa.sess.sig=;'))).toEqual([])
}

describe('session.ts: who may call what', () => {
  const bodies = (name: string): Record<string, string> => ({
    '/examples/pets': `Authenticated user ${name}`,
    '/examples/protected': `{"user":"${name}"}`,
    '/examples/staff-area': `{"message":"Welcome, staff member ${name}"}`,
    '/examples/admin-only': `{"message":"Welcome, superuser ${name}"}`,
  })
  const common = ['/examples/pets', '/examples/protected']

  it.each([
    { name: 'anna', allowed: common },
    { name: 'sam', allowed: [...common, '/examples/staff-area'] },
    { name: 'root', allowed: [...common, '/examples/staff-area', '/examples/admin-only'] },
  ])('spec 4, 5.4: $name may call $allowed', async ({ name, allowed }) => {
    const cookie = await signIn(name)
    for (const [path, body] of Object.entries(bodies(name))) {
      handlers.calls = 0
      const answer = await get(path, cookie)
      if (allowed.includes(path)) expect(answer).toMatchObject({ status: 200, text: body })
      else expectRefusal(answer, 'Session realm="api"')
      expect(handlers.calls, path).toBe(allowed.includes(path) ? 1 : 0)
    }
  })

  it.each(Object.keys(bodies('')))('spec 7: %s refuses an anonymous caller and a forged cookie', async (path) => {
    const forged = await signIn('anna')
    handlers.calls = 0
    expectRefusal(await get(path, ''), 'Session realm="api"')
    expectRefusal(await get(path, forged.replace(/koa\.sess\.sig=.*/, 'koa.sess.sig=AAAA')), 'Session realm="api"')
    expectRefusal(await get(path, `koa.sess=${crypto.randomUUID()}`), 'Session realm="api"')
    expect(handlers.calls).toBe(0)
  })

  it('a removed right and a deactivated user count at the next request', async () => {
    const cookie = await signIn('sam')
    expect((await get('/examples/staff-area', cookie)).status).toBe(200)
    users.set('sam', { username: 'sam' })
    expect((await get('/examples/staff-area', cookie)).status).toBe(401)
    expect((await get('/examples/protected', cookie)).status).toBe(200)
    users.set('sam', { username: 'sam', isStaff: true, isActive: false })
    expect((await get('/examples/protected', cookie)).status).toBe(401)
    users.set('sam', { username: 'sam', isStaff: true })
  })
})

describe('session.ts: signing in and out', () => {
  const challenge = 'Form realm="api", fields="username password"'

  it.each([
    { description: 'a wrong password', fields: 'username=anna&password=wrong' },
    { description: 'an unknown user', fields: 'username=stranger&password=' },
    { description: 'A-29 a property name of Object.prototype', fields: 'username=__proto__&password=annasecret' },
    { description: 'a missing field', fields: 'username=anna' },
    { description: 'a field sent twice', fields: 'username=anna&username=root&password=annasecret' },
    { description: 'nothing', fields: '' },
  ])('refuses $description, and signs no user in', async ({ fields }) => {
    expectRefusal(await form(fields), challenge)
    expect(handlers.calls).toBe(0)
  })
})
