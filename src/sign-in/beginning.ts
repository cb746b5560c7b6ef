/** `begin` and `askSecondFactor`: the beginning of a ceremony, by a request of its own, or by the first of two factors. */
import * as E from 'fp-ts/lib/Either.js'
import type { Context, Middleware } from 'koa'
import * as AuthErrors from '../core/AuthError.js'
import type { Result } from '../core/Result.js'
import { isProven, neededBy, proofFrom, type ProofDemand, type ProofGiven } from '../core/Proof.js'
import { ownField, stating } from '../core/data.js'
import * as is from '../core/checks.js'
import { bare, checkOptions, declareFactory } from '../core/options.js'
import { httpStatusOf } from '../core/Settings.js'
import type { Page } from '../sessions/Page.js'
import { stampNow } from '../sessions/SessionRecords.js'
import { contextOf, proofsIn, SignInRefused, throwUnavailable, type WithRequest } from '../sessions/SignIn.js'
import { BY_TOKEN, type Starting } from './ceremony.js'
import { carried, lifetimesFor, type Lifetimes } from './Lifetimes.js'
import { intentsOf, isForSubject, type SomeBeginner } from './Kind.js'
import type { KindForm, Beginner, Display, Incoming, Intent, Sent } from './Kind.js'
import { thrownFor } from './countFailures.js'
import * as pages from './pages.js'
import { browserFor, browserOf, incomingOf, isRefused, presentUser, returnToIn } from './request.js'
import { sentPath, usedIn, visitOf, type Visit } from './request.js'

type AuthError = AuthErrors.AuthError

export const checkKind = (where: string, kind: unknown): void => {
  const isKind = typeof kind === 'object' && kind !== null && 'check' in kind && 'read' in kind && 'name' in kind
  if (!isKind) throw new TypeError(`${where}: the first argument must be a kind, such as emailSignIn({ ... })`)
}

/** How a ceremony begins. */
export interface BeginOptions<Ask> {
  /** The intent. Default `signIn`; for a kind that does not support it, the first intent that the kind supports. */
  readonly intent?: Intent | undefined
  /** The question to the kind, such as `{ prompt: 'none' }`, or a function that returns it. `undefined` is a TypeError. */
  readonly ask?: Ask | ((ctx: Context) => Ask)
  /**
   * `popup`: the route is opened by `window.open` of a page of the same origin. `finish` ends on a page that posts the return
   * path to this opener by `postMessage`, and closes itself; without such an opener it goes to the return path. Default `page`.
   */
  readonly display?: Display | undefined
  /**
   * For `passkeys({ ... }).register`: a passkey that the browser makes without a dialog, right after a password sign-in
   * (`navigator.credentials.create({ mediation: 'conditional', ... })`). It needs a proof `password` that is at most 5 minutes old, and is
   * otherwise a 403. Default `false`.
   */
  readonly conditional?: boolean | undefined
  /** A token carries the sign-in: `finish` must say so, too. The answer sets no cookie. Default: the cookie. */
  readonly as?: 'bearer' | undefined
}

const beginChecks = {
  as: carried,
  intent: is.maybe(is.oneOf('signIn', 'link', 'stepUp', 'reset', 'verify')),
  ask: is.ifWritten(is.unchecked),
  display: is.maybe(is.oneOf('page', 'popup')),
  conditional: is.maybe(is.flag),
}

const start = async (
  visit: Visit,
  given: SomeBeginner,
  incoming: Incoming,
  starting: Starting,
): Promise<Result<Sent>> => {
  const kind = usedIn(visit, given)
  const secret = () => (visit.as === 'bearer' ? BY_TOKEN : browserFor(visit, kind.lifetime))
  const browser = kind.bound === false ? '' : secret()
  // Default: that of the request
  const path = starting.returnTo ?? returnToIn(incoming.body, incoming.query)
  const returnTo = typeof path === 'string' && path.length > (kind.longestPath ?? Infinity) ? '/' : path
  visit.ctx.set('Cache-Control', 'no-store')
  return visit.ceremonies.begin(kind, { incoming, browser, ...starting, returnTo })
}

