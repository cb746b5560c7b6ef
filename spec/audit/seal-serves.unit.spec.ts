/** A sealed router serves what was checked, and refuses changes. It can still be mounted and copied. */
import Router, { type RouterInstance } from '@koa/router'
import { apiApp, httpBearer, withAuth } from 'koa-with-auth'
import { audit, seal } from 'koa-with-auth/audit'
import { describe, expect, it } from 'vitest'
import { bearer, go, guard, handle } from '../support/models/audits.js'
import { guardOf } from '../support/models/levels.js'

const late = new Router().get('/late', handle)

const kinds: ReadonlyArray<{ kind: string; make: () => RouterInstance }> = [
  { kind: 'a plain router', make: () => new Router().get('/x/:id', guard, handle) },
  { kind: 'a router with a level', make: () => withAuth(bearer)(new Router()).get('/x/:id', handle) },
  { kind: 'an application', make: () => apiApp({ auth: bearer, docs: false }).get('/x/:id', handle) },
]

const changes: ReadonlyArray<{ change: string; says: RegExp; apply: (router: RouterInstance) => unknown }> = [
  { change: 'get', says: /^GET \/late comes after seal\(router\)/, apply: (r) => r.get('/late', handle) },
  { change: 'head', says: /^HEAD \/late comes/, apply: (r) => r.head('/late', handle) },
  { change: 'all', says: /^ALL \/late comes/, apply: (r) => r.all('/late', handle) },
  { change: 'redirect', says: /^ALL \/a comes/, apply: (r) => r.redirect('/a', '/b') },
  { change: 'register', says: /^PUT \/late comes/, apply: (r) => r.register('/late', ['PUT'], handle) },
  { change: 'use', says: /^use \/late comes/, apply: (r) => r.use('/late', go) },
  { change: 'mounting', says: /^GET \/p\/late comes/, apply: (r) => r.use('/p', late.routes()) },
  { change: 'stack.push', says: /^GET \/late comes/, apply: (r) => r.stack.push(late.stack[0]!) },
  { change: 'stack.unshift', says: /^GET \/late comes/, apply: (r) => r.stack.unshift(late.stack[0]!) },
  { change: 'stack.splice', says: /^GET \/late comes/, apply: (r) => r.stack.splice(0, 1, late.stack[0]!) },
  { change: 'stack.pop', says: /^a change of the router comes/, apply: (r) => r.stack.pop() },
  { change: 'stack[n] =', says: /./, apply: (r) => (r.stack[0] = late.stack[0]!) },
  { change: 'stack.length =', says: /./, apply: (r) => (r.stack.length = 0) },
  { change: 'stack.reverse', says: /./, apply: (r) => r.use('/', go) && r.stack.reverse() },
  { change: 'stack =', says: /./, apply: (r) => (r.stack = []) },
  { change: "a layer's functions", says: /./, apply: (r) => r.stack.at(-1)!.stack.unshift(handle) },
  { change: 'other functions for a layer', says: /./, apply: (r) => (r.stack.at(-1)!.stack = [handle]) },
  { change: "a layer's methods", says: /./, apply: (r) => r.stack.at(-1)!.methods.push('PUT') },
  { change: "a layer's path", says: /./, apply: (r) => r.stack.at(-1)!.setPrefix('/p') },
  { change: 'param', says: /^router\.param\(\.\.\.\) comes after/, apply: (r) => r.param('id', go as never) },
  { change: 'prefix', says: /^router\.prefix\(\.\.\.\) comes after/, apply: (r) => r.prefix('/p') },
]

const layersOf = (router: RouterInstance) =>
  router.stack.map(({ path, methods, regexp, stack }) => [path, [...methods], regexp, [...stack]])

