/**
 * `finish`: middleware that ends the ceremonies of a sign-in. It reads the request, and answers. Which step may come in which
 * order is decided in `ceremony.ts`.
 */
import * as E from 'fp-ts/lib/Either.js'
import type { Context, Middleware } from 'koa'
import * as AuthErrors from '../core/AuthError.js'
import { isSameWay, type Proof, type ProofGiven } from '../core/Proof.js'
import { fromAnswer } from '../core/Result.js'
import * as is from '../core/checks.js'
import { stating } from '../core/data.js'
import { checkHook, checkOptions, declareFactory, type Checks } from '../core/options.js'
import { endGrants, endPendingGrants, grantHolder, grantIn, type GrantHolder } from '../sessions/grants.js'
import { isOverAtProvider } from '../sessions/SignInList.js'
import { proofsIn, SignInRefused, throwUnavailable } from '../sessions/SignIn.js'
import type { BearerSignIn, OwnLogInOptions, SignIn } from '../sessions/SignIn.js'
import { begunFactors, checkKind, lastingIn, respondSecond, stampOfUser, type BegunFactor } from './beginning.js'
import { randomId } from '../crypto/secrets.js'
import { lifetimesFor, signInChecks, type SignInOptions } from './Lifetimes.js'
import { BY_TOKEN, type Finished } from './ceremony.js'
import { intentsOf, type AnyKind, type Incoming, type Intent, type Kind, type SomeKind } from './Kind.js'
import * as pages from './pages.js'
import { browserOf, finishedHere, incomingOf, isInactive, isRefused, postedAddress, presentUser } from './request.js'
import { revealPosted, sentPath, usedIn, visitOf, type Visit } from './request.js'

type AuthError = AuthErrors.AuthError

/** The finished ceremony, for the hook of the application. */
export interface Done<P extends ProofGiven = ProofGiven> extends Pick<Finished, 'intent' | 'returnTo'> {
  readonly proof: P & Proof
  /** The identifier of its user; for `signIn` only after a first factor. */
  readonly subject: string | undefined
  /** The proofs before, such as a first factor. */
  readonly before: ReadonlyArray<Proof>
  /** The members that were sent with the answer. */
  readonly body: Incoming['body']
}

/** Returns the user whom a proof identifies, or acts for it: a value, a promise, an Option, an Either or a TaskEither. */
export type FinishHook<P extends ProofGiven> = (ctx: Context, done: Done<P>) => unknown

/** A hook for each intent. An answer for an intent without a hook is a 400 `unknown`, and uses nothing up. */
export type FinishHooks<P extends ProofGiven> = { readonly [I in Intent]?: FinishHook<P> | undefined }

/** How a ceremony ends, and how long the session lasts. A second factor has the lifetimes of the first factor. */
export type FinishOptions<P extends ProofGiven = ProofGiven> = SignInOptions<Done<P>>

/**
 * Middleware that finishes a ceremony. It refuses requests that another site caused, opens the handle, uses it once, and checks the
 * answer. Then it asks the hook, which returns the user of the application whom the proof identifies. By its intent the user
 * is signed in (`signIn`), or gets the proof (`stepUp`). For `link`, `reset` and `verify` the hook acts itself, and
 * any truthy value is a success. A falsy value, or a user to sign in who is not active, is a 403 with the reason `noAccount`, unless
 * the hook has written another response.
 *
 * `{ signIn, link, stepUp }` is a hook for each intent. One hook for all runs for each intent that a `begin(kind)` has, so it
 * must read `intent`: a hook that links an identity must do so for `link` only. A hook for `stepUp` only reads, because it runs
 * before it is known that the proof is of the user who is signed in. It returns that user, or `true` where the proof itself
 * shows it: its `subject` is the identifier of the user, or the session has a proof of the same identity. Otherwise `true` is a
 * 403 `anotherUser`, as another user is.
 *
 * If the hook wrote no response, a browser is led to the path of the beginning (303), and others get `{ returnTo }`. A
 * popup gets the page that leads its opener there (200).
 * A kind that does everything itself, such as `passkeys({ ... }).register`, needs no hook.
 *
 * Failures are answered by the error mapper: 400 `unknown`, `late`, `declined`, `provider`, 403 `wrong`, `anotherUser`,
 * `anotherBrowser`, `noAccount`, 503 in an outage.
 *
 * @example
 * import { finish, type Kind } from 'koa-with-auth/sign-in'
 *
 * declare const google: Kind<unknown, unknown, unknown> // such as oidc({ ... })
 * declare const accounts: { of: (issuer?: string, subject?: string) => { username: string } | undefined }
 * const make = () => finish(google, { signIn: (_ctx, { proof }) => accounts.of(proof.issuer, proof.subject) })
 */
