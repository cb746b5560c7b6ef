/**
 * The order of operations whose paths overlap is part of the policy: if another one answers first, other callers may get in. Each row
 * is served in both orders, and a request shows who gets in.
 */
import Router, { type RouterInstance } from '@koa/router'
import { pipe } from 'fp-ts/lib/function.js'
import Koa from 'koa'
import { apiKeyHeader, authorize, httpBearer, requireScopes } from 'koa-with-auth'
import { audit, seal } from 'koa-with-auth/audit'
import { describe, expect, it } from 'vitest'
import { changesOf, directionsOf, textsFor } from '../support/models/audits.js'
import { policyFile } from '../support/papers/policyFile.js'
import { guardOf } from '../support/models/levels.js'
import { serve } from '../support/servers/server.js'

const { lock, keep } = policyFile()

const known =
  (...names: ReadonlyArray<string>) =>
  (_request: unknown, name: string) =>
    names.includes(name) && { name }
const staff = httpBearer({ schemeName: 'staff', authenticate: known('admin') })
const customer = apiKeyHeader({ paramName: 'X-Key', schemeName: 'customers', authenticate: known('user') })
const both = httpBearer({ schemeName: 'both', authenticate: known('admin', 'user') })
const isAdmin = ({ name }: { readonly name: string }) => name === 'admin'
const admins = pipe(both, authorize(isAdmin))
const scoped = pipe(both, requireScopes(['reports'], { granted: ({ name }) => (name === 'admin' ? ['reports'] : []) }))

type Mount = (router: RouterInstance, auth: unknown) => unknown
const answer = (ctx: Koa.Context): void => void (ctx.body = 'in')
const at =
  (method: 'get' | 'all', path: string | RegExp): Mount =>
  (router, auth) =>
    router[method](path as string, guardOf(auth) as never, answer as never)
const below =
  (prefix: string, path: string): Mount =>
  (router, auth) =>
    router.use(prefix, new Router().get(path, guardOf(auth) as never, answer as never).routes())

let current = new Router()
const served = serve(() => new Koa().use((ctx, next) => current.routes()(ctx as never, next)))
const statusOf = async (router: RouterInstance, path: string, fields: Record<string, string>): Promise<number> => {
  current = router
  return (await fetch(`http://127.0.0.1:${served.port}${path}`, { headers: fields })).status
}

const asUser = { authorization: 'Bearer user', 'x-key': 'user' }

describe('two guarded operations that change places', () => {
  const rows: ReadonlyArray<[name: string, strict: Mount, loose: Mount, request: string]> = [
    ['in whole', below('/internal', '/reports'), below('/:tenant', '/reports'), '/internal/reports'],
    ['in part', at('get', '/:a/x'), at('get', '/y/:b'), '/y/x'],
    ['one path twice', at('get', '/x'), at('get', '/x'), '/x'],
    ['by router.all', at('get', '/x'), at('all', '/:any'), '/x'],
    ['by a RegExp', at('get', '/x'), at('get', /^\/x|^\/y/), '/x'],
    ['by a narrower path', at('get', '/users/:id'), at('get', '/users/me'), '/users/me'],
  ]
  const pairs: ReadonlyArray<[name: string, strict: unknown, loose: unknown]> = [
    ['another credential', staff, customer],
    ['no authorize', admins, both],
    ['fewer scopes', scoped, both],
    ['a longer list', staff, [staff, customer]],
  ]
  const cases = rows.flatMap(([where, strict, loose, request]) =>
    pairs.map(([who, narrow, wide]) => ({ where, who, strict, loose, request, narrow, wide })),
  )
  it.each(cases)('$where, $who: the policy file changes', async ({ strict, loose, request, narrow, wide }) => {
    const [before, after] = [new Router(), new Router()]
    strict(before, narrow)
    loose(before, wide)
    loose(after, wide)
    strict(after, narrow)
    expect(await statusOf(before, request, asUser)).toBeGreaterThan(400)
    expect(await statusOf(after, request, asUser)).toBe(200)
    expect(['opened', 'changed']).toContain(directionsOf(before, after)[0])
    expect(directionsOf(after, before)).not.toEqual([])
    keep(audit(before))
    expect(() => seal(after, { lock })).toThrow(/answered first/)
    seal(before, { lock })
  })

  it('across the routers of an application, which seal of one of them cannot see', () => {
    const make = () => ({
      strict: new Router().get('/x', guardOf(staff) as never, answer),
      loose: new Router().get('/:any', guardOf(customer) as never, answer),
    })
    const [one, other] = [make(), make()]
    const before = new Koa().use(one.strict.routes()).use(one.loose.routes())
    const after = new Koa().use(other.loose.routes()).use(other.strict.routes())
    expect(changesOf(before, after)).toEqual(['opened: GET /x: is now answered first by GET /:any'])
    expect(directionsOf(after, before)).toEqual(['changed'])
    seal(make().strict, { lock: keep(audit(after)) })
  })

  it('are no difference if their paths do not overlap, or if both let in the same callers', () => {
    const textsOf = (...paths: ReadonlyArray<[string, unknown]>) => {
      const router = new Router()
      for (const [path, auth] of paths) router.get(path, guardOf(auth) as never, answer)
      return textsFor(router)
    }
    expect(textsOf(['/a/:x', staff], ['/b/:x', customer])).toEqual(textsOf(['/b/:x', customer], ['/a/:x', staff]))
    expect(textsOf(['/a/:x', staff], ['/:x/a', staff])).toEqual(textsOf(['/:x/a', staff], ['/a/:x', staff]))
  })
})
