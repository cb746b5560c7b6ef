/** An operation that decides for a proxy (nginx `auth_request`, Traefik `ForwardAuth`): the cross-site check is that of the named method. */
import Router from '@koa/router'
import Koa from 'koa'
import { apiKeyCookie, authSettings, withAuth } from 'koa-with-auth'
import { audit } from 'koa-with-auth/audit'
import { expect, it } from 'vitest'
import { ask, listen } from '../support/servers/server.js'

const cookie = apiKeyCookie({ paramName: 'key', authenticate: (_request, key) => key === 'k1' && { user: 'anna' } })

const site = async () => {
  let calls = 0
  const router = new Router()
  const answer = (ctx: { status: number }) => {
    calls += 1
    ctx.status = 204
  }
  router.get('/verify', authSettings({ forwarded: true }), withAuth(cookie), answer)
  router.get('/plain', withAuth(cookie), answer)
  const app = new Koa({ proxy: true }).use(router.routes())
  const { url } = await listen(app)
  const verify = async (headers: Record<string, string>, path = '/verify') => {
    const before = calls
    const { status } = await ask(url + path, { headers: { cookie: 'key=k1', ...headers } })
    return [status, calls - before]
  }
  return { verify, router }
}

const evil = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }
const own = { 'x-forwarded-host': 'shop.example', origin: 'https://shop.example' }

it.each<[string, Record<string, string>, number]>([
  ['a write of another site', { ...evil, 'x-forwarded-method': 'POST' }, 403],
  ['a write of another site, as nginx says it', { ...evil, 'x-original-method': 'DELETE' }, 403],
  ['a read of another site', { ...evil, 'x-forwarded-method': 'GET' }, 204],
  ['a write of the own site', { ...own, 'x-forwarded-method': 'POST' }, 204],
  ['no method is named: it counts as a write', evil, 403],
  ['a safe method in the other field', { ...evil, 'x-forwarded-method': 'POST', 'x-original-method': 'GET' }, 403],
  ['two methods in one field', { ...evil, 'x-forwarded-method': 'GET, POST' }, 403],
  ['a method in lower case', { ...evil, 'x-forwarded-method': 'get' }, 403],
  ['no browser', { 'x-forwarded-method': 'POST' }, 204],
  ['a wrong cookie', { ...own, cookie: 'key=x', 'x-forwarded-method': 'POST' }, 401],
])('%s: %#', async (_case, headers, status) => {
  const { verify } = await site()
  expect(await verify(headers)).toEqual([status, status === 204 ? 1 : 0])
})

it('other operations are as before, and the audit says that the check runs for this GET', async () => {
  const { verify, router } = await site()
  expect(await verify({ ...evil, 'x-forwarded-method': 'POST' }, '/plain')).toEqual([204, 1])
  const checks = audit(router).operations.map(({ operation, csrf }) => `${operation} ${csrf}`)
  expect(checks).toEqual(['GET /verify checked', 'GET /plain not needed'])
})
