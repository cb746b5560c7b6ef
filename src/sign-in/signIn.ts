/**
 * `begin` and `finish`: middleware for the ceremonies of a sign-in. It reads the request, and answers. What may happen in
 * which order is decided in `ceremony.ts`.
 */
import * as E from 'fp-ts/lib/Either.js'
import type { Context, Middleware } from 'koa'
import * as AuthErrors from '../core/AuthError.js'
import type { AuthError } from '../core/AuthError.js'
import { proofFrom, type Proof, type ProofGiven } from '../core/Proof.js'
import { fromAnswer } from '../core/Result.js'
import { checkHook, checkOptions, declareFactory, isGiven, list, maybe, oneOf, unchecked } from '../core/options.js'
import { contextOf, SignInRefused, type OwnLogInOptions, type WithRequest } from '../sessions/SignIn.js'
import type { Finishing } from './ceremony.js'
import {
  intentsOf,
  isForSubject,
  type Beginner,
  type Display,
  type Finished,
  type Incoming,
  type Intent,
  type Kind,
  type Sent,
} from './Kind.js'
import {
  applicationOf,
  browserFor,
  browserOf,
  finishedHere,
  incomingOf,
  isRefused,
  postedAddress,
  withoutInherited,
  type Application,
} from './request.js'
import { isUnanswered, leadTo, respondFinished, respondUnfinished } from './response.js'

// Throws a TypeError for what is no kind
const checkKind = (where: string, kind: unknown): void => {
  const isKind = typeof kind === 'object' && kind !== null && 'check' in kind && 'read' in kind && 'name' in kind
  if (!isKind) throw new TypeError(`${where}: the first argument must be a kind, such as mailed({ ... })`)
}

// Answers a failure that was found before the ceremony was looked at
const refusing =
  (ctx: Context, { ceremonies }: Application, kind: string, step: 'begin' | 'finish') =>
  (failure: AuthError): void => {
    ceremonies.refused(kind, step, failure)
    respondUnfinished(ctx, failure)
  }

// -------------------------------------------------------------------------------------
// begin
// -------------------------------------------------------------------------------------

/** How a ceremony begins. */
export interface BeginOptions<Ask> {
  /** What it is for. Default `signIn`; for a kind that is not good for that, the first that it is good for. */
  readonly intent?: Intent | undefined
  /** What the kind is asked, such as `{ prompt: 'none' }`, or a function that says so. */
  readonly ask?: Ask | ((ctx: Context) => Ask) | undefined
  /**
   * `popup`: the route is opened by `window.open` of a page of the same origin. `finish` ends on a page that posts the return
   * path to this opener by `postMessage`, and closes itself; without such an opener it goes to the return path. Default `page`.
   */
  readonly display?: Display | undefined
}

const beginChecks = {
  intent: maybe(oneOf('signIn', 'link', 'stepUp', 'reset', 'verify')),
  ask: unchecked,
  display: maybe(oneOf('page', 'popup')),
}

interface Starting<Ask> {
  readonly intent: Intent
  readonly ask: Ask | undefined
  readonly subject: string | undefined
  readonly display?: Display | undefined
  readonly before?: ReadonlyArray<Proof>
  readonly mark?: string
  /** Default: that of the request. */
  readonly returnTo?: string | undefined
}

const start = async <Ask, Kept>(
  ctx: Context,
  { ceremonies, host }: Application,
  given: Beginner<Ask, Kept>,
  starting: Starting<Ask>,
): Promise<E.Either<AuthError, Sent>> => {
  const kind = withoutInherited(given)
  const incoming = await incomingOf(ctx, 'begin')
  const browser = kind.bound === false ? '' : browserFor(ctx, host, kind.lifetime)
  const returnTo = starting.returnTo ?? incoming.body['returnTo'] ?? incoming.query.get('returnTo')
  ctx.set('Cache-Control', 'no-store')
  return ceremonies.begin(kind, { incoming, browser, ...starting, returnTo })
}

