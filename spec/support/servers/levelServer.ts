/**
 * A real server that gets new levels for each request: a router for each level except the innermost, which is an
 * operation.
 */
import { Agent } from 'node:http'
import Router, { type RouterInstance } from '@koa/router'
import Koa, { type Context, type Middleware } from 'koa'
import { afterAll } from 'vitest'
import type { Level } from '../models/evaluator.js'
import { authOf } from '../sites/guardedApp.js'
import { guardOf } from '../models/levels.js'
import { exchange, serve } from './server.js'
import { decisionOf, fieldsOf, treesOf } from '../models/trees.js'

/** Serves while the surrounding suite runs. */
export const useLevels = () => {
  // those of the last request
  let routes: Middleware
  const served = serve(() => {
    const app = new Koa()
    app.silent = true
    return app.use((ctx, next) => routes(ctx, next))
  })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  afterAll(() => agent.destroy())
  /** The response, the hooks that were called, in order, and how often the operation ran. */
  const answerTo = async (of: ReadonlyArray<Level>) => {
    const calls: string[] = []
    let ran = 0
    const { router, path } = mounted(of, calls, (ctx) => {
      ran++
      ctx.body = { auth: authOf(ctx) ?? null }
    })
    // Safe: Koa calls it with its context
    routes = router.routes() as Middleware
    const headers = fieldsOf(treesOf(of)).flat()
    const { status, challenges, text } = await exchange({ agent, port: served.port, path, method: 'POST', headers })
    return { status, challenges, text, calls, ran }
  }
  return { answerTo }
}

const mounted = (of: ReadonlyArray<Level>, calls: string[], handler: (ctx: Context) => void) => {
  const operation = of.at(-1) ?? 'inherit'
  // Safe: a router calls its functions with a Koa context
  const handle = handler as never
  const innermost = new Router()
  if (operation === 'inherit') innermost.post('/o', handle)
  else innermost.post('/o', guardOf(decisionOf(operation, calls)), handle)
  return of.slice(0, -1).reduceRight<{ router: RouterInstance; path: string }>(
    ({ router, path }, level) => ({
      router:
        level === 'inherit'
          ? new Router().use('/p', router.routes())
          : guardOf(decisionOf(level, calls))(new Router()).use('/p', router.routes()),
      path: `/p${path}`,
    }),
    { router: innermost, path: '/o' },
  )
}
