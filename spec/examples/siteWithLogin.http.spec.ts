/** The steps of the guide "A site with a login", as they are written there: each row of its tables is tried. */
import Router from '@koa/router'
import type Koa from 'koa'
import type { Middleware } from 'koa'
import { withAuth } from 'koa-with-auth'
import { hash } from 'koa-with-auth/passwords'
import type { Totp } from 'koa-with-auth/sign-in'
import { expect, it, onTestFinished, vi } from 'vitest'
import { codeOf } from '../support/servers/authenticatorApp.js'
import { userAgent } from '../support/servers/userAgent.js'
import { numberOfTables, servedProgram, tryTable } from '../support/papers/guidePrograms.js'

const guide = 'site-with-login'
const html = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
const json = { 'Content-Type': 'application/json' }
const right = { username: 'anna', password: 'anna-secret' }

/** A browser, and a program that keeps cookies, at a site. Each returns what there is to see. */
const visitor = (url: string) => {
  const { send, cookies } = userAgent()
  let body = ''
  const request = async (path: string, init: RequestInit) => {
    const session = () => cookies(new URL(url).host).get('session')
    const before = session()
    const answer = await send(url + path, init)
    body = answer.body
    const form = /role="alert"/.test(body) ? 'the form with a message' : 'the form'
    const retry = answer.headers.has('retry-after') ? ['Retry-After'] : []
    const location = answer.location?.replace(url, '') ?? []
    const came = session() !== undefined && session() !== before ? ['a session'] : []
    return [`${answer.status}`, ...retry, ...[location].flat(), ...(/<form/.test(body) ? [form] : []), ...came]
  }
  return {
    open: (path: string) => request(path, { headers: html }),
    post: (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
      request(path, { method: 'POST', headers: { ...html, ...headers }, body: new URLSearchParams(fields) }),
    send: (method: string, path: string, sent?: string, headers: Record<string, string> = json) =>
      request(path, { method, headers, ...(sent !== undefined && { body: sent }) }),
    /** The body of the last response. */
    body: () => body,
    /** The value of a hidden field of the last page. */
    hidden: (name: string) => new RegExp(`name="${name}"[^>]* value="([^"]*)"`).exec(body)?.[1] ?? '',
  }
}
const reasonIn = (body: string) => `{ ${/"reason":"\w+"/.exec(body)?.[0].replace(':', ': ')} }`

it('1. sign in', async () => {
  const { url } = await servedProgram<{ app: Koa }>(guide, 0)
  const { open, post, send, body, hidden } = visitor(url)
  const path = '/sign-in?returnTo=/account'
  const typed = (fields: Record<string, string>) => post('/sign-in', { ...fields, returnTo: '/account' })
  await tryTable(guide, 1, {
    'a browser opens `/sign-in?returnTo=/account`': () => open(path),
    'the form with the right password': () => typed({ ...right, returnTo: hidden('returnTo') }),
    'the form with a wrong password': () => typed({ ...right, password: 'wrong' }),
    'the form with an unknown name': () => typed({ ...right, username: 'zoe' }),
    'the eleventh wrong attempt in 15 minutes': async () => {
      for (let tries = 2; tries < 11; tries++) expect((await typed({ ...right, username: 'yves' }))[0]).toBe('403')
      await typed({ ...right, username: 'yves' })
      return typed({ ...right, username: 'yves' })
    },
    'the form from another site': () => post('/sign-in', right, { 'Sec-Fetch-Site': 'cross-site' }),
    'JSON `{ "username": "anna", "password": "anna-secret" }`': () =>
      visitor(url).send('POST', '/sign-in', JSON.stringify(right)),
    'JSON with a wrong password': async () => {
      const seen = await send('POST', '/sign-in', JSON.stringify({ ...right, password: 'wrong' }))
      return [...seen, reasonIn(body())]
    },
    'JSON that cannot be read': () => send('POST', '/sign-in', '{'),
    'a browser sends a body that cannot be read': () => send('POST', '/sign-in', '{', { ...html, ...json }),
    '`GET /account` without a session': () => visitor(url).send('GET', '/account'),
    '`POST /sign-out` with the session': async () => {
      expect([await open('/account'), body()]).toEqual([['200'], 'Signed in as anna'])
      const seen = await send('POST', '/sign-out')
      expect(await send('GET', '/account')).toEqual(['401'])
      return [...seen, 'the session has ended']
    },
  })
})

it('2. stay signed in, a second factor', async () => {
  interface Step {
    readonly app: Koa
    readonly signIn: Middleware
    readonly users: Map<string, { username: string; hash: string; secret?: string; recovery: Set<string> }>
    readonly authenticatorApp: Totp
  }
  const { url, users, authenticatorApp } = await servedProgram<Step>(guide, 1, ({ app, signIn }) =>
    app.use(new Router().post('/sign-in', withAuth(null), signIn).routes()),
  )
  const known = await hash(right.password)
  for (const username of ['anna', 'bert']) users.set(username, { username, hash: known, recovery: new Set() })
  const { secret, sealed } = authenticatorApp.enrol('bert', 'bert')
  users.get('bert')!.secret = sealed
  const bert = visitor(url)
  const ofBert = { ...right, username: 'bert' }
  await tryTable(guide, 2, {
    'the form of a user without an app': () => visitor(url).post('/sign-in', right),
    'the same with the checkbox `remember`': async () => {
      const { send } = userAgent()
      const body = new URLSearchParams({ ...right, remember: 'on' })
      const { status, location, setCookie } = await send(`${url}/sign-in`, { method: 'POST', headers: html, body })
      const line = setCookie.find((one) => one.startsWith('session=')) ?? ''
      const days = (Date.parse(/expires=([^;]+)/.exec(line)?.[1] ?? '') - Date.now()) / 86_400_000
      return [`${status}`, new URL(location ?? '', url).pathname, `a session of ${Math.round(days)} days`]
    },
    'the form of a user with an app': () => bert.post('/sign-in', ofBert),
    'the code of the app, in that form': () =>
      bert.post('/sign-in', { handle: bert.hidden('handle'), code: codeOf(secret, 0) }),
    'JSON of a user with an app': async () => {
      const { send, body } = visitor(url)
      const seen = await send('POST', '/sign-in', JSON.stringify(ofBert))
      return [...seen, body().replace(/^\{"next":"code","handle":"[^"]+"\}$/, '{ "next": "code", "handle": ... }')]
    },
  })
})

it('3. sign up, and a forgotten password', async () => {
  const { url } = await servedProgram<{ app: Koa }>(guide, 2)
  const mails = vi.spyOn(console, 'log').mockImplementation(() => {})
  onTestFinished(() => mails.mockRestore())
  const { open, post } = visitor(url)
  const link = () => new URL(String(mails.mock.calls[0]?.[1]))
  const answer = (password: string) => post('/password', { ...Object.fromEntries(link().searchParams), password })
  await tryTable(guide, 3, {
    'a browser opens `/sign-up`': () => open('/sign-up'),
    'the form with an address': async () => {
      const seen = await post('/sign-up', { address: 'anna@shop.example' })
      await vi.waitFor(() => expect(mails).toHaveBeenCalledOnce())
      return [...seen, 'one mail']
    },
    'a browser opens the link of the mail': () => open(link().pathname + link().search),
    'the form with the password `short`': () => answer('short'),
    'the form with a good password': () => answer('correct horse battery staple'),
    'the same link again, with another password': () => answer('another correct horse battery'),
  })
})

it('4. a browser without a session goes to the form', async () => {
  const { url } = await servedProgram<{ app: Koa }>(guide, 3)
  const { open, send } = visitor(url)
  await tryTable(guide, 4, {
    'a browser opens `/account`': () => open('/account'),
    'a program asks for `/account`': () => send('GET', '/account'),
  })
})

it('5. a message that is shown once', async () => {
  const { url } = await servedProgram<{ app: Koa }>(guide, 4)
  const { open, send, body } = visitor(url)
  await tryTable(guide, 5, {
    '`POST /sign-out`': () => send('POST', '/sign-out'),
    'then `GET /`': async () => [...(await open('/')), body()],
    '`GET /` again': async () => [...(await open('/')), ...(body() === '' ? ['no message'] : [])],
  })
  expect(numberOfTables(guide)).toBe(5)
})