/**
 * Middleware that begins a ceremony: it redirects to a provider (303), or answers with what the kind sends (200). Nothing
 * is stored. `returnTo` of the query or of the body is the path that follows; a path of this origin, else `/`. Requests
 * that another site caused, prefetches and HEAD are a 403. Throws a TypeError for an intent that the kind is not good for.
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
  const given = checkOptions<BeginOptions<Ask>>('begin(kind, options)', options, beginChecks)
  const [usual = 'signIn'] = intentsOf(kind)
  const { intent = usual, ask, display } = given
  if (!intentsOf(kind).includes(intent)) {
    throw new TypeError(
      `begin(kind, { intent }): ${kind.name} is good for ${intentsOf(kind).join(', ')}, not ${intent}`,
    )
  }
  return async (ctx) => {
    const application = applicationOf('begin(kind)', ctx)
    const refuse = refusing(ctx, application, kind.name, 'begin')
    if (isRefused(ctx, 'begin')) return refuse(AuthErrors.forged)
    const { session } = application
    const subject = session.present(ctx)?.id
    if (isForSubject(intent)) {
      if (session.isUnavailable()) return refuse(AuthErrors.unavailable())
      if (subject === undefined) return refuse(AuthErrors.absent)
    }
    // Safe: a function is called, anything else is what is asked
    const askGiven = typeof ask === 'function' ? (ask as (ctx: Context) => Ask)(ctx) : (ask as Ask | undefined)
    const sent = await start(ctx, application, kind, {
      intent,
      ask: askGiven,
      display,
      subject: isForSubject(intent) ? subject : undefined,
    })
    if (E.isLeft(sent)) return respondUnfinished(ctx, sent.left)
    if (leads(sent.right)) return leadTo(ctx, sent.right.redirect)
    if (sent.right.body === null) ctx.status = 204
    else ctx.body = sent.right.body
  }
}

// What an object inherits leads nowhere
const leads = (sent: Sent): sent is Sent & { readonly redirect: string } => Object.hasOwn(sent, 'redirect')

/** The first of two factors. */
export interface FirstFactor<U> {
  /** Who gave it. */
  readonly user: U
  readonly proof: ProofGiven
  /** The path that follows. Default: `returnTo` of the request. In a hook of `finish`, pass that of the first ceremony on. */
  readonly returnTo?: string | undefined
}

/**
 * Begins the second factor of a user who gave the first one. The user is not signed in: the first proof travels sealed, and
 * `finish` of the second kind signs in once, with both. What it resolves to is what the browser needs, such as `{ handle }`.
 * If all sessions of the user are ended meanwhile (`logOutEverywhere`), it cannot be finished. Rejects with
 * `SignInRefused`, which is answered like a failure of `logIn`.
 *
 * @example
 * import type { Context } from 'koa'
 * import { secondly, type Kind } from 'koa-with-auth/sign-in'
 *
 * declare const code: Kind<unknown, unknown, unknown> // codes({ ... })
 * const next = async (ctx: Context, user: { username: string }) => {
 *   ctx.body = { next: 'code', ...(await secondly(ctx, code, { user, proof: { method: 'password' } })) }
 * }
 */
export const secondly = <Ask, Kept, U extends object>(
  given: WithRequest,
  kind: Beginner<Ask, Kept>,
  first: FirstFactor<U>,
): Promise<object> => {
  const begun = beginSecond(given, kind, first)
  // without await, the request is a 500 that says so; its rejection need not end the process
  begun.catch(() => undefined)
  return begun
}

const beginSecond = async <Ask, Kept, U extends object>(
  given: WithRequest,
  kind: Beginner<Ask, Kept>,
  first: FirstFactor<U>,
): Promise<object> => {
  checkKind('secondly(ctx, kind, first)', kind)
  const ctx = contextOf('secondly(ctx, kind, first)', given)
  const application = applicationOf('secondly(ctx, kind, first)', ctx)
  return application.session.stored.working(sealFirst(ctx, application, kind, first))
}

