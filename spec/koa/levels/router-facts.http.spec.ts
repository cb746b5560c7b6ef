/**
 * The private facts of @koa/router and Koa that levels, placement and guards rely on. After an upgrade that changes
 * one, the test of this fact fails here, before a request passes wrongly.
 *
 * `KOA_ROUTER` names another router to compare, such as the oldest of the peer range: a package, or the path of its
 * module (`.../dist/index.mjs`).
 */
import { pathToFileURL } from 'node:url'
import type * as KoaRouter from '@koa/router'
import type { Layer, RouterInstance } from '@koa/router'
import Koa from 'koa'
import { describe, expect, test } from 'vitest'
import { get } from '../../support/models/levels.js'
import { listen } from '../../support/servers/server.js'

type AnyFunction = (...args: never[]) => unknown

const named = process.env['KOA_ROUTER'] ?? '@koa/router'
const specifier = /^[./]/.test(named) ? pathToFileURL(named).href : named
// Safe: every router that is named is a version of this package; before version 15 the router is the module itself
const { default: Router } = (await import(/* @vite-ignore */ specifier)) as typeof KoaRouter

// Before 15, `use` takes no RegExp, and a mounted router shares the arrays of functions with the original
const isBefore15 = /-1[234]$/.test(named)

const handle = (): void => {}
const go = (_ctx: unknown, next: () => Promise<unknown>) => next()
const stackOf = (layer: Layer | undefined): ReadonlyArray<AnyFunction> => layer?.stack ?? []

// The arguments of `router.use(path, routes)`, because the types of the router are not known here
const use = (router: RouterInstance, ...args: unknown[]): void => {
  Reflect.apply(router.use, router, args)
}

/** Asks a router over HTTP, and returns what `look` saw of the context in each middleware that calls it. */
const seenBy = async (fill: (router: RouterInstance, look: AnyFunction) => void, path: string) => {
  const seen: Array<Record<'captures' | 'routerPath' | 'matched', unknown>> = []
  const look = (ctx: Record<'captures' | 'routerPath' | 'matched', unknown>, next: () => unknown): unknown => {
    seen.push({ captures: ctx.captures, routerPath: ctx.routerPath, matched: ctx.matched })
    return next()
  }
  const router = new Router()
  fill(router, look)
  const app = new Koa()
  app.use(router.routes() as unknown as Koa.Middleware)
  const served = await listen(app)
  const { status } = await get(served.port, path)
  return { seen, status }
}

describe(`levels.ts rests on these facts of ${named}`, () => {
  test('everything that is put into a router goes through `stack.push`, one layer at a time', () => {
    const router = new Router()
    const pushed: unknown[] = []
    Object.defineProperty(router.stack, 'push', {
      value: (...layers: never[]) => {
        pushed.push(...layers)
        return Reflect.apply(Array.prototype.push, router.stack, layers)
      },
    })
    const nested = new Router()
    nested.get('/a', handle).get('/b', handle)
    router.get('/x', handle).post('/x', handle).del('/x', handle).all('/y', handle)
    router.get('name', '/named', handle).get(['/one', '/two'], handle)
    router.get(/^\/re$/, handle).redirect('/from', '/to')
    router.register('/registered', ['get'], handle)
    use(router, go)
    use(router, '/sub', go, go)
    use(router, '/mounted', nested.routes())
    use(router, ['/m1', '/m2'], nested.routes())
    expect(pushed).toHaveLength(4 + 4 + 2 + 3 + 2 + 4)
    expect(pushed).toEqual([...router.stack])
  })

  test('mounting clones layers at any depth and keeps their functions', () => {
    const marked = Object.assign((_ctx: unknown, next: () => unknown) => next(), { mark: 1 })
    const child = new Router().get('/x', marked, handle)
    const parent = new Router()
    use(parent, '/c', child.routes())
    const root = new Router({ prefix: '/r' })
    use(root, '/p/:id', parent.routes())
    expect(root.stack[0]).not.toBe(child.stack[0])
    expect(root.stack[0]?.stack === child.stack[0]?.stack).toBe(isBefore15)
    expect([root.stack[0]?.path, child.stack[0]?.path]).toEqual(['/r/p/:id/c/x', '/x'])
    expect(stackOf(root.stack[0])[0]).toBe(marked)
  })

  test('the layers of an array of paths may share one `stack`, so it must be replaced, not changed', () => {
    const { stack } = new Router().get(['/a', '/b'], handle)
    expect(stack).toHaveLength(2)
    for (const layer of stack) {
      layer.stack = [go, ...stackOf(layer)] as typeof layer.stack
      expect(stackOf(layer)).toEqual([go, handle])
    }
  })

  test('a layer gets other `methods` and `paramNames`, never changed ones, so copies may share them', () => {
    const router = new Router()
    router.get('/x/:id', handle)
    router.post('/y/:id', handle)
    use(router, '/:any', go)
    for (const layer of router.stack) {
      Object.freeze(layer.methods)
      Object.freeze(layer.paramNames)
    }
    router.param('id', (_id, _ctx, next) => next())
    router.prefix('/p/:of')
    use(new Router({ prefix: '/q/:r' }), '/:m', router.routes())
    expect(router.stack.slice(0, 2).map(({ paramNames }) => paramNames.length)).toEqual([2, 2])
  })

  test('`use` middleware has no methods, and routes have some; the last one of a GET route is GET', () => {
    const router = new Router()
    use(router, go)
    router.get('/x', handle)
    router.all('/y', handle)
    const [used, got, all] = router.stack.map(({ methods }) => methods)
    expect([used, got]).toEqual([[], ['HEAD', 'GET']])
    expect(all?.length).toBeGreaterThan(2)
  })

  test('`_events`, if it exists, keeps handlers in a Map of arrays', () => {
    const router = new Router()
    const events: unknown = Reflect.get(router, '_events')
    if (events === undefined) return
    router.on('not-found', handle)
    const handlers: unknown = Reflect.get(events as object, '_handlers')
    expect(handlers).toEqual(new Map([['not-found', [handle]]]))
  })
})

