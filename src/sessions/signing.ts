/**
 * Signs in and out. Each sign-in gets a new id, and keeps only the data of the old session that are named. An ended
 * session stays ended.
 */
import { isForgedChange } from '../core/CrossOrigin.js'
import * as AuthErrors from '../core/AuthError.js'
import { exchangeOf, settingsOf } from '../core/Exchange.js'
import { ownField } from '../core/data.js'
import { signedIn } from '../core/events.js'
import { addedTo, proofFrom, type Proof, type ProofGiven } from '../core/Proof.js'
import * as is from '../core/checks.js'
import { bare, checkOptions, type Checks } from '../core/options.js'
import { randomId } from '../crypto/secrets.js'
import { hasData, sessionData } from '../kinds/plainSession.js'
import { sourceOf } from '../kinds/sessionUser.js'
import { namesOf } from '../koa/watching.js'
import { lockAge } from './SessionCookie.js'
import { requestSessionOf, type SessionOwner } from './RequestSession.js'
import { sessionOf } from './StoredSession.js'
import type { Keeping } from './SessionStore.js'
import { forgetFinished, type SignInList } from './SignInList.js'
import {
  contextOf,
  proofsIn,
  textOfDetails,
  type Details,
  unavailable,
  SignInRefused,
  type LogInOptions,
  type OwnLogInOptions,
  type Signing,
  type WithRequest,
} from './SignIn.js'
import { changeInStore, checkSecure } from './commit.js'
import { warnOfIdle } from './SessionsOptions.js'

/** The options of the application that signing needs. */
interface SigningOptions extends Pick<Keeping, 'store' | 'idle' | 'absolute'> {
  readonly owner: SessionOwner
  readonly https: boolean
}

// A mark is kept longer than any session that could carry an older one
export const MARK_LIFETIMES = 10

const refuse = (error: unknown): never => {
  throw unavailable(error)
}

/** No user is signed in, or the session was ended meanwhile. */
const notSignedIn = (): SignInRefused => new SignInRefused(AuthErrors.absent)

const begin = (given: WithRequest, owner: SessionOwner) => {
  const ctx = contextOf('logIn, logOut', given)
  if (isForgedChange(ctx.request, settingsOf(ctx.request))) throw new SignInRefused(AuthErrors.forged)
  const session = requestSessionOf(ctx)
  if (!session.belongsTo(owner)) {
    throw new Error(
      'logIn, logOut: the request did not come through this sessions(app, ...); call it before the routers are mounted, and use the functions that it returned for the same application',
    )
  }
  return { ctx, session }
}

// Outside of a guarded operation nothing notes that a later function threw. If middleware answered that exception, the
// user would be signed in all the same. So it is an error there. `sessions` throws it once more, so that the answer is
// a 500 even if the application swallows it, or does not await the call.
const outside =
  'logIn, logOut, addProof: they work only inside of a guarded operation, until it ends; if anyone may call it, write withAuth(null) right after its path: router.post(path, withAuth(null), handler)'

type Change<A extends ReadonlyArray<unknown>> = (ctx: WithRequest, ...rest: A) => Promise<void>

const inOperation =
  <A extends ReadonlyArray<unknown>>(owner: SessionOwner, change: Change<A>): Change<A> =>
  (given, ...rest) => {
    const ctx = given?.request?.ctx
    if (ctx === undefined || !requestSessionOf(ctx).belongsTo(owner)) return change(given, ...rest)
    const exchange = exchangeOf(ctx)
    if (exchange.operations > 0) {
      exchange.isSigning = true
      return change(given, ...rest)
    }
    exchange.misplaced ??= new Error(outside)
    const refused = Promise.reject<void>(exchange.misplaced)
    // it is answered, so a call that is not awaited need not end the process
    refused.catch(() => undefined)
    return refused
  }

const logInChecks: Checks<OwnLogInOptions> = {
  keep: is.unchecked,
  proof: is.unchecked,
  before: is.maybe(is.list),
  idle: is.maybe(is.duration),
  absolute: is.maybe(is.duration),
  mark: is.maybe(is.string),
}

const detailsFrom = (options: LogInOptions): Details => {
  const now = Date.now()
  const { proof, before = [], idle, absolute } = bare(options)
  const given = [...before, ...(proof === undefined ? [] : [proof])]
  const proofs = given
    .map((one) => proofFrom('logIn(ctx, user, { proof })', one, now))
    .reduce<ReadonlyArray<Proof>>(addedTo, [])
  return bare({ proofs: proofs.length > 0 ? proofs : undefined, idle, absolute })
}

