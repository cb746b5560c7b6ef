// Signing in by a form, as an authenticator of what was posted. POST /token and POST /login are public, so no guard runs it:
// the operation does, and answers as it likes.
import * as E from 'fp-ts/lib/Either.js'
import * as O from 'fp-ts/lib/Option.js'
import type { Context } from 'koa'
import {
  authenticator,
  Challenge,
  perFailure,
  throttled,
  type AuthError,
  type Authenticator,
  type Limiter,
  type SessionUser,
} from 'koa-with-auth'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { readForm, SignInForm } from './form.js'

const MINUTES = 60
const DAY = 24 * 60 * MINUTES

/** Makes a limiter; several processes need one that counts in a store that they share. */
export type LimiterOf = (options: { keyPrefix: string; points: number; duration: number }) => Limiter

/** Counts wrong passwords, whatever they are sent to, and refuses more of them. */
export const guesses = (limiterOf: LimiterOf = (options) => new RateLimiterMemory(options)) =>
  throttled({
    limiter: {
      accountAndAddress: limiterOf({ keyPrefix: 'account-address', points: 20, duration: 15 * MINUTES }),
      account: limiterOf({ keyPrefix: 'account', points: 1000, duration: DAY }),
      address: limiterOf({ keyPrefix: 'address', points: 200, duration: 15 * MINUTES }),
    },
  })

/** The form as an authenticator. Browsers send it for any page, so one of another site is refused. */
export const formOf = (signIn: (username: string, password: string) => Promise<SessionUser | undefined>) =>
  authenticator({
    challenge: Challenge.make('Form'),
    ambient: true,
    extract: ({ ctx }) => O.fromNullable(ctx.state['form']),
    credentials: SignInForm,
    authenticate: (_request, { username, password }) => signIn(username, password),
  })

/** Who a posted form is of, or why not. */
export const signedInBy =
  (form: Authenticator<SessionUser>) =>
  async (ctx: Context): Promise<E.Either<AuthError, SessionUser>> => {
    ctx.state['form'] = await readForm(ctx, SignInForm)
    const result = await form.evaluate(ctx.request)
    // a database that is down, or a bug: whoever handles exceptions answers it
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

/** Answers a form that no session begins with: 401, 403 from another site, 429 with Retry-After after too many, 503 in an outage. */
export const refuse = (ctx: Context, error: AuthError): void => {
  const { status, headers = {}, body } = answer(error, ctx.request)
  ctx.status = status
  for (const [name, value] of Object.entries(headers)) ctx.set(name, [value].flat())
  ctx.body = body
}