export function finish<Kept, Answer, P extends ProofGiven>(
  given: Kind<never, Kept, Answer, P> & { readonly needsHook: false },
): Middleware
export function finish<Kept, Answer, P extends ProofGiven>(
  given: Kind<never, Kept, Answer, P>,
  hook: FinishHook<P> | FinishHooks<P>,
  options?: FinishOptions<P>,
): Middleware
export function finish<Kept, Answer, P extends ProofGiven>(
  given: Kind<never, Kept, Answer, P>,
  hook?: FinishHook<P> | FinishHooks<P>,
  options: FinishOptions<P> = {},
): Middleware {
  checkKind('finish(kind, hook)', given)
  // Safe, all: a kind gets the content and the answer that it made, and its hook the proof
  const handler = finishHandler(given as unknown as SomeKind, hook as FinishHook<Proof>, options as FinishOptions)
  const lifetimes = options.idle !== undefined || options.absolute !== undefined
  return stating(handler, { part: 'finish', of: given.part, lifetime: given.lifetime, lifetimes })
}

const finishHandler = (given: SomeKind, hook: Parameters<typeof hooksOf>[1], options: FinishOptions): Middleware => {
  const hookOf = hooksOf(given, hook)
  const checked = checkOptions<FinishOptions>('finish(kind, hook, options)', options, signInChecks)
  const { as } = checked
  return async (ctx) => {
    const visit = visitOf('finish(kind)', ctx, as)
    const kind = usedIn(visit, given)
    if (kind.posted !== undefined && ctx.method === 'POST') return bounce(visit, kind)
    const respondFailed = (failure: AuthError, body: Incoming['body'] = {}) =>
      pages.respondUnfinished(ctx, failure, as === 'bearer' ? undefined : formAgain(ctx, kind, body, failure))
    if (isRefused(visit)) {
      visit.ceremonies.refused(kind.name, 'finish', AuthErrors.forged)
      return respondFailed(AuthErrors.forged)
    }
    const incoming = await incomingOf(ctx, 'finish')
    revealPosted(visit, incoming, kind)
    const failure = await finishCeremony(visit, kind, incoming, { hookOf, options: checked })
    if (failure !== undefined) return respondFailed(failure, incoming.body)
  }
}

interface CeremonyEnding {
  readonly hookOf: (intent: Intent) => FinishHook<Proof> | undefined
  /** Whether it is about the right user. Otherwise it is a 400 `unknown`, and uses no answer up. */
  readonly isMeant?: (subject: string | undefined) => Promise<boolean>
  readonly options: FinishOptions
  readonly signedIn?: () => unknown
}

