/** `shutDown`: streams end with a reason of their own, other responses are completed, and nothing is taken after the time limit. */
import { EventEmitter, once } from 'node:events'
import { createServer } from 'node:http'
import { PassThrough } from 'node:stream'
import Router from '@koa/router'
import Koa from 'koa'
import { authSignal, httpBearer, untilEnd, withAuth } from 'koa-with-auth'
import { mockRequest } from 'koa-with-auth/testing'
import { guardRequest, shutDown } from 'koa-with-auth/upgrades'
import { expect, it, onTestFinished, vi } from 'vitest'
import { ownEnds } from '../support/runs/ownEnds.js'
import { listening } from '../support/servers/server.js'

const bearer = httpBearer({ authenticate: (_request, token) => token === 'good' && { user: 'anna' } })
const headers = { authorization: 'Bearer good' }

const site = async () => {
  ownEnds()
  const answers = new EventEmitter()
  const begun = once(answers, 'begun') as Promise<[AbortSignal]>
  const router = new Router()
  router.get('/stream', withAuth(bearer), (ctx) => {
    const source = new PassThrough()
    source.write('open')
    ctx.body = untilEnd(ctx, source)
  })
  router.get('/slow', withAuth(bearer), async (ctx) => {
    const answer = once(answers, 'answer')
    answers.emit('begun', authSignal(ctx))
    ctx.body = (await answer)[0] as string
  })
  const app = new Koa().use(router.routes())
  app.silent = true
  const serve = app.callback()
  const server = createServer((request, response) => void serve(request, response))
  const port = await listening(server)
  const get = (path: string) => fetch(`http://127.0.0.1:${port}${path}`, { headers })
  return { server, begun, answers, get, app }
}

it('ends streams and signals at once, waits for other responses, and takes no new connections', async () => {
  const { server, begun, answers, get } = await site()
  const stream = await get('/stream')
  const slow = get('/slow')
  const [signal] = await begun
  const over = shutDown(server)
  expect(await stream.text()).toBe('open')
  expect(signal.reason).toMatchObject({ code: 'ERR_AUTH_ENDED', cause: 'shutting down' })
  await expect(get('/slow')).rejects.toThrow()
  answers.emit('answer', 'complete')
  expect(await (await slow).text()).toBe('complete')
  await over
  expect(server.listening).toBe(false)
})

it('closes what is left after the time limit', async () => {
  const { server, begun, get } = await site()
  const slow = get('/slow')
  await begun
  await Promise.all([expect(slow).rejects.toThrow(), shutDown(server, { timeout: 50 })])
})

it('a signal that is asked for later is aborted', async () => {
  const { server, app } = await site()
  await shutDown(server)
  const { req } = mockRequest({ fields: [['Host', 'a'], ['Authorization', 'Bearer good']] }) // prettier-ignore
  const { signal } = (await guardRequest(app, bearer)(req)) as { signal: AbortSignal }
  expect(signal.reason).toMatchObject({ cause: 'shutting down' })
})

it('a time limit that is none is a TypeError', async () => {
  const { server } = await site()
  expect(() => shutDown(server, { timeout: 0 })).toThrow('shutDown(server, { timeout })')
  server.close()
})

it('waits ten seconds if nothing else is said, and leaves no timer behind', async () => {
  const [late, often] = [vi.spyOn(globalThis, 'setTimeout'), vi.spyOn(globalThis, 'setInterval')]
  const cleared = [vi.spyOn(globalThis, 'clearTimeout'), vi.spyOn(globalThis, 'clearInterval')] as const
  onTestFinished(() => void vi.restoreAllMocks())
  ownEnds()
  const server = createServer()
  await listening(server)
  await shutDown(server)
  for (const [at, made, ms] of [
    [0, late, 10_000],
    [1, often, 100],
  ] as const) {
    const timer: unknown = made.mock.results[made.mock.calls.findIndex((given) => given[1] === ms)]?.value
    expect(timer).toBeDefined()
    expect(cleared[at]).toHaveBeenCalledWith(timer)
  }
})
