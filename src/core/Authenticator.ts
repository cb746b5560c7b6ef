/**
 * What an authenticator is, and how one is made.
 *
 * An authenticator is a fp-ts `ReaderTaskEither<Request, AuthError, P>`: a function from a request to a task, which results in
 * a failure or a principal. It also has two properties:
 *
 * - `description`: what it demands, as data. OpenAPI, the challenges and the audit read it.
 * - `evaluate`: makes the same decision, sync while nothing in it is async. The guard calls it.
 *
 * It reads the request and never writes the response. It never throws, and its promise never rejects. Laws
 * (spec/core/Authenticator.law.spec.ts): `alt` is associative; the first that passes wins, and no later one is called; none is
 * tried after `throttled`, `unavailable` and `raised`; `map` keeps identity and composition; calling and evaluating agree.
 *
 * @example
 * import * as E from 'fp-ts/lib/Either.js'
 * import * as RTE from 'fp-ts/lib/ReaderTaskEither.js'
 * import { pipe } from 'fp-ts/lib/function.js'
 * import { alt, apiKeyHeader, httpBearer, map } from 'koa-with-auth'
 *
 * const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 * const key = apiKeyHeader({ paramName: 'X-API-Key', authenticate: (_request, key) => key === 'k1' && { user: 'cron' } })
 *
 * const either = pipe(bearer, alt(() => key), map(({ user }) => user)) // an Authenticator<string>
 * const plain = pipe(bearer, RTE.map(({ user }) => user)) // fp-ts's own: a bare ReaderTaskEither<Request, AuthError, string>
 */
import * as E from 'fp-ts/lib/Either.js'
import * as O from 'fp-ts/lib/Option.js'
import type * as RTE from 'fp-ts/lib/ReaderTaskEither.js'
import type * as t from 'io-ts'
import type { Request } from 'koa'
import * as AuthErrors from './AuthError.js'
import { absent, forged as forgedError, invalid as invalidError, type AuthError } from './AuthError.js'
import { make as challengeOf, type Challenge } from './Challenge.js'
import { AnyCredentials } from './Credentials.js'
import { isForged } from './CrossOrigin.js'
import * as Descriptions from './Description.js'
import { constantFailure, explained, isAmbient, type Description, type SecurityScheme } from './Description.js'
import {
  andThen,
  failureOf,
  fromAnswer,
  isAnonymous,
  refused,
  type Evaluation,
  type PrincipalFromAnswer,
  type Result,
} from './Result.js'
import { settingsOf } from './Settings.js'
import { decodedMark, deepFreeze, frozenCopy, recoveredMark, unreadMark } from './data.js'
import { checkMember } from './members.js'
import {
  checkHook,
  checkOptions,
  credential,
  declareFactory,
  hook,
  maybe,
  schemeName,
  string,
  unchecked,
  type Check,
  type Checks,
} from './options.js'

/*
 * What becomes of the result of a hook, before anyone else sees it.
 */

/**
 * Completes the result of a hook. A failure gets its challenges. A success becomes `forged` if another site made the
 * browser send the credential. `invalid` and `forged` are made once, so that the responder can reuse their responses.
 */
export const concluding = (description: Description, ambient = isAmbient(description)) => {
  const invalid = constantFailure(description, invalidError)
  const forged = constantFailure(description, forgedError)
  return (result: Result<unknown>, request: Request): Result<unknown> => {
    if (E.isLeft(result)) return result === refused ? invalid : E.left(explained(description, result.left))
    return ambient && !isAnonymous(result) && isForged(request, settingsOf(request)) ? forged : result
  }
}

/*
 * Checks hooks that decide about a credential, also for a mistake that no type shows. The first argument is the
 * request. So `(token) => ...` looks at the request, and `() => ({ user })` lets everybody in.
 *
 * In development such a hook causes one warning. The source of the hook shows the mistake; `length` is not enough,
 * because it counts no default and no rest parameter, and wrappers read `arguments`. `checkAuthenticator` finds the
 * mistake by calling the hook.
 */

/** A hook that is called with the request, and with what a client sent: `arity` arguments in all. */
export const credentialHook =
  (arity: number): Check =>
  (place, value) => {
    checkHook(place, value, arity)
    if (process.env['NODE_ENV'] === 'development' && typeof value === 'function') warnUnread(place, value)
  }

const warnUnread = (place: string, hook: Function): void => {
  if (hook.length > 1 || readsMore(hook) || Reflect.get(hook, unreadMark) === true) return
  if (Object.isExtensible(hook)) Object.defineProperty(hook, unreadMark, { value: true })
  process.emitWarning(
    `${place} never reads the credential: it has ${hook.length === 0 ? 'no parameter' : 'one parameter'}, and is called with the request first, then with what the client sent; write (request, credential) => ...`,
    'UnreadCredentialWarning',
  )
}

