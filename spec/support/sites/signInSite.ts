/** One application that signs in in every way of `koa-with-auth/sign-in`, for one test. Mails go into a list. */
import Router from '@koa/router'
import { sessionAuth, withAuth } from 'koa-with-auth'
import type { SessionsOptions } from 'koa-with-auth/sessions'
import { memoryStore, type Store } from 'koa-with-auth/stores'
import {
  begin,
  secondFactor,
  finish,
  linkPage,
  emailSignIn,
  recoveryCodes,
  passwordReset,
  askSecondFactor,
  totp,
  emailVerification,
  type LinkMail,
  type SignInMail,
} from 'koa-with-auth/sign-in'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import type { Sending } from '../models/behavior.js'
import { taken } from '../runs/taken.js'
import { sessionsApp, strongKey, type User, type Visitor } from './sessionsApp.js'

const person = (username: string) => ({
  username,
  address: `${username}@shop.example`,
  password: `${username}-secret`,
  isVerified: false,
  pending: undefined as string | undefined,
  secret: undefined as string | undefined,
  recovery: new Set<string>(),
})

export type SignInSite = Awaited<ReturnType<typeof signInSite>>

interface SignInSiteOptions {
  readonly keys?: string[]
  readonly limit?: number
  readonly origin?: string | undefined
  readonly lifetime?: number
  readonly send?: (mail: SignInMail) => unknown
  /** That of `passwordReset`. */
  readonly isGood?: (password: string) => boolean
  readonly sessions?: Partial<Omit<SessionsOptions<User | undefined>, 'loadUser' | 'store'>>
}

const userOf = ({ request }: { readonly request: object }): string =>
  // Safe: the operation is guarded by `sessionAuth`
  (request as { auth: User }).auth.username

/** Sends a JSON body. */
export const sendJson = (visitor: Visitor, path: string, body: object, headers: Record<string, string> = {}) =>
  visitor.ask(path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'application/json', ...headers },
    body: JSON.stringify(body),
  } satisfies Sending)

/** The path and the query of a link. */
export const pathOf = (link = ''): string => {
  const { pathname, search } = new URL(link)
  return pathname + search
}

