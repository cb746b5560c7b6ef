/**
 * A policy file says `csrf=checked`. `seal` sees the router alone, so settings above it could switch the check off. The router then
 * obeys the file, with a warning.
 */
import Router, { type RouterInstance } from '@koa/router'
import Koa from 'koa'
import { apiKeyCookie, authSettings, type AuthSettings } from 'koa-with-auth'
import { audit, seal } from 'koa-with-auth/audit'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { textsFor } from '../support/models/audits.js'
import { policyFile } from '../support/papers/policyFile.js'
import { callsOf, count, guardOf } from '../support/models/levels.js'
import { serve } from '../support/servers/server.js'

const { lock, keep: write } = policyFile()

const cookie = apiKeyCookie({ paramName: 'sid', authenticate: (_request, sent) => sent === 'good' && { name: 'anna' } })
const partner = 'https://partner.example'
const make = () =>
  new Router().post('/order', guardOf(cookie) as never, (ctx) => {
    count('order')
    ctx.body = 'ordered'
  })
const keep = (router: RouterInstance, settings?: AuthSettings) => {
  const app = new Koa()
  if (settings !== undefined) app.use(authSettings(settings) as never)
  write(audit(app.use(router.routes() as never)))
}

let current = new Koa()
const served = serve(() =>
  new Koa().use((ctx) => {
    ctx.respond = false
    return current.callback()(ctx.req, ctx.res)
  }),
)
const order = async (app: Koa, origin: string) => {
  current = app
  callsOf('order')
  const { status } = await fetch(`http://127.0.0.1:${served.port}/order`, {
    method: 'POST',
    headers: { cookie: 'sid=good', origin, 'sec-fetch-site': 'cross-site' },
  })
  return [status, callsOf('order')]
}
const under = (settings: AuthSettings, router: RouterInstance) =>
  new Koa().use(authSettings(settings) as never).use(router.routes() as never)
const inside = (settings: AuthSettings, router: RouterInstance) => {
  const outer = new Router().use(authSettings(settings) as never).use(router.routes())
  return new Koa().use(outer.routes() as never)
}

const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
beforeEach(() => warned.mockClear())

describe.each([
  ['the application', under],
  ['an outer router', inside],
])('S10 settings of %s that weaken what the file says', (_name, above) => {
  it.each<[name: string, settings: AuthSettings]>([
    ['the check is off', { csrf: false }],
    ['another origin is trusted', { trustedOrigins: [partner] }],
  ])('are not obeyed: %s', async (_what, settings) => {
    keep(make())
    const app = above(settings, seal(make(), { lock }))
    expect(await order(app, partner)).toEqual([403, 0])
    expect(await order(app, partner)).toEqual([403, 0])
    expect(warned).toHaveBeenCalledTimes(1)
    expect(warned.mock.calls[0]?.[0]).toMatch(/POST \/order: .*auth\.lock says that the cross-site check is on/)
    expect(await order(app, `http://127.0.0.1:${served.port}`)).toEqual([403, 0])
  })

  it.each<[name: string, settings: AuthSettings]>([
    ['the check is off', { csrf: false }],
    ['the origin is trusted', { trustedOrigins: [partner] }],
  ])('are obeyed if the file is that of the application: %s', async (_what, settings) => {
    keep(make(), settings)
    expect(await order(above(settings, seal(make(), { lock })), partner)).toEqual([200, 1])
    expect(warned).not.toHaveBeenCalled()
  })

  it('are obeyed if the file says so of one of two operations of that name', async () => {
    const app = new Koa().use(make().routes() as never).use(authSettings({ csrf: false }) as never)
    write(audit(app.use(make().routes() as never)))
    expect(await order(above({ csrf: false }, seal(make(), { lock })), partner)).toEqual([200, 1])
  })

  it('are not obeyed if they switch the check off: the origins of the file are trusted then', async () => {
    keep(make(), { trustedOrigins: [partner] })
    const app = above({ csrf: false }, seal(make(), { lock }))
    expect(await order(app, partner)).toEqual([200, 1])
    expect(await order(app, 'https://other.example')).toEqual([403, 0])
  })

  it('are obeyed if they are stricter than the file', async () => {
    keep(make(), { trustedOrigins: [partner] })
    expect(await order(above({}, seal(make(), { lock })), partner)).toEqual([403, 0])
    expect(warned).not.toHaveBeenCalled()
  })
})

it('the audit of a sealed router says what is written, so the file can be written again', () => {
  keep(make())
  const before = textsFor(make())
  const sealed = seal(make(), { lock })
  expect(textsFor(sealed)).toEqual(before)
  const { match } = sealed
  expect(seal(sealed, { lock })).toBe(sealed)
  expect(sealed.match).toBe(match)
  const app = under({ csrf: false }, sealed)
  expect(textsFor(app)[1]).toContain('csrf=off')
})