// Whether it can read more than `length` says: a default, a rest parameter, `arguments`; or its source is not known
const readsMore = (hook: Function): boolean => {
  const source = Function.prototype.toString.call(hook)
  const [parameters] = /^[^)]*?(?:\)|=>)/.exec(source) ?? ['=']
  return /\.\.\.|=(?!>)|\/[*/]|^\[/.test(parameters) || /\barguments\b|\[native code\]/.test(source)
}

/*
 * The options of `authenticator` (Authenticator.ts), which makes an authenticator for one kind of credential: where it
 * is sent, what it must look like, and who decides about it.
 */

/** The options of a kind of authenticator. The built-in kinds are made with the same options. */
export interface AuthenticatorOptions<X, C, R> {
  /** How OpenAPI lists it. */
  readonly scheme?: SecurityScheme | undefined
  /** Returns the scheme, if it depends on the application. Called without a request if the document is made without one. */
  readonly schemeFor?: ((request?: Request) => SecurityScheme) | undefined
  /** What OpenAPI calls the scheme: letters, digits, `.`, `-` and `_`. Without it a name is derived. */
  readonly schemeName?: string | undefined
  /** What the audit says that the principal must be, such as `a superuser`. */
  readonly demands?: string | undefined
  /** What a 401 offers: one challenge, or one for every failure. */
  readonly challenge: Challenge | ((error: AuthError) => Challenge)
  /** Whether browsers send the credential by themselves (cookies, Basic). If so, writes from other sites are refused. */
  readonly ambient: boolean
  /** Reads the credential from the request. `none` means absent: the hook is not called. */
  readonly extract: (request: Request) => O.Option<X>
  /** The codec of the credentials. A value that it refuses is malformed. Without a codec, `''` and arrays (sent twice) are malformed. */
  readonly credentials?: t.Decoder<unknown, C> | undefined
  /** The longest credential, in characters; a longer one is malformed. Default 8192. */
  readonly maxLength?: number | undefined
  /** Decides who the request acts for. Returns a value, a promise, an Option, an Either or a TaskEither. */
  readonly authenticate: (request: Request, credentials: C) => R
}

const saysWhoSendsIt: Check = (place, value) => {
  if (typeof value === 'boolean') return
  throw new TypeError(`${place} must say whether browsers send the credential by themselves: true or false`)
}

const challengeCheck: Check = (place, value) => {
  // Safe: what it returns is checked
  const bare: unknown = typeof value === 'function' ? (value as (error: AuthError) => unknown)(absent) : value
  if (typeof bare !== 'object' || bare === null) {
    throw new TypeError(`${place} must be a challenge: Challenge.make('Scheme')`)
  }
  // Safe: `make` refuses values that are not strings
  const { scheme, parameters } = bare as Challenge
  challengeOf(scheme, parameters)
}

const decoder: Check = (place, value) => {
  if (typeof value === 'object' && value !== null && 'validate' in value) return
  throw new TypeError(`${place} must be an io-ts codec, such as HeaderKey`)
}

const checks: Checks<AuthenticatorOptions<unknown, unknown, unknown>> = {
  scheme: unchecked,
  schemeFor: maybe(hook(1)),
  schemeName: maybe(schemeName),
  demands: maybe(string),
  ambient: saysWhoSendsIt,
  extract: hook(1),
  authenticate: credentialHook(2),
  challenge: challengeCheck,
  credentials: maybe(decoder),
  maxLength: credential.maxLength,
}

/** Checks the options, and returns them without those that are `undefined`. */
const checkKind = <X, C, R>(options: AuthenticatorOptions<X, C, R>): AuthenticatorOptions<X, C, R> =>
  checkOptions('authenticator', options, checks)

/*
 * How a kind reads its credential, as a mark on its leaf. `throttled` and `remembered` need it, because they must see
 * the credential before the hook does.
 *
 * A plain function has no such mark, because what it reads is unknown.
 */

/** @internal The two steps before a kind's hook. */
export interface Reading {
  /** What the client sent. */
  readonly extract: (request: Request) => O.Option<unknown>
  /** The credentials in it; a Left is malformed. */
  readonly decode: (sent: unknown) => E.Either<unknown, unknown>
  /**
   * Set by `throttled`: the address that the credential counts under. `undefined` if the limiter must be asked first,
   * even if the credential is remembered.
   */
  readonly origin?: (request: Request, sent: unknown) => string | undefined
  /** Set by `recoverUnavailable`: something else than the credential may decide. */
  readonly recovers?: true
}

