/**
 * Signing in and out: a new id at each sign-in, nothing of the old session unless it is named, and an end that lasts.
 */
import { randomBytes } from 'node:crypto'
import type { Request } from 'koa'
import { isForged } from '../core/CrossOrigin.js'
import { checkOptions } from '../core/misuse.js'
import { settingsOf } from '../core/Settings.js'
import { changing, checkSecure } from './commit.js'
import type { SessionStore } from './SessionStore.js'
import type { SignedIn } from './SignedIn.js'
import { forged, unavailable } from './SignInRefused.js'
import { sessionOf, textOf, visitOf, type Visit } from './Visit.js'

/** Any context of Koa's or of a router's. */
export interface WithRequest {
  readonly request: Request
}

/** What a sign-in takes along. */
export interface LogInOptions {
  /** Keys of the old session that the new one keeps, as a basket. Default none. */
  readonly keep?: ReadonlyArray<string>
}

/** How an application signs its users in and out. */
export interface Signing<U> {
  /**
   * Signs a user in: refuses what another site made the browser send, gives the session a new id, drops what it held
   * except `keep`, and resolves when the store has it. Rejects with `SignInRefused`, which is answered with 403 or 503.
   */
  readonly logIn: (ctx: WithRequest, user: U, options?: LogInOptions) => Promise<void>
  /** Ends the session, for copies of its cookie and for requests that are under way, too. Rejects as `logIn` does. */
  readonly logOut: (ctx: WithRequest) => Promise<void>
  /** Ends all sessions of a user, by the identifier that they hold. Rejects with `SignInRefused` in an outage. */
  readonly logOutEverywhere: (id: string) => Promise<void>
}

/** What signing needs of the application. */
export interface SigningOptions {
  readonly identify: (user: never) => unknown
  readonly store: SessionStore
  readonly https: boolean
  /** In milliseconds. */
  readonly absolute: number
}

// A mark is kept longer than any session that could carry an older one
const MARK_LIFETIMES = 10

const begin = ({ request }: WithRequest): { readonly ctx: Request['ctx']; readonly visit: Visit } => {
  if (isForged(request, settingsOf(request))) throw forged()
  const visit = visitOf(request.ctx)
  if (visit.handle === undefined)
    throw new Error('logIn, logOut: call sessions(app, ...) before the routers are mounted')
  return { ctx: request.ctx, visit }
}

/** Makes the functions. */
export const signing = <U>({ identify, store, https, absolute }: SigningOptions): Signing<U> => ({
  logIn: async (context, user, options = {}) => {
    checkOptions('logIn(ctx, user, options)', options, ['keep'])
    const { keep = [] } = options
    if (!Array.isArray(keep)) throw new TypeError('logIn(ctx, user, { keep }) must be a list of keys')
    const { ctx, visit } = begin(context)
    // Safe: `identify` takes what `loadUser` loads
    const id = identify(user as never)
    if (typeof id !== 'string' || id === '') {
      throw new TypeError('logIn(ctx, user): identify must answer a text that is not empty')
    }
    checkSecure(ctx, https)
    await changing(visit, async () => {
      const mark: unknown = await store.markOf(id)
      if (typeof mark !== 'string') throw new TypeError('the session store: markOf must answer a text')
      const auth: SignedIn = { id, at: Date.now(), mark }
      const old = Object.entries(sessionOf(ctx) ?? {}).filter(([name]) => keep.includes(name))
      ctx['session'] = { ...Object.fromEntries(old), auth }
      await sessionOf(ctx)?.regenerate()
      visit.kept = textOf(sessionOf(ctx))
    })
    ctx.set('Cache-Control', 'no-store')
  },
  logOut: async (context) => {
    const { ctx, visit } = begin(context)
    const session = sessionOf(ctx)
    if (session?.populated === true) checkSecure(ctx, https)
    await changing(visit, async () => {
      if (session === null || !session.populated) return
      ctx['session'] = null
      await visit.handle?.manuallyCommit()
      visit.kept = null
    })
    ctx.set('Cache-Control', 'no-store')
  },
  logOutEverywhere: async (id) => {
    if (typeof id !== 'string' || id === '') throw new TypeError('logOutEverywhere(id): id must be a text')
    await store.mark(id, randomBytes(16).toString('base64url'), absolute * MARK_LIFETIMES).catch((error: unknown) => {
      throw unavailable(error)
    })
  },
})