const listOf = ({ host }: SessionOwner): SignInList => {
  if (host.list !== undefined) return host.list
  throw new Error('listSessions, endSession: write sessions(app, { list: true })')
}

export const signing = <U>({ owner, store, https, idle, absolute }: SigningOptions): Signing<U> => ({
  logIn: inOperation(owner, async (context, user: U, options: OwnLogInOptions = {}) => {
    checkOptions('logIn(ctx, user, options)', options, logInChecks)
    const keep: unknown = ownField(options, 'keep') ?? []
    if (!Array.isArray(keep)) throw new TypeError('logIn(ctx, user, { keep }) must be an array of keys')
    const details = detailsFrom(options)
    const { ctx, session } = begin(context, owner)
    const id = owner.host.identify(user)
    checkSecure(ctx, https)
    const { list, label } = owner.host
    const { idle: ownIdle, absolute: ownAbsolute } = details
    if (ownAbsolute !== undefined && ownAbsolute > absolute * MARK_LIFETIMES) {
      throw new TypeError(
        `logIn(ctx, user, { absolute }) must be at most ${MARK_LIFETIMES} times that of sessions(app, { absolute }): logOutEverywhere is remembered that long`,
      )
    }
    // also that of `finish` and `passwordSignIn`
    if (owner.host.isProduction && ownIdle !== undefined) warnOfIdle('logIn(ctx, user, { idle })', ownIdle)
    const listed: Details = list === undefined ? {} : { listed: randomId(16), label: label?.(ctx.request) }
    const names = signedIn.hasSubscribers ? namesOf(ctx.request, user) : {}
    await changeInStore(session, async () => {
      const mark: unknown = await store.markOf(id)
      if (typeof mark !== 'string') throw new TypeError('the session store: markOf must resolve to a string')
      // compared with what the session gets, so that no reset comes in between
      if ((ownField(options, 'mark') ?? mark) !== mark) throw new SignInRefused(AuthErrors.unfinished('unknown'))
      const { finished, listed: before, idle: idleBefore } = session.details(ctx)
      const userBefore = session.present(ctx)?.id
      const old = sessionOf(ctx)
      const data = old === null ? {} : sessionData(old)
      for (const name of Object.keys(data)) if (!keep.includes(name) || name === 'auth') delete data[name]
      ctx['session'] = data
      if (ownIdle !== undefined || idleBefore !== undefined) lockAge(ctx, ownIdle ?? idle)
      const text = textOfDetails({ ...details, finished, ...listed })
      session.signingIn({ id, at: Date.now(), mark, names, details: text })
      try {
        await sessionOf(ctx)?.regenerate()
      } finally {
        session.signingIn(undefined)
      }
      session.stored.kept(ctx)
      const signIn = session.present(ctx)
      if (list === undefined || signIn === undefined || listed.listed === undefined) return
      session.listed = { id, entry: listed.listed }
      await list.begin(signIn, session.digests(ctx['session'] as object)?.session)
      if (before !== undefined && userBefore !== undefined) await list.end(userBefore, before)
    })
    ctx.set('Cache-Control', 'no-store')
  }),
  logOut: inOperation(owner, async (context) => {
    const { ctx, session } = begin(context, owner)
    await changeInStore(session, async () => {
      const { missedId } = session.stored
      // it may have got another id, whose cookie is on the way
      if (missedId !== undefined) await owner.ends.renewedOver(missedId)
      await session.endExpired()
      const now = sessionOf(ctx)
      if (now === null || !hasData(now)) return
      checkSecure(ctx, https)
      const signIn = session.present(ctx)
      const { listed, finished = [] } = session.details(ctx)
      for (const one of finished) owner.host.finished.delete(one)
      if (signIn !== undefined && listed !== undefined) await owner.host.list?.end(signIn.id, listed)
      ctx['session'] = null
      await session.koaSession?.manuallyCommit()
      session.signedOut()
      // an empty one, for what a page says after a sign-out
      ctx['session'] = {}
    })
    ctx.set('Cache-Control', 'no-store')
  }),
  addProof: inOperation(owner, async (context, given: ProofGiven) => {
    const proof = proofFrom('addProof(ctx, proof): proof', given, Date.now())
    const { ctx, session } = begin(context, owner)
    await changeInStore(session, async () => {
      const signIn = session.present(ctx)
      if (signIn === undefined) throw notSignedIn()
      checkSecure(ctx, https)
      session.nextDetails = { ...session.details(ctx), proofs: addedTo(proofsIn(signIn), proof) }
      try {
        await sessionOf(ctx)?.regenerate()
      } finally {
        session.nextDetails = undefined
      }
      // another request has ended the session meanwhile
      if (session.stored.isLost) throw notSignedIn()
      // now, so that the session of a provider that the proof names can be ended before the next request
      const changed = session.present(ctx)
      if (changed !== undefined && (await owner.host.list?.isLive(changed)) === false) throw notSignedIn()
      session.stored.kept(ctx)
    })
    ctx.set('Cache-Control', 'no-store')
  }),
  proofsOf: (context) => {
    const ctx = contextOf('proofsOf(ctx)', context)
    const signIn = requestSessionOf(ctx).present(ctx)
    return signIn === undefined ? [] : proofsIn(signIn)
  },
  listSessions: async (context, given) => {
    const ctx = contextOf('listSessions(ctx)', context)
    const list = listOf(owner)
    const session = requestSessionOf(ctx)
    if (session.stored.error !== undefined) throw unavailable(session.stored.error.error)
    const id = given ?? session.present(ctx)?.id
    if (id === undefined) throw notSignedIn()
    return list.of(id, session.details(ctx).listed).catch(refuse)
  },
  endSession: async (id, which) => {
    const list = listOf(owner)
    if (typeof id !== 'string' || typeof which !== 'string') {
      throw new TypeError('endSession(id, which): the identifier of the user, and the id of a listed session')
    }
    forgetFinished(owner.host, id)
    return list.endElsewhere(id, which).catch(refuse)
  },
  logOutEverywhere: async (id) => {
    if (typeof id !== 'string' || id === '') {
      throw new TypeError('logOutEverywhere(id): id must be a string that is not empty')
    }
    const mark = randomId(16)
    await store.mark(id, mark, absolute * MARK_LIFETIMES).catch(refuse)
    forgetFinished(owner.host, id)
    owner.reports.signedOut(id, 'logOutEverywhere')
    owner.ends.everywhere(id, mark)
  },
})