/**
 * Middleware that begins a ceremony: it redirects to a provider (303), or answers with the body of the kind (200). Nothing
 * is stored. `returnTo` of the query or of the body is the path that follows; a path of this origin, else `/`. Requests
 * that another site caused (but for links), prefetches and HEAD are a 403. Throws a TypeError for an intent that the kind is not good for.
 *
 * `link` and `stepUp` are for the user who is signed in: write them behind `withAuth(sessionAuth({ proof }))`.
 *
 * @example
 * import Router from '@koa/router'
 * import { withAuth } from 'koa-with-auth'
 * import { begin, type Kind } from 'koa-with-auth/sign-in'
 *
 * declare const google: Kind<unknown, unknown, unknown> // such as oidc({ ... })
 * const routes = (router: Router) => router.get('/sign-in/google', withAuth(null), begin(google))
 */
export const begin = <Ask, Kept>(kind: Beginner<Ask, Kept>, options: BeginOptions<Ask> = {}): Middleware => {
  checkKind('begin(kind, options)', kind)
  // Safe: a kind gets the content that it made, and its own question
  const self = settingOf(kind as unknown as SomeBeginner, options)
  return stating((ctx: Context) => beginNow(self, ctx), { part: 'begin', of: kind.part, lifetime: kind.lifetime })
}

const settingOf = (kind: SomeBeginner, options: BeginOptions<unknown>) => {
  const given = checkOptions<BeginOptions<unknown>>('begin(kind, options)', options, beginChecks)
  const [usual = 'signIn'] = intentsOf(kind)
  const { intent = usual, ask, conditional = false } = given
  const demand = conditional ? kind.conditional : undefined
  if (conditional && demand === undefined)
    throw new TypeError(`begin(kind, { conditional }): it is for passkeys({ ... }).register, not for ${kind.name}`)
  if (!intentsOf(kind).includes(intent)) {
    throw new TypeError(
      `begin(kind, { intent }): ${kind.name} has the intents ${intentsOf(kind).join(', ')}, not ${intent}`,
    )
  }
  const fields = (ask === undefined && kind.form?.begin) || []
  return bare({ ...given, kind, intent, conditional, demand, fields })
}

const beginNow = async (
  { kind, intent, ask, display, conditional, as, demand, fields }: ReturnType<typeof settingOf>,
  ctx: Context,
): Promise<void> => {
  const visit = visitOf('begin(kind)', ctx, as)
  let typed: Incoming['body'] = {}
  const formNow = (): pages.Form => pages.beginForm(ctx, pages.familyOf(kind), fields, typed)
  const respondFailed = (failure: AuthError): Promise<void> =>
    pages.respondUnfinished(ctx, failure, as === 'bearer' ? undefined : formNow())
  const refuse = (failure: AuthError): Promise<void> => {
    visit.ceremonies.refused(kind.name, 'begin', failure)
    return respondFailed(failure)
  }
  if (isRefused(visit, 'begin')) return refuse(AuthErrors.forged)
  const shown = as === 'bearer' ? undefined : answerShown(visit)
  if (shown !== undefined) return pages.respondPage(ctx, shown)
  const subject = presentUser(visit)
  const refusal = isForSubject(intent) ? refusalOfSubject(visit, subject, demand) : undefined
  if (refusal !== undefined) return refuse(refusal)
  const isAsking = as === undefined && fields.length > 0 && ctx.method === 'GET' && pages.isNavigation(ctx)
  if (isAsking) return pages.respondPage(ctx, { ...formNow(), step: 'begin' })
  // Safe: a function is called, anything else is the question
  const asked = typeof ask === 'function' ? (ask as (ctx: Context) => unknown)(ctx) : ask
  const incoming = await readable(ctx, formNow)
  if (incoming === undefined) return
  typed = incoming.body
  const about = isForSubject(intent) || intent === 'verify' ? subject : undefined
  const sent = await start(visit, kind, incoming, { intent, ask: asked, display, conditional, subject: about })
  if (E.isLeft(sent)) return respondFailed(sent.left)
  if (leads(sent.right)) return pages.leadTo(ctx, sent.right.redirect)
  const { body } = sent.right
  const { form } = kind
  if (as === undefined && form !== undefined && pages.isNavigation(ctx))
    return showAnswer(visit, answerPage(ctx, pages.familyOf(kind), form, body), typed)
  if (body === null) ctx.status = 204
  else ctx.body = body
}

