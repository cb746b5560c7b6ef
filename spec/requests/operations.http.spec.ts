/** Section 4 of the requirements: the operations of the example, in one application. */
import Router from '@koa/router'
import type Koa from 'koa'
import {
  apiKeyCookie,
  apiKeyHeader,
  apiKeyQuery,
  httpBasicAuth,
  httpBearer,
  sessionAuth,
  sessionAuthIsStaff,
  sessionAuthSuperUser,
  withAuth,
} from 'koa-with-auth'
import { expect, test } from 'vitest'
import {
  basic,
  bearer,
  challenge,
  expectDenied,
  running,
  type Running,
  type Sending,
} from '../support/models/behavior.js'
import { signInAs, withSessions } from '../support/models/behaviorSession.js'

const authenticate = (_request: unknown, key: string) => key === 'supersecret' && key
const queryKey = apiKeyQuery({
  paramName: 'api_key',
  authenticate: (_request, key) => key === 'supersecret' && { name: 'Acme' },
})
const headerKey = apiKeyHeader({ paramName: 'X-API-Key', authenticate })

const example = (calls: string[]) => (app: Koa) => {
  withSessions()(app)
  const router = new Router()
  const ran = (ctx: { readonly path: string }) => calls.push(ctx.path)
  router.get('/pets', withAuth(sessionAuth()), (ctx) => {
    ran(ctx)
    ctx.body = `Authenticated user ${ctx.request.auth.username}`
  })
  router.get('/bearer', withAuth(httpBearer({ authenticate })), (ctx) => {
    ran(ctx)
    ctx.body = { token: ctx.request.auth }
  })
  const users = httpBasicAuth({
    authenticate: (_request, username, password) => username === 'admin' && password === 'secret' && username,
  })
  router.get('/basic', withAuth(users), (ctx) => {
    ran(ctx)
    ctx.body = { httpuser: ctx.request.auth }
  })
  router.get('/apikey', withAuth(queryKey), (ctx) => {
    ran(ctx)
    ctx.body = `Hello ${ctx.request.auth.name}`
  })
  router.get('/headerkey', withAuth(headerKey), (ctx) => {
    ran(ctx)
    ctx.body = `Token = ${ctx.request.auth}`
  })
  router.get('/cookiekey', withAuth(apiKeyCookie({ authenticate })), (ctx) => {
    ran(ctx)
    ctx.body = `Token = ${ctx.request.auth}`
  })
  router.get('/multiple', withAuth([apiKeyQuery({ authenticate }), apiKeyHeader({ authenticate })]), (ctx) => {
    ran(ctx)
    ctx.body = `Token = ${ctx.request.auth}`
  })
  const local = (request: Koa.Request) =>
    request.get('X-Elsewhere') === '' && request.socket.remoteAddress === '127.0.0.1' && '127.0.0.1'
  router.get('/ipwhitelist', withAuth(local), (ctx) => {
    ran(ctx)
    ctx.body = `Authenticated client, IP = ${ctx.request.auth}`
  })
  router.get('/protected', withAuth(sessionAuth()), (ctx) => {
    ran(ctx)
    ctx.body = { user: ctx.request.auth.username }
  })
  router.get('/admin-only', withAuth(sessionAuthSuperUser()), (ctx) => {
    ran(ctx)
    ctx.body = { message: 'Welcome, superuser' }
  })
  router.get('/staff-area', withAuth(sessionAuthIsStaff()), (ctx) => {
    ran(ctx)
    ctx.body = { message: 'Welcome, staff' }
  })
  app.use(router.routes())
}

const as =
  (user: object) =>
  async (api: Running): Promise<Sending> => ({ headers: { Cookie: await signInAs(api, user) } })
const anna = { username: 'anna' }
const staff = { username: 'sam', isStaff: true }
const superuser = { username: 'root', isSuperuser: true }
const key = challenge.key