const mark = Symbol.for('koa-with-auth/reading')

/** @internal Marks a leaf. The mark is not enumerable, so comparisons of descriptions ignore it. */
export const readBy = <L extends object>(leaf: L, reading: Reading): L =>
  Object.defineProperty(leaf, mark, { value: reading })

/** @internal How the kind of a leaf reads; `undefined` for a plain function. */
export const readingOf = (leaf: object): Reading | undefined => {
  // Safe: only `readBy` writes the mark
  const { [mark]: reading } = leaf as { readonly [mark]?: Reading }
  return reading
}

type Recovering = Request & { [recoveredMark]?: true }

/** @internal Notes that something else than the credential decided about a request. */
export const noteRecovered = (request: Recovering): void => void (request[recoveredMark] = true)

/**
 * @internal Whether something else than the credential decided. Nothing removes the note: `recoverUnavailable` may ask another
 * kind that is remembered, too, before the outer kind reads it.
 */
export const isRecovered = (request: Recovering): boolean => request[recoveredMark] === true

interface Decoded {
  readonly decode: Reading['decode']
  readonly sent: unknown
  readonly credentials: ReturnType<Reading['decode']>
}

type Decoding = Request & { [decodedMark]?: Decoded | undefined }

/** @internal Decodes, and keeps the credentials on the request for the kind that is asked next; see `forgetDecoded`. */
export const decodeAhead = (request: Decoding, decode: Reading['decode'], sent: unknown): Decoded['credentials'] => {
  const credentials = decode(sent)
  request[decodedMark] = { decode, sent, credentials }
  return credentials
}

/** The credentials that were decoded ahead from the same value; otherwise `undefined`. */
const decodedAhead = (
  request: Decoding,
  decode: Reading['decode'],
  sent: unknown,
): Decoded['credentials'] | undefined => {
  const ahead = request[decodedMark]
  return ahead !== undefined && ahead.decode === decode && ahead.sent === sent ? ahead.credentials : undefined
}

/** @internal Removes the credentials from the request. */
export const forgetDecoded = (request: Decoding): void => {
  if (request[decodedMark] !== undefined) request[decodedMark] = undefined
}

// -------------------------------------------------------------------------------------
// model
// -------------------------------------------------------------------------------------

/** A function that decides who a request acts for, with a description of what it demands. */
export interface Authenticator<P> extends RTE.ReaderTaskEither<Request, AuthError, P> {
  /** What it demands. */
  readonly description: Descriptions.Description
  /** Makes the decision of the call, sync if nothing in it is async. Never throws, and its promise never rejects. */
  readonly evaluate: (request: Request) => Evaluation<P>
}

/** What counts as an authenticator: an authenticator, or any function of the request (spec 5.1.3), such as a bare RTE. */
export type AuthenticatorLike = (request: Request) => unknown

/** The principal of a member. */
export type PrincipalOf<M> =
  M extends Authenticator<infer P> ? P : M extends (request: Request) => infer R ? PrincipalFromAnswer<R> : never

// -------------------------------------------------------------------------------------
// constructors
// -------------------------------------------------------------------------------------

const MAX_LENGTH = 8192

// io-ts would keep the credential in this context, and nothing reads it
const noContext: t.Context = []
const tooLong: E.Either<unknown, never> = E.left('too long')

/** The key of an authenticator's `Rebuild`. Only an authenticator that is made of others has one. */
const inside: unique symbol = Symbol.for('koa-with-auth/inside')

/** @internal Wraps one of the authenticators that another one is made of. */
export type Wrap = (member: Authenticator<unknown>) => Authenticator<unknown>

type Rebuild = (wrap: Wrap) => Authenticator<unknown>

/** @internal Makes an authenticator again, each of its members wrapped; `undefined` if it is not made of others. */
export const rebuildOf = (self: object): Rebuild | undefined =>
  // Safe: only `make` writes it
  (self as { readonly [inside]?: Rebuild })[inside]

/**
 * @internal Makes an authenticator. `evaluate` must never throw, and its promise must never reject. An authenticator that is
 * made of others passes `rebuild`.
 */
export const make = <P>(
  description: Descriptions.Description,
  evaluate: Authenticator<P>['evaluate'],
  rebuild?: Rebuild,
): Authenticator<P> =>
  Object.assign((request: Request) => async () => evaluate(request), {
    description: deepFreeze(description),
    evaluate,
    ...(rebuild !== undefined && { [inside]: rebuild }),
  })

