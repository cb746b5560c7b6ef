/** The time that `cached` saves, and the time that `throttled` adds to the limiter that it calls. */
import type { RequestListener } from 'node:http'
import type { RouterMiddleware } from '@koa/router'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { cached, httpBasicAuth, throttled, type Authenticator } from '../../../dist/index.js'
import { hash, verify } from '../../../dist/passwords.js'
import { answer, guard, guessKey, throttledBy } from './byHand.js'
import { asking, basic } from './contestants.js'
import { operation } from './koaApps.js'
import { row, type Row, type Section } from './Section.js'
import { addedRatio, microseconds, race, ratio, type Pace } from './paired.js'

const anna = { username: 'anna' }
const credentials = basic('anna:supersecret')

const bare: RouterMiddleware = (ctx, next) => (Object.assign(ctx.request, { auth: anna }), answer(ctx, next))
const ours = (authenticator: Authenticator<unknown>) => operation(guard(authenticator), answer)

const room = () => new RateLimiterMemory({ points: 1_000_000, duration: 3600 })

// The limiter's own cost, for a hook that calls it itself
const limiterInTheHook = (check: (username: string, password: string) => unknown) => {
  const limiter = room()
  return httpBasicAuth({
    authenticate: async (request, username, password) => {
      const key = guessKey(username, request.socket.remoteAddress)
      await limiter.consume(key)
      const user = check(username, password)
      if (user !== false) void limiter.reward(key)
      return user
    },
  })
}

/** Basic, whose credentials come with each request. */
export const secrets = async (pace: Pace): Promise<Section> => {
  const stored = await hash('supersecret')
  const check = (username: string, password: string) => username === 'anna' && password === 'supersecret' && anna
  const hook = async (_request: unknown, _username: string, password: string) =>
    (await verify(stored, password)) && anna
  const slow = httpBasicAuth({ authenticate: hook })
  const kept = httpBasicAuth({ authenticate: cached(hook, { maxAge: 3_600_000 }) })
  const quick = httpBasicAuth({ authenticate: (_request, username, password) => check(username, password) })
  const contestant = (name: string, listener: RequestListener) => asking(name, listener, credentials)

  const verifying = ours(slow)
  const inHook = ours(limiterInTheHook(check))
  // Ten requests directly after a verification would measure the caches of the processor, which a hash of 19 MB has
  // emptied
  const quickOnes = [
    { ...contestant('cached', ours(kept)), batch: 500 },
    { ...contestant('bare', operation(bare)), batch: 500 },
  ]
  const verified = await race(
    [contestant('verified', verifying), ...quickOnes, contestant('verified, again', verifying)],
    { rounds: Math.ceil(pace.rounds / 3), batch: 10, warmUp: 100 },
  )
  const counted = await race(
    [
      contestant('throttled', ours(throttled({ limiter: room() })(quick))),
      contestant('limiter in the hook', inHook),
      contestant('limiter in the hook, again', inHook),
      contestant('throttled by hand', operation(throttledBy(room(), check), answer)),
      contestant('unthrottled', ours(quick)),
    ],
    // A limiter in memory runs only on this thread
    { ...pace, clock: 'processor' },
  )
  const throttledBeside = (words: string, other: string, more: Pick<Row, 'target'> = {}) =>
    row(`throttled, beside ${words}`, ratio(counted, 'throttled', other), 'times', more)
  const control = ratio(counted, 'limiter in the hook, again', 'limiter in the hook')
  const part = addedRatio(verified, ['cached', 'bare'], ['verified', 'bare'])
  return {
    title: 'Basic with a hash that OWASP asks for',
    control,
    rows: [
      row('cached, as a part of verified each time', part, 'times', {
        note: `both added to bare Koa; a verification takes ${(microseconds(verified, 'verified') / 1000).toFixed(1)} ms`,
        control: addedRatio(verified, ['verified, again', 'bare'], ['verified', 'bare']),
        target: 1 / 500,
      }),
      throttledBeside('the same limiter in the hook', 'limiter in the hook', { target: 1.1 }),
      throttledBeside('all by hand', 'throttled by hand'),
      row('control: the limiter in the hook twice', control, 'times'),
      throttledBeside('unthrottled', 'unthrottled'),
    ],
  }
}