const rows: ReadonlyArray<{
  path: string
  search?: string
  good: Sending | ((api: Running) => Promise<Sending>)
  body: unknown
  bad?: Sending | ((api: Running) => Promise<Sending>)
  badSearch?: string
  refused: string[]
  absent: string[]
}> = [
  {
    path: '/pets',
    good: as(anna),
    body: 'Authenticated user anna',
    refused: [challenge.session],
    absent: [challenge.session],
  },
  {
    path: '/bearer',
    good: bearer('supersecret'),
    body: { token: 'supersecret' },
    bad: bearer('wrong'),
    refused: [challenge.refusedBearer],
    absent: [challenge.bearer],
  },
  {
    path: '/basic',
    good: basic('admin:secret'),
    body: { httpuser: 'admin' },
    bad: basic('admin:wrong'),
    refused: [challenge.basic],
    absent: [challenge.basic],
  },
  {
    path: '/apikey',
    search: '?api_key=supersecret',
    good: {},
    body: 'Hello Acme',
    badSearch: '?api_key=wrong',
    refused: [key('query', 'api_key')],
    absent: [key('query', 'api_key')],
  },
  {
    path: '/headerkey',
    good: { headers: { 'X-API-Key': 'supersecret' } },
    body: 'Token = supersecret',
    bad: { headers: { 'X-API-Key': 'wrong' } },
    refused: [key('header', 'X-API-Key')],
    absent: [key('header', 'X-API-Key')],
  },
  {
    path: '/cookiekey',
    good: { headers: { Cookie: 'key=supersecret' } },
    body: 'Token = supersecret',
    bad: { headers: { Cookie: 'key=wrong' } },
    refused: [key('cookie')],
    absent: [key('cookie')],
  },
  {
    path: '/multiple',
    search: '?key=supersecret',
    good: {},
    body: 'Token = supersecret',
    bad: { headers: { key: 'wrong' } },
    badSearch: '?key=wrong',
    refused: [key('query'), key('header')],
    absent: [key('query'), key('header')],
  },
  {
    path: '/protected',
    good: as(anna),
    body: { user: 'anna' },
    refused: [challenge.session],
    absent: [challenge.session],
  },
  {
    path: '/admin-only',
    good: as(superuser),
    body: { message: 'Welcome, superuser' },
    bad: as(staff),
    refused: [challenge.session],
    absent: [challenge.session],
  },
  {
    path: '/staff-area',
    good: as(staff),
    body: { message: 'Welcome, staff' },
    bad: as(anna),
    refused: [challenge.session],
    absent: [challenge.session],
  },
]

const sent = (api: Running, sending: Sending | ((api: Running) => Promise<Sending>)) =>
  typeof sending === 'function' ? sending(api) : sending

test.each(rows)(
  '4 GET $path answers with the body of the table, and is refused without its credentials',
  async (row) => {
    const calls: string[] = []
    const api = await running(example(calls))
    const good = await api.ask(row.path + (row.search ?? ''), await sent(api, row.good))
    expect(good).toMatchObject({ status: 200, challenges: [], body: row.body })
    expect(calls).toEqual([row.path])

    if (row.bad !== undefined || row.badSearch !== undefined) {
      const bad = await api.ask(row.path + (row.badSearch ?? ''), await sent(api, row.bad ?? {}))
      expectDenied(bad, 401, row.refused)
    }
    expectDenied(await api.ask(row.path), 401, row.absent)
    expect(calls).toEqual([row.path])
  },
)

test('4 GET /multiple accepts the header key, too, if the query key is missing or refused', async () => {
  const calls: string[] = []
  const { ask } = await running(example(calls))
  for (const path of ['/multiple', '/multiple?key=wrong']) {
    const answer = await ask(path, { headers: { key: 'supersecret' } })
    expect(answer).toMatchObject({ status: 200, challenges: [], body: 'Token = supersecret' })
  }
  expect(calls).toEqual(['/multiple', '/multiple'])
})

test("4 GET /ipwhitelist answers with the client's address, and refuses other clients", async () => {
  const calls: string[] = []
  const { ask } = await running(example(calls))
  const body = 'Authenticated client, IP = 127.0.0.1'
  expect(await ask('/ipwhitelist')).toMatchObject({ status: 200, challenges: [], body })
  expectDenied(await ask('/ipwhitelist', { headers: { 'X-Elsewhere': 'yes' } }), 401, [challenge.custom])
  expect(calls).toEqual(['/ipwhitelist'])
})
