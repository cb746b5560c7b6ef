/**
 * Laws of ends, over random programs of sign-ins, renewed ids, sign-outs, keys, rotations, revocations and clock steps: no byte is sent after
 * the end of a credential and one tick, no stream of another credential ends, and nothing waits afterwards.
 */
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import Router from '@koa/router'
import fc from 'fast-check'
import Koa, { type Context } from 'koa'
import { apiKeyHeader, AuthEndedError, authSignal, httpBearer, sessionAuth, untilEnd, withAuth } from 'koa-with-auth'
import { apiKeys } from 'koa-with-auth/keys'
import { memoryStore } from 'koa-with-auth/stores'
import { sessions } from 'koa-with-auth/sessions'
import { afterEach, expect, it, vi } from 'vitest'
import type { EndCause } from '../../src/core/ends.js'
import { ownEnds } from '../support/runs/ownEnds.js'
import { samples } from '../support/runs/samples.js'
import { strongKey } from '../support/sites/sessionsApp.js'

afterEach(() => void vi.useRealTimers())

const HOUR = 3_600_000
// How long a session lasts, used or not
const LASTING = 3 * HOUR
const TICK = 1000
// Clocks that drift apart by less count as one
const DRIFT = 50

/** What a credential is in the model. */
interface Credential {
  /** When it ends by the system's clock. */
  at: number
  /** From when it may have ended, if this is earlier: a session that was used while the clock was set back. */
  mayEnd?: number
  /** Why it has ended. */
  gone: EndCause | undefined
  /** Why it may end at its time. */
  causes: ReadonlyArray<EndCause>
}

interface Stream {
  readonly credential: Credential
  /** The system's clock and the other one when it was opened, or its credential looked up last. */
  readonly opened: readonly [system: number, other: number]
  readonly source: PassThrough
  readonly signal: AbortSignal
  readonly response: ServerResponse
  sent: number
  mayHaveEnded: boolean
}

interface Answered {
  readonly response: ServerResponse
  readonly status: number
  readonly body: unknown
}

/** A request without a socket. It resolves when the response has ended, or when a stream is sent. */
const request = (app: Koa, method: string, url: string, headers: Record<string, string>): Promise<Answered> =>
  new Promise((resolve) => {
    const asked = new IncomingMessage(new Socket())
    Object.assign(asked, { method, url, httpVersion: '1.1', httpVersionMajor: 1, httpVersionMinor: 1 })
    for (const [name, value] of Object.entries({ host: 'api.example', ...headers })) {
      asked.rawHeaders.push(name, value)
      asked.headers[name] = value
    }
    const response = new ServerResponse(asked)
    const answered = (body?: unknown) => resolve({ response, status: response.statusCode, body })
    Object.assign(response, { end: answered, write: () => true })
    response.once('pipe', () => answered())
    void app.callback()(asked, response)
  })

const site = () => {
  const app = new Koa({ keys: [strongKey] })
  app.silent = true
  const { logIn, logOut, logOutEverywhere, addProof, listSessions, endSession } = sessions(app, {
    loadUser: (username) => ({ username }),
    store: memoryStore(),
    list: true,
    idle: LASTING,
    absolute: LASTING,
  })
  const keys = apiKeys({ prefix: 'acme', store: memoryStore() })
  const opened: Array<{ ctx: Context; source: PassThrough; signal: AbortSignal }> = []
  const router = new Router()
  const events = (ctx: Context): void => {
    const source = new PassThrough()
    ctx.type = 'text/event-stream'
    ctx.body = untilEnd(ctx, source)
    opened.push({ ctx, source, signal: authSignal(ctx) })
  }
  const token = httpBearer({
    authenticate: (_request, at) => ({ username: 'token', expiresAt: new Date(Number(at)) }),
  })
  router.get('/session', withAuth(sessionAuth()), events)
  router.get('/key', withAuth(apiKeyHeader({ paramName: 'X-Key', authenticate: keys.authenticate })), events)
  router.get('/token', withAuth(token), events)
  router.post('/in/:name', withAuth(null), async (ctx) => {
    await logIn(ctx, { username: String(ctx.params.name) })
    ctx.status = 204
  })
  router.post('/out', withAuth(null), async (ctx) => {
    await logOut(ctx)
    ctx.status = 204
  })
  router.post('/renew', withAuth(null), async (ctx) => {
    await addProof(ctx, { method: 'totp' })
    ctx.status = 204
  })
  router.get('/list', withAuth(sessionAuth()), async (ctx) => void (ctx.body = await listSessions(ctx)))
  router.post('/end/:name/:id', withAuth(null), async (ctx) => {
    ctx.status = (await endSession(String(ctx.params.name), String(ctx.params.id))) ? 204 : 404
  })
  app.use(router.routes())
  return { app, keys, opened, logOutEverywhere }
}

