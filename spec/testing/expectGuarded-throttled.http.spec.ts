/** `expectGuarded` and `throttled`: a check counts no guesses, and no count decides about it. */
import Router from '@koa/router'
import Koa from 'koa'
import { anyOf, apiKeyHeader, httpBasicAuth, throttled, withAuth, type Authenticator } from 'koa-with-auth'
import { expectGuarded } from 'koa-with-auth/testing'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { describe, expect, it, vi } from 'vitest'
import { listen } from '../support/servers/server.js'

const basic = httpBasicAuth({ authenticate: (_request, username, password) => password === 's3cret' && { username } })
const key = apiKeyHeader({ authenticate: (_request, sent) => sent === 'k1' && { username: 'key' } })

const served = (auth: Authenticator<unknown>) => {
  const router = withAuth(auth)(new Router())
  router.get('/pets', (ctx) => {
    ctx.body = 'Rex'
  })
  const app = new Koa()
  app.silent = true
  return { router, app: app.use(router.routes()) }
}

const limited = (points: number) => {
  const limiter = new RateLimiterMemory({ points, duration: 900 })
  return { limiter, used: [vi.spyOn(limiter, 'consume'), vi.spyOn(limiter, 'reward')] }
}

const trees: ReadonlyArray<
  [string, (throttle: <A>(a: Authenticator<A>) => Authenticator<A>) => Authenticator<unknown>]
> = [
  ['one kind', (throttle) => throttle(basic)],
  ['a list', (throttle) => throttle(anyOf([basic, key]))],
]

describe('expectGuarded', () => {
  it.each(trees)('passes %s with a limiter of one point, and sends it nothing', async (_what, treeOf) => {
    const { limiter, used } = limited(1)
    const { app, router } = served(treeOf(throttled({ limiter })))
    expect(await expectGuarded(app, router)).toMatchObject([{ protection: 'guarded' }])
    await expectGuarded(app, router)
    for (const spy of used) expect(spy).not.toHaveBeenCalled()
  })

  it('passes where all guesses were used before, and gives none back', async () => {
    const { limiter } = limited(1)
    const { app, router } = served(throttled({ limiter })(basic))
    const { port } = await listen(app)
    const guess = async () =>
      (
        await fetch(`http://127.0.0.1:${port}/pets`, {
          headers: { authorization: `Basic ${Buffer.from('anna:wrong').toString('base64')}` },
        })
      ).status
    expect([await guess(), await guess()]).toEqual([401, 429])
    await expectGuarded(app, router)
    expect(await guess()).toBe(429)
  })

  it('fails where something else than throttled answers 429', async () => {
    const { app, router } = served(basic)
    app.middleware.unshift((ctx) => {
      ctx.status = 429
    })
    await expect(expectGuarded(app, router)).rejects.toThrow(/answers 429 instead of 401/)
  })
})
