/** An application whose requests stay open, and their signals. */
import { PassThrough } from 'node:stream'
import Router from '@koa/router'
import Koa from 'koa'
import { AuthEndedError, authSignal, untilEnd, withAuth, type AuthenticatorLike } from 'koa-with-auth'
import { onTestFinished, vi } from 'vitest'
import { listen } from '../servers/server.js'

/** Why a signal was aborted; `false` if it was not. */
export const causeOf = (signal: AbortSignal): unknown =>
  signal.reason instanceof AuthEndedError ? signal.reason.cause : signal.aborted

/** Stops the clock until the test has finished; the time. */
export const stopped = (): number => {
  vi.useFakeTimers({ toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  return Date.now()
}

/** An application with a stream of events behind a guard. Each call of `open` is another request, which is given up after the test. */
export const eventsSite = (auth: AuthenticatorLike | null) => {
  const signals: AbortSignal[] = []
  const router = new Router()
  // Safe: `withAuth` checks its argument when it runs
  router.get('/events', withAuth(auth as AuthenticatorLike), (ctx) => {
    signals.push(authSignal(ctx))
    const source = new PassThrough()
    source.write('data: hello\n\n')
    ctx.type = 'text/event-stream'
    ctx.body = untilEnd(ctx, source)
  })
  const app = new Koa()
  app.silent = true
  app.use(router.routes())
  let served: ReturnType<typeof listen> | undefined
  const open = async (headers: Record<string, string> = {}) => {
    const { url } = await (served ??= listen(app))
    const stop = new AbortController()
    onTestFinished(() => stop.abort())
    const response = await fetch(`${url}/events`, { headers, signal: stop.signal })
    const reader = response.body!.getReader()
    const read = async () => {
      const { value, done } = await reader.read()
      return done ? 'end' : Buffer.from(value).toString()
    }
    return { status: response.status, read, signal: signals.at(-1)! }
  }
  return { app, open, signals }
}