const sealFirst = async <Ask, Kept, U extends object>(
  ctx: Context,
  application: Application,
  kind: Beginner<Ask, Kept>,
  { user, proof, returnTo }: FirstFactor<U>,
): Promise<object> => {
  if (isRefused(ctx)) throw new SignInRefused(AuthErrors.forged)
  const { host } = application
  const subject = host.identify(user)
  const mark = await host.store.markOf(subject).catch((cause: unknown) => {
    throw new SignInRefused(AuthErrors.unavailable(), { cause })
  })
  const before = [proofFrom('secondly(ctx, kind, { proof })', proof, Date.now())]
  const sent = await start(ctx, application, kind, {
    intent: 'signIn',
    ask: undefined,
    subject,
    before,
    mark,
    returnTo,
  })
  if (E.isLeft(sent)) throw sent.left._tag === 'raised' ? sent.left.error : new SignInRefused(sent.left)
  firstFactors.set(ctx, subject)
  return leads(sent.right) ? sent.right : (sent.right.body ?? {})
}

// The users whose first factor was accepted, by the context of the request
const firstFactors = new WeakMap<object, string>()

// -------------------------------------------------------------------------------------
// finish
// -------------------------------------------------------------------------------------

/** What was finished, for the hook of the application. */
export interface Done<P extends ProofGiven = ProofGiven> extends Pick<Finished<P>, 'proof' | 'intent' | 'returnTo'> {
  /** The identifier of the user whom it is about; for `signIn` only after a first factor. */
  readonly subject: string | undefined
  /** The proofs before, such as a first factor. */
  readonly before: ReadonlyArray<Proof>
  /** The members that were sent with the answer. */
  readonly body: Incoming['body']
}

/** How a ceremony ends. */
export interface FinishOptions {
  /** Keys of the session before that the new one keeps, such as a basket. Default none. */
  readonly keep?: ReadonlyArray<string> | undefined
}

/**
 * Middleware that finishes a ceremony. It refuses what another site caused, opens the handle, spends it, and checks the
 * answer. Then it asks the hook, which returns the user of the application whom the proof identifies: a value, a promise,
 * an Option, an Either or a TaskEither. By its intent the user is signed in (`signIn`), or gets the proof (`stepUp`). For
 * `link`, `reset` and `verify` the hook does what is to be done, and any truthy value is a success. A falsy value is a
 * 403 with the reason `noAccount`, unless the hook has written another response.
 *
 * If the hook wrote no response, a browser is led to the path of the beginning (303), and others get `{ returnTo }`. A
 * popup gets the page that leads its opener there (200).
 * A kind that does everything itself, such as `passkeys({ ... }).register`, needs no hook.
 *
 * Failures are answered by the error mapper: 400 `unknown`, `late`, `declined`, `provider`, 403 `wrong`, `anotherUser`,
 * `anotherBrowser`, `noAccount`, 503 in an outage.
 *
 * @example
 * import Router from '@koa/router'
 * import { withAuth } from 'koa-with-auth'
 * import { finish, type Kind } from 'koa-with-auth/sign-in'
 *
 * declare const google: Kind<unknown, unknown, unknown> // such as oidc({ ... })
 * declare const accounts: { of: (issuer?: string, subject?: string) => { username: string } | undefined }
 * const routes = (router: Router) =>
 *   router.get(
 *     '/sign-in/google/callback',
 *     withAuth(null),
 *     finish(google, (_ctx, { proof }) => accounts.of(proof.issuer, proof.subject)),
 *   )
 */