// Of an intent that is for the user who is signed in
const refusalOfSubject = (
  { ctx, session }: Visit,
  subject: string | undefined,
  demand: ProofDemand | undefined,
): AuthError | undefined => {
  if (session.isUnavailable()) return AuthErrors.unavailable()
  if (subject === undefined) return AuthErrors.absent
  if (demand === undefined) return undefined
  const present = session.present(ctx)
  const proofs = present === undefined ? [] : proofsIn(present)
  return isProven(proofs, demand, Date.now()) ? undefined : AuthErrors.unproven(neededBy(demand))
}

// The page that asks for the answer. Without a handle, the answer comes by a mail
const answerPage = (ctx: Context, kind: string, { answer = [], path }: KindForm, sent: object | null): Page => {
  const handle: unknown = sent === null ? undefined : ownField(sent, 'handle')
  return typeof handle === 'string'
    ? { kind, step: 'answer', handle, fields: answer, action: path ?? sentPath(ctx) }
    : { ...pages.noForm(kind), step: 'answer' }
}

// Servers and proxies refuse a longer request line
const MAX_PAGE_ADDRESS = 7000

// Shows the page that asks for the answer. After a form that a GET of the same address has shown, it has an address of its own there, so
// that back and forward ask for nothing to be sent again. The address is good in this browser alone.
const showAnswer = (visit: Visit, page: Page, sent: Incoming['body']): Promise<void> => {
  const { ctx, ceremonies } = visit
  if (sent[pages.STEP] !== undefined && page.handle !== undefined) {
    const hidden = ceremonies.conceal(browserFor(visit, 0), JSON.stringify(page))
    const address = `${sentPath(ctx)}?${pages.STEP}=${hidden}`
    if (address.length <= MAX_PAGE_ADDRESS) return Promise.resolve(pages.leadTo(ctx, address))
  }
  return pages.respondPage(ctx, page)
}

/** The page of such an address. */
export const answerShown = (visit: Visit): Page | undefined => {
  const { ctx, ceremonies } = visit
  const [hidden, ...more] = new URLSearchParams(ctx.querystring).getAll(pages.STEP)
  const browser = browserOf(visit)
  if (ctx.method !== 'GET' || hidden === undefined || more.length > 0 || browser === undefined) return undefined
  const text = ceremonies.reveal(browser, hidden)
  // Safe: only `showAnswer` has the key
  return text === undefined ? undefined : (JSON.parse(text) as Page)
}

// What an object inherits leads nowhere
const leads = (sent: Sent): sent is Sent & { readonly redirect: string } => Object.hasOwn(sent, 'redirect')

/** Reads a request; a navigation whose body cannot be read is answered with a page, and gets `undefined`. */
export const readable = async (ctx: Context, formNow: () => pages.Form): Promise<Incoming | undefined> => {
  try {
    return await incomingOf(ctx, 'begin')
  } catch (error) {
    if (httpStatusOf(error) === undefined || !pages.hasPage(ctx)) throw error
    await pages.respondFailed(ctx, AuthErrors.raised(error), formNow())
    return undefined
  }
}

/** The first of two factors. */
export interface FirstFactor<U> {
  /** The user who gave it. */
  readonly user: U
  readonly proof: ProofGiven
  /** The path that follows. Default: `returnTo` of the request. In a hook of `finish`, pass that of the first ceremony on. */
  readonly returnTo?: string | undefined
  /** How long the session lasts unused, in milliseconds. Default: as `finish`, whose hook calls `askSecondFactor`, says. */
  readonly idle?: number | undefined
  /** How long it lasts after signing in, used or not, in milliseconds. Default: as `finish`, whose hook calls `askSecondFactor`, says. */
  readonly absolute?: number | undefined
  /** A token carries the sign-in: `finish` of the second kind must say so, too. Default: the cookie. */
  readonly as?: 'bearer' | undefined
}

/**
 * Begins the second factor of a user who gave the first factor. The user is not signed in: the first proof travels sealed, and
 * `finish` of the second kind signs in once, with both. A hook of `finish` that writes nothing more answers `{ next, handle }`, or,
 * for a kind with a `path`, the page that asks for the code. It resolves to the data for the browser, such as `{ handle }`.
 * If all sessions of the user are ended meanwhile (`logOutEverywhere`), it cannot be finished. Rejects with
 * `SignInRefused`, which is answered like a failure of `logIn`.
 *
 * @example
 * import type { Context } from 'koa'
 * import { askSecondFactor, type SecondFactor } from 'koa-with-auth/sign-in'
 *
 * declare const code: SecondFactor // secondFactor({ ... })
 * const next = async (ctx: Context, user: { username: string }) => {
 *   const { handle } = await askSecondFactor(ctx, code, { user, proof: { method: 'password' } })
 *   ctx.body = { next: 'code', handle }
 * }
 */
