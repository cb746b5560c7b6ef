/** What a session has open ends with it, at once, in every process (`authSignal`, `signals`). */
import { PassThrough } from 'node:stream'
import Router from '@koa/router'
import { AuthEndedError, authSignal, sessionAuth, untilEnd, withAuth } from 'koa-with-auth'
import { on, type SignedOutEvent, type StoreOutageEvent } from 'koa-with-auth/events'
import { type Signals } from 'koa-with-auth/sessions'
import { memoryStore, type Store } from 'koa-with-auth/stores'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { stampKey } from '../../src/sessions/SessionRecords.js'
import { stoppedClock } from '../support/runs/clock.js'
import { ownEnds } from '../support/runs/ownEnds.js'
import { sessionsApp, type SessionsAppOptions, type Visitor } from '../support/sites/sessionsApp.js'

// What has not come after minutes does not come
const HANGS = 120_000

const causeOf = (signal: AbortSignal): unknown =>
  signal.reason instanceof AuthEndedError ? signal.reason.cause : signal.aborted

/** A hub between processes, which a test can disturb. */
const hub = () => {
  const listeners: Array<(message: string) => void> = []
  const sent: string[] = []
  const state = { isLost: false }
  const signals = (): Signals => ({
    publish: (message) => {
      sent.push(message)
      if (!state.isLost) for (const listener of listeners) listener(message)
    },
    subscribe: (listener) => void listeners.push(listener),
  })
  const say = (message: unknown) => listeners.forEach((listener) => listener(message as string))
  return { signals, sent, state, say }
}

const site = async (store: Store, options: SessionsAppOptions = {}) => {
  const signals: AbortSignal[] = []
  const running = await sessionsApp(() => store, {
    list: true,
    ...options,
    below: (app) => {
      const router = new Router()
      router.get('/events', withAuth(sessionAuth()), (ctx) => {
        signals.push(authSignal(ctx))
        const stream = new PassThrough()
        stream.write('data: hello\n\n')
        ctx.type = 'text/event-stream'
        ctx.body = untilEnd(ctx, stream)
      })
      app.use(router.routes())
    },
  })
  const signedIn = async (user: string) => {
    const visitor = running.visitor()
    await visitor.post(`/login?user=${user}`)
    return visitor
  }
  const open = async (visitor: Visitor) => {
    const stop = new AbortController()
    onTestFinished(() => stop.abort())
    const url = `http://127.0.0.1:${running.port}/events`
    const response = await fetch(url, { headers: { Cookie: visitor.header() }, signal: stop.signal })
    const reader = response.body!.getReader()
    const read = async () => {
      const { value, done } = await reader.read()
      return done ? 'end' : Buffer.from(value).toString()
    }
    expect([response.status, await read()]).toEqual([200, 'data: hello\n\n'])
    return { signal: signals.at(-1)!, read, stop: () => stop.abort() }
  }
  return { ...running, signedIn, open }
}

type Site = Awaited<ReturnType<typeof site>>

const idOf = async (visitor: Visitor): Promise<string> => {
  const all = (await visitor.ask('/list')).body as ReadonlyArray<{ readonly id: string; readonly current: boolean }>
  return all.find(({ current }) => current)!.id
}

const signOuts: ReadonlyArray<readonly [string, (here: Site, anna: Visitor) => Promise<unknown>]> = [
  ['logOut', (_here, anna) => anna.copy().post('/logout')],
  ['logOutEverywhere', ({ signing }) => signing.logOutEverywhere('anna')],
  ['endSession', async ({ visitor }, anna) => visitor().post(`/end?of=anna&id=${await idOf(anna.copy())}`)],
  ['a session that is emptied by hand', (_here, anna) => anna.copy().post('/empty')],
  [
    'logOut, while the clock is set back by days',
    async (_here, anna) => {
      const clock = stoppedClock()
      clock.set(-172_800_000)
      await anna.copy().post('/logout')
      clock.set(172_800_000)
    },
  ],
  ['a new sign-in in the same browser', (_here, anna) => anna.copy().post('/login?user=anna')],
]

