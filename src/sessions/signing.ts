/**
 * Signs in and out. Each sign-in gets a new id, and keeps only the data of the old session that are named. An ended session stays ended.
 */
import * as E from 'fp-ts/lib/Either.js'
import type { Context, Request } from 'koa'
import { isForgedChange } from '../core/CrossOrigin.js'
import * as AuthErrors from '../core/AuthError.js'
import { exchangeOf, settingsOf } from '../core/Exchange.js'
import { signedIn } from '../core/events.js'
import { addedTo, proofFrom, type Proof, type ProofGiven } from '../core/Proof.js'
import * as is from '../core/checks.js'
import { unawaited } from '../core/data.js'
import { checkOptions, withoutUndefined, type Checks } from '../core/options.js'
import { randomId } from '../crypto/secrets.js'
import { hasData, sessionData } from '../kinds/plainSession.js'
import { sourceOf } from '../kinds/sessionUser.js'
import { namesOf } from '../koa/watching.js'
import { fromNow } from '../core/memory.js'
import { newToken } from './Bearer.js'
import { lockAge } from './SessionCookie.js'
import { endGrants } from './grants.js'
import { requestSessionOf, type RequestSession, type SessionOwner } from './RequestSession.js'
import { sessionOf } from './StoredSession.js'
import { hintFor, replaceStamp, sessionKey, stampFor, STAMP_LIFETIMES, type SessionRecords } from './SessionRecords.js'
import { endForwarded, everywhereOver } from './SessionEnds.js'
import { endElsewhere, endListed, enlist, forgetFinished, listedSessions, relist } from './SignInList.js'
import type { SessionHost, SignInList } from './SignInList.js'
import { bearerFix, contextOf, proofsIn, textOfDetails, throwUnavailable, SignInRefused } from './SignIn.js'
import type {
  Details,
  BearerLogInOptions,
  BearerSignIn,
  ListedSession,
  LogInOptions,
  OwnLogInOptions,
  Signing,
  WithRequest,
} from './SignIn.js'
import { changeInStore, checkSecure } from './commit.js'
import { warnOfIdle } from './SessionsOptions.js'

interface SigningOf extends SessionRecords {
  readonly owner: SessionOwner
  readonly isSecure: boolean
}

/** No user is signed in, or the session was ended meanwhile. */
const notSignedIn = (): SignInRefused => new SignInRefused(AuthErrors.absent)

