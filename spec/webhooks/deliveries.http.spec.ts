/** With `spent`, a delivery is handled once: it is a 409 while its handler runs, and a 200 after a 2xx. After any other answer it may come again. H-06. */
import { createHmac } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import type Koa from 'koa'
import { allOf, anyOf, httpBearer } from 'koa-with-auth'
import { memoryStore, oneTimeIds, type Store } from 'koa-with-auth/stores'
import { github, standardWebhooks, stripe, webhook } from 'koa-with-auth/webhooks'
import { Webhook } from 'standardwebhooks'
import { describe, expect, it, onTestFinished } from 'vitest'
import { stoppedClock } from '../support/runs/clock.js'
import { githubSignature, SECRET, webhookSite } from '../support/sites/webhookSite.js'

let hangUp = (): Promise<void> => Promise.resolve()

const bearer = httpBearer({ authenticate: (_request, token) => token === 't' && { user: 'anna' } })
const spent = (store: Store = memoryStore()) => oneTimeIds(store)

describe('a delivery', () => {
  it.each([
    ['accept', 200],
    ['refuse', 409],
  ] as const)(
    'is answered after a 2xx by repeated: %s with %i, and another one is handled',
    async (repeated, status) => {
      const site = await webhookSite({ hook: { spent: spent(), repeated } })
      expect(await site.status('a')).toBe(204)
      const again = await site.send('a')
      expect([again.status, again.headers.get('cache-control')]).toStrictEqual([status, 'no-store'])
      // what development says of it
      const tried = { failure: 'raised', reason: 'an HTTP error is the answer', why: 'replay' }
      const body = await again.text()
      expect(body === '' || (JSON.parse(body) as object)).toEqual(
        status === 200 || expect.objectContaining({ tried: [expect.objectContaining(tried)] }),
      )
      expect(await site.status('b')).toBe(204)
      expect(await site.status('a')).toBe(status)
      expect(site.handled.map(String)).toStrictEqual(['a', 'b'])
    },
  )

  it('is free again before the answer of a failure has arrived, however slow its store is', async () => {
    const ids = spent()
    let isReleased = false
    const slow = {
      use: ids.use,
      release: async (id: string, lifetime?: number) => {
        await new Promise((resolve) => setTimeout(resolve, 50))
        await ids.release(id, lifetime)
        isReleased = true
      },
    }
    const site = await webhookSite({ hook: { spent: slow }, handler: (ctx) => void (ctx.status = 503) })
    expect(await site.status('a')).toBe(503)
    expect(isReleased).toBe(true)
  })

  it('is a 409 while its handler runs', async () => {
    const events = new EventEmitter()
    const site = await webhookSite({ hook: { spent: spent() }, handler: () => once(events, 'leave') })
    const first = site.send('a')
    await expect.poll(() => site.handled.length).toBe(1)
    expect(await site.status('a')).toBe(409)
    events.emit('leave')
    expect((await first).status).toBe(204)
    expect(await site.status('a')).toBe(200)
    expect(site.handled).toHaveLength(1)
  })

  it.each([
    ['a 500 of an exception', () => Promise.reject(new Error('down'))],
    ['a 503', (ctx: Koa.Context) => void (ctx.status = 503)],
    ['a 404', (ctx: Koa.Context) => void (ctx.status = 404)],
    ['a 300', (ctx: Koa.Context) => void (ctx.status = 300)],
  ])('may come again after %s, at once', async (_name, fail) => {
    let isDown = true
    const site = await webhookSite({ hook: { spent: spent() }, handler: (ctx) => (isDown ? fail(ctx) : undefined) })
    for (let time = 0; time < 5; time++) expect(await site.status('a')).not.toBe(200)
    isDown = false
    expect(await site.status('a')).toBe(204)
    expect(await site.status('a')).toBe(200)
    expect(site.handled).toHaveLength(6)
  })

  it('may come again if middleware above made a failure of its answer, and counts if it made a 2xx of a failure', async () => {
    let [answered, sent] = [204, 500]
    const site = await webhookSite({
      hook: { spent: spent() },
      handler: (ctx) => void (ctx.status = answered),
      above: [
        async (ctx, next) => {
          await next()
          if (ctx.status === answered) ctx.status = sent
        },
      ],
    })
    expect(await site.status('a')).toBe(500)
    ;[answered, sent] = [503, 204]
    await expect.poll(async () => await site.status('a')).toBe(204)
    await expect.poll(async () => await site.status('a')).toBe(200)
    const before = site.handled.length
    expect(await site.status('a')).toBe(200)
    expect(site.handled).toHaveLength(before)
  })

  it('may come again if its sender hung up while it was being taken', async () => {
    const ids = spent()
    const released: string[] = []
    const site = await webhookSite({
      above: [
        async (ctx, next) => {
          hangUp = async () => {
            if (ctx.res.destroyed) return
            const closed = once(ctx.res, 'close')
            ctx.res.destroy()
            await closed
          }
          await next()
        },
      ],
      hook: {
        spent: {
          use: async (id, lifetime) => {
            const isFirst = await ids.use(id, lifetime)
            await hangUp()
            return isFirst
          },
          release: (id, lifetime) => (released.push(id), ids.release(id, lifetime)),
        },
      },
    })
    await expect(site.send('a')).rejects.toThrow()
    // the delivery, and that its handler runs
    await expect.poll(() => released.length).toBe(2)
  })

  it('may come again if its answer broke off', async () => {
    let isDown = true
    const site = await webhookSite({
      hook: { spent: spent() },
      handler: (ctx) => {
        if (!isDown) return
        ctx.status = 200
        ctx.set('Content-Length', '9')
        ctx.respond = false
        ctx.res.write('1')
        ctx.res.destroy()
      },
    })
    await expect(site.send('a').then((one) => one.text())).rejects.toThrow()
    isDown = false
    await expect.poll(async () => await site.status('a')).toBe(204)
  })

  it('is not taken by a request that another member refuses', async () => {
    const site = await webhookSite({ hook: { spent: spent() }, around: (hook) => allOf({ hook, bearer }) })
    const statuses: number[] = []
    for (const token of ['wrong', 'wrong', 't', 't'])
      statuses.push(await site.status('a', { Authorization: `Bearer ${token}` }))
    expect(statuses).toStrictEqual([401, 401, 204, 200])
  })

  it('is taken once by a request that asks twice, by a level and by an operation', async () => {
    const site = await webhookSite({ hook: { spent: spent() }, around: (hook) => allOf([hook, hook]) })
    expect([await site.status('a'), await site.status('a')]).toStrictEqual([204, 200])
  })

  it('is the same while one secret replaces another, and apart for two senders', async () => {
    const shared = spent()
    const both = await webhookSite({ hook: { spent: shared, secrets: ['new-secret', SECRET] } })
    const old = await webhookSite({ hook: { spent: shared } })
    const another = await webhookSite({ hook: { spent: shared, secrets: 'a-secret-of-another-tenant' } })
    expect(await old.status('a')).toBe(204)
    expect(await both.status('a')).toBe(200)
    expect(await both.status('b')).toBe(204)
    expect(await old.status('b')).toBe(200)
    const headers = { 'X-Hub-Signature-256': githubSignature('b', 'new-secret') }
    expect(await both.status('b', headers)).toBe(200)
    const theirs = { 'X-Hub-Signature-256': githubSignature('a', 'a-secret-of-another-tenant') }
    expect(await another.status('a', theirs)).toBe(204)
  })

  it('is known by its signed id, also when it is signed again at another time', async () => {
    const clock = stoppedClock()
    const secret = `whsec_${Buffer.from(SECRET).toString('base64')}`
    const site = await webhookSite({ hook: { scheme: standardWebhooks, secrets: secret, spent: spent() } })
    const send = (id: string, body = 'a') => {
      const at = new Date()
      const headers = {
        'Webhook-Id': id,
        'Webhook-Timestamp': String(Math.floor(at.getTime() / 1000)),
        'Webhook-Signature': new Webhook(secret).sign(id, at, body),
      }
      return site.status(body, headers)
    }
    expect(await send('m1')).toBe(204)
    clock.move(3_600_000)
    expect(await send('m1')).toBe(200)
    expect(await send('m1', 'b')).toBe(200)
    expect(await send('m2')).toBe(204)
    clock.move(4 * 86_400_000)
    expect(await send('m1')).toBe(204)
  })

  it('is known to a request that came in time, and whose body came 9 s later', async () => {
    const clock = stoppedClock()
    clock.set(-(Date.now() % 1000))
    let asked = 0
    const secrets = () => (asked++, SECRET)
    const site = await webhookSite({ hook: { scheme: stripe, secrets, spent: spent() } })
    const seconds = Date.now() / 1000 + 5
    const signature = createHmac('sha256', SECRET).update(`${seconds}.a`).digest('hex')
    const headers = { 'Stripe-Signature': `t=${seconds},v1=${signature}` }
    expect(await site.status('a', headers)).toBe(204)
    clock.move(305_000)
    const late = request(`${site.url}/hook`, { method: 'POST', headers: { ...headers, 'Content-Length': 1 } })
    late.flushHeaders()
    await expect.poll(() => asked).toBe(2)
    clock.move(9000)
    late.end('a')
    const [answer] = (await once(late, 'response')) as [IncomingMessage]
    answer.resume()
    expect([answer.statusCode, site.handled.map(String)]).toEqual([200, ['a']])
    expect(await site.status('a', headers)).toBe(401)
  })

  it('comes back after some minutes if its process ended in the middle', async () => {
    const clock = stoppedClock()
    const store = memoryStore()
    let left = false
    const site = await webhookSite({
      hook: { spent: spent(store) },
      handler: () => (left ? undefined : new Promise<void>(() => {})),
    })
    const socket = connect(site.port, '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    socket.write(
      `POST /hook HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nX-Hub-Signature-256: ${githubSignature('a')}\r\n\r\na`,
    )
    await once(socket, 'connect')
    await expect.poll(() => site.handled.length).toBe(1)
    left = true
    const other = await webhookSite({ hook: { spent: spent(store) } })
    for (const passes of [0, 541_000]) {
      clock.move(passes)
      expect(await other.status('a')).toBe(409)
    }
    clock.move(60_000)
    expect(await other.status('a')).toBe(204)
  })

  it('that fails in a process which stood still is not released, because another one has handled it', async () => {
    const clock = stoppedClock()
    const store = memoryStore()
    const events = new EventEmitter()
    const failed = (ctx: Koa.Context) => once(events, 'leave').then(() => void (ctx.status = 503))
    const site = await webhookSite({ hook: { spent: spent(store) }, handler: failed })
    const first = site.send('a')
    await expect.poll(() => site.handled.length).toBe(1)
    clock.move(601_000)
    const other = await webhookSite({ hook: { spent: spent(store) } })
    expect(await other.status('a')).toBe(204)
    events.emit('leave')
    expect((await first).status).toBe(503)
    expect(await other.status('a')).toBe(200)
    expect(other.handled).toHaveLength(1)
  })
})