/** Finishes a ceremony that this site caused, and answers, or resolves to the failure. */
export const finishCeremony = async <Kept, Answer>(
  visit: Visit,
  kind: Kind<never, Kept, Answer>,
  incoming: Incoming,
  ending: CeremonyEnding,
): Promise<AuthError | undefined> => {
  const { ctx, as, ceremonies, session } = visit
  const { hookOf, isMeant } = ending
  ctx.set('Cache-Control', 'no-store')
  const subject = presentUser(visit)
  if (subject === undefined && session.isUnavailable()) {
    ceremonies.refused(kind.name, 'finish', AuthErrors.unavailable())
    return AuthErrors.unavailable()
  }
  await checkTokenProof(visit)
  const here = finishedHere(visit, kind)
  const self: FinishRun = { ...ending, visit, kind, body: incoming.body, here }
  const ended = await ceremonies.finish(kind, {
    incoming,
    browser: as === 'bearer' ? BY_TOKEN : browserOf(visit),
    subject,
    isGoingOn: async ({ subject: about, stamp, before }) =>
      (stamp === undefined || about === undefined || (await isHalfGoingOn(visit, about, stamp, before))) &&
      (isMeant === undefined || isMeant(about)),
    isAwaited: (intent) => hookOf(intent) !== undefined,
    isFinishedHere: async (id) => as === undefined && here.has(id),
    complete: (finished) => finishUp(self, finished),
  })
  if (E.isLeft(ended)) return ended.left
  const second = respondSecond(visit)
  if (second !== undefined || as === undefined) await (second ?? pages.respondFinished(ctx, kind, ended.right))
  // the same answer at the same time made a token for another response
  else if (ended.right.completed === undefined) return AuthErrors.unfinished('unknown')
  else respondToken(ctx, self.made)
  return undefined
}

// Whether neither a sign-out everywhere nor one at the provider of a first factor came meanwhile
const isHalfGoingOn = async (
  visit: Visit,
  user: string,
  stamp: string,
  before: ReadonlyArray<Proof>,
): Promise<boolean> => {
  if ((await stampOfUser(visit, user)) !== stamp) return false
  const { list } = visit.host
  return list === undefined || !(await isOverAtProvider(list, user, before).catch(throwUnavailable))
}

interface FinishRun extends CeremonyEnding {
  readonly visit: Visit
  readonly kind: Pick<AnyKind, 'name' | 'leadsAgain'>
  readonly body: Incoming['body']
  readonly here: ReturnType<typeof finishedHere>
  made?: BearerSignIn | undefined
}

const finishUp = async (self: FinishRun, finished: Finished) => {
  const { visit, kind, hookOf, options } = self
  const { ctx } = visit
  const { intent, proof } = finished
  const done = { ...finished, body: self.body }
  const lasting = { ...finished.lasting, ...(intent === 'signIn' && lifetimesFor('finish', options, done)) }
  lastingIn.set(ctx, lasting)
  const answer = await fromAnswer(hookOf(intent)?.(ctx, done))
  if (E.isRight(answer)) return acceptUser(self, finished, lasting, answer.right)
  const isOwn = answer.left._tag === 'invalid' && answer.left.reason === undefined
  const second = begunFactors.get(ctx)
  if (second !== undefined) await keepPending(visit, kind.name, second, proof)
  return isOwn && (second !== undefined || !pages.isUnanswered(ctx))
    ? E.right({ user: second?.subject, isAccepted: second !== undefined })
    : E.left(isOwn ? AuthErrors.unfinished('noAccount') : answer.left)
}

