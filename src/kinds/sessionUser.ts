/**
 * Decides whether a loaded user is let in, and with which rights: by the flags of the user, or by functions that the application
 * gives instead.
 *
 * Only `true` grants a right. A function that returns another truthy value is wrong: a promise is truthy, whatever it resolves
 * to.
 */
import type * as E from 'fp-ts/lib/Either.js'
import type * as O from 'fp-ts/lib/Option.js'
import type { Context, Request } from '../core/Request.js'
import type { AuthError } from '../core/AuthError.js'
import type { Proof } from '../core/Proof.js'
import { knownExchange } from '../core/Exchange.js'
import { ownOrGetter, unawaited } from '../core/data.js'
import type { End } from '../core/ends.js'
import type { SessionDigest } from '../core/events.js'
import type { Sent } from '../core/RequestFields.js'
import { functionOf } from '../core/functionName.js'
import * as is from '../core/checks.js'
import { isAsync, type Check } from '../core/options.js'

/** Functions of the user that replace its flags. They are sync, because `loadUser` loads their data. */
export interface RightsOptions<U> {
  /**
   * Whether the user is let in. `passwordSignIn` and `finish` sign in no other. Default: `isActive` of the user is `true` or left out.
   */
  readonly isActive?: ((user: U) => boolean) | undefined
  /** Whether the user is a staff member; a superuser need not be. Default: `isStaff` of the user is `true`. */
  readonly isStaff?: ((user: U) => boolean) | undefined
  /** Whether the user is a superuser. Default: `isSuperuser` of the user is `true`. */
  readonly isSuperuser?: ((user: U) => boolean) | undefined
}

/** Decides about users. The functions throw for a user whose rights cannot be read. */
export interface Rights extends Readonly<Record<(typeof allFlags)[number], (user: object) => boolean>> {
  /**
   * Which flag of the user is no boolean, and the fix; `undefined` if all are. Only flags that decide count. Never
   * prints a value.
   */
  readonly mistakeOf: (user: object) => string | undefined
}

const allFlags = ['isActive', 'isSuperuser', 'isStaff'] as const

const flagHook: Check = (where, f) => {
  is.hook(1)(where, f)
  if (isAsync(f))
    throw new TypeError(`${where} is async, but must return true or false itself; load its data in loadUser`)
}

export const rightsChecks = {
  isActive: is.maybe(flagHook),
  isStaff: is.maybe(flagHook),
  isSuperuser: is.maybe(flagHook),
}

/** The functions of an application that decide about its users, in words for the audit. */
export const rightsInWords = (options: RightsOptions<never>): ReadonlyArray<string> =>
  allFlags.flatMap((name) => {
    const f = options[name]
    return f === undefined ? [] : [`${name} ${functionOf(name, f)}`]
  })

/** Rights by the functions of an application; flags decide where it gives none. `where` is the call. */
export const rightsFrom = (where: string, options: RightsOptions<never>): Rights => {
  const decidedBy = (
    name: (typeof allFlags)[number],
    byFlag: (user: object) => boolean,
  ): ((user: object) => boolean) => {
    const f = options[name]
    // Safe: it takes the user that `loadUser` loads
    return f === undefined ? byFlag : (user) => checkAnswer(`${where}: ${name}`, f(user as never))
  }
  const flags = allFlags.filter((name) => options[name] === undefined)
  return {
    isActive: decidedBy('isActive', (user) => {
      const active = ownOrGetter(user, 'isActive')
      return active === undefined || active === true
    }),
    isStaff: decidedBy('isStaff', (user) => ownOrGetter(user, 'isStaff') === true),
    isSuperuser: decidedBy('isSuperuser', (user) => ownOrGetter(user, 'isSuperuser') === true),
    mistakeOf: (user) => {
      const wrong = flags.find((name) => !isFlagOrNone(ownOrGetter(user, name)))
      return (
        wrong &&
        `${wrong} of the loaded user is not a boolean; load { ...user, ${wrong}: Boolean(user.${wrong}) }, for example`
      )
    },
  }
}

// Databases write "not set" as null. With any other value that is no boolean, the user's rights cannot be read
const isFlagOrNone = (u: unknown): boolean => typeof u === 'boolean' || u === null || u === undefined

const checkAnswer = (where: string, answer: unknown): boolean => {
  if (answer === true || !answer) return answer === true
  unawaited(answer)
  throw new TypeError(`${where} must return true or false; load slow data in loadUser`)
}

