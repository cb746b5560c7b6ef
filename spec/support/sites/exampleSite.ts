/** The example API and its page at `/`, combined as `npm start` does, with a separate database. */
import type Koa from 'koa'
import { afterAll, beforeAll } from 'vitest'
import { exampleApp } from '../../../examples/api/app.js'
import { openDatabase } from '../../../examples/api/database.js'
import { listen, type Served } from '../servers/server.js'

/** Serves it while the surrounding suite runs. */
export const exampleSite = (): { readonly now: () => Served } => {
  let served: Awaited<ReturnType<typeof listen>> | undefined
  let database: Awaited<ReturnType<typeof openDatabase>> | undefined
  beforeAll(async () => {
    database = await openDatabase('file::memory:')
    const app: Koa = exampleApp({ database, keys: ['k'.repeat(32)], allowedAddresses: '127.0.0.1' })
    served = await listen(app)
  })
  afterAll(async () => {
    await served?.close()
    database?.close()
  })
  return {
    now: () => {
      if (served === undefined) throw new Error('not served yet: read it inside of a test')
      return served
    },
  }
}
