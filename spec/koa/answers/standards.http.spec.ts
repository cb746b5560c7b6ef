/**
 * Standards of spec/requirements.md: what the RFCs ask of challenges and credentials. Titles begin
 * with the requirement.
 */
import { apiKeyCookie, apiKeyHeader, Challenge, httpBasicAuth, httpBearer, sessionAuth } from 'koa-with-auth'
import { createSession } from 'koa-session'
import { describe, expect, it } from 'vitest'
import { parseChallenge } from '../../support/models/challengeParser.js'
import { expectDenied, guardedApp, sendCounted } from '../../support/sites/guardedApp.js'
import { valuesOf } from '../../support/servers/rawSocket.js'
import { serve } from '../../support/servers/server.js'

const SECRET = 'supersecret'
let asked: unknown[] = []
const byKey = (_request: unknown, key: string) => {
  asked.push(key)
  return key === SECRET && { key }
}
const byPassword = (_request: unknown, username: string, password: string) =>
  username === 'admin' && password === 'secret' && { username }
const bearer = httpBearer({ authenticate: byKey })
const basic = httpBasicAuth({ authenticate: byPassword })
const header = apiKeyHeader({ paramName: 'X-API-Key', authenticate: byKey })
const awkward = 'a "quoted" \\ realm, x="y"'

const under = guardedApp(
  {
    '/bearer': bearer,
    '/basic': basic,
    '/header': header,
    '/cookie': apiKeyCookie({ paramName: 'X-API-KEY', authenticate: byKey }),
    '/list': [header, bearer, basic, sessionAuth()],
    '/twice': [bearer, httpBearer({ authenticate: () => null }), header],
    '/realms': [httpBearer({ realm: 'one', authenticate: byKey }), httpBearer({ realm: 'two', authenticate: byKey })],
    '/quoted': [httpBasicAuth({ realm: awkward, authenticate: byPassword }), sessionAuth({ realm: awkward })],
  },
  { above: (app) => ((app.keys = ['a signing key of at least 32 characters']), [createSession(app)]) },
)
const served = serve(() => under.app)
const request = (target: string, lines: ReadonlyArray<string> = [], body = '') => {
  asked = []
  return sendCounted(under, served.port, target, lines, body)
}
const challengesOf = async (target: string, lines: ReadonlyArray<string> = []) =>
  valuesOf(await request(target, lines), 'WWW-Authenticate')
const encoded = (pair: string) => Buffer.from(pair).toString('base64')

describe('challenges', () => {
  it('B-04 a parameter name occurs once, in whatever letter case', async () => {
    for (const path of ['/bearer', '/basic', '/header', '/list', '/quoted', '/realms']) {
      // The parser throws for a name that occurs twice
      expect((await challengesOf(`GET ${path}`)).map(parseChallenge)).not.toEqual([])
    }
    expect(() => Challenge.make('X', { scope: 'a', Scope: 'b' })).toThrow(TypeError)
  })

  it('B-05 the realm is a quoted-string with escaped quotes and backslashes', async () => {
    const challenges = await challengesOf('GET /quoted')
    expect(challenges[1]).toBe('Session realm="a \\"quoted\\" \\\\ realm, x=\\"y\\""')
    const realm = ['realm', awkward]
    expect(challenges.map((text) => parseChallenge(text).parameters[0])).toEqual([realm, realm])
  })

  it('B-06 equal challenges are sent once, and two realms are two challenges', async () => {
    const key = 'ApiKey realm="api", in="header", name="X-API-Key"'
    expect(await challengesOf('GET /twice')).toEqual(['Bearer realm="api"', key])
    expect(await challengesOf('GET /realms')).toEqual(['Bearer realm="one"', 'Bearer realm="two"'])
  })

  it.each([
    ['/bearer', `Authorization: Bearer ${SECRET}`],
    ['/basic', `Authorization: Basic ${encoded('admin:secret')}`],
    ['/header', `X-API-Key: ${SECRET}`],
    ['/cookie', `Cookie: X-API-KEY=${SECRET}`],
  ])('B-10 a trailer supplies no credentials on %s', async (path, line) => {
    const name = line.split(':')[0] ?? ''
    for (const content of ['', '3\r\nabc\r\n']) {
      const body = `${content}0\r\n${line}\r\n\r\n`
      expectDenied(await request(`POST ${path}`, ['Transfer-Encoding: chunked', `Trailer: ${name}`], body))
    }
    expect(asked).toEqual([])
  })
})

describe('Bearer (RFC 6750)', () => {
  it('B-17 a challenge contains nothing of the request', async () => {
    for (const token of ['wrong', 'wrong"x', 'wr ong', 'invalid_request']) {
      const [challenge = ''] = await challengesOf('GET /bearer', [`Authorization: Bearer ${token}`])
      expect(parseChallenge(challenge).parameters).toEqual([
        ['realm', 'api'],
        ['error', 'invalid_token'],
      ])
    }
  })
})