describe.each(kinds)('$kind, sealed', ({ make }) => {
  // The settings of an application need not be listed
  const sealed = () => seal(make())

  it.each(changes)('$change is a TypeError and changes nothing', ({ says, apply }) => {
    const router = sealed()
    const before = layersOf(router)
    expect(() => apply(router)).toThrow(TypeError)
    expect(() => apply(router)).toThrow(says)
    expect(layersOf(router)).toEqual(before)
  })

  it('gives the same audit as before, and can be sealed again', () => {
    const router = make()
    const before = audit(router)
    expect(audit(seal(seal(router)))).toEqual(before)
    expect(() => router.get('/late', handle)).toThrow(TypeError)
  })

  it('can be mounted in a router that has its own hooks and prefix', () => {
    const parent = new Router({ prefix: '/p' }).param('id', go as never)
    parent.use('/:m', sealed().routes())
    parent.param('m', go as never)
    expect(audit(parent).operations).toMatchObject([{ operation: 'GET /p/:m/x/:id', access: 'guarded' }])
    expect(() => parent.get('/more', guard, handle).prefix('/q')).not.toThrow()
    expect(audit(parent).operations.map(({ path }) => path)).toEqual(['/q/:m/x/:id', '/q/more'])
  })

  it('can be copied: the copy is not sealed', () => {
    const router = sealed()
    const copy = withAuth(null)(router) as unknown as RouterInstance
    copy.get('/late', handle)
    copy.param('id', go as never)
    expect(() => seal(copy)).toThrow("GET /late is public: guard it, or list 'GET /late' in public")
    expect(audit(router).operations).toHaveLength(1)
  })

  it('still makes URLs and matches paths', () => {
    const router = sealed()
    expect(router.match('/x/1', 'GET').route).toBe(true)
    expect(router.stack.at(-1)?.url({ id: 1 })).toBe('/x/1')
  })
})

it('a sealed router does not serve a route that was added by an old reference to its stack', () => {
  const router = new Router().get('/x', guard, handle)
  const { stack } = router
  seal(router)
  stack.push(late.stack[0]!)
  expect(router.match('/late', 'GET').route).toBe(false)
})

describe('the functions of a sealed layer', () => {
  const functionsOf = (router: RouterInstance): unknown[] => router.stack[0]!.stack

  it.each(['push', 'pop', 'shift', 'splice', 'reverse', 'sort', 'fill', 'copyWithin'] as const)(
    '%s is a TypeError that names the operation and changes nothing',
    (name) => {
      const router = seal(new Router().get('/x', guard, handle))
      const before = [...functionsOf(router)]
      const change = functionsOf(router)[name] as (...args: unknown[]) => unknown
      expect(() => change.call(functionsOf(router), handle, 0)).toThrow(/^a function of GET \/x comes after seal/)
      expect(functionsOf(router)).toEqual(before)
    },
  )

  it('cannot be added or removed by their index', () => {
    const functions = functionsOf(seal(new Router().get('/x', guard, handle)))
    expect(() => (functions[2] = handle)).toThrow(TypeError)
    expect(() => (functions.length = 0)).toThrow(TypeError)
    expect(() => Reflect.deleteProperty(functions, '0') || expect.unreachable()).toThrow()
    expect(functions).toHaveLength(2)
  })

  it('R18 may be replaced by a tracer: a handler by any function, a guard by a wrapper of the same guard', () => {
    const router = seal(new Router().get('/x', guard, handle))
    const functions = functionsOf(router)
    const same = Object.assign(() => {}, { ...(functions[0] as object) })
    Object.getOwnPropertySymbols(functions[0]).forEach((mark) => Reflect.set(same, mark, true))
    functions[1] = () => {}
    functions[0] = same
    expect(router.match('/x', 'GET').route).toBe(true)
  })

  it('may not lose their guard: a request to such an operation is an error that says so', () => {
    for (const other of [go, guardOf(null), guardOf(httpBearer({ authenticate: () => true }))]) {
      const router = seal(new Router().get('/x', guard, handle).get('/y', guard, handle))
      functionsOf(router)[0] = other
      expect(() => router.match('/x', 'GET')).toThrow(/^GET \/x: its guard was replaced after seal\(router\)/)
      expect(router.match('/y', 'GET').route).toBe(true)
      expect(router.match('/z', 'GET').route).toBe(false)
    }
  })

  it('are recognized if a tracer without properties wrapped them before, because the level remembers them', () => {
    const router = withAuth(bearer)(new Router()).get('/x', handle) as unknown as RouterInstance
    const functions = functionsOf(router) as Array<(...args: unknown[]) => unknown>
    for (const [at, f] of functions.entries()) functions[at] = (...args) => f(...args)
    expect(audit(seal(router)).operations).toMatchObject([{ access: 'guarded', decidedBy: ['router'] }])
    expect(router.match('/x', 'GET').route).toBe(true)
    expect(() => seal(new Router().get('/x', ...(functions as never[])))).toThrow(/GET \/x is undecided/)
  })
})
