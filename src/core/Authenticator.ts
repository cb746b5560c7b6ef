/**
 * Authenticators, and how they are made.
 *
 * An authenticator is a fp-ts `ReaderTaskEither<Request, AuthError, P>`: a function from a request to a task, which results in
 * a failure or a principal. It also has two properties:
 *
 * - `description`: its demands, as data. OpenAPI, the challenges and the audit read it.
 * - `evaluate`: makes the same decision, sync while nothing in it is async. The guard calls it.
 *
 * It reads the request and never writes the response. It never throws, and its promise never rejects. Laws
 * (spec/core): `alt` is associative; the first that passes wins, and no later one is called; none is
 * tried after `throttled`, `unavailable` and `raised`; `map` keeps identity and composition; calling and evaluating agree.
 */
import * as E from 'fp-ts/lib/Either.js'
import * as O from 'fp-ts/lib/Option.js'
import type * as RTE from 'fp-ts/lib/ReaderTaskEither.js'
import type { Request } from './Request.js'
import { plainEvidence, restingOn, type Evidence } from './Evidence.js'
import { askHook, attemptOf, charged, showObjects, shownObjects, tell, Attempt, finishingKind } from './Exchange.js'
import * as AuthErrors from './AuthError.js'
import { absent, type AuthError } from './AuthError.js'
import { make as challengeOf, type Challenge } from './Challenge.js'
import { AnyCredentials, causeOf } from './Credentials.js'
import * as Descriptions from './Description.js'
import { andThen, finisherOf, failureOf, wordsOfHook } from './Result.js'
import type { Evaluation, PrincipalFromAnswer, Result, Decode, Decoded } from './Result.js'
import { decoderOf, schemaLike, type Schema } from './Schema.js'
import { frozenCopy, withFixed } from './data.js'
import { functionName } from './functionName.js'
import { keepingScopes } from './granted.js'
import * as is from './checks.js'
import { checkMember, checkOptions, declareFactories, type Check, type Checks } from './options.js'

export interface AuthenticatorOptions<X, C, R> {
  /** How OpenAPI lists it. */
  readonly scheme?: Descriptions.SecurityScheme | undefined
  /** Returns the scheme, if it depends on the application. Called without a request if the document is made without a request. */
  readonly schemeFor?: ((request?: Request) => Descriptions.SecurityScheme) | undefined
  /** The name of the scheme in OpenAPI: letters, digits, `.`, `-` and `_`. Without it a name is derived. */
  readonly schemeName?: string | undefined
  /** The demand on the principal, in words for the audit, such as `a superuser`. */
  readonly demands?: string | undefined
  /** The challenge of a 401: the same for every failure, or a function of the failure. */
  readonly challenge: Challenge | ((error: AuthError) => Challenge)
  /** Whether browsers send the credential by themselves (cookies, Basic). If so, writes from other sites are refused. */
  readonly ambient: boolean
  /** Reads the credential from the request. `none` means absent: the hook is not called. */
  readonly extract: (request: Request) => O.Option<X>
  /**
   * An io-ts codec of the credentials, or a Standard Schema of them, such as one of zod, valibot or arktype. A value that it refuses
   * is malformed; if it throws, the answer is 500. Without a schema, `''` and arrays (sent twice) are malformed.
   */
  readonly credentials?: Schema<C> | undefined
  /** The longest credential, in characters; a longer credential is malformed. Default 8192. */
  readonly maxLength?: number | undefined
  /** Finds the principal of the request. Returns a value, a promise, an Option, an Either or a TaskEither. */
  readonly authenticate: (request: Request, credentials: C) => R
}

const saysWhoSendsIt = is.that(
  (value) => typeof value === 'boolean',
  'must say whether browsers send the credential by themselves: true or false',
)