const acceptUser = async (
  self: FinishRun,
  finished: Finished,
  lasting: Pick<OwnLogInOptions, 'idle' | 'absolute'>,
  user: unknown,
) => {
  const { visit, kind, here, options, signedIn } = self
  const { ctx, as, session, host } = visit
  const { intent, subject: about, id, proof, before } = finished
  const isSaid = intent === 'stepUp' && user === true
  const who = isSaid ? about : intent === 'signIn' || intent === 'stepUp' ? host.identify(user) : undefined
  const isAnother = isSaid ? !isOfUser(session.present(ctx), finished) : who !== undefined && who !== (about ?? who)
  if (isAnother) return E.left(AuthErrors.unfinished('anotherUser'))
  if (intent === 'signIn' && isInactive(visit, user)) return E.left(AuthErrors.unfinished('noAccount'))
  // the lifetimes of the hook, if it signed the user in itself
  const given = { ...lasting, ...session.lasting }
  const hasGrants = host.grants.size > 0
  const grant = hasGrants ? randomId(16) : undefined
  const isAsked = hasGrants && intent === 'signIn' && who !== undefined
  const stamp = finished.stamp ?? (isAsked ? await stampOfUser(visit, who) : undefined)
  const further: OwnLogInOptions = { keep: options.keep ?? [], ...given, proof, before, stamp, grant }
  if (intent === 'signIn') self.made = await signInBy(visit, user, further)
  else if (intent === 'stepUp') await session.signing?.addProof(ctx, proof)
  if (intent === 'signIn' && who !== undefined) {
    await keepGrants(self, grantHolder(host, who, { grant, absolute: given.absolute }), stamp, finished)
  } else await keepFurther(self, finished)
  if (intent === 'signIn') await signedIn?.()
  if (kind.leadsAgain === true && as === undefined) await here.add(id, who ?? about)
  return E.right({ user: who, isAccepted: true })
}

// After these, the same handle may be answered again
const retried: ReadonlySet<string> = new Set(['wrong', 'weak', 'short', 'long', 'common', 'context', 'breached'])

// The grant of a provider belongs to the session from now on; that of a first factor, too
const keepGrants = async (
  { visit, kind }: FinishRun,
  holder: GrantHolder,
  stamp: string | undefined,
  { proof, before }: Finished,
): Promise<void> => {
  const { grants } = visit.host
  if (grants.size === 0) return
  for (const keeper of grants.values()) {
    for (const one of before) await keeper.adopt(holder, one)
    if (keeper.kind === kind.name) await keeper.keep(holder, proof, false)
  }
  await endIfOver(visit, holder, stamp)
}

// A sign-out everywhere that came meanwhile found no grant to end
const endIfOver = async (visit: Visit, holder: GrantHolder, stamp: string | undefined): Promise<void> => {
  if ((await stampOfUser(visit, holder.user)) !== stamp) await endGrants(visit.host, holder.user, holder, true)
}

// The same for a proof that is added to the session of the request
const keepFurther = async (self: FinishRun, finished: Finished): Promise<void> => {
  const { ctx, session, host } = self.visit
  const present = host.grants.size === 0 ? undefined : session.present(ctx)
  if (present === undefined) return
  let details = session.details(ctx)
  if (grantIn(details) === undefined) {
    details = { ...details, grant: randomId(16) }
    session.bindAnew(ctx, details)
  }
  await keepGrants(self, grantHolder(host, present.id, details), present.stamp, finished)
}

// A second factor comes first
const keepPending = async (visit: Visit, kind: string, second: BegunFactor, proof: Proof): Promise<void> => {
  const { issuer, sid } = proof
  const { list } = visit.host
  const holder = grantHolder(visit.host, second.subject, {})
  const keepers = [...visit.host.grants.values()].filter((keeper) => keeper.kind === kind)
  for (const keeper of keepers) await keeper.keep(holder, proof, true)
  if (keepers.length === 0) return
  await endIfOver(visit, holder, second.stamp)
  // nor has a sign-out at the provider found it
  if (list === undefined || issuer === undefined || sid === undefined) return
  if (await isOverAtProvider(list, holder.user, [proof])) await endPendingGrants(visit.host, holder.user, issuer, sid)
}

// After a failure: the same form, if the same handle may be answered again
const formAgain = (
  ctx: Context,
  given: Pick<AnyKind, 'name' | 'form' | 'shows' | 'bound'>,
  { handle, key }: Incoming['body'],
  { _tag, reason }: AuthError,
): pages.Form => {
  const { form } = given
  const kind = pages.familyOf(given)
  const isRetried = reason !== undefined && retried.has(reason)
  const isAgain = isRetried || _tag === 'throttled' || _tag === 'unavailable'
  if (!isAgain || typeof handle !== 'string' || form?.answer === undefined) return pages.noForm(kind)
  const fields =
    typeof key === 'string'
      ? [...pages.shownBy(ctx, given, handle), ...pages.linkFields(key, form.answer)]
      : form.answer
  return { kind, handle, fields, action: sentPath(ctx) }
}

