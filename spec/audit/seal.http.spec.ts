/** The example application can be sealed. That what `seal` refuses is a hole: access.http. */
import type { RouterInstance } from '@koa/router'
import type Koa from 'koa'
import { audit, seal } from 'koa-with-auth/audit'
import { describe, expect, it } from 'vitest'
import { exampleApp } from '../../examples/api/app.js'
import { openDatabase } from '../../examples/api/database.js'
import { get } from '../support/models/levels.js'
import { listen } from '../support/servers/server.js'

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