describe(`layer.ts rests on these facts of ${named}`, () => {
  const ahead = Object.assign((_ctx: unknown, next: () => Promise<unknown>) => next(), { param: Symbol('ahead') })
  const names = (router: RouterInstance) =>
    stackOf(router.stack[0]).map((f) => (f === ahead ? 'ahead' : 'param' in f ? f.param : 'plain'))

  test('hooks come after a function whose `param` is not in the path, and before functions without `param`', () => {
    const before = new Router()
    before.param('two', go as never).param('one', go as never)
    before.get('/:one/:two', ahead, go, handle)
    expect(names(before)).toEqual(['ahead', 'one', 'two', 'plain', 'plain'])
    const after = new Router().get('/:one/:two', ahead, go, handle)
    after.param('two', go as never).param('one', go as never)
    expect(names(after)).toEqual(['ahead', 'one', 'two', 'plain', 'plain'])
  })
})

describe(`guard.ts rests on these facts of ${named} and Koa`, () => {
  const refuse = (name: string) => (): never => {
    throw new RangeError(name)
  }
  const reading = (name: string) => Object.defineProperty(() => {}, name, { get: refuse(name) })

  test('router.use reads `router` of its argument, with and without a path', () => {
    for (const args of [[], ['/p'], [['/p', '/q']], ...(isBefore15 ? [] : [[/p/]])]) {
      expect(() => use(new Router(), ...args, reading('router'))).toThrow(new RangeError('router'))
    }
  })

  test("koa's use reads `_name` of its argument", () => {
    expect(() => new Koa().use(reading('_name'))).toThrow(new RangeError('_name'))
  })

  test('`captures` is a new array for every layer that runs, and the same for all functions of a layer', async () => {
    const { seen } = await seenBy((router, look) => {
      use(router, look)
      use(router, '/x', look)
      router.get('/x', look as never, look as never)
      router.get('/:id', look as never)
    }, '/x')
    expect(seen.map(({ captures }) => captures)).toEqual([[], [], [], [], ['x']])
    const [first, second, third, fourth, fifth] = seen.map(({ captures }) => captures)
    expect(third).toBe(fourth)
    expect(new Set([first, second, third, fifth]).size).toBe(4)
  })

  test('`routerPath` is the path of the layer that runs, and `matched` holds that layer', async () => {
    const { seen } = await seenBy((router, look) => {
      use(router, '/x', look)
      router.get('/x/y', look as never)
      router.get('/x/:id', look as never)
      router.post('/x/y', handle)
    }, '/x/y')
    expect(seen.map(({ routerPath }) => routerPath)).toEqual(['/x', '/x/y', '/x/:id'])
    // Safe: the elements of `matched` are layers
    const paths = (seen[0]?.matched as Layer[]).map(({ path }) => path)
    expect(paths).toEqual(['/x', '/x/y', '/x/:id', '/x/y'])
  })
})

describe('respond.ts rests on these facts of Koa', () => {
  const snapshots = async (...writes: ReadonlyArray<(ctx: Koa.Context) => void>) => {
    const seen: unknown[] = []
    const app = new Koa()
    app.use((ctx) => {
      for (const write of [() => {}, ...writes]) {
        write(ctx)
        const { _body, _explicitStatus, _explicitNullBody } = ctx.response as unknown as Record<string, unknown>
        seen.push({ status: ctx.res.statusCode, _body, _explicitStatus, _explicitNullBody })
      }
    })
    const served = await listen(app)
    await get(served.port, '/')
    return seen
  }
  const begin = { status: 404, _body: undefined, _explicitStatus: undefined, _explicitNullBody: undefined }

  test('a response begins with 404 and no header, and without the three private fields', async () => {
    const headers: string[] = []
    expect(await snapshots((ctx) => headers.push(...ctx.res.getHeaderNames()))).toEqual([begin, begin])
    expect(headers).toEqual([])
  })

  test('a status sets `_explicitStatus`, a body `_body`, and null `_explicitNullBody`', async () => {
    const [, status] = await snapshots((ctx) => (ctx.status = 418))
    expect(status).toEqual({ ...begin, status: 418, _explicitStatus: true })
    const [, body, nothing] = await snapshots(
      (ctx) => (ctx.body = 'text'),
      (ctx) => (ctx.body = null),
    )
    expect(body).toMatchObject({ status: 200, _body: 'text' })
    expect(nothing).toMatchObject({ status: 204, _explicitNullBody: true })
    expect((nothing as { _body: unknown })._body ?? null).toBeNull()
  })
})
