/** A visitor whose user was deleted or locked out, and whose browser keeps the cookie: public pages, and guarded ones. */
import Router from '@koa/router'
import {
  allOf,
  anyOf,
  apiKeyHeader,
  AuthError,
  authSettings,
  optional,
  sessionAuth,
  sessionAuthIsStaff,
  UnavailableError,
  withAuth,
  type Authenticator,
} from 'koa-with-auth'
import { firstPresent } from 'koa-with-auth/fp'
import { expect, it } from 'vitest'
import { challenge, expectDenied } from '../support/models/behavior.js'
import { recordsOf } from '../support/runs/eventRecords.js'
import { sessionsApp } from '../support/sites/sessionsApp.js'

const key = apiKeyHeader({ paramName: 'X-Key', authenticate: (_request, sent) => sent === 'good' && { key: sent } })

const pages: Readonly<Record<string, Authenticator<unknown>>> = {
  '/public': optional(sessionAuth()),
  '/perhaps-staff': optional(sessionAuthIsStaff()),
  '/list': anyOf([sessionAuth(), optional(key)]),
  '/whole-list': optional(anyOf([key, sessionAuth()])),
  '/first': optional(firstPresent([sessionAuth(), key])),
  '/both': optional(allOf([sessionAuth(), key])),
}

/** A site with public pages, and a visitor who is signed in. */
const site = async (more: Readonly<Record<string, Authenticator<unknown>>> = {}, explain = false) => {
  const app = await sessionsApp(undefined, {
    below: (koa) => {
      koa.use(authSettings({ explain }))
      const router = new Router()
      for (const [path, a] of Object.entries({ ...pages, ...more })) {
        router.all(path, withAuth(a), (ctx) => {
          ctx.body = { who: ctx.request.auth ?? null }
        })
      }
      koa.use(router.routes())
    },
  })
  const one = app.visitor()
  await one.post('/login')
  return { ...app, one }
}

const gone = [
  ['deleted', (users: Map<string, object>) => users.delete('anna')],
  ['locked out', (users: Map<string, object>) => users.set('anna', { username: 'anna', isActive: false })],
] as const

it.each(gone)('a visitor whose user was %s is anonymous on public pages, refused on guarded ones', async (_, end) => {
  const { one, users } = await site()
  const anna = users.get('anna')!
  for (const path of Object.keys(pages))
    expect((await one.ask(path)).status).toBe(path === '/perhaps-staff' || path === '/both' ? 401 : 200)
  end(users)
  for (const path of ['/public', '/perhaps-staff', '/list', '/whole-list', '/first']) {
    expect(await one.ask(path)).toMatchObject({ status: 200, body: { who: null } })
  }
  expectDenied(await one.ask('/me'), 401, [challenge.session])
  expectDenied(await one.ask('/staff'), 401, [challenge.session])
  // no sign-out was made of it
  users.set('anna', anna)
  expect(await one.ask('/public')).toMatchObject({ status: 200, body: { who: anna } })
  expect(await one.ask('/me')).toMatchObject({ status: 200 })
})

it.each(gone)('beside the session of a user who was %s, other credentials decide as they do alone', async (_, end) => {
  const { one, users } = await site()
  end(users)
  const good = { headers: { 'X-Key': 'good' } }
  const bad = { headers: { 'X-Key': 'bad' } }
  for (const path of ['/list', '/whole-list', '/first']) {
    expect(await one.ask(path, good)).toMatchObject({ status: 200, body: { who: { key: 'good' } } })
    expect((await one.ask(path, bad)).status).toBe(401)
  }
  // one of two credentials is not enough
  expect((await one.ask('/both', good)).status).toBe(401)
})

it('who may not, whose store is down, and who is refused by loadUser with a reason, is not anonymous', async () => {
  let load: () => unknown = () => undefined
  const { one, users, store } = await site({
    '/loaded': optional(sessionAuth({ loadUser: () => load() as { username: string } | undefined })),
  })
  expect((await one.ask('/perhaps-staff')).status).toBe(401)
  for (const nothing of [() => undefined, () => Promise.resolve(null), () => false]) {
    load = nothing
    expect(await one.ask('/loaded')).toMatchObject({ status: 200, body: { who: null } })
  }
  const failing = [
    [() => AuthError.invalid({ code: 'suspended' }), 401],
    [() => AuthError.expired, 401],
    [() => AuthError.unavailable(), 503],
    [() => Promise.reject(new UnavailableError('the database is down')), 503],
    [() => Promise.reject(new Error('a bug')), 500],
  ] as const
  for (const [fails, status] of failing) {
    load = fails
    expect((await one.ask('/loaded')).status).toBe(status)
  }
  users.delete('anna')
  store.instead.get = () => Promise.reject(new Error('the store is down'))
  expect((await one.ask('/public')).status).toBe(503)
})

it('the record and explain say that it is the user', async () => {
  const own = {
    '/gone/me': sessionAuth(),
    '/gone/public': optional(sessionAuth()),
    '/gone/staff': sessionAuthIsStaff(),
  }
  const { one, users } = await site(own, true)
  const records = recordsOf('decision', ({ route }) => route in own)
  users.delete('anna')
  expect((await one.ask('/gone/me')).body).toMatchObject({ tried: [{ failure: 'invalid', why: 'user' }] })
  expect((await one.ask('/gone/public')).body).toEqual({ who: null })
  users.set('anna', { username: 'anna' })
  expect((await one.ask('/gone/staff')).body).toMatchObject({ tried: [{ failure: 'invalid', why: 'right' }] })
  await expect.poll(() => records.length).toBe(3)
  expect(records.map(({ outcome, failure, why }) => [outcome, failure, why])).toEqual([
    ['refused', 'invalid', 'user'],
    ['anonymous', undefined, undefined],
    ['refused', 'invalid', 'right'],
  ])
})
