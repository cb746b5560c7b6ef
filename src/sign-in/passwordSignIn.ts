/**
 * A password form in one call: it reads the body, counts guesses, does the same work for unknown names, makes old hashes new,
 * signs in, and hands over to a second factor. `formAuth` and `throttled` are for other forms.
 */
import * as E from 'fp-ts/lib/Either.js'
import type { Context, Middleware } from 'koa'
import * as AuthErrors from '../core/AuthError.js'
import { isSafe } from '../core/CrossOrigin.js'
import { errorInWords, stating } from '../core/data.js'
import { fromAnswer, type Result } from '../core/Result.js'
import * as is from '../core/checks.js'
import { bare, checkOptions, declareFactory, withoutUndefined, type Check, type Checks } from '../core/options.js'
import { counting } from '../guesses/Guess.js'
import type { Limiter, Limiters } from '../guesses/Limiter.js'
import { hash as hashed, needsRehash, verify } from '../passwords/passwords.js'
import type { PageField } from '../sessions/Page.js'
import { SignInRefused } from '../sessions/SignIn.js'
import { answerShown, checkKind, readable, respondSecond, sealFirst, stampOfUser } from './beginning.js'
import type { SecondFactor } from './secondFactor.js'
import { caught, thrownFor, usualLimiters } from './countFailures.js'
import { localPath, type Incoming } from './Kind.js'
import { lifetimesFor, signInChecks, type SignInOptions } from './Lifetimes.js'
import * as pages from './pages.js'
import { isInactive, isRefused, returnToIn, usedIn, visitOf, type Visit } from './request.js'
import { finishCeremony, respondToken, signInBy } from './signIn.js'

/** The account of a name. */
export interface PasswordAccount<U> {
  readonly user: U
  /** The result of `hash` of `koa-with-auth/passwords`; nothing for a user without a password. */
  readonly hash?: string | null | undefined
}

/** The input of functions that decide how long the session lasts. */
export interface PasswordDone<U> {
  readonly user: U
  /** Whether "stay signed in" was chosen. */
  readonly remember: boolean
  /** All that was sent. */
  readonly body: Incoming['body']
}

type Maybe<A> = A | null | undefined | false
type Awaitable<A> = A | Promise<A>

/** How a password signs in. */
export interface PasswordSignInOptions<U extends object> extends SignInOptions<PasswordDone<U>> {
  /** The account of a name, or nothing. It is asked once more when the password was right, because a reset may have changed it. */
  readonly accountOf: (name: string) => Awaitable<Maybe<PasswordAccount<U>>>
  /**
   * The second factor: `secondFactor(...)`, for users who have set it up, or a function that returns that of a user. Default none.
   * `undefined` is a TypeError.
   */
  readonly factors?: SecondFactor | ((user: U) => Awaitable<Maybe<SecondFactor>>)
  /**
   * Counts wrong passwords. Default: in the memory of this process, ten for an account from an address in 15 minutes, and a
   * hundred for an account in a day.
   */
  readonly limiter?: Limiter | Limiters | undefined
  /**
   * Keeps a new hash of a password that was right. It is not called if the hash has changed since. Default: old hashes stay. A failure
   * is a process warning.
   */
  readonly save?: ((user: U, hash: string) => unknown) | undefined
  /**
   * Called when a user has just been signed in, also after a second factor: to mail "new sign-in", or to lead to a page that comes first.
   * `remember` is that of the form with the password; after a second factor, `false`, and `body` is that of the code. If it writes a
   * response, that is the answer. If it throws, the sign-in is undone.
   */
  readonly signedIn?: ((ctx: Context, done: PasswordDone<U>) => unknown) | undefined
  /** Other names of the fields, such as `{ username: 'email' }`. */
  readonly fields?: { readonly [Name in FormFieldName]?: string | undefined } | undefined
}

type FormFieldName = 'username' | 'password' | 'remember' | 'returnTo'

const usualNames = { username: 'username', password: 'password', remember: 'remember', returnTo: 'returnTo' }