/** The client has gone away: what Node emits then. */
const leave = ({ response }: Stream): void => {
  response.emit('finish')
  response.emit('close')
}

/** A browser with its cookies. */
class Browser {
  readonly #cookies = new Map<string, string>()
  user = ''
  session: Credential | undefined
  async ask(app: Koa, method: string, url: string): Promise<Answered> {
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const answered = await request(app, method, url, cookie === '' ? {} : { cookie })
    if (this.session !== undefined) {
      this.session.mayEnd = Math.min(this.session.mayEnd ?? Infinity, Date.now() + LASTING)
    }
    for (const line of [answered.response.getHeader('set-cookie') ?? []].flat()) {
      const [pair = ''] = String(line).split(';')
      const at = pair.indexOf('=')
      this.#cookies.set(pair.slice(0, at), pair.slice(at + 1))
    }
    return answered
  }
}

const small = fc.nat({ max: 2 })
const time = fc.integer({ min: 1, max: 2 * HOUR })
type Step = readonly [what: string, ...numbers: number[]]
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.tuple(fc.constant('sign in'), small, fc.nat({ max: 1 })),
  fc.tuple(fc.constant('open a session'), small),
  fc.tuple(fc.constantFrom('sign out', 'renew', 'end a session'), small),
  fc.tuple(fc.constant('sign out everywhere'), fc.nat({ max: 1 })),
  fc.tuple(fc.constantFrom('issue', 'rotate'), small, time),
  fc.tuple(fc.constant('open a key'), small),
  fc.tuple(fc.constant('revoke'), small),
  fc.tuple(fc.constant('open a token'), time),
  fc.tuple(fc.constantFrom('pass', 'pass', 'set the clock forward', 'set the clock back'), time),
  fc.tuple(fc.constant('client goes'), fc.nat({ max: 5 })),
)

const programOf = (text: string): ReadonlyArray<Step> =>
  text.split(', ').map((one) => {
    const [, what = '', numbers = ''] = /^(\D+?)((?: [\d.]+h?)+)$/.exec(one) ?? []
    const amounts = numbers.trim().split(' ')
    return [what, ...amounts.map((amount) => parseFloat(amount) * (amount.endsWith('h') ? HOUR : 1))]
  })

// Otherwise few programs open anything
const signedIn = programOf('sign in 0 0, sign in 1 1, sign in 2 0, issue 0 1h, issue 1 2h, issue 2 1h')

// Random programs seldom end what they open
const ended = [
  'open a session 0, sign out 0',
  'open a session 1, renew 1, end a session 1',
  'open a session 2, sign out everywhere 0',
  'open a key 0, revoke 0',
  'open a token 1h, pass 2h',
  // a second rotation ends the first secret, too
  'open a key 0, rotate 0 1h, rotate 0 1, pass 2',
  // the clock has ended the session, and its user signs out
  'open a session 0, set the clock back 2h, set the clock back 2h, sign out 0, pass 1h, open a session 0',
].map(programOf)

