/** `atLevel` copies a router. The copy shares nothing that the router changes in place. */
import { METHODS } from 'node:http'
import Router, { type RouterInstance } from '@koa/router'
import { httpBearer, withAuth } from 'koa-with-auth'
import { describe, expect, test, vi } from 'vitest'
import { atLevel } from '../../src/koa/levels.js'
import { operationsOf } from '../../src/koa/operations.js'
import { a, alsoA, alsoC, b, go, handle, names, on, open } from '../support/models/levelNames.js'

// A layer that was made elsewhere

describe('atLevel', () => {
  test('refuses an operation from which something removed the guard, also where it is mounted', () => {
    const router = atLevel(a)(new Router().get('/x', on(b), handle))
    router.stack[0]!.stack = [handle]
    const message = /^GET \/x: its functions were replaced, and withAuth\(\.\.\.\) was lost; call/
    expect(() => atLevel(open)(router)).toThrow(message)
    expect(() => atLevel(a)(new Router()).use(router.routes())).toThrow(message)
  })

  test('what a tracer put around a handler stays around it in copies', () => {
    const router = atLevel(a)(new Router().get('/x', on(b), handle))
    const traced = () => handle
    const [layer] = router.stack
    layer!.stack = layer!.stack.map((f) => (f === handle ? traced : f))
    const copy = atLevel(open)(router).stack[0]!.stack
    expect([copy.includes(traced), copy.includes(handle)]).toEqual([true, false])
  })

  test('a message names the operations of the layer: each method, or ALL for `router.all`', () => {
    const twice = [on(a), on(b), handle]
    const label = (methods: string[]) => {
      try {
        atLevel(a)(new Router()).register('/three', methods, twice)
        return undefined
      } catch (error) {
        return (error as Error).message.split(':')[0]
      }
    }
    expect(label(['GET', 'POST'])).toBe('GET, POST /three')
    expect(label(['PUT', 'PATCH', 'DELETE'])).toBe('PUT, PATCH, DELETE /three')
    expect(label(METHODS)).toBe('ALL /three')
  })

  test('a second guard is refused also where a level inside has checked the operations, and one of them changed since', () => {
    const inner = atLevel(a)(new Router().get('/x', handle).get('/y', handle).get('/z', handle))
    const parent = new Router().use(inner.routes())
    const { stack } = parent.stack[2]!
    parent.stack[2]!.stack = [stack[0]!, on(b), handle] as typeof stack
    expect(() => atLevel(b)(parent)).toThrow(new TypeError('GET /z: withAuth(...) is in it twice; remove one'))
  })

  test('an operation that is refused is not added', () => {
    const router = atLevel(a)(new Router())
    expect(() => router.get('/x', on(b))).toThrow(TypeError)
    expect(router.stack).toHaveLength(0)
  })
})

// How a router keeps its events; pinned by spec/koa/levels/router-facts.http.spec.ts
const handlersOf = (router: RouterInstance): unknown[] => {
  const events: unknown = Reflect.get(router, '_events')
  const handlers: unknown = typeof events === 'object' && events !== null && Reflect.get(events, '_handlers')
  return handlers instanceof Map ? [...(handlers as Map<string, unknown[]>).values()].flat() : []
}