export const askSecondFactor = <Ask, Kept, U extends object, B extends object | null = object | null>(
  given: WithRequest,
  kind: Beginner<Ask, Kept, B>,
  first: FirstFactor<U>,
): Promise<B & object> => {
  const begin = async (): Promise<object> => {
    checkKind('askSecondFactor(ctx, kind, first)', kind)
    const ctx = contextOf('askSecondFactor(ctx, kind, first)', given)
    const visit = visitOf('askSecondFactor(ctx, kind, first)', ctx, first.as)
    return visit.session.stored.working(sealFirst(visit, kind, first))
  }
  const begun = begin()
  // without await, the request is a 500 that says so; its rejection need not end the process
  begun.catch(() => undefined)
  // Safe: this kind sends such a body; a kind that redirects has none
  return begun as Promise<B & object>
}

/** The revocation stamp of a user now. Rejects with `SignInRefused` in an outage. */
export const stampOfUser = ({ host }: Visit, subject: string): Promise<string> =>
  stampNow(host, subject).catch(throwUnavailable)

/** Begins the second factor. `stamp` is the revocation stamp of the user when the first factor was given. */
export const sealFirst = async <Ask, Kept>(
  visit: Visit,
  kind: Beginner<Ask, Kept>,
  first: FirstFactor<object>,
  known?: { readonly stamp: string; readonly incoming: Incoming; readonly form?: BegunFactor['form'] },
): Promise<object> => {
  const { user, proof, returnTo } = first
  const { ctx, as, host } = visit
  if (isRefused(visit)) throw new SignInRefused(AuthErrors.forged)
  const subject = host.identify(user)
  const stamp = known?.stamp ?? (await stampOfUser(visit, subject))
  const before = [proofFrom('askSecondFactor(ctx, kind, { proof })', proof, Date.now())]
  const incoming = known?.incoming ?? (await incomingOf(ctx, 'begin'))
  const lasting = { ...lastingIn.get(ctx), ...lifetimesFor('askSecondFactor', first, first) }
  const starting = { intent: 'signIn', subject, before, stamp, returnTo, lasting } as const
  // Safe: a kind gets the content that it made
  const sent = await start(visit, kind as unknown as SomeBeginner, incoming, starting)
  if (E.isLeft(sent)) throw thrownFor(sent.left)
  const made = leads(sent.right) ? sent.right : (sent.right.body ?? {})
  const ofPage = kind.form?.path === undefined ? known?.form : kind.form
  const form = as === 'bearer' ? undefined : ofPage
  begunFactors.set(ctx, { subject, stamp, kind: pages.familyOf(kind), made, form })
  return made
}

export interface BegunFactor {
  readonly subject: string
  /** The revocation stamp of the user when the first factor was given. */
  readonly stamp: string
  readonly kind: string
  readonly made: object
  /** The fields of its page, if it is known where the answer is posted. */
  readonly form: KindForm | undefined
}

/** The second factors that were begun, by the context of the request. */
export const begunFactors = new WeakMap<object, BegunFactor>()

/** Answers with the data that a second factor needs, unless a hook has answered: `{ next, handle }`, or its page. `undefined`: none was begun. */
export const respondSecond = (visit: Visit, sent: Incoming['body'] = {}): Promise<void> | undefined => {
  const { ctx } = visit
  const second = begunFactors.get(ctx)
  if (second === undefined) return undefined
  const { kind, made, form } = second
  const body: unknown = ctx.body ?? undefined
  const isData = typeof body === 'object' && body !== null && Object.getPrototypeOf(body) === Object.prototype
  if (form !== undefined && pages.isNavigation(ctx) && (isData || pages.isUnanswered(ctx))) {
    ctx.body = null
    return showAnswer(visit, answerPage(ctx, kind, form, made), sent)
  }
  if (pages.isUnanswered(ctx)) ctx.body = { next: kind, ...made }
  return Promise.resolve()
}

/** How long the session lasts that `finish` makes, by the context of the request: for a second factor in its hook. */
export const lastingIn = new WeakMap<object, Lifetimes>()

declareFactory('begin', begin)