const challengeCheck: Check = (where, value) => {
  // Safe: its result is checked
  const bare: unknown = typeof value === 'function' ? (value as (error: AuthError) => unknown)(absent) : value
  if (typeof bare !== 'object' || bare === null) {
    throw new TypeError(`${where} must be a challenge: Challenge.make('Scheme')`)
  }
  // Safe: `make` refuses values that are not strings
  const { scheme, parameters } = bare as Challenge
  challengeOf(scheme, parameters)
}

const authenticatorChecks: Checks<AuthenticatorOptions<unknown, unknown, unknown>> = {
  scheme: is.unchecked,
  schemeFor: is.maybe(is.hook(1)),
  schemeName: is.maybe(is.schemeName),
  demands: is.maybe(is.string),
  ambient: saysWhoSendsIt,
  extract: is.hook(1),
  authenticate: is.hook(2),
  challenge: challengeCheck,
  credentials: is.maybe(schemaLike('HeaderKey')),
  maxLength: is.maybe(is.positive),
}

/** @internal How a kind reads its credential, before its hook: `throttled` sees it then. The credential of a plain function is unknown. */
export interface CredentialReader {
  readonly extract: (request: Request) => O.Option<unknown>
  /** The credentials in it; a Left is malformed. It is async if their schema is. */
  readonly decode: Decode
}

/** A function that finds the principal of a request, with a description of its demands. */
export interface Authenticator<P> extends RTE.ReaderTaskEither<Request, AuthError, P> {
  /** Its demand. */
  readonly description: Descriptions.Description
  /**
   * Makes the decision of the call, sync if nothing in it is async. Never throws, and its promise never rejects. The guard passes the
   * attempt that it made for the request; without an attempt, this makes its own.
   */
  readonly evaluate: (request: Request, attempt?: Attempt) => Evaluation<P>
}

/** An authenticator, or any function of the request (spec 5.1.3), such as a bare RTE. */
export type AuthenticatorLike = (request: Request) => unknown

/** The principal of a member. */
export type PrincipalOf<M> =
  M extends Authenticator<infer P> ? P : M extends (request: Request) => infer R ? PrincipalFromAnswer<R> : never

const MAX_CREDENTIAL_LENGTH = 8192

const tooLongCredential: E.Either<unknown, never> = E.left('length')

/** @internal The result of `extract` if the request has a body whose fields no parser has read. */
export const unreadBody: O.Option<never> = { ...O.none }

/** @internal Makes a decision. It never throws, and its promise never rejects. */
export type Decide<P = unknown> = (attempt: Attempt) => Evaluation<P>

/** @internal Both halves of an authenticator: its demand, and its decision. */
export interface Halves<P = unknown> {
  readonly description: Descriptions.Description
  readonly decide: Decide<P>
}

/** The tree that is run. The description is the same tree as data. */
type Node = { readonly decide: Decide } & (
  | { readonly _tag: 'Kind'; readonly reading: CredentialReader | undefined }
  | {
      readonly _tag: 'Combined'
      readonly members: MemberList
      readonly assemble: (members: MemberList) => Halves
    }
)

type MemberList = ReadonlyArray<Authenticator<unknown>>

const node: unique symbol = Symbol.for('koa-with-auth/node')

const withNode = <P>({ description, decide }: Halves<P>, own: Node): Authenticator<P> => {
  // An attempt is about one request. `requests.map(a.evaluate)` passes an index
  const evaluate = (request: Request, attempt?: Attempt): Evaluation<P> =>
    attempt?.request === request ? decide(attempt) : decideApart(decide, new Attempt(request))
  return withFixed((request: Request) => async () => evaluate(request), {
    description,
    evaluate,
    [node]: own,
  })
}

// A decision apart from that of the guard: a hook has called an authenticator
const decideApart = <P>(decide: Decide<P>, attempt: Attempt): Evaluation<P> => {
  const { request } = attempt
  const asking = attemptOf(request)
  const asked = asking?.asked
  const shown = shownObjects(request)
  const conclude = (result: Result<P>): Result<P> => {
    // its objects belong to its own decision
    showObjects(request, shown)
    return tell(asking, asked, result)
  }
  return andThen(decide(attempt), (result) => andThen(charged(result, attempt), conclude))
}

