/**
 * A handler may send the head by itself (`ctx.respond = false`, `flushHeaders`, events). What it wrote into the session is kept,
 * the session is prolonged, and the response ends.
 */
import type { Context } from 'koa'
import { describe, expect, it } from 'vitest'
import { stoppedClock } from '../support/runs/clock.js'
import { anna, expectSignedIn, sessionsApp, signedInApp, setCookies } from '../support/sites/sessionsApp.js'

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
  const site = (write: (ctx: Context) => void, late: (ctx: Context) => void = () => {}, https?: boolean) =>
    sessionsApp(undefined, {
      ...(https !== undefined && { https }),
      idle: 10_000,
      acts: {
        '/stream': (ctx) => {
          ctx.remove('Content-Length')
          send(ctx, () => write(ctx), Number(ctx.query['is'] ?? 200))
          late(ctx)
        },
      },
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

  it('gives none over http if browsers use https', async () => {
    const { visitor, errors } = await site(count, undefined, true)
    expect(setCookies(await visitor().post('/stream'))).toEqual([])
    expect(errors.map(String)).toEqual([expect.stringContaining('came over http')])
  })

  it('says what is lost if a new session begins after the head, and ends the response', async () => {
    const { visitor, errors } = await site(() => {}, count)
    const one = visitor()
    expect((await one.post('/stream')).status).toBe(200)
    expect(errors.map(String)).toEqual([expect.stringContaining('the changes of ctx.session by the handler are lost')])
    expect((await one.ask('/read')).body).not.toHaveProperty('n')
  })

  it('prolongs a session past half of its idle time, in the store and in the browser', async () => {
    const clock = stoppedClock()
    const { visitor, errors } = await site(() => {})
    const one = visitor()
    await one.post('/login')
    for (let n = 0; n < 5; n++) {
      clock.set(6_000)
      expect(setCookies(await one.post('/stream?is=400'))).toEqual([])
      const answer = await one.post('/stream')
      expect(setCookies(answer).join()).toContain('session=')
    }
    await expectSignedIn(one, anna)
    expect(errors).toEqual([])
  })

  it('gives the browser the new id of a session that got one past half of its idle time', async () => {
    const clock = stoppedClock()
    const { one } = await signedInApp(undefined, {
      idle: 10_000,
      acts: {
        '/prove': async (ctx, { addProof }) => {
          await addProof(ctx, { method: 'totp' })
          ctx.remove('Content-Length')
          send(ctx, () => {})
        },
      },
    })
    clock.set(6_000)
    await one.post('/prove')
    await expectSignedIn(one, anna)
  })
})
