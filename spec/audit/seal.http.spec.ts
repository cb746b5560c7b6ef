/** What `seal` refuses is a hole, which a request without credentials shows. The example application can be sealed. */
import Router, { type RouterInstance } from '@koa/router'
import Koa, { type Context, type Next } from 'koa'
import { httpBearer, withAuth } from 'koa-with-auth'
import { audit, seal, type SealOptions } from 'koa-with-auth/audit'
import { describe, expect, it } from 'vitest'
import { exampleApp } from '../../examples/api/app.js'
import { openDatabase } from '../../examples/api/database.js'
import { callsOf, count, get, guardOf, handler, addUnchecked } from '../support/models/levels.js'
import { listen, serve } from '../support/servers/server.js'

const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
const open = guardOf(null) as never

let current: RouterInstance | undefined
const served = serve(() => new Koa().use((ctx, next) => current!.routes()(ctx as never, next)))

const bare = async (router: RouterInstance, path: string, id: string) => {
  current = router
  callsOf(id)
  const { status, text } = await get(served.port, path)
  return { status, text, calls: callsOf(id) }
}

const answersByItself = (ctx: Context, next: Next) => {
  if (ctx.path !== '/me') return next()
  count('middleware')
  ctx.body = 'reported by middleware'
  return undefined
}

const guarded = () => withAuth(bearer)(new Router()) as unknown as RouterInstance

describe('a router that seal refuses admits a request without credentials, and the fix closes it', () => {
  it.each<{
    name: string
    router: () => RouterInstance
    options?: SealOptions
    says: string
    who: string
    fixed: () => RouterInstance
  }>([
    {
      name: 'undecided',
      router: () => new Router().get('/me', handler('me')),
      says: 'GET /me is undecided',
      who: 'me',
      fixed: () => guarded().get('/me', handler('me')),
    },
    {
      name: 'public and not listed',
      router: () => guarded().get('/me', open, handler('me')),
      says: 'GET /me is public',
      who: 'me',
      fixed: () => guarded().get('/me', handler('me')),
    },
    {
      name: 'answered first by a public operation',
      router: () => guarded().get('/:page', open, handler('page')).get('/me', handler('me')),
      options: { public: ['GET /:page'] },
      says: 'GET /me is guarded, but GET /:page, which is public, answers it first',
      who: 'page',
      fixed: () => guarded().get('/me', handler('me')).get('/:page', open, handler('page')),
    },
    {
      name: 'answered by middleware that no guard covers',
      router: () =>
        guarded()
          .use(answersByItself as never)
          .get('/me', handler('me')),
      says: 'use /*: no guard covers answersByItself',
      who: 'middleware',
      fixed: () =>
        guarded()
          .get('/me', handler('me'))
          .use(answersByItself as never),
    },
    {
      name: 'a guard after the handler',
      router: () => addUnchecked(new Router(), '/me', handler('me'), guardOf(bearer)),
      says: 'GET /me: its withAuth(...) comes after the handler',
      who: 'me',
      fixed: () => new Router().get('/me', guardOf(bearer) as never, handler('me')),
    },
  ])('$name', async ({ router, options, says, who, fixed }) => {
    expect(() => seal(router(), options)).toThrow(says)
    expect(await bare(router(), '/me', who)).toMatchObject({ status: 200, calls: 1 })
    const sealed = seal(fixed(), options)
    expect(await bare(sealed, '/me', who)).toMatchObject({ status: 401, calls: 0 })
    expect((await get(served.port, '/me', 'supersecret')).status).toBe(200)
  })
})

describe('a sealed router', () => {
  it('serves what it served before, and a route that was refused is a 404', async () => {
    const router = seal(guarded().get('/me', handler('me')).get('/health', open, handler('health')), {
      public: ['GET /health'],
    })
    expect(() => router.get('/late', handler('late'))).toThrow(TypeError)
    expect(await bare(router, '/health', 'health')).toMatchObject({ status: 200, calls: 1 })
    expect(await bare(router, '/me', 'me')).toMatchObject({ status: 401, calls: 0 })
    expect(await bare(router, '/late', 'late')).toMatchObject({ status: 404, calls: 0 })
  })

  it('may have given away its routes() before', async () => {
    const router = guarded()
    const routes = router.get('/me', handler('me')).routes() as unknown as { router: RouterInstance }
    seal(router)
    expect(routes.router).toBe(router)
    expect(await bare(routes.router, '/me', 'me')).toMatchObject({ status: 401, calls: 0 })
  })
})

describe('the example application', () => {
  const routerOf = (app: Koa): RouterInstance => {
    const [router] = app.middleware.flatMap((each) => ('router' in each ? [each.router as RouterInstance] : []))
    return router!
  }
  const make = async () => {
    const database = await openDatabase(':memory:')
    return exampleApp({ database, keys: ['k'.repeat(32)], allowedAddresses: '127.0.0.1' })
  }
  const mine = ['POST /api/token', 'POST /api/login', 'POST /api/logout']

  it('can be sealed if its public operations and its docs page are listed, and still serves them', async () => {
    const app = await make()
    const router = routerOf(app)
    // Listing the page lists the files that it loads
    const docs = ['GET /api/docs', 'GET /api/openapi.json']
    expect(seal(router, { public: [...mine, ...docs] })).toBe(router)
    const { port, close } = await listen(app)
    try {
      const statuses = await Promise.all(
        audit(router)
          .operations.filter(({ method }) => method === 'GET')
          .map(async ({ path, access }) => [access, (await get(port, path)).status] as const),
      )
      // Guarded by the address of the client, which is allowed
      expect(new Set(statuses.map(String))).toEqual(new Set(['public,200', 'guarded,401', 'guarded,200']))
    } finally {
      await close()
    }
  })

  it('is refused if they are not listed, for no other reason', async () => {
    const router = routerOf(await make())
    const says = mine.map((name) => `- ${name} is public: guard it, or list '${name}' in public`)
    const message = (() => {
      try {
        seal(router)
        return ''
      } catch (error) {
        return (error as Error).message
      }
    })()
    expect(message.split('\n').filter((line) => !/\/api\/(?:docs|openapi\.json)/.test(line))).toEqual([
      expect.stringMatching(/^seal\(router\): \d+ findings$/),
      ...says,
    ])
  })
})
