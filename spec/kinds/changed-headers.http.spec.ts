/** Header credentials that upstream middleware has changed, and requests that Node's HTTP parser has not read. */
import Router from '@koa/router'
import Koa, { type Middleware } from 'koa'
import { apiKeyCookie, apiKeyHeader, httpBasicAuth, httpBearer, optional, withAuth } from 'koa-with-auth'
import inject from 'light-my-request'
import serverless from 'serverless-http'
import { describe, expect, test } from 'vitest'
import { challenge, expectDenied, operation } from '../support/models/behavior.js'

const users = new Map([
  ['admin', 'admin'],
  ['anna', 'anna'],
])
const named = (_request: unknown, name: string) => users.get(name)
const remote = apiKeyHeader({ paramName: 'X-Remote-User', authenticate: named })

describe('R07 a gateway in the same process that changes headers', () => {
  test('removes Authorization and Cookie: both are absent', async () => {
    const strip: Middleware = (ctx, next) => {
      delete ctx.req.headers.authorization
      delete ctx.req.headers.cookie
      return next()
    }
    const above = (app: Koa) => void app.use(strip)
    const byBearer = await operation(withAuth(httpBearer({ authenticate: named })), above)
    expectDenied(await byBearer.ask('/x', { headers: { Authorization: 'Bearer admin' } }), 401, [challenge.bearer])
    const byBasic = await operation(withAuth(httpBasicAuth({ authenticate: named })), above)
    expectDenied(await byBasic.ask('/x', { headers: { Authorization: 'Basic YWRtaW46eA==' } }), 401, [challenge.basic])
    const byCookie = await operation(withAuth(apiKeyCookie({ authenticate: named })), above)
    expectDenied(await byCookie.ask('/x', { headers: { Cookie: 'key=admin' } }), 401, [challenge.key('cookie')])
  })
})

const application = () => {
  const calls: unknown[] = []
  const router = new Router()
  const routes = {
    '/bearer': httpBearer({ authenticate: named }),
    '/optional': optional(httpBearer({ authenticate: named })),
    '/key': remote,
    '/cookie': apiKeyCookie({ authenticate: named }),
  }
  for (const [path, authenticator] of Object.entries(routes)) {
    router.get(path, withAuth(authenticator), (ctx) => {
      calls.push(ctx.request.auth)
      ctx.body = { auth: ctx.request.auth ?? null }
    })
  }
  const app = new Koa()
  app.use(router.routes())
  return { app, calls }
}

type Ask = (
  path: string,
  headers: Readonly<Record<string, string>>,
) => Promise<{
  readonly status: number | undefined
  readonly body: string
  readonly challenges: unknown
}>

const adapters: ReadonlyArray<readonly [name: string, make: (app: Koa) => Ask]> = [
  [
    'serverless-http, REST API',
    (app) => async (path, headers) => {
      const answer = await serverless(app)(
        { httpMethod: 'GET', path, headers, requestContext: { identity: { sourceIp: '192.0.2.1' } }, body: '' },
        {},
      )
      return read(answer)
    },
  ],
  [
    'serverless-http, HTTP API',
    (app) => async (path, headers) => {
      const { Cookie, ...others } = headers
      const event = {
        version: '2.0',
        rawPath: path,
        rawQueryString: '',
        headers: others,
        ...(Cookie !== undefined && { cookies: Cookie.split('; ') }),
        requestContext: { http: { method: 'GET', sourceIp: '192.0.2.1' } },
        body: '',
      }
      return read(await serverless(app)(event, {}))
    },
  ],
  [
    'light-my-request',
    (app) => {
      const callback = app.callback()
      return async (path, headers) => {
        const answer = await inject((req, res) => void callback(req, res), { url: path, headers })
        return {
          status: answer.statusCode,
          body: answer.body,
          challenges: answer.headers['www-authenticate'],
        }
      }
    },
  ],
]

const read = (answer: object) => {
  const { statusCode, body, headers } = answer as {
    readonly statusCode: number
    readonly body: string
    readonly headers: Readonly<Record<string, unknown>>
  }
  return { status: statusCode, body, challenges: headers['www-authenticate'] }
}

const paths = ['/bearer', '/optional', '/key', '/cookie']
const good = { Authorization: 'Bearer anna', 'X-Remote-User': 'anna', Cookie: 'a=b; key=anna' }
const wrong = { Authorization: 'Bearer wrong', 'X-Remote-User': 'wrong', Cookie: 'key=wrong' }
const twice = { Cookie: 'key=anna; key=admin' }

describe.each(adapters)('R07 %s', (_name, make) => {
  test.each<[what: string, headers: Record<string, string>, statuses: number[], passed: unknown[]]>([
    ['valid credentials pass', good, [200, 200, 200, 200], ['anna', 'anna', 'anna', 'anna']],
    ['a wrong credential is refused, even with `optional`', wrong, [401, 401, 401, 401], []],
    ['without a credential, `optional` admits an anonymous caller', {}, [401, 200, 401, 401], [undefined]],
    ['two cookies with the name are refused', twice, [401, 200, 401, 401], [undefined]],
  ])('%s', async (_what, headers, statuses, passed) => {
    const { app, calls } = application()
    const ask = make(app)
    for (const [at, path] of paths.entries()) {
      const { status, body, challenges } = await ask(path, headers)
      expect([path, status]).toStrictEqual([path, statuses[at]])
      if (status === 200) expect(JSON.parse(body)).toStrictEqual({ auth: calls.at(-1) ?? null })
      else expect(JSON.parse(body)).toMatchObject({ title: 'Unauthorized', status: 401, detail: 'Unauthorized' })
      if (headers === wrong && path === '/optional') expect(challenges).toBe(challenge.refusedBearer)
    }
    expect(calls).toStrictEqual(passed)
  })
})

test('R07 serverless-http: two credentials that the gateway joined are refused', async () => {
  const { app, calls } = application()
  const event = {
    httpMethod: 'GET',
    path: '/bearer',
    headers: {},
    multiValueHeaders: { authorization: ['Bearer anna', 'Bearer admin'] },
    requestContext: { identity: { sourceIp: '192.0.2.1' } },
    body: '',
  }
  expect(await serverless(app)(event, {})).toMatchObject({ statusCode: 401 })
  expect(calls).toStrictEqual([])
})