it('no byte after the end, no other stream ends, and nothing waits afterwards', async () => {
  const waiting = ownEnds()
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (program) => {
      // a case that failed may have left some
      const left = waiting()
      vi.useFakeTimers({ toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout'] })
      const { app, keys, opened, logOutEverywhere } = site()
      const browsers = [new Browser(), new Browser(), new Browser()]
      const users = ['anna', 'bert']
      const issued: Array<{ id: string; key: string; credential: Credential } | undefined> = []
      const streams: Stream[] = []
      const settle = async (): Promise<void> => {
        for (let at = 0; at < 3; at++) await new Promise((resolve) => setImmediate(resolve))
      }
      const open = (answered: Answered, credential: Credential | undefined): void => {
        const made = opened.pop()
        expect(made !== undefined).toBe(answered.status === 200)
        if (made === undefined) return
        // Safe: only who is let in opens a stream
        const stream: Stream = {
          ...made,
          credential: credential!,
          opened: [Date.now(), performance.now()],
          response: answered.response,
          sent: 0,
          mayHaveEnded: false,
        }
        Object.assign(answered.response, { write: () => ++stream.sent > 0 })
        streams.push(stream)
      }
      const over = (isMeant: (browser: Browser) => boolean): void => {
        for (const browser of browsers) {
          if (browser.session !== undefined && isMeant(browser)) {
            browser.session.gone ??= 'signed out'
            browser.session = undefined
          }
        }
      }
      /** What has happened to the streams. A byte is written to each source. */
      const check = async (): Promise<void> => {
        await settle()
        for (const stream of streams) {
          const { credential, opened, source, signal, sent } = stream
          source.write('x')
          await settle()
          const [system, other] = opened
          const late = Math.max(Date.now(), system + performance.now() - other)
          const isOver = credential.gone !== undefined || Date.now() >= credential.at
          const isLive =
            credential.gone === undefined && late + DRIFT < Math.min(credential.at, credential.mayEnd ?? Infinity)
          const { mayHaveEnded } = stream
          // a clock that is set back does not open it again
          if (!isLive) stream.mayHaveEnded = true
          if (isOver) {
            expect(stream.sent).toBe(sent)
            expect(signal.reason).toBeInstanceOf(AuthEndedError)
            if (!mayHaveEnded) {
              expect(signal.reason).toMatchObject({ cause: expect.toBeOneOf([credential.gone, ...credential.causes]) })
            }
            expect(source.destroyed).toBe(true)
          }
          if (!stream.mayHaveEnded) {
            expect(signal.aborted).toBe(false)
            expect(stream.sent).toBe(sent + 1)
          }
        }
      }
      const run = async ([what, one = 0, other = 0]: Step): Promise<void> => {
        const browser = browsers[one % browsers.length]!
        const key = issued[one]
        switch (what) {
          case 'sign in': {
            over((each) => each === browser)
            browser.user = users[other] ?? ''
            await browser.ask(app, 'POST', `/in/${browser.user}`)
            browser.session = { at: Date.now() + LASTING, gone: undefined, causes: ['expired', 'idle'] }
            return
          }
          case 'sign out':
            await browser.ask(app, 'POST', '/out')
            return over((each) => each === browser)
          case 'renew':
            return void (await browser.ask(app, 'POST', '/renew'))
          case 'end a session': {
            const { status, body } = await browser.ask(app, 'GET', '/list')
            if (status !== 200) return
            const list = JSON.parse(String(body)) as Array<{ id: string; current: boolean }>
            const mine = list.find(({ current }) => current)
            if (mine === undefined) return
            await new Browser().ask(app, 'POST', `/end/${browser.user}/${mine.id}`)
            return over((each) => each === browser)
          }
          case 'sign out everywhere':
            await logOutEverywhere(users[one] ?? '')
            return over(({ user }) => user === users[one])
          case 'open a session':
            return open(await browser.ask(app, 'GET', '/session'), browser.session)
          case 'issue': {
            const at = Date.now() + other
            const { id, key } = await keys.issue({ owner: 'anna', expiresAt: new Date(at) })
            issued[one] = { id, key, credential: { at, gone: undefined, causes: ['expired'] } }
            return
          }
          case 'rotate': {
            if (key === undefined) return
            const next = await keys.rotate(key.id, { overlap: other }).catch(() => undefined)
            if (next === undefined) return
            const { at } = key.credential
            issued[one] = { id: key.id, key: next.key, credential: { at, gone: undefined, causes: ['expired'] } }
            siblings.push([key.credential, key.id])
            // all older secrets of an id end together
            for (const [credential, id] of siblings) {
              if (id !== key.id || credential.at <= Date.now() + other) continue
              Object.assign(credential, { at: Date.now() + other, causes: ['revoked'] })
            }
            return
          }
          case 'revoke': {
            if (key === undefined) return
            await keys.revoke(key.id)
            for (const [credential, id] of siblings) if (id === key.id) credential.gone ??= 'revoked'
            key.credential.gone ??= 'revoked'
            return
          }
          case 'open a key':
            if (key !== undefined) open(await request(app, 'GET', '/key', { 'x-key': key.key }), key.credential)
            return
          case 'open a token': {
            const at = Date.now() + one
            const answered = await request(app, 'GET', '/token', { authorization: `Bearer ${at}` })
            return open(answered, { at, gone: undefined, causes: ['expired'] })
          }
          case 'pass':
            return void (await vi.advanceTimersByTimeAsync(one))
          case 'set the clock forward':
            vi.setSystemTime(Date.now() + one)
            return void (await vi.advanceTimersByTimeAsync(TICK))
          case 'set the clock back':
            vi.setSystemTime(Date.now() - one)
            return void (await vi.advanceTimersByTimeAsync(TICK))
          default: {
            const [gone] = streams.splice(one % Math.max(1, streams.length), 1)
            if (gone !== undefined) leave(gone)
          }
        }
      }
      const siblings: Array<readonly [Credential, string]> = []
      try {
        for (const one of [...signedIn, ...program]) {
          await run(one)
          await check()
        }
      } finally {
        streams.forEach(leave)
      }
      await settle()
      expect(waiting()).toBe(left)
      for (const { source } of streams) expect(source.destroyed).toBe(true)
      // the timer of the process is one of this clock
      await vi.advanceTimersByTimeAsync(2 * TICK)
      expect(vi.getTimerCount()).toBe(0)
      vi.useRealTimers()
    }),
    { numRuns: samples(300, 40), includeErrorInReport: true, examples: ended.map((program) => [[...program]]) },
  )
})
