/** `operation({ ... })` after a path works beside `withAuth` on every router, and does nothing to a request. */
import Router, { type RouterInstance } from '@koa/router'
import Koa from 'koa'
import { apiApp, httpBearer, operation, withAuth } from 'koa-with-auth'
import { openApi } from 'koa-with-auth/openapi'
import { describe, expect, it } from 'vitest'
import { ask, listen } from '../support/servers/server.js'

const of = (known: string) =>
  httpBearer({ realm: known, authenticate: (_request, token) => token === known && { user: known } })
const [anna, ben] = [of('anna'), of('ben')]
const about = (summary: string) => operation({ summary })

// What ran, in order
const ran: string[] = []
const hook = (id: string, _ctx: unknown, next: () => Promise<unknown>) => {
  ran.push(`hook ${id}`)
  return next()
}
const tell = (ctx: { body: unknown }, user: string) => {
  ran.push('handler')
  ctx.body = user
}

// Safe: each of them is a router with these operations
const filled = (router: unknown, inherits = true): RouterInstance => {
  const own = router as Router
  own.get('/ahead/:id', about('ahead'), withAuth(anna), (ctx) => tell(ctx, ctx.request.auth.user))
  own.get('/behind/:id', withAuth(anna), about('behind'), (ctx) => tell(ctx, ctx.request.auth.user))
  if (inherits)
    own.get('/inherits/:id', about('inherits'), (ctx) =>
      tell(ctx, String(Reflect.get(Reflect.get(ctx.request, 'auth'), 'user'))),
    )
  return own
}
const plain = () => filled(new Router(), false)

const routers: Readonly<Record<string, () => RouterInstance>> = {
  'a plain router': plain,
  'a guarded router': () => filled(withAuth(ben)(new Router())),
  'a router that was guarded with its routes': () => withAuth(ben)(plain()),
  'a router that was guarded twice': () => withAuth(ben)(withAuth(anna)(plain())),
  'an application': () => filled(apiApp({ auth: ben })),
  'a router that was mounted in a guarded one': () => withAuth(ben)(new Router()).use(plain().routes()),
}

const whose = { ahead: 'anna', behind: 'anna', inherits: 'ben' }

describe.each(Object.entries(routers))('operation({ ... }) on %s', (name, make) => {
  const hooked = { 'param hooks before': false, 'param hooks after': true }

  it.each(Object.entries(hooked))('describes, and guard, hook and handler run as without it: %s', async (_, late) => {
    const app = new Koa()
    const router = new Router()
    if (!late) router.param('id', hook)
    router.use(make().routes())
    if (late) router.param('id', hook)
    const { paths } = openApi(router, { title: name, version: '1' })
    const served = await listen(app.use(router.routes()))
    expect(Object.keys(paths).length).toBeGreaterThanOrEqual(2)
    for (const [path, item] of Object.entries(paths)) {
      const summary = path.split('/')[1] as keyof typeof whose
      expect(item?.get).toMatchObject({ summary, security: [{ bearer: [] }] })
      const url = served.url + path.replace('{id}', '7')

      ran.length = 0
      const bare = await ask(url)
      expect([bare.status, bare.challenge]).toEqual([401, `Bearer realm="${whose[summary]}"`])
      expect(JSON.parse(bare.text)).toMatchObject({ status: 401, detail: 'Unauthorized' })
      expect(ran).toEqual([])

      const good = await ask(url, { headers: { Authorization: `Bearer ${whose[summary]}` } })
      expect([good.status, good.text]).toEqual([200, whose[summary]])
      expect(ran.filter((one) => one === 'handler')).toHaveLength(1)
      expect(ran.at(-1)).toBe('handler')
      ran.length = 0
    }
  })
})

it('the principal keeps its type after operation({ ... })', () => {
  // @ts-expect-error the principal has no such property
  new Router().get('/x', about('x'), withAuth(anna), (ctx) => tell(ctx, ctx.request.auth.name))
  // @ts-expect-error nor on a guarded router
  withAuth(ben)(new Router()).get('/x', about('x'), withAuth(anna), (ctx) => tell(ctx, ctx.request.auth.name))
  // @ts-expect-error nor on an application
  apiApp({ auth: ben }).get('/x', about('x'), (ctx) => tell(ctx, ctx.request.auth.name))
})

describe('operation({ ... }) in a place where it describes nothing', () => {
  it('is refused by router.use and app.use, with a message that names the fix', () => {
    const fix = /describes nothing; write router\.get\(path, operation\(\{ \.\.\. \}\), handler\)$/
    expect(() => new Router().use(about('x'))).toThrow(fix)
    expect(() => new Router().use('/x', about('x'))).toThrow(fix)
    expect(() => apiApp().use(about('x'))).toThrow(fix)
    expect(() => new Koa().use(about('x'))).toThrow(fix)
  })

  it('is not an authenticator', () => {
    // @ts-expect-error it takes no request
    expect(() => withAuth(about('x'))).toThrow(TypeError)
  })
})
