/**
 * What a hook may return beside a value: a promise, an `Option`, an `Either`, a `TaskEither`.
 *
 * Promises are awaited, `Some` and `Right` are unwrapped; `None` and `Left` refuse. A `Left` with an `AuthError` says
 * why: `expired` is a 401, `insufficient` a 403, `unavailable` a 503. A hook that takes longer than ten seconds
 * (`authSettings({ timeout })`) is `unavailable`, too.
 */
import { hash, randomBytes, scrypt } from 'node:crypto'
import { promisify } from 'node:util'
import Router from '@koa/router'
import * as E from 'fp-ts/lib/Either.js'
import * as O from 'fp-ts/lib/Option.js'
import * as TE from 'fp-ts/lib/TaskEither.js'
import { pipe } from 'fp-ts/lib/function.js'
import { AuthError, constantTimeEqual, httpBasicAuth, httpBearer, throttled, withAuth } from 'koa-with-auth'
import { RateLimiterMemory } from 'rate-limiter-flexible'

interface Session {
  readonly user: string
  readonly until: number
}

// Replace this with your own database. It stores digests, so the time of a look-up reveals nothing about the tokens.
const sessions = new Map<string, Session>([
  [hash('sha256', 'supersecret'), { user: 'anna', until: Infinity }],
  [hash('sha256', 'oldsecret'), { user: 'anna', until: 0 }],
])
const findSession = async (token: string): Promise<Session | undefined> => sessions.get(hash('sha256', token))
const isCurrent = ({ until }: Session): boolean => until > Date.now()

// Replace this with your own users, each with their own salt.
const salt = randomBytes(16)
const derive = promisify<string, Buffer, number, Buffer>(scrypt)
const passwords = new Map([['admin', (await derive('secret', salt, 32)).toString('hex')]])

const promise = httpBasicAuth({
  authenticate: async (_request, username, password) => {
    const derived = await derive(password, salt, 32)
    return constantTimeEqual(derived.toString('hex'), passwords.get(username) ?? '') && { user: username }
  },
})

const option = httpBearer({
  authenticate: (_request, token) => pipe(O.fromNullable(sessions.get(hash('sha256', token))), O.filter(isCurrent)),
})

const either = httpBearer({
  authenticate: async (_request, token) => {
    const session = await findSession(token)
    if (session === undefined) return E.left(AuthError.invalid)
    return isCurrent(session) ? E.right(session) : E.left(AuthError.expired)
  },
})

const taskEither = httpBearer({
  authenticate: (_request, token) =>
    pipe(
      TE.tryCatch(
        () => findSession(token),
        () => AuthError.unavailable(30),
      ),
      TE.chainEitherK(E.fromNullable(AuthError.invalid())),
      TE.filterOrElse(isCurrent, () => AuthError.expired()),
    ),
})

// Wrong passwords are counted: see basic.ts
const guesses = new RateLimiterMemory({ points: 20, duration: 15 * 60 })

export const router = new Router({ prefix: '/asynchronous' })

router.get('/promise', withAuth(throttled({ limiter: guesses })(promise)), (ctx) => {
  ctx.body = { user: ctx.request.auth.user }
})
router.get('/option', withAuth(option), (ctx) => {
  ctx.body = { user: ctx.request.auth.user }
})
router.get('/either', withAuth(either), (ctx) => {
  ctx.body = { user: ctx.request.auth.user }
})
router.get('/taskEither', withAuth(taskEither), (ctx) => {
  ctx.body = { user: ctx.request.auth.user }
})
