/**
 * A handler may send the head by itself (`ctx.respond = false`, `flushHeaders`, events). What it wrote into the session is kept,
 * the session is prolonged, and the response ends.
 */
import Router from '@koa/router'
import type { Context } from 'koa'
import { withAuth } from 'koa-with-auth'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { expectSignedIn, sessionsApp, signedInApp, setCookies } from '../support/sites/sessionsApp.js'

const anna = { username: 'anna', isActive: true }

const ways: ReadonlyArray<readonly [string, (ctx: Context, write: () => void, status?: number) => void]> = [
  [
    'a raw head, and ctx.respond = false',
    (ctx, write, status = 200) => {
      write()
      ctx.respond = false
      ctx.res.writeHead(status, { 'Content-Type': 'text/event-stream' })
      ctx.res.end('data: 1\n\n')
    },
  ],
  [
    'flushHeaders, and a body',
    (ctx, write, status = 200) => {
      write()
      ctx.status = status
      ctx.flushHeaders()
      ctx.body = 'data: 1\n\n'
    },
  ],
]

const count = (ctx: Context) => {
  const session = ctx['session'] as { n?: number }
  session.n = (session.n ?? 0) + 1
}

describe.each(ways)('%s', (_way, send) => {
  const site = (write: (ctx: Context) => void, late: (ctx: Context) => void = () => {}) =>
    sessionsApp(undefined, {
      idle: 10_000,
      below: (app) =>
        app.use(
          new Router()
            .post('/stream', withAuth(null), (ctx) => {
              send(ctx, () => write(ctx), Number(ctx.query['is'] ?? 200))
              late(ctx)
            })
            .routes(),
        ),
    })

  it('keeps what was written into a session that the browser has', async () => {
    const { visitor, errors } = await site(count)
    const one = visitor()
    await one.post('/login')
    for (let n = 1; n <= 3; n++) {
      expect((await one.post('/stream')).status).toBe(200)
      expect((await one.ask('/read')).body).toMatchObject({ n })
    }
    await expectSignedIn(one, anna)
    expect(errors).toEqual([])
  })

  it('also what is written after the head', async () => {
    const { visitor, errors } = await site(() => {}, count)
    const one = visitor()
    await one.post('/login')
    await one.post('/stream')
    expect((await one.ask('/read')).body).toMatchObject({ n: 1 })
    expect(errors).toEqual([])
  })

  it('gives a visitor without a session one, with the head', async () => {
    const { visitor, errors } = await site(count)
    const one = visitor()
    const answer = await one.post('/stream')
    expect(setCookies(answer)).not.toEqual([])
    expect((await one.ask('/read')).body).toMatchObject({ n: 1 })
    expect(errors).toEqual([])
  })

  it('says what is lost if a new session begins after the head, and ends the response', async () => {
    const { visitor, errors } = await site(() => {}, count)
    const one = visitor()
    expect((await one.post('/stream')).status).toBe(200)
    expect(errors.map(String)).toEqual([expect.stringContaining('the changes of ctx.session by the handler are lost')])
    expect((await one.ask('/read')).body).not.toHaveProperty('n')
  })

  it('prolongs a session past half of its idle time, in the store and in the browser', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    try {
      const { visitor, errors } = await site(() => {})
      const one = visitor()
      await one.post('/login')
      for (let n = 0; n < 5; n++) {
        vi.setSystemTime(Date.now() + 6_000)
        expect(setCookies(await one.post('/stream?is=400'))).toEqual([])
        const answer = await one.post('/stream')
        expect(setCookies(answer).join()).toContain('session=')
      }
      await expectSignedIn(one, anna)
      expect(errors).toEqual([])
    } finally {
      vi.useRealTimers()
    }
  })

  it('gives the browser the new id of a session that got one past half of its idle time', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    onTestFinished(() => void vi.useRealTimers())
    const { one } = await signedInApp(undefined, {
      idle: 10_000,
      below: (app, { addProof }) =>
        app.use(
          new Router()
            .post('/step', withAuth(null), async (ctx) => {
              await addProof(ctx, { method: 'totp' })
              send(ctx, () => {})
            })
            .routes(),
        ),
    })
    vi.setSystemTime(Date.now() + 6_000)
    await one.post('/step')
    await expectSignedIn(one, anna)
  })
})