export const nodeOf = (self: object): Node | undefined =>
  // Safe: only `withNode` writes it
  (self as { readonly [node]?: Node })[node]

/** @internal Makes an authenticator of one credential; without `reading` it is unknown how the credential is read. */
export const make = <P>(
  description: Descriptions.Description,
  decide: Decide<P>,
  reading?: CredentialReader,
): Authenticator<P> => withNode({ description, decide }, { _tag: 'Kind', decide, reading })

/** @internal Makes an authenticator of others. `assemble` is called again if the members are exchanged (`mapLeaves`). */
export const combined = <M extends MemberList>(
  members: M,
  assemble: (members: M) => Halves,
): Authenticator<unknown> => {
  const halves = assemble(members)
  // Safe: `mapLeaves` exchanges each member, and no more
  const reassemble = assemble as (members: MemberList) => Halves
  return withNode(halves, { _tag: 'Combined', decide: halves.decide, members, assemble: reassemble })
}

/** @internal The members of an authenticator that `assemble` made; otherwise itself alone. */
export const combinedMembers = (
  self: Authenticator<unknown>,
  assemble: (members: MemberList) => Halves,
): MemberList => {
  const own = nodeOf(self)
  return own?._tag === 'Combined' && own.assemble === assemble ? own.members : [self]
}

export const decideOf = <P>(self: Authenticator<P>): Decide<P> =>
  // Safe: its own decision
  (nodeOf(self)?.decide as Decide<P> | undefined) ?? ((attempt) => self.evaluate(attempt.request, attempt))

/** @internal How the credential of an authenticator is read; `undefined` if that is unknown, or if it has several. */
export const readerOf = (self: Authenticator<unknown>): CredentialReader | undefined => {
  const own = nodeOf(self)
  if (own?._tag !== 'Combined') return own?.reading
  const [only, ...others] = own.members
  return only !== undefined && others.length === 0 && self.description._tag === 'Leaf' ? readerOf(only) : undefined
}

/** @internal The same tree with other leaves: `f` is called with each authenticator that is made of no others. */
export const mapLeaves = (
  self: Authenticator<unknown>,
  f: (leaf: Authenticator<unknown>) => Authenticator<unknown>,
): Authenticator<unknown> => {
  const own = nodeOf(self)
  if (own?._tag !== 'Combined') return f(self)
  return combined(
    own.members.map((member) => mapLeaves(member, f)),
    own.assemble,
  )
}

/** Whether a value is an authenticator with its description. */
export const isAuthenticator = (u: unknown): u is Authenticator<unknown> =>
  typeof u === 'function' && 'evaluate' in u && typeof u.evaluate === 'function' && 'description' in u

/**
 * Makes an authenticator for one kind of credential: it extracts, decodes, and calls the hook. Each step may fail. An ambient
 * credential that another site made the browser send is `forged`. Throws a TypeError for options that cannot work.
 *
 * @example
 * import { authenticator, Challenge, constantTimeEqual, fromHeader } from 'koa-with-auth'
 * import { HeaderKey } from 'koa-with-auth/fp'
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
): Authenticator<PrincipalFromAnswer<R>> => kindOf(checkOptions('authenticator', options, authenticatorChecks))

interface KindDefinition<X, C, R> extends AuthenticatorOptions<X, C, R> {
  readonly leaf?: Partial<Descriptions.Leaf>
  readonly notes?: Descriptions.LeafNotes
  /** The hook of the application, if `authenticate` hands on its answers as they are. */
  readonly hook?: Function
  /** The evidence of each credential of its kind, beside that of its hook. */
  readonly evidence?: Evidence
  /** Whether its hook is any function of the request, which may call authenticators itself. */
  readonly isFunction?: boolean
  /** Makes the decision that counts from its own. */
  readonly around?: (decide: Decide, leaf: Descriptions.Leaf) => Decide
}