describe('a store that is down', () => {
  it('is a 503, and no handler runs', async () => {
    const down: Store = { ...memoryStore(), insert: () => Promise.reject(new Error('down')) }
    const site = await webhookSite({ hook: { spent: spent(down) } })
    expect(await site.status('a')).toBe(503)
    expect(site.handled).toStrictEqual([])
  })

  it('that fails after the handler changes no answer', async () => {
    const store = memoryStore()
    let isDown = true
    const fail = () => ((isDown = false), Promise.reject(new Error('down')))
    const failing: Store = { ...store, update: (...given) => (isDown ? fail() : store.update(...given)) }
    const site = await webhookSite({
      hook: { spent: spent(failing) },
      handler: (ctx) => {
        if (ctx.request.auth.body.toString() === 'bad') ctx.status = 500
      },
    })
    // nothing after a failure is released, so it does not look handled
    expect([await site.status('good'), await site.status('good')]).toStrictEqual([204, 409])
    isDown = true
    expect(await site.status('bad')).toBe(500)
  })

  it('must be able to release what it has taken', () => {
    const without = { use: () => Promise.resolve(true) }
    expect(() => webhook({ scheme: github, secrets: SECRET, spent: without as never })).toThrow(
      'webhook({ spent }) has no method release; pass oneTimeIds(store) of koa-with-auth/stores',
    )
  })
})

it('a bearer beside a webhook costs the delivery nothing', async () => {
  const site = await webhookSite({ hook: { spent: spent() }, around: (hook) => anyOf([bearer, hook]) })
  expect(await site.status('a', { Authorization: 'Bearer t' })).toBe(204)
  expect(await site.status('a')).toBe(204)
  expect(await site.status('a')).toBe(200)
})