// `isByToken`: whether a token carries the session. Default: whether the request has one
const beginChange = (given: WithRequest, owner: SessionOwner, isByToken?: boolean) => {
  const ctx = contextOf('logIn, logOut, addProof', given)
  const session = requestSessionOf(ctx)
  // browsers send no token by themselves
  const isAmbient = !(isByToken ?? session.token !== undefined)
  if (isAmbient && isForgedChange(ctx.request, settingsOf(ctx.request))) throw new SignInRefused(AuthErrors.forged)
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
const outsideOperation =
  'logIn, logOut, addProof: they work only inside of a guarded operation, until it ends; if anyone may call it, write withAuth(null) right after its path: router.post(path, withAuth(null), handler)'

type SignInChange<A extends ReadonlyArray<unknown>, B> = (ctx: WithRequest, ...rest: A) => Promise<B>

const inOperation =
  <A extends ReadonlyArray<unknown>, B>({ owner }: SigningOf, change: SignInChange<A, B>): SignInChange<A, B> =>
  (given, ...rest) => {
    const ctx = given?.request?.ctx
    if (ctx === undefined || !requestSessionOf(ctx).belongsTo(owner)) return change(given, ...rest)
    const exchange = exchangeOf(ctx)
    if (exchange.operations > 0) {
      exchange.isSigning = true
      return change(given, ...rest)
    }
    exchange.misplaced ??= new Error(outsideOperation)
    const refused = Promise.reject<B>(exchange.misplaced)
    // it is answered, so a call that is not awaited need not end the process
    refused.catch(() => undefined)
    return refused
  }

const logInChecks: Checks<OwnLogInOptions> = {
  keep: is.maybe(is.that(Array.isArray, 'must be an array of keys')),
  proof: is.unchecked,
  before: is.maybe(is.list),
  idle: is.maybe(is.duration),
  absolute: is.maybe(is.duration),
  persistent: is.maybe(is.flag),
  stamp: is.maybe(is.string),
  grant: is.maybe(is.string),
  as: is.maybe(is.oneOf('bearer')),
}

const detailsFrom = (options: LogInOptions): Details => {
  const now = Date.now()
  const { proof, before = [], idle, absolute, persistent } = options
  const given = [...before, ...(proof === undefined ? [] : [proof])]
  const proofs = given
    .map((one) => proofFrom('logIn(ctx, user, { proof })', one, now))
    .reduce<ReadonlyArray<Proof>>(addedTo, [])
  return { proofs: proofs.length > 0 ? proofs : undefined, idle, absolute, persistent }
}

// With a list, the name of the grants in a session is the id of its entry
const sessionNames = ({ list, label, grants }: SessionHost, request: Request, { grant }: OwnLogInOptions): Details =>
  list === undefined
    ? { grant: grant ?? (grants.size > 0 ? randomId(16) : undefined) }
    : { listed: grant ?? randomId(16), label: labelIn(label?.(request)) }

// A client writes the field that most labels come from
const MAX_LABEL = 256

const labelIn = (said: unknown): string | undefined => {
  const label = unawaited(said)
  return typeof label === 'string' ? label.slice(0, MAX_LABEL) : undefined
}

const sessionListOf = ({ host }: SessionOwner): SignInList => {
  if (host.list !== undefined) return host.list
  throw new Error('listSessions, endSession: write sessions(app, { list: true })')
}

export const signing = <U>(self: SigningOf): Signing<U> => ({
  // Safe: the option `as` says which of the two it is
  logIn: inOperation(self, (context, user: U, options?: OwnLogInOptions): Promise<unknown> =>
    options?.as === 'bearer' ? signInByToken(self, context, user, options) : signIn(self, context, user, options),
  ) as Signing<U>['logIn'],
  logOut: inOperation(self, (context) => signOut(self, context)),
  addProof: inOperation(self, (context, given: ProofGiven) => prove(self, context, given)),
  proofsOf: (context) => {
    const ctx = contextOf('proofsOf(ctx)', context)
    const present = requestSessionOf(ctx).present(ctx)
    return present === undefined ? [] : proofsIn(present)
  },
  listSessions: (context, user) => listOf(self, context, user),
  endSession: (user, id) => endListedSession(self, user, id),
  logOutEverywhere: (user) => signOutEverywhere(self, user),
})

const listOf = async (
  { owner }: SigningOf,
  context: WithRequest,
  given: string | undefined,
): Promise<ReadonlyArray<ListedSession>> => {
  const ctx = contextOf('listSessions(ctx)', context)
  const list = sessionListOf(owner)
  const session = requestSessionOf(ctx)
  if (session.stored.error !== undefined) throwUnavailable(session.stored.error.error)
  const id = given ?? session.present(ctx)?.id
  if (id === undefined) throw notSignedIn()
  return listedSessions(list, id, session.details(ctx).listed).catch(throwUnavailable)
}

const endListedSession = async ({ owner }: SigningOf, user: string, id: string): Promise<boolean> => {
  const list = sessionListOf(owner)
  if (typeof user !== 'string' || typeof id !== 'string') {
    throw new TypeError(
      'endSession(user, id): user must be the identifier of the user, and id the id of a listed session',
    )
  }
  forgetFinished(owner.host, user)
  return endElsewhere(list, user, id).catch(throwUnavailable)
}

const signOutEverywhere = async (self: SigningOf, user: string): Promise<void> => {
  if (typeof user !== 'string' || user === '') {
    throw new TypeError('logOutEverywhere(id): id must be a string that is not empty')
  }
  const { host, reports, ends } = self.owner
  const stamp = await replaceStamp(self, user).catch(throwUnavailable)
  await endGrants(host, user, {}, true).catch(throwUnavailable)
  forgetFinished(host, user)
  reports.signedOut(user, 'logOutEverywhere')
  everywhereOver(ends, user, stamp)
}

// Throws a TypeError for lifetimes that are longer than a stamp is kept. `finish` and `passwordSignIn` give some, too
const checkLifetimes = ({ owner, absolute }: SigningOf, { idle, absolute: own }: Details): void => {
  if (own !== undefined && own > absolute * STAMP_LIFETIMES) {
    throw new TypeError(
      `logIn(ctx, user, { absolute }) must be at most ${STAMP_LIFETIMES} times that of sessions(app, { absolute }): the revocation stamp of logOutEverywhere is kept that long`,
    )
  }
  if (owner.host.isProduction && idle !== undefined) warnOfIdle('logIn(ctx, user, { idle })', idle)
}

// The checks of both ways to sign in, before anything changes
const beginSignIn = (
  self: SigningOf,
  context: WithRequest,
  user: unknown,
  options: OwnLogInOptions,
  isByToken = false,
) => {
  const given = checkOptions<OwnLogInOptions>('logIn(ctx, user, options)', options, logInChecks)
  const details = detailsFrom(given)
  const { ctx, session } = beginChange(context, self.owner, isByToken)
  const id = self.owner.host.identify(user)
  checkSecure(ctx, self.isSecure)
  checkLifetimes(self, details)
  const { idle, absolute, persistent } = details
  session.lasting = withoutUndefined({ idle, absolute, persistent })
  return { ctx, session, id, details, given }
}

const signIn = async (
  self: SigningOf,
  context: WithRequest,
  user: unknown,
  options: OwnLogInOptions = {},
): Promise<void> => {
  const { owner } = self
  const { list } = owner.host
  const { ctx, session, id, details, given } = beginSignIn(self, context, user, options)
  const { keep = [] } = given
  const named = { ...details, ...sessionNames(owner.host, ctx.request, given) }
  const { listed } = named
  const called = named.label === undefined ? {} : { label: named.label }
  const names = signedIn.hasSubscribers ? { ...namesOf(ctx.request, user), ...called } : {}
  await changeInStore(session, async () => {
    const stamp = await stampFor(self, id)
    // compared with that of the session, so that no reset comes in between
    if ((given.stamp ?? stamp) !== stamp) throw new SignInRefused(AuthErrors.unfinished('unknown'))
    // a session that a token carries stays as it is
    const detailsBefore = session.token === undefined ? session.details(ctx) : {}
    const { finished, listed: before, idle: idleBefore } = detailsBefore
    const userBefore = session.present(ctx)?.id
    if (userBefore !== undefined && session.token === undefined) await endGrants(owner.host, userBefore, detailsBefore)
    await endRenewed(owner, session)
    ctx['session'] = keptOf(ctx, keep)
    if (details.idle !== undefined || idleBefore !== undefined) lockAge(ctx, details.idle ?? self.idle)
    session.signingIn({ id, at: Date.now(), stamp, names, details: textOfDetails({ ...named, finished }) })
    try {
      await sessionOf(ctx)?.regenerate()
    } finally {
      session.signingIn(undefined)
    }
    session.stored.kept(ctx)
    session.begun = { user: id, listed, grant: named.grant }
    const present = session.present(ctx)
    if (list === undefined || present === undefined || listed === undefined) return
    await enlist(list, present, session.digests(ctx['session'] as object)?.session)
    if (before !== undefined && userBefore !== undefined) await endListed(list, userBefore, before)
  })
  ctx.set('Cache-Control', 'no-store')
}

// A session of its own, whatever the request has
const signInByToken = async (
  self: SigningOf,
  context: WithRequest,
  user: unknown,
  options: OwnLogInOptions,
): Promise<BearerSignIn> => {
  const { owner } = self
  const { bearer } = owner
  const { list } = owner.host
  if (bearer === undefined) throw new TypeError(`logIn(ctx, user, { as: 'bearer' }): ${bearerFix}`)
  const { ctx, session, id, details, given } = beginSignIn(self, context, user, options, true)
  const proof = await bearer.proofs?.ofIssuing(ctx.request)
  if (proof !== undefined && E.isLeft(proof)) throw new SignInRefused(proof.left)
  const named = sessionNames(owner.host, ctx.request, given)
  const text = textOfDetails({ ...details, ...named, jkt: proof?.right })
  const names = signedIn.hasSubscribers ? namesOf(ctx.request, user) : {}
  const token = newToken(bearer)
  await changeInStore(session, async () => {
    const stamp = await stampFor(self, id)
    if ((given.stamp ?? stamp) !== stamp) throw new SignInRefused(AuthErrors.unfinished('unknown'))
    const auth = session.bound(token, { id, at: Date.now(), stamp, details: text })
    if (auth === undefined) return
    const { idle = self.idle } = details
    const data = JSON.stringify({ auth, _expire: Date.now() + idle, _maxAge: idle })
    session.made(token, names, { user: id, listed: named.listed, grant: named.grant })
    if (list !== undefined) await enlist(list, auth, owner.reports.digestsOf(token, id).session, 'bearer')
    await self.store.insert(sessionKey(token), data, idle)
    bearer.hints.set(sessionKey(token), fromNow(hintFor(self.name, { user: id, listed: named.listed })))
  })
  ctx.set('Cache-Control', 'no-store')
  session.giveNonce(ctx)
  const { absolute: lasting = self.absolute } = details
  return { token, tokenType: bearer.scheme, expiresIn: Math.floor(lasting / 1000) }
}

// The data of the old session that the new session keeps
const keptOf = (ctx: Context, keep: ReadonlyArray<unknown>): object => {
  const old = sessionOf(ctx)
  const data = old === null ? {} : sessionData(old)
  for (const name of Object.keys(data)) if (!keep.includes(name)) delete data[name]
  return data
}

// The session of the cookie may have got another id, whose cookie is on the way
const endRenewed = async ({ ends }: SessionOwner, { stored: { missedId } }: RequestSession): Promise<void> => {
  if (missedId !== undefined) await endForwarded(ends, missedId)
}

const signOut = async ({ owner, isSecure }: SigningOf, context: WithRequest): Promise<void> => {
  const { ctx, session } = beginChange(context, owner)
  const { list } = owner.host
  await changeInStore(session, async () => {
    await endRenewed(owner, session)
    await session.endExpired()
    const now = sessionOf(ctx)
    if (now === null || !hasData(now)) return
    checkSecure(ctx, isSecure)
    const present = session.present(ctx)
    const { listed, finished = [] } = session.details(ctx)
    for (const one of finished) owner.host.finished.delete(one)
    if (present !== undefined) await endGrants(owner.host, present.id, session.details(ctx))
    if (present !== undefined && listed !== undefined && list !== undefined) await endListed(list, present.id, listed)
    ctx['session'] = null
    await session.koaSession?.manuallyCommit()
    session.signedOut()
    // an empty session, for the message of a page after a sign-out
    ctx['session'] = {}
  })
  ctx.set('Cache-Control', 'no-store')
}

const prove = async ({ owner, isSecure }: SigningOf, context: WithRequest, given: ProofGiven): Promise<void> => {
  const proof = proofFrom('addProof(ctx, proof): proof', given, Date.now())
  const { ctx, session } = beginChange(context, owner)
  await changeInStore(session, async () => {
    const before = session.present(ctx)
    if (before === undefined) throw notSignedIn()
    checkSecure(ctx, isSecure)
    session.nextDetails = { ...session.details(ctx), proofs: addedTo(proofsIn(before), proof) }
    try {
      await sessionOf(ctx)?.regenerate()
    } finally {
      session.nextDetails = undefined
    }
    // another request has ended the session meanwhile
    if (session.stored.isLost) throw notSignedIn()
    // now, so that the session of a provider that the proof names can be ended before the next request
    const { list } = owner.host
    const changed = session.present(ctx)
    if (changed !== undefined && list !== undefined && !(await relist(list, changed))) throw notSignedIn()
    session.stored.kept(ctx)
  })
  ctx.set('Cache-Control', 'no-store')
}

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
export function logIn<U extends object>(ctx: WithRequest, user: U, options: BearerLogInOptions): Promise<BearerSignIn>
export function logIn<U extends object>(
  ctx: WithRequest,
  user: U,
  options?: LogInOptions & { readonly as?: undefined },
): Promise<void>
export function logIn(ctx: WithRequest, user: object, options?: object): Promise<unknown> {
  // Safe: `identify` of the application refuses a user that it cannot identify, and `logIn` checks the options
  return calling('logIn(ctx, user)', ctx, (signing) => signing.logIn(ctx, user as never, options as never))
}

/** Calls the `addProof` of the same application. */
export const addProof = (ctx: WithRequest, proof: ProofGiven): Promise<void> =>
  calling('addProof(ctx, proof)', ctx, (signing) => signing.addProof(ctx, proof))

/** Calls the `proofsOf` of the same application. */
export const proofsOf = (ctx: WithRequest): ReadonlyArray<Proof> => signingOf('proofsOf(ctx)', ctx).proofsOf(ctx)

/** Calls the `logOut` of the same application. Rejects if the request came through no sessions. */
export const logOut = (ctx: WithRequest): Promise<void> => calling('logOut(ctx)', ctx, (signing) => signing.logOut(ctx))

// The promise of the call itself, because another promise would be unhandled where nothing is awaited
const calling = <A>(caller: string, ctx: WithRequest, call: (signing: Signing<never>) => Promise<A>): Promise<A> => {
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