/**
 * Calls the `logIn` that `sessions(app, ...)` returned for the application of this request. `user` must be a user of
 * its `loadUser`; the compiler cannot check that here. Rejects if the request came through no sessions, or if
 * `identify` of the application cannot identify the user. It is for files that cannot see the application, such as a
 * router in its own file: it finds the sessions by the request.
 *
 * @example
 * import Router from '@koa/router'
 * import { withAuth } from 'koa-with-auth'
 * import { logIn } from 'koa-with-auth/sessions'
 *
 * export const signIn = new Router()
 * signIn.post('/login', withAuth(null), async (ctx) => {
 *   await logIn(ctx, { username: 'anna' }) // once the password is verified
 *   ctx.status = 204
 * })
 */
export const logIn = <U extends object>(ctx: WithRequest, user: U, options?: LogInOptions): Promise<void> =>
  // Safe: `identify` of the application refuses what it cannot identify
  calling('logIn(ctx, user)', ctx, (signing) => signing.logIn(ctx, user as never, options))

/** Calls the `addProof` of the same application. */
export const addProof = (ctx: WithRequest, proof: ProofGiven): Promise<void> =>
  calling('addProof(ctx, proof)', ctx, (signing) => signing.addProof(ctx, proof))

/** Calls the `proofsOf` of the same application. */
export const proofsOf = (ctx: WithRequest): ReadonlyArray<Proof> => signingOf('proofsOf(ctx)', ctx).proofsOf(ctx)

/** Calls the `logOut` of the same application. Rejects if the request came through no sessions. */
export const logOut = (ctx: WithRequest): Promise<void> => calling('logOut(ctx)', ctx, (signing) => signing.logOut(ctx))

// The promise of the call itself, because another one would be unhandled where nothing is awaited
const calling = (caller: string, ctx: WithRequest, call: (signing: Signing<never>) => Promise<void>): Promise<void> => {
  try {
    return call(signingOf(caller, ctx))
  } catch (error) {
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- as it was thrown
    return Promise.reject(error)
  }
}

const signingOf = (caller: string, given: WithRequest): Signing<never> => {
  const ctx = contextOf(caller, given)
  const signing = requestSessionOf(ctx).signing
  if (signing !== undefined) return signing
  throw new Error(
    sourceOf(ctx) === undefined
      ? `${caller}: the application has no sessions; call sessions(app, ...) of koa-with-auth/sessions, for the outermost application`
      : `${caller}: the request did not come through the sessions; call sessions(app, ...) before the routers are mounted`,
  )
}
