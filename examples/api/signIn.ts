// Signing in by a form, as an authenticator of the form. POST /token and POST /login are public, so no guard runs it:
// the operation does, and chooses the response.
import * as E from 'fp-ts/lib/Either.js'
import type { Context } from 'koa'
import { formAuth, perFailure, throttled, type AuthError, type Authenticator, type Limiter } from 'koa-with-auth'
import { type SessionUser } from 'koa-with-auth/sessions'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { readForm, SignInForm } from './form.js'

const MINUTES = 60
const DAY = 24 * 60 * MINUTES

/** Makes a limiter. Several processes need limiters that count in a shared store. */
export type LimiterOf = (options: { keyPrefix: string; points: number; duration: number }) => Limiter

/** Counts wrong passwords for all operations together, and refuses more of them. */
export const guesses = (limiterOf: LimiterOf = (options) => new RateLimiterMemory(options)) =>
  throttled({
    limiter: {
      accountAndAddress: limiterOf({ keyPrefix: 'account-address', points: 20, duration: 15 * MINUTES }),
      account: limiterOf({ keyPrefix: 'account', points: 1000, duration: DAY }),
      address: limiterOf({ keyPrefix: 'address', points: 200, duration: 15 * MINUTES }),
    },
  })

/** The form as an authenticator. Any page can make a browser send it, so a form from another site is refused. */
export const formOf = (signIn: (username: string, password: string) => Promise<SessionUser | undefined>) =>
  formAuth({
    fields: ['username', 'password'],
    authenticate: (_request, { username, password }) => signIn(username, password),
  })

/** The user of a posted form, or the failure. */
export const signedInBy =
  (form: Authenticator<SessionUser>) =>
  async (ctx: Context): Promise<E.Either<AuthError, SessionUser>> => {
    const body = await readForm(ctx, SignInForm)
    const result = await form.evaluate(Object.assign(ctx.request, { body }))
    // A database that fails, or a bug: the exception handlers answer it
    if (E.isLeft(result) && result.left._tag === 'raised') throw result.left.error
    return result
  }

const answer = perFailure({
  invalid: () => ({
    status: 401,
    headers: { 'WWW-Authenticate': 'Form realm="pets"' },
    body: { detail: 'Invalid credentials' },
  }),
})

/**
 * Answers a form that begins no session: 401, 403 from another site, 429 with Retry-After after too many, 503 in an
 * outage.
 */
export const refuse = async (ctx: Context, error: AuthError): Promise<void> => {
  const { status, headers = {}, body } = await answer(error, ctx.request)
  ctx.status = status
  for (const [name, value] of Object.entries(headers)) ctx.set(name, [value].flat())
  ctx.body = body
}