export const kindOf = <X, R, C = Exclude<X, ReadonlyArray<unknown>>>(
  kind: KindDefinition<X, C, R>,
): Authenticator<PrincipalFromAnswer<R>> => {
  const { extract, maxLength = MAX_CREDENTIAL_LENGTH, authenticate } = kind
  // Safe: `AnyCredentials` lets through exactly the default of `C`
  const credentials = kind.credentials ?? (AnyCredentials as Schema<C>)
  const validate = decoderOf('authenticator({ credentials })', credentials)
  const decode: Decode<C> = (sent) =>
    typeof sent === 'string' && sent.length > maxLength ? tooLongCredential : validate(sent)
  const leaf = leafOf(kind)
  const reading = extract === anything ? undefined : { extract, decode }
  const self = stepsOf(kind, leaf, decode)
  const decide: Decide = (attempt) => decideKind(self, attempt)
  const made = make(leaf, kind.around?.(decide, leaf) ?? decide, reading)
  // Safe: `fromAnswer` lets through exactly the type that `PrincipalFromAnswer` computes
  return keepingScopes(made, authenticate) as Authenticator<PrincipalFromAnswer<R>>
}

/** How a kind decides. Its failures are constants. */
const stepsOf = <C>(
  {
    extract,
    authenticate,
    hook,
    evidence: known = plainEvidence,
    isFunction = false,
  }: KindDefinition<unknown, C, unknown>,
  leaf: Descriptions.Leaf,
  decode: Decode<C>,
) => ({
  extract,
  decode,
  authenticate,
  finished: finisherOf(hook ?? authenticate),
  finish: finishingKind(leaf, known, isFunction),
  absent: Descriptions.constantFailure(leaf, AuthErrors.absent),
  unread: Descriptions.constantFailure(leaf, AuthErrors.because(AuthErrors.absent, 'body')),
  malformed: malformedFor(leaf),
  failed: (error: unknown): E.Either<AuthError, never> => E.left(Descriptions.withChallenges(leaf, failureOf(error))),
})

type KindSteps<C> = ReturnType<typeof stepsOf<C>>

/** The failures of credentials of a wrong form: one constant for each cause. */
const malformedFor = (leaf: Descriptions.Leaf) => {
  const made = new Map<AuthErrors.Why, E.Left<AuthError>>()
  return (sent: unknown, error: unknown): E.Either<AuthError, never> => {
    const why = Array.isArray(sent) ? 'twice' : error === 'length' ? 'length' : causeOf(error)
    const failure = made.get(why) ?? Descriptions.constantFailure(leaf, AuthErrors.because(AuthErrors.malformed, why))
    made.set(why, failure)
    return failure
  }
}

const leafOf = <X, C, R>(kind: KindDefinition<X, C, R>): Descriptions.Leaf => {
  const { scheme, challenge, ambient, extract } = kind
  const leaf: Descriptions.Leaf = {
    _tag: 'Leaf',
    scheme: frozenCopy(scheme),
    ...(kind.schemeFor !== undefined && { schemeFor: kind.schemeFor }),
    ...(kind.schemeName !== undefined && { schemeName: kind.schemeName }),
    ...(kind.demands !== undefined && { demands: kind.demands }),
    challenge: frozenCopy(challenge),
    ambient,
    ...(extract !== anything && { isSent: (request) => O.isSome(extract(request)) }),
    ...kind.leaf,
  }
  const wrappers = [...(kind.notes?.wrappers ?? []), ...wordsOfHook(kind.hook ?? kind.authenticate)]
  return Descriptions.noted(leaf, { ...kind.notes, ...(wrappers.length > 0 && { wrappers }) })
}

