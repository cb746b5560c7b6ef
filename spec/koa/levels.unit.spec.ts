/** `atLevel` copies a router. The copy shares nothing that the router changes in place. */
import { METHODS } from 'node:http'
import Router, { type Layer, type RouterInstance } from '@koa/router'
import { describe, expect, test } from 'vitest'
import * as Requirement from '../../src/core/Requirement.js'
import { aheadOfParams } from '../../src/core/data.js'
import { isGuard } from '../../src/koa/layer.js'
import { atLevel } from '../../src/koa/levels.js'
import { operationsOf } from '../../src/koa/operations.js'
import { a, alsoA, alsoB, alsoC, b, go, handle, names, on, open } from '../support/models/levelNames.js'

// A layer that was made elsewhere
const layerOf = (path: string): Layer => new Router().get(path, handle).stack[0]!

describe('atLevel', () => {
  test('puts its guard before undecided operations, also before later ones', () => {
    const router = atLevel(a)(new Router().get('/x', go, handle))
    router.post('/y', handle).all('/z', go)
    expect(names(router)).toEqual(['a go handle', 'a handle', 'a go'])
  })

  test('does not change decided operations and `use` middleware', () => {
    const router = atLevel(a)(new Router())
    router.use(go)
    router.get('/x', on(b), handle).get('/y', on(open), handle)
    expect(names(router)).toEqual(['go', 'b handle', 'open handle'])
  })

  test.each(['push', 'unshift', 'splice'] as const)('guards what `stack.%s` adds', (name) => {
    const router = atLevel(a)(new Router())
    if (name === 'splice') router.stack.splice(0, 0, layerOf('/x'), layerOf('/y'))
    else router.stack[name](layerOf('/x'), layerOf('/y'))
    expect(names(router)).toEqual(['a handle', 'a handle'])
    expect(router.stack.splice(0, 1).map(({ path }) => path)).toEqual(['/x'])
    expect(router.stack).toHaveLength(1)
  })

  test('gives each layer of an array of paths its own stack', () => {
    const router = atLevel(a)(new Router())
    router.get(['/x', '/y'], handle).get(['/z', '/w'], on(b), handle)
    expect(names(router)).toEqual(['a handle', 'a handle', 'b handle', 'b handle'])
    expect(new Set(router.stack.map((layer) => layer.stack)).size).toBe(4)
    expect(names(atLevel(a)(new Router().get(['/x', '/y'], handle)))).toEqual(['a handle', 'a handle'])
  })

  test('a second level replaces the first, and nothing else', () => {
    const base = new Router().get('/x', handle).get('/own', on(a), handle)
    const once = atLevel(a)(base)
    once.get('/later', handle)
    expect(names(once)).toEqual(['a handle', 'a handle', 'a handle'])
    expect(names(atLevel(b)(once))).toEqual(['b handle', 'a handle', 'b handle'])
    expect(names(atLevel(open)(atLevel(b)(once)))).toEqual(['open handle', 'a handle', 'open handle'])
  })

  test('put-put finds the guard that it inserted by identity, although another function was put before it', () => {
    const router = atLevel(a)(
      new Router().get('/x', go, handle).get('/own', on(b), handle).get('/more', on(alsoC), handle),
    )
    for (const layer of router.stack) layer.stack.unshift(go)
    // What is before a decision of the operation itself stays before it
    expect(names(atLevel(alsoB)(router))).toEqual(['also:b go go handle', 'kept b handle', 'kept also:b+c handle'])
  })

  test('a decision of a mounted router is not replaced, even if it is the same router', () => {
    const base = new Router().get('/x', handle)
    base.use('/in', atLevel(a)(base).routes())
    expect(names(atLevel(open)(base))).toEqual(['open handle', 'a handle'])
  })

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

  test('the guard of a level is the first function of its layer, with and without hooks', () => {
    const router = atLevel(a)(new Router().param('one', go as never))
    router.get('/:one/:two', go, handle)
    router.param('two', go as never)
    expect(names(router)).toEqual(['a hook:one hook:two go handle'])
    expect(names(atLevel(b)(router))).toEqual(['b hook:one hook:two go handle'])
  })

  test('what is before a guard stays there, and hooks follow the guard', () => {
    const router = atLevel(open)(new Router().param('one', go as never).get('/:one/:two', go, on(a), handle))
    router.param('two', go as never)
    expect(names(router)).toEqual(['kept a hook:one hook:two handle'])
    expect(names(atLevel(open)(router))).toEqual(['kept a hook:one hook:two handle'])
    expect(Reflect.get(router.stack[0]!.stack[0]!, 'param')).toBe(aheadOfParams)
  })

  test('refuses an operation with two guards, or without a handler after its guard', () => {
    const twice = (router: RouterInstance) => router.get('/x', on(a), go, on(b), handle)
    expect(() => atLevel(a)(twice(new Router()))).toThrow(TypeError)
    expect(() => twice(atLevel(a)(new Router()))).toThrow('GET /x: withAuth(...) is in it twice; remove one')
    expect(() => atLevel(a)(new Router()).put('/x', on(a))).toThrow('PUT /x: withAuth(...) has no handler after it')
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

  test('of a copy has only its own level, and the other two keep theirs', () => {
    const one = atLevel(a)(new Router().get('/x', handle))
    const two = atLevel(b)(one)
    one.get('/one', handle)
    two.get('/two', handle)
    expect([names(one), names(two)]).toEqual([
      ['a handle', 'a handle'],
      ['b handle', 'b handle'],
    ])
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

describe('isGuard', () => {
  test('is true only for what was marked', () => {
    expect([on(a), on(open), on(alsoA)].every(isGuard)).toBe(true)
    expect([handle, go, {}, null, undefined, { requirement: Requirement.open }].some(isGuard)).toBe(false)
  })
})