export function finish<Kept, Answer, P extends ProofGiven>(
  given: Kind<never, Kept, Answer, P> & { readonly needsHook: false },
): Middleware
export function finish<Kept, Answer, P extends ProofGiven>(
  given: Kind<never, Kept, Answer, P>,
  userOf: (ctx: Context, done: Done<P>) => unknown,
  options?: FinishOptions,
): Middleware
export function finish<Kept, Answer, P extends ProofGiven>(
  given: Kind<never, Kept, Answer, P>,
  hook?: (ctx: Context, done: Done<P>) => unknown,
  options: FinishOptions = {},
): Middleware {
  checkKind('finish(kind, hook)', given)
  const needsHook = !isGiven(given, 'needsHook') || given.needsHook !== false
  if (needsHook || hook !== undefined) checkHook('finish(kind, hook): hook', hook, 2)
  const userOf = hook ?? (() => true)
  const { keep = [] } = checkOptions<FinishOptions>('finish(kind, hook, options)', options, { keep: maybe(list) })
  return async (ctx) => {
    const application = applicationOf('finish(kind)', ctx)
    const { ceremonies, session, host } = application
    const kind = withoutInherited(given)
    const refuse = refusing(ctx, application, kind.name, 'finish')
    if (kind.posted !== undefined && ctx.method === 'POST') return bounce(ctx, kind.posted)
    if (isRefused(ctx)) return refuse(AuthErrors.forged)
    const incoming = await incomingOf(ctx, 'finish')
    ctx.set('Cache-Control', 'no-store')
    const subject = session.present(ctx)?.id
    if (subject === undefined && session.isUnavailable()) return refuse(AuthErrors.unavailable())
    const here = finishedHere(ctx, application)
    const ended = await ceremonies.finish(kind, {
      incoming,
      browser: browserOf(host, ctx.request),
      subject,
      isGoingOn: async ({ subject: about, mark }) =>
        mark === undefined || about === undefined || (await host.store.markOf(about)) === mark,
      isFinishedHere: here.has,
      complete: unrefused(async (finished) => {
        const { intent, subject: about, id } = finished
        const answer = await fromAnswer(userOf(ctx, { ...finished, body: incoming.body }))
        if (E.isLeft(answer)) {
          const isOwn = answer.left._tag === 'invalid' && answer.left.reason === undefined
          const first = firstFactors.get(ctx)
          return isOwn && !isUnanswered(ctx)
            ? E.right({ user: first, isAccepted: first !== undefined })
            : E.left(isOwn ? AuthErrors.unfinished('noAccount') : answer.left)
        }
        const user = answer.right
        const who = intent === 'signIn' || intent === 'stepUp' ? host.identify(user) : undefined
        if (who !== undefined && about !== undefined && who !== about) {
          return E.left(AuthErrors.unfinished('anotherUser'))
        }
        await completed(ctx, application, finished, user, keep)
        if (kind.leadsAgain === true) here.add(id, who ?? about)
        return E.right({ user: who, isAccepted: true })
      }),
    })
    if (E.isLeft(ended)) return respondUnfinished(ctx, ended.left)
    return respondFinished(ctx, ended.right)
  }
}

// The cookie is not sent with what another site posts. It is sent with the GET that follows
const bounce = async (ctx: Context, names: ReadonlyArray<string>): Promise<void> => {
  const address = await postedAddress(ctx, names)
  if (address === undefined) return respondUnfinished(ctx, AuthErrors.unfinished('unknown'))
  ctx.set('Cache-Control', 'no-store')
  leadTo(ctx, address)
}

// What `logIn` refuses is no exception
const unrefused =
  <P extends ProofGiven>(complete: Finishing<P>['complete']): Finishing<P>['complete'] =>
  async (finished) => {
    try {
      return await complete(finished)
    } catch (error) {
      if (error instanceof SignInRefused) return E.left(error.failure)
      throw error
    }
  }

const completed = async (
  ctx: Context,
  { session }: Application,
  { intent, proof, before, mark }: Finished,
  user: unknown,
  keep: ReadonlyArray<string>,
): Promise<void> => {
  const { signing } = session
  const options: OwnLogInOptions = { keep, proof, before, mark }
  // Safe: `identify` of the application refuses what it cannot identify
  if (intent === 'signIn') await signing?.logIn(ctx, user as never, options)
  else if (intent === 'stepUp') await signing?.addProof(ctx, proof)
}

declareFactory('begin', begin)
declareFactory('finish', finish)