const fieldNames: Check = (where, value) => {
  // Safe: anything but an object is refused
  const given = value as { readonly [Name in FormFieldName]?: string }
  const name = is.maybe(is.nonEmpty)
  checkOptions(where, given, { username: name, password: name, remember: name, returnTo: name })
}

const factorsCheck: Check = (where, value) => {
  if (typeof value === 'function') return is.hook(1)(where, value)
  const isCodes = typeof value === 'object' && value !== null && 'has' in value && 'check' in value
  if (!isCodes)
    throw new TypeError(
      `${where} must be the result of secondFactor({ ... }), or a function of the user that returns it`,
    )
}

const checks: Checks<PasswordSignInOptions<never>> = {
  accountOf: is.hook(1),
  factors: is.ifWritten(factorsCheck),
  limiter: is.unchecked,
  save: is.maybe(is.hook(2)),
  signedIn: is.maybe(is.hook(2)),
  fields: is.maybe(fieldNames),
  ...signInChecks,
}

const MAX_NAME = 1024

// Databases refuse some strings that no user has as a name
const canBeName = (name: string): boolean => name.length <= MAX_NAME && name.isWellFormed() && !/\p{Cc}/u.test(name)

// The values of a checkbox, and those of JSON
const isChosen = (u: unknown): boolean =>
  u === true || (typeof u === 'string' && !['', 'false', 'off', '0'].includes(u))

const wrongPassword: Result<never> = E.left(AuthErrors.unfinished('wrong'))
const noAccount: Result<never> = E.left(AuthErrors.unfinished('noAccount'))

/**
 * Middleware for the POST of a password form, behind `withAuth(null)`. It reads `{ username, password, remember?, returnTo? }`, JSON or
 * a form. A user without a second factor is signed in: 204, or 303 to `returnTo` for a browser. Otherwise the answer is
 * `{ next: 'code', handle }`, or the page that asks for the code; it posts to the same path, and needs no other route. `{ handle, code }`
 * will do if `accountOf` knows users by their identifier, and `factors` is no function.
 *
 * A wrong password, an unknown name and a user without a password are the same 403 `wrong`, after the same work. The right password of
 * a user who is not active (`isActive` of `sessions`) is a 403 `noAccount`. Beyond the limit it is a 429, fields that are missing or sent
 * twice are a 400 `malformed`, another site's form is a 403, an outage a 503. Browsers get each as a page, with the form to try again. A GET
 * is the form itself. `remember` has an effect through `idle` and `absolute`: `absolute: ({ remember }) => remember && 30 * DAY`. Throws a
 * TypeError for options that cannot work.
 *
 * @example
 * import { hash } from 'koa-with-auth/passwords'
 * import { passwordSignIn } from 'koa-with-auth/sign-in'
 *
 * const users = new Map([['anna', { username: 'anna', hash: await hash('anna-secret') }]])
 * const signIn = passwordSignIn({
 *   accountOf: (name) => {
 *     const user = users.get(name)
 *     return user && { user, hash: user.hash }
 *   },
 * }) // for GET and POST /sign-in
 */
export const passwordSignIn = <U extends object>(options: PasswordSignInOptions<U>): Middleware => {
  // Safe: the functions of a user get the users that `accountOf` returned
  const self = settingOf(checkOptions('passwordSignIn', options as unknown as FormOptions, checks))
  const lifetimes = options.idle !== undefined || options.absolute !== undefined
  return stating(passwordHandler(self), { part: 'passwordSignIn', lifetimes })
}

type FormOptions = PasswordSignInOptions<object>

