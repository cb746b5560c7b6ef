/**
 * Routers whose prefix has parameters. `@koa/router` 14 drops middleware of such a router, which it reports as
 * CVE-2026-9495; a guard is no such middleware.
 */
import { createRequire } from 'node:module'
import type Router from '@koa/router'
import Koa from 'koa'
import { httpBearer, withAuth } from 'koa-with-auth'
import { expect, it, onTestFinished } from 'vitest'
import { ask, listen } from '../../support/servers/server.js'

const required = createRequire(import.meta.url)
const bearer = httpBearer({ authenticate: (_request, token) => token === 'good' && { user: 'anna' } })

it.each(['koa-router-12', 'koa-router-13', 'koa-router-14', '@koa/router'])(
  'a guard of a router whose prefix has parameters, in %s',
  async (name) => {
    // Safe: these versions have the methods that are used here. Newer ones have a default export
    const loaded = required(name) as typeof Router & { readonly default?: typeof Router }
    const OfVersion = loaded.default ?? loaded
    let ran = 0
    const handle = (ctx: Koa.Context): void => {
      ran++
      ctx.body = 'ok'
    }
    const notes = withAuth(bearer)(new OfVersion({ prefix: '/teams/:team' }))
    notes.get('/notes', handle).get('/notes/:id', handle)
    const app = new Koa()
    app.use(notes.routes())
    const { url, close } = await listen(app)
    onTestFinished(close)
    for (const path of ['/teams/1/notes', '/teams/1/notes/7']) {
      const { status, challenge } = await ask(`${url}${path}`)
      expect([status, challenge, ran]).toStrictEqual([401, 'Bearer realm="api"', 0])
      expect(await ask(`${url}${path}`, { headers: { authorization: 'Bearer good' } })).toMatchObject({ status: 200 })
      expect(ran).toBe(1)
      ran = 0
    }
  },
)