describe('a stream of a session', () => {
  it.each(signOuts)('ends at once by %s, and no other one does', async (_how, signOut) => {
    const here = await site(memoryStore())
    const [anna, sam] = [await here.signedIn('anna'), await here.signedIn('sam')]
    const [stream, other] = [await here.open(anna), await here.open(sam)]
    await signOut(here, anna)
    expect([causeOf(stream.signal), causeOf(other.signal)]).toEqual(['signed out', false])
    expect(await stream.read()).toBe('end')
  })
  it.each(signOuts)('ends in another process that gets the message, by %s', async (_how, signOut) => {
    const { signals, sent } = hub()
    const store = memoryStore()
    const [here, there] = [await site(store, { signals: signals() }), await site(store, { signals: signals() })]
    const [anna, sam] = [await here.signedIn('anna'), await here.signedIn('sam')]
    const [stream, other] = [await there.open(anna), await there.open(sam)]
    await signOut(here, anna)
    await vi.waitFor(() => expect(causeOf(stream.signal)).toBe('signed out'), HANGS)
    expect(causeOf(other.signal)).toBe(false)
    for (const message of sent) expect(message).toMatch(/^\{"v":1,"about":"[\w-]{43}","at":\d+\}$/)
  })
  it('goes on if the user of the same name signs out of another application that shares the hub', async () => {
    const { signals } = hub()
    const shared = signals()
    const two = [memoryStore(), memoryStore()].map((store) => site(store, { signals: shared }))
    const [here, there] = (await Promise.all(two)) as [Site, Site]
    const [anna, other] = [await here.signedIn('anna'), await there.signedIn('anna')]
    const [stream, ended] = [await here.open(anna), await there.open(other)]
    await there.signing.logOutEverywhere('anna')
    expect(causeOf(ended.signal)).toBe('signed out')
    await anna.ask('/list')
    expect(causeOf(stream.signal)).toBe(false)
  })
  it('goes on under a new id, here and elsewhere, and ends with that', async () => {
    const { signals, say, sent } = hub()
    const store = memoryStore()
    const [here, there] = [await site(store, { signals: signals() }), await site(store, { signals: signals() })]
    const anna = await here.signedIn('anna')
    const streams = [await here.open(anna), await there.open(anna)]
    const another = await here.signedIn('anna')
    const other = await here.open(another)
    for (const _ of [1, 2]) expect((await anna.post('/step')).status).toBe(200)
    say(JSON.stringify({ v: 1, about: 'all' }))
    await here.signing.logOutEverywhere('berta')
    say(sent[0])
    // each end of the user is looked up
    await (await here.signedIn('anna')).post('/logout')
    await anna.ask('/list')
    expect([...streams, other].map(({ signal }) => causeOf(signal))).toEqual([false, false, false])
    await another.post('/logout')
    expect(causeOf(other.signal)).toBe('signed out')
    await anna.post('/logout')
    expect(causeOf(streams[0]!.signal)).toBe('signed out')
  })
  it('is aborted already if the user signed out while the request was under way', async () => {
    const store = memoryStore()
    const here = await site(store)
    const anna = await here.signedIn('anna')
    let signal: AbortSignal | undefined
    const mine = await sessionsApp(() => store, {
      below: (app) => {
        const router = new Router()
        router.get('/late', withAuth(sessionAuth()), async (ctx) => {
          await anna.copy().post('/logout')
          signal = authSignal(ctx)
          await vi.waitFor(() => expect(signal?.aborted).toBe(true), HANGS)
          ctx.status = 204
        })
        app.use(router.routes())
      },
    })
    const url = `http://127.0.0.1:${mine.port}/late`
    expect((await fetch(url, { headers: { Cookie: anna.header() } })).status).toBe(204)
    expect(causeOf(signal!)).toBe('signed out')
  })
  it('a message that is forged, broken or late ends nothing that is good', async () => {
    const { signals, say, sent } = hub()
    const here = await site(memoryStore(), { signals: signals() })
    const [anna, late] = [await here.signedIn('anna'), await here.signedIn('anna')]
    await late.post('/logout')
    const stream = await here.open(anna)
    for (const message of [...sent, ...sent, JSON.stringify({ v: 1, about: 'all' })]) say(message)
    for (const message of ['', '{', 'null', '[]', '{"about":{}}', '{"__proto__":{"about":"x"}}', 7, 'x'.repeat(1e6)])
      say(message)
    await anna.ask('/list')
    expect(causeOf(stream.signal)).toBe(false)
  })
  it('a hub that fails is reported once, no sign-out waits for it, and what was missed is asked for when it is back', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const warnings = vi.spyOn(process, 'emitWarning').mockReturnValue(undefined)
    onTestFinished(() => warnings.mockRestore())
    const records: StoreOutageEvent[] = []
    onTestFinished(on('store-outage', (record) => void (record.store === 'signals' && records.push(record))))
    const store = memoryStore()
    let isUp = false
    const failing = (): Promise<void> => (isUp ? Promise.resolve() : Promise.reject(new Error('no hub')))
    const tried = vi.fn(failing)
    const here = await site(store, { name: 'ends', signals: { publish: failing, subscribe: tried } })
    const [anna, sam] = [await here.signedIn('anna'), await here.signedIn('sam')]
    const [stream, kept] = [await here.open(anna), await here.open(sam)]
    await anna.copy().post('/logout')
    expect(causeOf(stream.signal)).toBe('signed out')
    // as another process ends all of a user, of which this one cannot hear
    await store.update(stampKey('ends', 'sam'), 'another', 1_000_000)
    for (let time = 0; time < 3; time++) await vi.advanceTimersByTimeAsync(5000)
    expect(tried.mock.calls.length).toBeGreaterThan(2)
    expect(causeOf(kept.signal)).toBe(false)
    // one for each direction
    expect(records.map((one) => [one.store, one.event])).toEqual(Array(2).fill(['signals', 'begun']))
    expect(warnings.mock.calls.map(([text]) => text)).toEqual(
      Array(2).fill(
        'the channel of signals failed: Error: no hub. Other processes notice an end when the credential is used again or expires',
      ),
    )
    isUp = true
    await vi.advanceTimersByTimeAsync(5000)
    await vi.waitFor(() => expect(causeOf(kept.signal)).toBe('signed out'), HANGS)
    expect(records.at(-1)).toMatchObject({ store: 'signals', event: 'over' })
  })
  it('that has another reader of the hub that is silent ends here at once', async () => {
    const silent: Signals = { publish: () => new Promise(() => {}), subscribe: () => {} }
    const here = await site(memoryStore(), { signals: silent })
    const anna = await here.signedIn('anna')
    const stream = await here.open(anna)
    await anna.copy().post('/logout')
    expect(causeOf(stream.signal)).toBe('signed out')
  })
  it('releases everything when the client goes away', async () => {
    const here = await site(memoryStore())
    const anna = await here.signedIn('anna')
    const waiting = ownEnds()
    const stream = await here.open(anna)
    expect(waiting()).toBe(1)
    stream.stop()
    await vi.waitFor(() => expect(waiting()).toBe(0), HANGS)
  })
})

