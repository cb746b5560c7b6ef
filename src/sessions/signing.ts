/**
 * Signs in and out. Each sign-in gets a new id, and keeps only the data of the old session that are named. An ended
 * session stays ended.
 */
import { randomBytes } from 'node:crypto'
import type { Request } from 'koa'
import { isForgedChange } from '../core/CrossOrigin.js'
import { checkOptions, unchecked } from '../core/options.js'
import { ownField } from '../core/ownFields.js'
import { hasData, sessionData } from '../core/session/sessionFields.js'
import { settingsOf } from '../core/Settings.js'
import { changing, checkSecure } from './commit.js'
import { signedIn } from '../core/events/channels.js'
import { subjectOf } from '../koa/watching.js'
import { sessionOf } from './KoaSession.js'
import { requestSessionOf, type RequestSession } from './RequestSession.js'
import type { SessionOwner } from './SessionOwner.js'
import type { SessionStore } from './SessionStore.js'
import { contextOf, type Signing, type WithRequest } from './SignInFunctions.js'
import { reportEverywhere } from './SignInReports.js'
import { forged, unavailable } from './SignInRefused.js'

/** The options of the application that signing needs. */
export interface SigningOptions {
  readonly owner: SessionOwner
  readonly identify: (user: never) => unknown
  readonly store: SessionStore
  readonly https: boolean
  /** In milliseconds. */
  readonly absolute: number
}

// A mark is kept longer than any session that could carry an older one
const MARK_LIFETIMES = 10

interface Begun {
  readonly ctx: Request['ctx']
  readonly session: RequestSession
}

const begin = (given: WithRequest, owner: SessionOwner): Begun => {
  const ctx = contextOf('logIn, logOut', given)
  if (isForgedChange(ctx.request, settingsOf(ctx.request))) throw forged()
  const session = requestSessionOf(ctx)
  if (!session.isOf(owner)) {
    throw new Error(
      'logIn, logOut: the request did not come through this sessions(app, ...); call it before the routers are mounted, and use the functions that it returned for the same application',
    )
  }
  return { ctx, session }
}

/** Makes the functions. */
export const signing = <U>({ owner, identify, store, https, absolute }: SigningOptions): Signing<U> => ({
  logIn: async (context, user, options = {}) => {
    checkOptions('logIn(ctx, user, options)', options, { keep: unchecked })
    const keep: unknown = ownField(options, 'keep') ?? []
    if (!Array.isArray(keep)) throw new TypeError('logIn(ctx, user, { keep }) must be an array of keys')
    const { ctx, session } = begin(context, owner)
    // Safe: `identify` takes what `loadUser` loads
    const id = identify(user as never)
    if (typeof id !== 'string' || id === '') {
      throw new TypeError(
        'logIn(ctx, user): the id of the user must be a string that is not empty; it is user.username, or what the option identify of sessions(...) returns',
      )
    }
    checkSecure(ctx, https)
    const subject = signedIn.hasSubscribers ? subjectOf(ctx.request, user) : undefined
    await changing(session, async () => {
      const mark: unknown = await store.markOf(id)
      if (typeof mark !== 'string') throw new TypeError('the session store: markOf must resolve to a string')
      const old = sessionOf(ctx)
      const data = old === null ? {} : sessionData(old)
      for (const name of Object.keys(data)) if (!keep.includes(name) || name === 'auth') delete data[name]
      ctx['session'] = data
      session.signingIn({ id, at: Date.now(), mark, subject })
      try {
        await sessionOf(ctx)?.regenerate()
      } finally {
        session.signingIn(undefined)
      }
      session.stored.kept(ctx)
    })
    ctx.set('Cache-Control', 'no-store')
  },
  logOut: async (context) => {
    const { ctx, session } = begin(context, owner)
    await changing(session, async () => {
      const now = sessionOf(ctx)
      if (now === null || !hasData(now)) return
      checkSecure(ctx, https)
      ctx['session'] = null
      await session.koaSession?.manuallyCommit()
      session.signedOut()
    })
    ctx.set('Cache-Control', 'no-store')
  },
  logOutEverywhere: async (id) => {
    if (typeof id !== 'string' || id === '') {
      throw new TypeError('logOutEverywhere(id): id must be a string that is not empty')
    }
    await store.mark(id, randomBytes(16).toString('base64url'), absolute * MARK_LIFETIMES).catch((error: unknown) => {
      throw unavailable(error)
    })
    reportEverywhere(owner.name, id)
  },
})