/** Whether a value is an authenticator with its description. */
export const isAuthenticator = (u: unknown): u is Authenticator<unknown> =>
  typeof u === 'function' && 'evaluate' in u && typeof u.evaluate === 'function' && 'description' in u

/**
 * Makes an authenticator for one kind of credential: it extracts, decodes, and calls the hook. Each step may fail. An ambient
 * credential that another site made the browser send is `forged`. Throws a TypeError for options that cannot work.
 *
 * @example
 * import { authenticator, Challenge, constantTimeEqual, fromHeader, HeaderKey } from 'koa-with-auth'
 *
 * const webhook = authenticator({
 *   scheme: { type: 'apiKey', in: 'header', name: 'X-Hook-Secret' },
 *   challenge: Challenge.make('Webhook'),
 *   ambient: false,
 *   extract: fromHeader('X-Hook-Secret'),
 *   credentials: HeaderKey,
 *   authenticate: (_request, secret) => constantTimeEqual(secret, 's3cret') && { sender: 'shop' },
 * })
 */
export const authenticator = <X, R, C = Exclude<X, ReadonlyArray<unknown>>>(
  options: AuthenticatorOptions<X, C, R>,
): Authenticator<PrincipalFromAnswer<R>> => ofKind(checkKind(options))

// The options are checked
const ofKind = <X, C, R>(kind: AuthenticatorOptions<X, C, R>): Authenticator<PrincipalFromAnswer<R>> => {
  const { scheme, challenge, ambient, extract, maxLength = MAX_LENGTH, authenticate } = kind
  // Safe: `AnyCredentials` lets through exactly what the default of `C` says
  const credentials = kind.credentials ?? (AnyCredentials as t.Decoder<unknown, C>)
  const decode = (sent: unknown): E.Either<unknown, C> =>
    typeof sent === 'string' && sent.length > maxLength ? tooLong : credentials.validate(sent, noContext)
  const leaf: Descriptions.Leaf = {
    _tag: 'Leaf',
    scheme: frozenCopy(scheme),
    ...(kind.schemeFor !== undefined && { schemeFor: kind.schemeFor }),
    ...(kind.schemeName !== undefined && { schemeName: kind.schemeName }),
    ...(kind.demands !== undefined && { demands: kind.demands }),
    challenge: frozenCopy(challenge),
    ambient,
    ...(extract !== anything && { isSent: (request) => O.isSome(extract(request)) }),
  }
  if (extract !== anything) readBy(leaf, { extract, decode })
  const conclude = concluding(leaf)
  const absent = Descriptions.constantFailure(leaf, AuthErrors.absent)
  const malformed = Descriptions.constantFailure(leaf, AuthErrors.malformed)
  const evaluate = (request: Request): Evaluation<unknown> => {
    try {
      const sent = extract(request)
      if (O.isNone(sent)) return absent
      // Safe: the same `decode` returned it for the same value
      const decoded =
        (decodedAhead(request, decode, sent.value) as E.Either<unknown, C> | undefined) ?? decode(sent.value)
      if (E.isLeft(decoded)) return malformed
      return andThen(fromAnswer(authenticate(request, decoded.right)), (result) => conclude(result, request))
    } catch (error) {
      return E.left(Descriptions.explained(leaf, failureOf(error)))
    }
  }
  // Safe: `fromAnswer` lets through exactly what `PrincipalFromAnswer` computes
  return make(leaf, evaluate) as Authenticator<PrincipalFromAnswer<R>>
}

const anything = () => O.some(true)

// What a function reads is unknown, so its credential counts as ambient. No browser opens a prompt for this scheme
const custom = { challenge: challengeOf('Custom'), ambient: true, extract: anything }

/**
 * Makes an authenticator of any function of the request, such as a bare ReaderTaskEither. An authenticator is returned
 * unchanged. Throws a TypeError for anything else.
 *
 * @example
 * import { fromFunction } from 'koa-with-auth'
 *
 * const local = fromFunction((request) => request.socket.remoteAddress === '127.0.0.1' && { from: 'here' })
 */
export const fromFunction = <M extends AuthenticatorLike>(member: M): Authenticator<PrincipalOf<M>> => {
  checkMember('fromFunction', member)
  // Safe, both: `PrincipalOf` is an authenticator's own principal, or else what `PrincipalFromAnswer` computes
  if (isAuthenticator(member)) return member as Authenticator<PrincipalOf<M>>
  return ofKind({ ...custom, authenticate: (request) => member(request) }) as Authenticator<PrincipalOf<M>>
}

declareFactory('authenticator', authenticator)
declareFactory('fromFunction', fromFunction)