describe('the copy of a level', () => {
  const base = () => new Router({ prefix: '/p' }).get('name', '/x/:id', go, handle).param('id', go as never)

  test('is a router of the same class, with the same properties', () => {
    class Own extends Router {
      readonly extra = 1
    }
    const own = new Own({ exclusive: true, host: 'a.example' })
    const copy = atLevel(a)(own)
    expect(copy).toBeInstanceOf(Own)
    expect([copy.exclusive, copy.host, Reflect.get(copy, 'extra')]).toEqual([true, 'a.example', 1])
    expect(copy.routes().router).toBe(copy)
    expect(Object.keys(copy).sort()).toEqual(Object.keys(own).sort())
  })

  test('can change without changing the original', () => {
    const original = base()
    const before = JSON.stringify(original)
    const [layer] = original.stack
    const functions = [...layer!.stack]
    const copy = atLevel(a)(original)
    copy.get('/y', handle)
    copy.use(go)
    copy.param('id', go as never)
    copy.param('new', go as never)
    copy.prefix('/q')
    copy.methods.push('TRACE')
    Object.assign(copy.stack[0]!.opts, { end: false })
    copy.on?.('not-found', handle)
    expect(JSON.stringify(original)).toBe(before)
    expect(original.stack).toEqual([layer])
    expect([...layer!.stack]).toEqual(functions)
  })

  test('that was dropped is told, when the original gets a route that nothing guards', () => {
    const warned = vi.spyOn(process, 'emitWarning').mockReturnValue()
    const original = new Router()
    const kept = withAuth(httpBearer({ authenticate: () => true }))(original)
    kept.get('/guarded', () => {}).use(() => {})
    original.get('/public', withAuth(null), () => {})
    expect(warned.mock.calls).toEqual([])
    original.get('/open', () => {}).get('/another', () => {})
    const told = 'GET /open is open: withAuth(a)(router) does not change the router'
    expect(warned.mock.calls).toEqual([[expect.stringContaining(told), 'OpenRouteWarning']])
    // a router that has routes may be used twice, and a guarded copy guards further ones
    for (const used of [new Router().get('/public', withAuth(null), () => {}), atLevel(a)(new Router())]) {
      atLevel(b)(used)
      used.get('/more', () => {})
    }
    expect(warned.mock.calls).toHaveLength(1)
    warned.mockRestore()
  })

  test('that was dropped after its routes were written is told at the first request to the original, once', () => {
    const warned = vi.spyOn(process, 'emitWarning').mockReturnValue()
    const level = withAuth(httpBearer({ authenticate: () => true }))
    const written = () => new Router().get('/decided', withAuth(null), () => {}).get('/open', () => {})
    const served = (router: Router) => [router.routes(), router.match('/open', 'GET'), router.match('/open', 'GET')]
    const dropped = written()
    level(dropped)
    served(dropped)
    const told = 'GET /open is open: withAuth(a)(router) does not change the router'
    expect(warned.mock.calls).toEqual([[expect.stringContaining(told), 'OpenRouteWarning']])
    // served open and guarded; guarded alone, twice; with nothing that is open
    const both = written()
    const guarded = level(both)
    const routes = both.routes()
    guarded.routes()
    served(both)
    const [inner, decided] = [written(), new Router().get('/decided', withAuth(null), () => {})]
    level(level(inner)).middleware()
    level(decided)
    served(inner)
    served(decided)
    expect([warned.mock.calls.length, routes.router]).toEqual([1, both])
    warned.mockRestore()
  })

  test('does not change when the original changes', () => {
    const original = base()
    const copy = atLevel(a)(original)
    const before = [JSON.stringify(copy), names(copy)]
    original.get('/y', handle)
    original.param('id', go as never)
    original.prefix('/q')
    original.methods.push('TRACE')
    original.on?.('not-found', handle)
    expect([JSON.stringify(copy), names(copy)]).toEqual(before)
  })

  test('has the event handlers of the original, but later ones are not shared', () => {
    const [before, own, later] = [() => {}, () => {}, () => {}]
    const original = new Router()
    original.on?.('not-found', before)
    const copy = atLevel(a)(original)
    copy.on?.('not-found', own)
    original.on?.('not-found', later)
    // Before 15.4, routers have no events
    const reports = original.on !== undefined
    expect(handlersOf(original)).toEqual(reports ? [before, later] : [])
    expect(handlersOf(copy)).toEqual(reports ? [before, own] : [])
  })

  test('has a stack that cannot be replaced', () => {
    const copy = atLevel(a)(new Router())
    expect(() => Object.assign(copy, { stack: [] })).toThrow(TypeError)
    expect(() => Object.assign(copy.stack, { push: () => 0 })).toThrow(TypeError)
  })
})

test('levels are named from the outermost that counts to the innermost; a router without a name by its prefix', () => {
  const levelsOf = (router: RouterInstance) => operationsOf(router).map(({ levels }) => levels)
  const named = atLevel(alsoA, { name: 'call' })(new Router().get('/x', handle).get('/more', on(alsoC), handle))
  const outer = atLevel(a, { name: 'app' })(new Router().get('/own', on(b), handle).use('/p', named.routes()))
  expect(levelsOf(outer)).toEqual([['operation'], ['app', 'call'], ['app', 'call', 'operation']])
  expect(levelsOf(atLevel(a)(new Router().get('/x', handle)))).toEqual([['router']])
  expect(levelsOf(atLevel(a)(new Router({ prefix: '/pets' }).get('/x', handle)))).toEqual([['router /pets']])
})