const decideKind = <C>(self: KindSteps<C>, attempt: Attempt): Evaluation<unknown> => {
  const { extract, decode, failed } = self
  const { decoded: ahead } = attempt.whole
  askHook(attempt)
  try {
    const sent = extract(attempt.request)
    if (O.isNone(sent)) return sent === unreadBody ? self.unread : self.absent
    // Safe: the same `decode` returned it for the same value
    const decoded =
      ahead !== undefined && ahead.decode === decode && ahead.sent === sent.value
        ? (ahead.credentials as Decoded<C>)
        : decode(sent.value)
    return decoded instanceof Promise
      ? decideDecodedLate(self, attempt, sent.value, decoded)
      : decideDecoded(self, attempt, sent.value, decoded)
  } catch (error) {
    return failed(error)
  }
}

const decideDecoded = <C>(
  self: KindSteps<C>,
  attempt: Attempt,
  sent: unknown,
  decoded: Decoded<C>,
): Evaluation<unknown> =>
  E.isLeft(decoded)
    ? self.malformed(sent, decoded.left)
    : self.finished(self.authenticate(attempt.request, decoded.right), self.finish, attempt)

const decideDecodedLate = <C>(self: KindSteps<C>, attempt: Attempt, sent: unknown, decoded: Promise<Decoded<C>>) =>
  decoded.then((late) => decideDecoded(self, attempt, sent, late)).catch(self.failed)

const anything = () => O.some(true)

// The credential of a function is unknown, so it counts as ambient. No browser opens a prompt for this scheme
const custom = { challenge: challengeOf('Custom'), ambient: true, extract: anything }

/**
 * Makes an authenticator of any function of the request, such as a bare ReaderTaskEither. An authenticator is returned
 * unchanged. Throws a TypeError for anything else.
 *
 * @example
 * import { fromFunction } from 'koa-with-auth/fp'
 *
 * const local = fromFunction((request) => request.socket.remoteAddress === '127.0.0.1' && { from: 'here' })
 */
export const fromFunction = <M extends AuthenticatorLike>(member: M): Authenticator<PrincipalOf<M>> => {
  checkMember('fromFunction', member)
  // Safe, both: `PrincipalOf` is an authenticator's own principal, or else the type that `PrincipalFromAnswer` computes
  if (isAuthenticator(member)) return member as Authenticator<PrincipalOf<M>>
  const name = functionName(member)
  const notes = { decidedBy: name, functions: [[name, member]] as const }
  const authenticate = (request: Request): unknown => member(request)
  return kindOf({ ...custom, authenticate, notes, isFunction: true }) as Authenticator<PrincipalOf<M>>
}

declareFactories({ authenticator, fromFunction })

/** @internal An authenticator with a part around it that keeps the principal. Throws a TypeError for a value that is no authenticator. */
export const wrapping = (
  caller: string,
  self: AuthenticatorLike,
  assemble: (member: Authenticator<unknown>) => Halves,
): Authenticator<unknown> => {
  checkMember(caller, self)
  const authenticator = fromFunction(self)
  return keepingScopes(
    combined([authenticator] as const, ([member]) => assemble(member)),
    authenticator,
  )
}

/** @internal Makes another result from the result of a caller who passed. */
export type Change = (result: E.Right<unknown>, request: Request) => Evaluation<unknown>

/** @internal The same demand, and other principals. */
export const changed = (
  self: Authenticator<unknown>,
  change: Change,
  failed = (failure: E.Left<AuthError>): Result<unknown> => failure,
): Halves => {
  const { description } = self
  const before = decideOf(self)
  return {
    description,
    decide: (attempt) =>
      andThen(before(attempt), (result) => {
        if (E.isLeft(result)) return failed(result)
        const next = change(result, attempt.request)
        return andThen(next, (late) => (E.isLeft(late) ? late : restingOn(late, result)))
      }),
  }
}
