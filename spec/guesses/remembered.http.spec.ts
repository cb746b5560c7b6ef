/** `remembered` over HTTP, around Basic with real hashes: one verification for each credential within the window. */
import Router from '@koa/router'
import Koa from 'koa'
import { authorize, httpBasicAuth, remembered, withAuth } from 'koa-with-auth'
import { hash, verify } from 'koa-with-auth/passwords'
import { beforeAll, beforeEach, expect, it } from 'vitest'
import { serve } from '../support/servers/server.js'

interface User {
  readonly username: string
  readonly admin: boolean
}

let hashes = new Map<string, string>()
let fixed: ReadonlyMap<string, string>
const ran = { verified: 0, operation: 0 }

const basic = httpBasicAuth({
  authenticate: async (_request, username, password): Promise<User | false> => {
    ran.verified++
    return (await verify(hashes.get(username), password)) && { username, admin: username === 'root' }
  },
})
const recent = remembered<User>({ maxAge: 60_000 })
const known = recent(basic)

const served = serve(() => {
  const router = new Router()
  router.all('/me', withAuth(known), (ctx) => {
    ran.operation++
    ctx.body = ctx.request.auth.username
  })
  router.get('/admin', withAuth(authorize(({ admin }: User) => admin)(known)), (ctx) => {
    ran.operation++
    ctx.body = ctx.request.auth.username
  })
  return new Koa().use(router.routes())
})

const ask = async (path: string, user: string, password: string, init: RequestInit = {}) => {
  const Authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
  const response = await fetch(served.url + path, { ...init, headers: { Authorization, ...init.headers } })
  const text = await response.text()
  return { status: response.status, text, challenge: response.headers.get('www-authenticate') }
}

beforeAll(async () => {
  fixed = new Map([
    ['anna', await hash('annas password')],
    ['root', await hash('roots password')],
  ])
})
beforeEach(() => {
  hashes = new Map(fixed)
  recent.forget(() => true)
  ran.verified = 0
  ran.operation = 0
})

it('fifty parallel requests and fifty later ones: one verification, and each gets its response', async () => {
  const both = [
    ...(await Promise.all(Array.from({ length: 50 }, () => ask('/me', 'anna', 'annas password')))),
    ...(await Promise.all(Array.from({ length: 50 }, () => ask('/me', 'anna', 'annas password')))),
  ]
  for (const answer of both) expect(answer).toMatchObject({ status: 200, text: 'anna' })
  expect(ran).toStrictEqual({ verified: 1, operation: 100 })
})

it('a remembered verification admits no other user and no other password', async () => {
  expect((await ask('/me', 'anna', 'annas password')).status).toBe(200)
  for (const [user, password] of [
    ['anna', 'annas passwordx'],
    ['anna', 'annas passwor'],
    ['ann', 'aannas password'],
    ['root', 'annas password'],
    ['anna', ''],
  ] as const) {
    const answer = await ask('/me', user, password)
    expect(answer).toMatchObject({ status: 401, challenge: 'Basic realm="api", charset="UTF-8"' })
  }
  expect(ran).toStrictEqual({ verified: 6, operation: 1 })
})

it('M-06 a wrong password is verified each time, and is never remembered', async () => {
  for (let at = 0; at < 3; at++) expect((await ask('/me', 'anna', 'wrong')).status).toBe(401)
  expect(ran).toStrictEqual({ verified: 3, operation: 0 })
})

it('an old password passes until its verification is forgotten, and not one request longer', async () => {
  await ask('/me', 'anna', 'annas password')
  hashes.set('anna', await hash('another password'))
  // The window is still open
  expect((await ask('/me', 'anna', 'annas password')).status).toBe(200)
  expect(recent.forget(({ username }) => username === 'anna')).toBe(1)
  expect((await ask('/me', 'anna', 'annas password')).status).toBe(401)
  expect((await ask('/me', 'anna', 'another password')).status).toBe(200)
})

it('a user who is deleted during the verification is not remembered', async () => {
  const underWay = ask('/me', 'anna', 'annas password')
  await expect.poll(() => ran.verified).toBe(1)
  hashes.delete('anna')
  recent.forget(({ username }) => username === 'anna')
  await underWay
  expect((await ask('/me', 'anna', 'annas password')).status).toBe(401)
})

it('authorize decides at each request: 403 for a user whose password is remembered', async () => {
  for (const [user, password, status] of [
    ['anna', 'annas password', 403],
    ['root', 'roots password', 200],
    ['anna', 'annas password', 403],
  ] as const) {
    expect((await ask('/admin', user, password)).status).toBe(status)
  }
  expect(ran).toStrictEqual({ verified: 2, operation: 1 })
})

it('M-04 CSRF is checked at each request: a write from another site is a 403, before and after the verification is remembered', async () => {
  const from = (site: string) => ({ method: 'POST', headers: { 'Sec-Fetch-Site': site } })
  const forged = await ask('/me', 'anna', 'annas password', from('cross-site'))
  expect(forged.status).toBe(403)
  expect(JSON.parse(forged.text)).toMatchObject({ detail: 'CSRF check Failed' })
  expect((await ask('/me', 'anna', 'annas password', from('same-origin'))).status).toBe(200)
  expect((await ask('/me', 'anna', 'annas password', from('cross-site'))).status).toBe(403)
  expect(ran.operation).toBe(1)
})