// The hook for an intent. Throws a TypeError for a value that is no hook
const hooksOf = (
  kind: Pick<AnyKind, 'needsHook' | 'intents' | 'bound'>,
  given: FinishHook<Proof> | FinishHooks<Proof> | undefined,
): CeremonyEnding['hookOf'] => {
  if (typeof given === 'object' && given !== null) {
    const where = 'finish(kind, { signIn, link, stepUp })'
    const checks = Object.fromEntries(intentsOf(kind).map((intent) => [intent, is.maybe(is.hook(2))]))
    // Safe: an intent that is not among them is refused
    const hooks = checkOptions(where, given, checks as Checks<FinishHooks<Proof>>)
    if (Object.keys(hooks).length === 0) throw new TypeError(`${where} must have a hook for an intent of the kind`)
    return (intent) => hooks[intent]
  }
  if (kind.needsHook !== false || given !== undefined) checkHook('finish(kind, hook): hook', given, 2)
  return () => given ?? (() => true)
}

// Whether a proof shows by itself that it is of the user who is signed in
const isOfUser = (signIn: SignIn | undefined, { proof, subject }: Finished): boolean =>
  signIn !== undefined &&
  proof.subject !== undefined &&
  ((proof.issuer === undefined && proof.subject === subject) || proofsIn(signIn).some((one) => isSameWay(one, proof)))

// A POST of another site comes without the cookie. The GET that follows has it
const bounce = async (visit: Visit, kind: Pick<AnyKind, 'name' | 'posted' | 'concealed'>): Promise<void> => {
  const { ctx } = visit
  const address = await postedAddress(visit, kind)
  const failure = AuthErrors.unfinished('unknown')
  if (address === undefined) return pages.respondUnfinished(ctx, failure, formAgain(ctx, kind, {}, failure))
  ctx.set('Cache-Control', 'no-store')
  pages.leadTo(ctx, address)
}

// --- sign-ins that a token carries

/**
 * Throws `SignInRefused` for a sign-in without the proof that its token needs (DPoP): before a code is used up, because every client
 * begins without a nonce. The sign-in itself uses the id of the proof.
 */
const checkTokenProof = async ({ ctx, as, session }: Visit): Promise<void> => {
  const { carrier, token } = session
  if (as !== 'bearer' || token || carrier?.proofs === undefined) return
  const proof = await carrier.proofs.ofStranger(ctx.request)
  if (E.isLeft(proof)) throw new SignInRefused(proof.left)
}

/** Signs in by the session of the request, or makes a token. */
export const signInBy = async (
  { ctx, as, session }: Visit,
  user: unknown,
  { keep, ...options }: OwnLogInOptions,
): Promise<BearerSignIn | undefined> => {
  // Safe, both: `identify` of the application refuses any other value
  if (as === 'bearer') return session.signing?.logIn(ctx, user as never, { ...options, as })
  await session.signing?.logIn(ctx, user as never, { keep, ...options, as: undefined })
  return undefined
}

/** Answers with the token (RFC 6749 §5.1), also after a hook has written; without a token, the session of the request was changed. */
export const respondToken = (ctx: Context, made: BearerSignIn | undefined): void => {
  ctx.remove('Location')
  ctx.status = made === undefined ? 204 : 200
  if (made !== undefined)
    ctx.body = { access_token: made.token, token_type: made.tokenType, expires_in: made.expiresIn }
  ctx.set('Cache-Control', 'no-store')
}

declareFactory('finish', finish)
