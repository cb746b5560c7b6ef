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

const get = (path: string, cookie: string) => ask(`${served.url}${path}`, { headers: { Cookie: cookie } })

const signIn = async (name: string): Promise<string> => {
  const body = new URLSearchParams({ username: name, password: `${name}secret` })
  const answer = await ask(`${served.url}/examples/sign-in`, { method: 'POST', body })
  expect(answer).toMatchObject({ status: 200, text: `Welcome ${name}` })
  return cookiesIn(answer.headers)
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
      else expect(answer).toMatchObject({ status: 401, challenge: 'Session realm="api"' })
      expect(handlers.calls, path).toBe(allowed.includes(path) ? 1 : 0)
    }
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
