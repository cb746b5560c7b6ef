/** Known attacks of spec/requirements.md: hostile requests to guarded operations. A title names the requirement that its test covers. */
import type Koa from 'koa'
import { apiKeyCookie, apiKeyHeader, apiKeyQuery, constantTimeEqual, httpBasicAuth, httpBearer } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { expectAccepted, expectDenied, guardedApp, sendCounted } from '../support/sites/guardedApp.js'
import { serve } from '../support/servers/server.js'

const SECRET = 'supersecret'
let asked: string[] = []
const byKey = (_request: unknown, key: string) => {
  asked.push(key)
  return constantTimeEqual(key, SECRET) && { username: 'anna' }
}

const bearer = httpBearer({ authenticate: byKey })
const basic = httpBasicAuth({
  authenticate: (_request, username, password) => {
    asked.push(username)
    return constantTimeEqual(`${username}:${password}`, 'admin:secret') && { username }
  },
})
const routes = {
  '/bearer': bearer,
  '/basic': basic,
  '/query': apiKeyQuery({ paramName: 'api_key', authenticate: byKey }),
  '/header': apiKeyHeader({ paramName: 'X-API-Key', authenticate: byKey }),
  '/cookie': apiKeyCookie({ paramName: 'sid', authenticate: byKey }),
  '/list': [bearer, basic, apiKeyHeader({ paramName: 'X-API-Key', authenticate: byKey })],
  '/callable': (request: Koa.Request) => request.get('X-Pass') === SECRET && { username: 'anna' },
  '/public': null,
}
const guarded = Object.keys(routes).filter((path) => path !== '/public')
const under = guardedApp(routes)
const served = serve(() => under.app)
const request = (target: string, lines: ReadonlyArray<string> = [], body = '') => {
  asked = []
  return sendCounted(under, served.port, target, lines, body)
}

describe('input that could switch authentication off', () => {
  const control = [
    'x-middleware-subrequest: middleware:middleware:middleware:middleware:middleware',
    'x-middleware-subrequest: src/middleware:src/middleware',
    'x-invoke-path: /public',
    'x-invoke-status: 200',
    'x-middleware-next: 1',
    'X-Original-URL: /public',
    'X-Rewrite-URL: /public',
    'X-Forwarded-Prefix: /public',
    'X-Forwarded-For: 127.0.0.1',
    'X-Forwarded-Host: localhost',
    'X-Forwarded-Proto: https',
    'X-Forwarded-User: admin',
    'X-Remote-User: admin',
    'Remote-User: admin',
    'X-Authenticated: true',
    'X-Auth: {"username":"admin"}',
    'auth: {"username":"admin"}',
    'X-Internal: 1',
    'X-Skip-Auth: true',
    'X-Debug: 1',
    'X-Amzn-Oidc-Identity: admin',
    'X-Ssl-Client-Verify: SUCCESS',
    'Upgrade-Insecure-Requests: 1',
    'Purpose: prefetch',
    'Sec-Fetch-Site: same-origin',
    'Access-Control-Request-Method: GET',
  ]
  const inQuery =
    'auth=1&authenticated=true&user=admin&debug=1&_method=OPTIONS&__proto__[auth]=1&constructor.prototype.auth=1'
  const inBody = '{"auth":{"username":"admin"},"__proto__":{"auth":{"username":"admin"}},"username":"admin"}'

  it.each(guarded)('A-01 no header, query or body switches the guard of %s off', async (path) => {
    for (const line of control) expectDenied(await request(`GET ${path}`, [line]))
    expectDenied(await request(`GET ${path}`, [...new Set(control)].slice(2)))
    expectDenied(await request(`GET ${path}?${inQuery}`))
    expectDenied(await request(`POST ${path}`, ['Content-Type: application/json'], inBody))
    expect(asked).toEqual([])
  })

  it.each(['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override', '_method'])(
    'A-35 %s does not change the method of a request',
    async (field) => {
      for (const method of ['GET', 'HEAD', 'OPTIONS', 'TRACE']) {
        const lines = [`${field}: ${method}`, 'Content-Type: application/x-www-form-urlencoded']
        expectDenied(await request(`POST /bearer?_method=${method}`, lines, `_method=${method}`))
        const forged = await request('POST /cookie', [
          `${field}: ${method}`,
          `Cookie: sid=${SECRET}`,
          'Sec-Fetch-Site: cross-site',
        ])
        expect([forged.status, forged.ran]).toEqual([403, 0])
      }
    },
  )

  it.each(['POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND', 'SEARCH', 'QUERY'])(
    'A-35 %s is not safe: an ambient credential from another site is refused',
    async (method) => {
      const lines = [`Cookie: sid=${SECRET}`, 'Sec-Fetch-Site: cross-site']
      const answer = await request(`${method} /cookie`, lines)
      // Only newer parsers know the method QUERY
      if (answer.status === 400) return
      expect([answer.status, answer.ran]).toEqual([403, 0])
      expect(JSON.parse(answer.body)).toMatchObject({ status: 403, detail: 'CSRF check Failed' })
    },
  )

  it.each(['GET', 'HEAD', 'OPTIONS'])('A-35 %s is safe', async (method) => {
    expectAccepted(await request(`${method} /cookie`, [`Cookie: sid=${SECRET}`, 'Sec-Fetch-Site: cross-site']))
  })
})