const passwordHandler =
  (self: FormSelf): Middleware =>
  async (ctx) => {
    const { as } = self
    const visit = visitOf('passwordSignIn', ctx, as, false)
    ctx.set('Cache-Control', 'no-store')
    if (as === 'bearer' && isSafe(ctx.method)) return ctx.throw(405, { headers: { Allow: 'POST' } })
    if (isSafe(ctx.method)) {
      return pages.respondPage(ctx, answerShown(visit) ?? { ...formNow(self, ctx), step: 'begin' })
    }
    const refuse = (failure: AuthErrors.AuthError, body?: Incoming['body']): Promise<void> => {
      visit.ceremonies.refused('password', 'finish', failure)
      return pages.respondUnfinished(ctx, failure, as === 'bearer' ? undefined : formNow(self, ctx, body))
    }
    if (isRefused(visit)) return refuse(AuthErrors.forged)
    const incoming = await readable(ctx, () => formNow(self, ctx))
    if (incoming === undefined) return
    const { body, address } = incoming
    const [name, password] = [body[self.named.username], body[self.named.password]]
    try {
      if (self.factors !== undefined && typeof body['handle'] === 'string') {
        return await second(self, visit, incoming, is.isFilled(name) ? name : undefined)
      }
      if (!is.isFilled(name) || !is.isFilled(password)) return await refuse(AuthErrors.unfinished('malformed'), body)
      const known = await self.count(name, address, () => caught(() => checkPassword(self, visit, name, password)))
      if (E.isLeft(known)) return await refuse(known.left, body)
      return await signInUser(self, visit, incoming, known.right)
    } catch (error) {
      if (!(error instanceof SignInRefused)) throw error
      await refuse(error.failure, body)
      visit.session.giveNonce(ctx)
    }
  }

type FormSelf = ReturnType<typeof settingOf>

const settingOf = (given: FormOptions) => {
  const { factors, limiter = usualLimiters(), idle, absolute, persistent } = given
  const named: Readonly<Record<FormFieldName, string>> = { ...usualNames, ...withoutUndefined({ ...given.fields }) }
  const taken = [...Object.values(named), ...(factors === undefined ? [] : ['handle', 'code'])]
  if (new Set(taken).size < taken.length) {
    throw new TypeError(`passwordSignIn({ fields }): two fields have one name; the names are ${taken.join(', ')}`)
  }
  const hasChoice = [idle, absolute, persistent].some((one) => typeof one === 'function')
  const fields: ReadonlyArray<PageField> = [
    { name: named.username, type: named.username === 'email' ? 'email' : 'text', autocomplete: 'username' },
    { name: named.password, type: 'password', autocomplete: 'current-password' },
    ...(hasChoice ? [{ name: named.remember, type: 'checkbox', autocomplete: 'off' } as const] : []),
  ]
  const count = counting(limiter, 'passwordSignIn')
  return bare({ ...given, count, named, fields })
}

const formNow = ({ named, fields }: FormSelf, ctx: Context, body: Incoming['body'] = {}) => {
  const typed = bare({ ...body, [named.remember]: isChosen(body[named.remember]) ? 'on' : undefined })
  return pages.beginForm(ctx, 'password', fields, typed, named.returnTo)
}

// --- the password

// Throws the exceptions of `accountOf`, and `SignInRefused` for an outage
const accountFor = async ({ accountOf }: FormSelf, name: string): Promise<PasswordAccount<object> | undefined> => {
  if (!canBeName(name)) return undefined
  const answer = await fromAnswer(accountOf(name))
  if (E.isLeft(answer)) {
    if (answer.left._tag === 'invalid') return undefined
    throw thrownFor(answer.left)
  }
  // Safe: anything but an account is refused
  const { user, hash } = answer.right as Partial<PasswordAccount<object>>
  if (typeof user === 'object' && user !== null) return { user, hash }
  throw new TypeError('passwordSignIn({ accountOf }) must return { user, hash }, or nothing')
}

const renew = async (self: FormSelf, name: string, hash: unknown, password: string): Promise<void> => {
  if (self.save === undefined || typeof hash !== 'string' || !needsRehash(hash)) return
  try {
    const made = await hashed(password)
    // a reset that came meanwhile must not be undone
    const now = await accountFor(self, name)
    if (now?.hash === hash) await self.save(now.user, made)
  } catch (error) {
    process.emitWarning(`passwordSignIn: save failed: ${errorInWords(error)}`, 'SignInWarning')
  }
}

/** A user whose password is right, and the revocation stamp of that time. */
interface Checked {
  readonly user: object
  readonly stamp: string
}