describe('the time of a session', () => {
  const clock = () => {
    vi.useFakeTimers({ toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
  }
  const HOUR = 3_600_000
  it('idle ends the stream, unless another request used the session', async () => {
    clock()
    const store = memoryStore()
    const [here, there] = [await site(store, { idle: HOUR }), await site(store, { idle: HOUR })]
    const anna = await here.signedIn('anna')
    const stream = await here.open(anna)
    await vi.advanceTimersByTimeAsync(HOUR * 0.75)
    expect((await there.visitor().ask('/list')).status).toBe(401)
    const response = await fetch(`http://127.0.0.1:${there.port}/list`, { headers: { Cookie: anna.header() } })
    expect(response.status).toBe(200)
    await vi.advanceTimersByTimeAsync(HOUR / 2)
    expect(causeOf(stream.signal)).toBe(false)
    await vi.advanceTimersByTimeAsync(HOUR / 2)
    expect(causeOf(stream.signal)).toBe('idle')
  })
  it('absolute ends it, however it is used', async () => {
    clock()
    const here = await site(memoryStore(), { idle: HOUR, absolute: HOUR })
    const anna = await here.signedIn('anna')
    const stream = await here.open(anna)
    await vi.advanceTimersByTimeAsync(HOUR)
    expect(causeOf(stream.signal)).toBe('expired')
  })
})

it("the end of a listed session is recorded at once, with the reason 'ended', once", async () => {
  const here = await site(memoryStore())
  const [phone, laptop] = [await here.signedIn('anna'), await here.signedIn('anna')]
  const records: SignedOutEvent[] = []
  onTestFinished(on('signed-out', (record) => records.push(record)))
  await laptop.post(`/end?of=anna&id=${await idOf(phone)}`)
  expect(records.map(({ reason, session }) => [reason, typeof session])).toEqual([['ended', 'string']])
  expect((await phone.ask('/list')).status).toBe(401)
  expect(records.length).toBe(1)
})
