/** The example application, and those with a docs page, can be sealed. That what `seal` refuses is a hole: access.http. */
import Router, { type RouterInstance } from '@koa/router'
import Koa from 'koa'
import { audit, seal } from 'koa-with-auth/audit'
import { describe, expect, it } from 'vitest'
import { apiApp, httpBasicAuth, httpBearer, withAuth } from 'koa-with-auth'
import { expectGuarded } from 'koa-with-auth/testing'
import { exampleApp } from '../../examples/api/app.js'
import { openDatabase } from '../../examples/api/database.js'
import { get } from '../support/models/levels.js'
import { messageOf } from '../support/projects/mistakes.js'
import { listen } from '../support/servers/server.js'
import { addDocs } from '../../src/openapi/docs.js'

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
    const message = messageOf(() => seal(router))
    expect(message.split('\n').filter((line) => !/\/api\/(?:docs|openapi\.json)/.test(line))).toEqual([
      expect.stringMatching(/^seal\(router\): \d+ findings$/),
      ...says,
    ])
  })
})

const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
const basic = httpBasicAuth({ authenticate: (_request, user) => user === 'dev' && { user } })

const api = (docs: NonNullable<Parameters<typeof apiApp>[0]>['docs'] = true): RouterInstance => {
  const made = apiApp({ prefix: '/api', auth: bearer, docs })
  made.get('/me', () => {})
  made.get('/health', withAuth(null), () => {})
  return made
}

const both = async (make: () => RouterInstance, list: ReadonlyArray<string>): Promise<ReadonlyArray<string>> => {
  const messages: string[] = []
  const keep = (error: unknown) => void messages.push(String(error))
  try {
    seal(make(), { public: list })
  } catch (error) {
    keep(error)
  }
  const router = make()
  await expectGuarded(new Koa().use(router.routes()), router, { public: list }).catch(keep)
  return messages
}

describe("public: ['docs']", () => {
  it.each([
    ['docs', ['GET /api/health', 'docs']],
    ['the names of the page and the document', ['GET /api/health', 'GET /api/docs', 'GET /api/openapi.json']],
  ])('%s: lists everything of a docs page', async (_what, list) => {
    expect(await both(api, list)).toEqual([])
  })

  it('lists the pages of routers that are mounted in others, also if there are two', async () => {
    const outer = () => new Router().use('/a', api().routes()).use('/b', api().routes()) as RouterInstance
    expect(await both(outer, ['GET /a/api/health', 'GET /b/api/health', 'docs'])).toEqual([])
  })

  it('lists nothing else', async () => {
    const messages = await both(api, ['docs'])
    expect(messages).toHaveLength(2)
    for (const message of messages) {
      expect(message).toContain('GET /api/health')
      expect(message).not.toContain('/api/docs')
    }
  })

  it('is not needed if the page is listed by its path: each message names the page, not what it loads', async () => {
    const messages = await both(api, ['GET /api/health'])
    expect(messages).toHaveLength(2)
    for (const message of messages) {
      expect(message).toContain("list 'GET /api/docs' in")
      expect(message).toContain("list 'GET /api/openapi.json' in")
      expect(message).not.toContain("list 'GET /api/docs/")
    }
  })

  it('is refused if there is no docs page', async () => {
    const text = 'the router has no docs page: give apiApp the option docs, or mount docs(router, ...)'
    const why = expect.stringContaining(text)
    expect(await both(() => api(false), ['GET /api/health', 'docs'])).toEqual([why, why])
  })

  it('is refused if the docs page is guarded', async () => {
    const messages = await both(() => api({ auth: basic }), ['GET /api/health', 'docs'])
    expect(messages.join()).not.toContain('no docs page')
    const why = ["'docs' is listed in public, but it is guarded", 'docs: listed as public, but it is not']
    expect(messages).toEqual(why.map((one) => expect.stringContaining(one) as unknown))
  })
})

describe('without swagger-ui-dist', () => {
  const bare = (): RouterInstance => {
    const router = withAuth(bearer)(new Router({ prefix: '/api' })).get('/me', () => {}) as unknown as RouterInstance
    const options = { title: 'Pets', version: '1.0.0', auth: null }
    addDocs(router, router, 'docs', options, undefined)
    return router
  }

  it("'docs' lists only the document", async () => {
    expect(await both(bare, ['docs'])).toEqual([])
  })

  it('a listed page is refused, and both messages say what is missing', async () => {
    const why = 'the docs page needs swagger-ui-dist, which is not installed: npm install swagger-ui-dist'
    const messages = await both(bare, ['GET /api/docs', 'GET /api/openapi.json'])
    expect(messages).toEqual([expect.stringContaining(why), expect.stringContaining(why)])
  })
})