const checkPassword = async (
  self: FormSelf,
  visit: Visit,
  name: string,
  password: string,
): Promise<Result<Checked>> => {
  const found = await accountFor(self, name)
  if (!(await verify(found?.hash, password)) || found === undefined) return wrongPassword
  // a reset may have changed the account while the password was verified. It ends the sign-ins that are older than its stamp
  const stamp = await stampOfUser(visit, visit.host.identify(found.user))
  const now = await accountFor(self, name)
  if (now === undefined) return wrongPassword
  if (now.hash !== found.hash && !(await verify(now.hash, password))) return wrongPassword
  if (isInactive(visit, now.user)) return noAccount
  await renew(self, name, now.hash, password)
  return E.right({ user: now.user, stamp })
}

const signInUser = async (
  self: FormSelf,
  visit: Visit,
  incoming: Incoming,
  { user, stamp }: Checked,
): Promise<void> => {
  const { ctx, as } = visit
  const { named, keep = [] } = self
  const { body } = incoming
  const done = { user, remember: isChosen(body[named.remember]), body }
  const lasting = lifetimesFor('passwordSignIn', self, done)
  const proof = { method: 'password' }
  const returnTo = localPath(returnToIn(body, incoming.query, named.returnTo))
  const kind = await factorOf(self, visit, user)
  if (kind !== undefined) {
    const form = { answer: codeForm(self, kind, String(body[named.username])).fields }
    await sealFirst(visit, kind, { user, proof, returnTo, ...lasting }, { stamp, incoming, form })
    return respondSecond(visit, body)
  }
  const made = await signInBy(visit, user, { keep, proof, stamp, ...lasting })
  await self.signedIn?.(ctx, done)
  if (as === 'bearer') return respondToken(ctx, made)
  if (!pages.isUnanswered(ctx)) return
  if (pages.isNavigation(ctx)) pages.leadTo(ctx, returnTo)
  else ctx.status = 204
}

// --- the second factor

const factorOf = async ({ factors }: FormSelf, { host }: Visit, user: object): Promise<SecondFactor | undefined> => {
  if (typeof factors !== 'function') {
    return factors !== undefined && (await factors.has(host.identify(user))) ? factors : undefined
  }
  const kind = (await factors(user)) || undefined
  if (kind !== undefined) checkKind('passwordSignIn({ factors })', kind)
  return kind
}

const codeForm = ({ named }: FormSelf, kind: SecondFactor, name: string | undefined) => ({
  kind: pages.familyOf(kind),
  fields: [...(name === undefined ? [] : [pages.hidden(named.username, name)]), ...(kind.form?.answer ?? [])],
})

// The code of a page: the name says which account, and the handle whether its password was right, and of which user
const second = async (self: FormSelf, visit: Visit, incoming: Incoming, name: string | undefined): Promise<void> => {
  const { ctx, as } = visit
  const { factors, keep, signedIn } = self
  // A stranger has no good handle. So nothing is looked up before it is opened, whose time would show which names exist
  let user = typeof factors === 'function' && name !== undefined ? (await accountFor(self, name))?.user : undefined
  const kind = typeof factors === 'function' ? user && (await factorOf(self, visit, user)) : factors
  const failure =
    kind === undefined
      ? AuthErrors.unfinished('unknown')
      : await finishCeremony(visit, usedIn(visit, kind), incoming, {
          hookOf: () => () => user,
          isMeant: async (subject = '') => {
            user ??= (await accountFor(self, name ?? subject))?.user
            return user !== undefined && visit.host.identify(user) === subject
          },
          options: bare({ keep }),
          signedIn: () => user && signedIn?.(ctx, { user, remember: false, body: incoming.body }),
        })
  if (failure === undefined) return
  if (as === 'bearer') return pages.respondUnfinished(ctx, failure)
  const isAgain = kind !== undefined && (failure.reason === 'wrong' || failure._tag === 'throttled')
  const { handle } = incoming.body
  const again =
    isAgain && typeof handle === 'string' ? { ...formNow(self, ctx), ...codeForm(self, kind, name), handle } : undefined
  return pages.respondUnfinished(ctx, failure, again ?? formNow(self, ctx, incoming.body))
}

declareFactory('passwordSignIn', passwordSignIn)