export const signInSite = async (
  store?: () => Store,
  { keys = [strongKey], limit = 50, lifetime, send, isGood, ...options }: SignInSiteOptions = {},
) => {
  const people = new Map(['anna', 'bert'].map((name) => [name, person(name)]))
  const byAddress = (address: string) => [...people.values()].find((one) => one.address === address)
  const mails: Array<SignInMail | LinkMail> = []
  /** The users who were signed in where links began. */
  const subjects: Array<string | undefined> = []
  let hooks = 0
  /** What `POST /forge` does to the data of the session. */
  const forging = { with: (_data: object): unknown => undefined }
  const inMemory = memoryStore()
  const counted = <A>(value: A): A => {
    hooks++
    return value
  }
  const site = await sessionsApp(store ?? (() => inMemory), {
    keys,
    origin: 'origin' in options ? options.origin : 'https://shop.example',
    ...options.sessions,
    below: (app, { logIn, logOutEverywhere, addProof, proofsOf }) => {
      const limiter = new RateLimiterMemory({ points: limit, duration: 900 })
      const times = lifetime === undefined ? {} : { lifetime }
      const mail = emailSignIn({
        ...times,
        limiter,
        path: '/sign-in/mail/link',
        send: send ?? ((one) => byAddress(one.address) !== undefined && mails.push(one)),
      })
      const accountOf = (address: string, asked: { readonly subject: string | undefined }) => {
        subjects.push(asked.subject)
        const one = byAddress(address)
        return one && { id: one.username, stamp: `${one.password} ${one.address} ${one.isVerified}` }
      }
      const pushed = (one: LinkMail) => mails.push(one)
      const reset = passwordReset({
        ...times,
        limiter,
        path: '/reset/link',
        accountOf,
        send: pushed,
        ...(isGood && { isGood }),
      })
      const verify = emailVerification({ ...times, limiter, path: '/verify/link', accountOf, send: pushed })
      const spentStore = (store ?? (() => inMemory))()
      const authenticatorApp = totp({
        issuer: 'Shop',
        keys: () => app.keys,
        secretOf: (user) => people.get(user)?.secret,
        store: spentStore,
      })
      const recovery = recoveryCodes({
        keys: () => app.keys,
        use: (user, digests) => digests.some((digest) => people.get(user)?.recovery.delete(digest) === true),
      })
      const code = secondFactor({ ...times, factors: [authenticatorApp, recovery], limiter })
      const open = withAuth(null)
      const user = withAuth(sessionAuth())
      const router = new Router()
      const body = async (ctx: { req: AsyncIterable<Buffer> }): Promise<Record<string, string>> => {
        let text = ''
        for await (const chunk of ctx.req) text += chunk.toString()
        return JSON.parse(text || '{}') as Record<string, string>
      }
      router.post('/sign-in/password', open, async (ctx) => {
        const { username = '', password } = await body(ctx)
        const one = people.get(username)
        if (one === undefined || one.password !== password) return void (ctx.status = 403)
        if (one.secret === undefined) {
          await logIn(ctx, one, { proof: { method: 'password' }, keep: ['basket'] })
          ctx.status = 204
        } else
          ctx.body = {
            next: 'code',
            ...(await askSecondFactor(ctx, code, { user: one, proof: { method: 'password' } })),
          }
      })
      router.post(
        '/sign-in/code',
        open,
        finish(code, (_ctx, { proof }) => counted(people.get(proof.subject))),
      )
      router.post('/sign-in/mail', open, begin(mail))
      const signIn = finish(
        mail,
        async (ctx, { proof }) => {
          const one = byAddress(proof.subject)
          if (one?.secret === undefined) return counted(one)
          ctx.body = { next: 'code', ...(await askSecondFactor(ctx, code, { user: one, proof })) }
          return undefined
        },
        { keep: ['basket'] },
      )
      router.post('/sign-in/mail/code', open, signIn)
      router.get('/sign-in/mail/link', open, linkPage({ title: 'Sign in', button: 'Sign in' }))
      router.post('/sign-in/mail/link', open, signIn)
      router.post(
        '/prove/mail',
        user,
        begin(mail, { intent: 'stepUp', ask: (ctx) => people.get(userOf(ctx))!.address }),
      )
      router.post('/prove/mail/code', user, signIn)
      router.post('/reset', open, begin(reset))
      router.get('/reset/link', open, linkPage({ title: 'New password', button: 'Save', password: 'New password' }))
      router.post(
        '/reset/link',
        open,
        finish(reset, async (ctx, { proof, body: { password } }) => {
          counted(0)
          people.get(proof.subject)!.password = String(password)
          await logOutEverywhere(proof.subject)
          ctx.status = 204
          return true
        }),
      )
      router.post('/verify', user, begin(verify, { ask: (ctx) => people.get(userOf(ctx))!.address }))
      router.get('/verify/link', open, linkPage({ title: 'Address', button: 'Verify' }))
      router.post(
        '/verify/link',
        open,
        finish(verify, (_ctx, { proof }) => (people.get(proof.subject)!.isVerified = counted(true))),
      )
      router.post('/factors/totp', user, (ctx) => {
        const { secret, uri, sealed } = authenticatorApp.enrol(userOf(ctx))
        people.get(userOf(ctx))!.pending = sealed
        ctx.body = { secret, uri }
      })
      router.post('/factors/totp/confirm', user, async (ctx) => {
        const one = people.get(userOf(ctx))!
        const { code: typed } = await body(ctx)
        if (one.pending === undefined || !(await authenticatorApp.confirm(one.username, one.pending, typed))) {
          return void (ctx.status = 403)
        }
        one.secret = one.pending
        const { codes: all, digests } = recovery.make(one.username)
        one.recovery = new Set(digests)
        ctx.body = { recovery: all }
      })
      router.post('/prove/code', user, async (ctx) => {
        const { code: typed } = await body(ctx)
        await addProof(ctx, await code.prove(ctx, userOf(ctx), typed))
        ctx.status = 204
      })
      router.post('/forge', open, (ctx) => {
        forging.with(ctx['session'] as object)
        ctx.status = 204
      })
      router.get('/proofs', open, (ctx) => (ctx.body = proofsOf(ctx)))
      router.get(
        '/vault',
        withAuth(sessionAuth({ proof: { methods: ['totp', 'recovery'] } })),
        (ctx) => (ctx.body = 'gold'),
      )
      router.post(
        '/transfer',
        withAuth(sessionAuth({ proof: { maxAge: 300_000 } })),
        (ctx) => (ctx.body = { done: true }),
      )
      app.use(router.routes())
    },
  })
  site.users.set('bert', { username: 'bert' })
  return {
    ...site,
    forging,
    people,
    mails,
    subjects,
    /** How often a hook of `finish` ran. */
    hooks: () => hooks,
    /** Resolves to the next mail. */
    mail: async (): Promise<SignInMail> => ({ code: '', ...(await taken(mails)) }),
  }
}

/** The same, and a visitor of it. */
export const visitedSite = async (...given: Parameters<typeof signInSite>) => {
  const site = await signInSite(...given)
  return { site, visitor: site.visitor() }
}