describe('input that could change the principal', () => {
  it('A-17 body, query and header fields named user, userId and role never matter', async () => {
    const claims = ['user: root', 'X-User-Id: 1', 'role: admin', 'X-Role: admin', 'username: root']
    const query = 'user=root&userId=1&role=admin&username=root'
    const body = '{"user":"root","userId":1,"role":"admin","username":"root","auth":{"username":"root"}}'
    const target = `POST /bearer?${query}`
    expectDenied(await request(target, [...claims, 'Content-Type: application/json'], body))
    const answer = await request(
      target,
      [...claims, `Authorization: Bearer ${SECRET}`, 'Content-Type: application/json'],
      body,
    )
    expectAccepted(answer)
    expect(JSON.parse(answer.body)).toEqual({ auth: { username: 'anna' } })
  })
})

describe('input that could change the credential', () => {
  it.each(['/bearer', '/header', '/cookie', '/query', '/basic'])(
    'A-15 A-36 a wrong secret of any length on %s, of any user: one call of the hook, the same response, nothing throws',
    async (path) => {
      const lengths = [1, 5, 10, 12, 31, 32, 33, 64, 100, 1000]
      const answers = []
      for (const length of lengths) {
        const wrong = 's'.repeat(length)
        const user = length > 32 ? 'stranger' : 'admin'
        const lines = {
          '/bearer': [`Authorization: Bearer ${wrong}`],
          '/header': [`X-API-Key: ${wrong}`],
          '/cookie': [`Cookie: sid=${wrong}`],
          '/basic': [`Authorization: Basic ${Buffer.from(`${user}:${wrong}`).toString('base64')}`],
        }[path]
        const answer = await request(`GET ${path}${lines === undefined ? `?api_key=${wrong}` : ''}`, lines)
        expectDenied(answer)
        expect(asked).toHaveLength(1)
        answers.push(JSON.stringify([answer.status, answer.headers.filter(([name]) => name !== 'date'), answer.body]))
      }
      expect(new Set(answers).size).toBe(1)
    },
  )

  it('A-34 a credential over 8 KB is malformed; one of 8 KB reaches the hook', async () => {
    const token = (length: number) => 'a'.repeat(length)
    for (const [target, lines, reached] of [
      ['/header', [`X-API-Key: ${token(8192)}`], 1],
      ['/header', [`X-API-Key: ${token(8193)}`], 0],
      ['/bearer', [`Authorization: Bearer ${token(8193)}`], 0],
      ['/basic', [`Authorization: Basic ${token(8196)}`], 0],
      ['/cookie', [`Cookie: sid=${token(8193)}`], 0],
      [`/query?api_key=${token(8192)}`, [], 1],
      [`/query?api_key=${token(8193)}`, [], 0],
    ] as const) {
      expectDenied(await request(`GET ${target}`, lines))
      expect([target.slice(0, 9), asked.length]).toEqual([target.slice(0, 9), reached])
    }
  })
})