export const rightsByFlags: Rights = rightsFrom('flags', {})

/**
 * Where the user of a request's session comes from. The session authenticators read it. A plain koa-session has none.
 */
export interface SessionSource {
  readonly owner: object
  readonly rights: Rights
  /** The value of `ctx.session`. Here it is only read; a reader of `ctx.session` may change its content. */
  readonly sessionOf: (ctx: Context) => unknown
  readonly sent: (ctx: Context) => O.Option<Sent>
  /** Whether the store failed, or did not answer in time. */
  readonly isUnavailable: () => boolean
  readonly isSignedIn: (session: object) => boolean
  /** The token that carries the session; `''` for a field `Authorization` that carries none, which counts all the same. */
  readonly token?: string | undefined
  /** How tokens carry its sessions; left out if the cookie alone does. */
  readonly carrier?: { readonly scheme: 'Bearer' | 'DPoP' } | undefined
  /** Whether a token was sent that is none of this application. */
  readonly isTokenWrong?: boolean
  /** Why the token was refused, if its session is good. */
  readonly refusal?: E.Left<AuthError> | undefined
  /** Loads the user who is signed in: a value, a promise, an Option, an Either or a TaskEither. */
  readonly load: (session: object) => unknown
  readonly proofs?: (session: object) => ReadonlyArray<Proof>
  /** The signed-in user and the session, as records of signing in and out name them. */
  readonly digests: (session: object) => SessionDigest | undefined
  readonly endFor?: () => End | undefined
}

const sourceMark = Symbol.for('koa-with-auth/session')

/**
 * Gives an application the source of requests that carry none, because they did not pass its sessions. Remembers the name of
 * its cookie.
 */
export const declareSessions = (
  { context }: { readonly context: object },
  source: SessionSource,
  cookie: string,
): void => {
  Reflect.set(context, sourceMark, source)
  Object.assign(processSessions(), { cookieName: cookie, carrier: source.carrier })
}

/** The signed-in user and the session of a context, as records of signing in and out name them. */
export const signInDigestsOf = (ctx: Context): SessionDigest | undefined => {
  const source = sourceOf(ctx)
  const session = source?.sessionOf(ctx)
  return typeof session === 'object' && session !== null ? source?.digests(session) : undefined
}

/** The source of a request; `undefined` if its application has none. */
export const sourceOf = (ctx: Context): SessionSource | undefined =>
  // Safe: `sessions` alone writes it
  (knownExchange(ctx)?.source ?? ctx[sourceMark]) as SessionSource | undefined

/** koa-session's own default. */
export const DEFAULT_COOKIE = 'koa.sess'

/** The state of the sessions of a process's applications, whichever copy of the package serves them. */
interface ProcessSessions {
  cookieName?: string
  carrier?: SessionSource['carrier']
  /** The applications whose authors were warned. */
  readonly warned: { readonly ofOptions: WeakSet<object>; readonly ofKeys: WeakSet<object> }
}

const sessionsMark = Symbol.for('koa-with-auth/sessions')
// Safe: nothing else is kept under this symbol
const globalSessions = globalThis as { [sessionsMark]?: ProcessSessions }
const processSessions = (): ProcessSessions =>
  (globalSessions[sessionsMark] ??= { warned: { ofOptions: new WeakSet(), ofKeys: new WeakSet() } })

/**
 * The name of the session cookie that the process noted. Default: koa-session's. It is for documents and audits that are made
 * without a request. Routers do not know the application that will mount them, so the process notes the name that the last
 * `sessions(app)` gave its cookie. With a request the application's own name counts instead.
 */
export const declaredSessionCookie = (): string => processSessions().cookieName ?? DEFAULT_COOKIE

/** How tokens carry the sessions of a request's application, or of the last application, as `declaredSessionCookie` notes it. */
export const carrierFor = (request: Request | undefined): SessionSource['carrier'] =>
  request === undefined ? processSessions().carrier : sourceOf(request.ctx)?.carrier

/** Whether a weakness of the sessions of an application is reported for the first time. */
export const isFirstWarning = (app: object, weakness: keyof ProcessSessions['warned']): boolean => {
  const warned = processSessions().warned[weakness]
  if (warned.has(app)) return false
  warned.add(app)
  return true
}
