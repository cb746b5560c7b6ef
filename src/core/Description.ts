/** The demands of an authenticator, as data: a tree that the guard, the error mapper, OpenAPI and the audit read. None keeps a copy. */
import type * as E from 'fp-ts/lib/Either.js'
import type { Request } from './Request.js'
import { absent, branchesOf, raised, type AuthError, type NeededAuthentication, type NeededProof } from './AuthError.js'
import { frozen, type Challenge } from './Challenge.js'
import { deepFreeze, type Fact } from './data.js'
import * as is from './checks.js'
import { type Checks } from './options.js'

/**
 * OpenAPI 3.1's Security Scheme Object. The schemes also say which request fields an authenticator reads, so that
 * `Vary` needs no second list.
 */
export type SecurityScheme = ApiKeyScheme | HttpScheme | OAuth2Scheme | OpenIdConnectScheme | MutualTlsScheme

/** A key in a query parameter, a header or a cookie. */
export interface ApiKeyScheme {
  readonly type: 'apiKey'
  readonly in: 'query' | 'header' | 'cookie'
  readonly name: string
  readonly description?: string
}

/** A scheme of the `Authorization` header (RFC 9110 §11.6.2). */
export interface HttpScheme {
  readonly type: 'http'
  readonly scheme: string
  readonly bearerFormat?: string
  readonly description?: string
}

/** OAuth 2.0; the flows as OpenAPI writes them. */
export interface OAuth2Scheme {
  readonly type: 'oauth2'
  readonly flows: Readonly<Record<string, unknown>>
  readonly description?: string
}

/** OpenID Connect discovery. */
export interface OpenIdConnectScheme {
  readonly type: 'openIdConnect'
  readonly openIdConnectUrl: string
  readonly description?: string
}

/** A client certificate. */
export interface MutualTlsScheme {
  readonly type: 'mutualTLS'
  readonly description?: string
}

/** The field that a scheme reads, for `Vary` (RFC 9110 §12.5.5): `undefined` for a query, which is in the URL; `*` if unknown. */
export const fieldOf = (scheme: SecurityScheme | undefined): string | undefined => {
  if (scheme?.type === 'apiKey')
    return scheme.in === 'query' ? undefined : scheme.in === 'cookie' ? 'Cookie' : scheme.name
  return scheme === undefined || scheme.type === 'mutualTLS' ? '*' : 'Authorization'
}

/** The longest value of a field of a form, in characters. */
export const MAX_FIELD_LENGTH = 8192

/** The demand of an authenticator. */
export type Description = Leaf | AnyOf | AllOf | Optional | Scoped

/**
 * Notes for the audit. They are not enumerable: two authenticators that demand the same have equal descriptions, so `flatMap` of
 * identity is identity. A copy of a node is made with `wrappedBy`, which keeps them.
 */
export interface LeafNotes {
  /** Its further conditions, in words, the innermost first: `throttled 5/900 s`, `recoverUnavailable fromCache`. */
  readonly wrappers?: ReadonlyArray<string>
  /** The name of the function that decides: the option `name`, the function's own name, or a digest of its text. */
  readonly decidedBy?: string | undefined
  /** The functions that these words are about. So the audit finds two functions that have the same words. */
  readonly functions?: ReadonlyArray<readonly [words: string, f: Function]>
  /** Whether accepted requests are counted (`rateLimit`), so that the answer can be 429. */
  readonly isQuota?: boolean | undefined
  /** Its part of the package and its settings, for `audit --asvs`. An authenticator of the application has none. */
  readonly fact?: Fact | undefined
  /** The part that no word describes: two leaves with the same words are the same if this is equal. A leaf without it equals no other. */
  readonly by?: unknown
}

/** One kind of credential. */
export interface Leaf extends LeafNotes {
  readonly _tag: 'Leaf'
  /** How OpenAPI lists it; `undefined` when it has no scheme (a plain function). */
  readonly scheme: SecurityScheme | undefined
  /** The scheme, if it depends on the application, such as on the name of its session cookie. */
  readonly schemeFor?: (request?: Request) => SecurityScheme
  /** Another way to send the same credential, if the application has one. OpenAPI lists it as an alternative. */
  readonly alsoFor?: (request?: Request) => SecurityScheme | undefined
  /** Where a client finds out how to get the credential. OpenAPI lists it as an alternative to the scheme. */
  readonly discovery?: OpenIdConnectScheme
  /** The name of the scheme in OpenAPI. Without it, a name is derived. */
  readonly schemeName?: string
  /** The fields of the parsed body that are the credential (`formAuth`); such a leaf has no scheme. */
  readonly fields?: ReadonlyArray<string>
  /** The right that the principal must have, as the audit prints it, such as `a superuser`. */
  readonly demands?: string
  /** The proof that the principal must have given. Without it the answer is 403, with this as its member `proof`. */
  readonly proof?: NeededProof
  /** The challenge for a failure: the credential that the client should send. */
  readonly challenge: Challenge | ((error: AuthError) => Challenge)
  /** Whether browsers send it by themselves, so that other sites can make them send it. */
  readonly ambient: boolean
  /** Set where guesses are counted (`throttled`), so that a 429 is possible. */
  readonly throttled?: true
  /** Whether a request has such a credential, good or bad; left out if that is unknown (a plain function). */
  readonly isSent?: (request: Request) => boolean
  /** Whether a page of the request's origin may read the challenges. Left out: CORS middleware decides. */
  readonly exposesChallenges?: (request: Request) => boolean
  /** Request fields that it reads beside that of its scheme. */
  readonly reads?: ReadonlyArray<string>
  /** Header fields beside that of its scheme that OpenAPI lists as parameters. */
  readonly headers?: ReadonlyArray<string>
  /** The sender of such requests, if they are deliveries of webhooks. OpenAPI lists their operations as `webhooks`. */
  readonly sender?: string
  /** Fields of every response of the operation, such as a nonce for the next request. */
  readonly responseFields?: () => Readonly<Record<string, string>>
}

/** Alternatives, in the order tried. */
export interface AnyOf extends LeafNotes {
  readonly _tag: 'AnyOf'
  readonly members: ReadonlyArray<Description>
  /** Set by `firstPresent`: the first member whose credential is present decides. */
  readonly firstPresent?: true
}

/** All of them, in the order tried. */
export interface AllOf extends LeafNotes {
  readonly _tag: 'AllOf'
  readonly members: ReadonlyArray<Description>
}

/** Anonymous callers pass, too. */
export interface Optional extends LeafNotes {
  readonly _tag: 'Optional'
  readonly member: Description
  /** Whether bad credentials count as none. */
  readonly lenient: boolean
}

/** An authenticated caller also needs a permission. */
export interface Scoped extends LeafNotes {
  readonly _tag: 'Scoped'
  readonly member: Description
  /** The scopes that must have been granted (RFC 6749 §3.3); empty if a function decides. */
  readonly scopes: ReadonlyArray<string>
  /** How the user of the token must have authenticated (RFC 9470). */
  readonly authentication?: NeededAuthentication
  /** The object of the path that must be for the caller. */
  readonly object?: ObjectRule
  /** The parameter that names no object. Then nothing is demanded. */
  readonly unchecked?: UncheckedParameter
}

/** An object that a parameter of the path names: `owned`. */
export interface ObjectRule {
  readonly name: string
  /** The parameter. */
  readonly param: string
  /** The status of the answer if the object is not for the caller. A missing object is always a 404. */
  readonly refuse: 403 | 404
}

/** A parameter that names no object, or that the handler checks: `unchecked`. */
export interface UncheckedParameter {
  readonly param: string
  readonly reason: string
}

/** Alternatives as one node: nested alternatives are flattened, so that `alt` is associative here, too. */
export const anyOfDescriptions = (members: ReadonlyArray<Description>): Description => ({
  _tag: 'AnyOf',
  members: members.flatMap((member) => (isPlainList(member) ? member.members : [member])),
})

const isPlainList = (description: Description): description is AnyOf =>
  description._tag === 'AnyOf' && !description.firstPresent && description.wrappers === undefined

/** @internal The same node with notes. */
export const noted = <D extends Description>(description: D, notes: LeafNotes): D => {
  for (const [name, value] of Object.entries(notes)) {
    if (value !== undefined) Object.defineProperty(description, name, { value })
  }
  return description
}

/** @internal A copy of a node with one more wrapper, in words, and with other properties. `f`: the function that the words name. */
export const wrappedBy = <D extends Description>(
  description: D,
  words: string,
  others: Partial<D> = {},
  f?: Function,
): D => {
  const { wrappers = [], functions = [], decidedBy, isQuota, fact, by } = description
  const added = f === undefined ? functions : [...functions, [words, f] as const]
  const notes = { wrappers: [...wrappers, words], functions: added, decidedBy, isQuota, fact, by }
  return noted({ ...description, ...others }, notes)
}

export const children = (description: Description): ReadonlyArray<Description> => {
  if (description._tag === 'Leaf') return []
  return 'members' in description ? description.members : [description.member]
}

/** The conditions about objects and parameters in a tree, the innermost first. */
export const objectConditionsIn = (description: Description): ReadonlyArray<Scoped> => [
  ...children(description).flatMap(objectConditionsIn),
  ...(description._tag === 'Scoped' && (description.object ?? description.unchecked) !== undefined
    ? [description]
    : []),
]

/** The objects that a tree finds, the innermost first. */
export const objectsIn = (description: Description): ReadonlyArray<ObjectRule> =>
  objectConditionsIn(description).flatMap(({ object }) => object ?? [])

/** The scheme of a leaf. If it depends on the application, the request says which application it is. */
export const schemeOf = (leaf: Leaf, request?: Request): SecurityScheme | undefined =>
  leaf.schemeFor?.(request) ?? leaf.scheme

export const leaves = (description: Description): ReadonlyArray<Leaf> =>
  description._tag === 'Leaf' ? [description] : children(description).flatMap(leaves)

export const admitsAnonymous = (description: Description): boolean => {
  const { _tag } = description
  if (_tag === 'Leaf' || _tag === 'Optional') return _tag === 'Optional'
  return _tag === 'AnyOf' ? description.members.some(admitsAnonymous) : children(description).every(admitsAnonymous)
}

/** Whether a request carries any of the credentials, good or bad. The credential of a plain function is unknown, and counts as sent. */
export const isSent = (description: Description, request: Request): boolean =>
  leaves(description).some((leaf) => {
    try {
      return leaf.isSent?.(request) ?? true
    } catch {
      return true
    }
  })

/** The challenges for a failure, in the order of the list. Default: those for `absent`. */
export const challengesOf = (description: Description, error: AuthError = absent): ReadonlyArray<Challenge> => {
  if (description._tag === 'Scoped') {
    return challengesOf(description.member, error).map((challenge) => withScopes(challenge, description.scopes))
  }
  if (description._tag !== 'Leaf') return children(description).flatMap((member) => challengesOf(member, error))
  const { challenge } = description
  const made = frozen(typeof challenge === 'function' ? challenge(error) : challenge)
  const needed = error._tag === 'insufficient' ? error.authentication : undefined
  return [needed !== undefined && isToken(description) ? withAuthentication(made, needed) : made]
}

/** Whether a kind takes tokens of an authorization server, which know how their user authenticated. */
export const isToken = ({ scheme }: Leaf): boolean =>
  scheme?.type === 'oauth2' ||
  scheme?.type === 'openIdConnect' ||
  (scheme?.type === 'http' && scheme.scheme.toLowerCase() !== 'basic')

// RFC 9470 §3
const withAuthentication = (challenge: Challenge, { acr, maxAge }: NeededAuthentication): Challenge =>
  deepFreeze({
    ...challenge,
    parameters: {
      ...challenge.parameters,
      error: 'insufficient_user_authentication',
      error_description: 'Another authentication of the user is needed',
      ...(acr !== undefined && { acr_values: acr.join(' ') }),
      ...(maxAge !== undefined && { max_age: String(maxAge) }),
    },
  })

export const distinctScopes = (scopes: ReadonlyArray<string>): ReadonlyArray<string> => [...new Set(scopes)]

/** A challenge that also names the demanded scopes (RFC 6750 §3); the same challenge if there are none. */
export const withScopes = (challenge: Challenge, scopes: ReadonlyArray<string>): Challenge => {
  if (scopes.length === 0) return challenge
  const { scope } = challenge.parameters
  const allScopes = scope === undefined ? scopes : distinctScopes([...scope.split(' '), ...scopes])
  return deepFreeze({ ...challenge, parameters: { ...challenge.parameters, scope: allScopes.join(' ') } })
}

export const isAmbient = (description: Description): boolean => leaves(description).some((leaf) => leaf.ambient)

/** Whether browsers send nothing by themselves but sessions of this package. A token may carry these, and no other credential. */
export const isOfSessions = (description: Description): boolean =>
  leaves(description).every(({ ambient, fact }) => !ambient || fact?.part === 'session')

/** Whether guesses at any of the credentials, or accepted requests are counted. */
export const isThrottled = (description: Description): boolean =>
  description.isQuota === true ||
  (description._tag === 'Leaf' ? description.throttled === true : children(description).some(isThrottled))

/** The request fields that any alternative reads, each once; `['*']` if one of them is unknown. */
export const fieldsReadBy = (description: Description): ReadonlyArray<string> => {
  const fields = leaves(description).flatMap(({ scheme, fields: ofBody, reads = [], exposesChallenges }) => [
    ...(ofBody === undefined ? [fieldOf(scheme) ?? []].flat() : []),
    ...reads,
    ...(exposesChallenges === undefined ? [] : ['Origin']),
  ])
  return fields.includes('*') ? ['*'] : [...new Map(fields.map((field) => [field.toLowerCase(), field])).values()]
}

/** Whether any alternative takes its credential from the URL, which leaks into logs and the Referer header. */
export const readsQuery = (description: Description): boolean =>
  leaves(description).some(({ scheme }) => scheme?.type === 'apiKey' && scheme.in === 'query')

/** @internal A failure with its challenges: one frozen value for all requests. */
export const constantFailure = (description: Description, error: AuthError): E.Left<AuthError> =>
  deepFreeze({ _tag: 'Left', left: withChallenges(description, error) })

/** A failure with the challenges of the alternatives that failed. Challenges that it has already are kept. Never throws. */
export const withChallenges = (description: Description, error: AuthError): AuthError => {
  if (error.challenge !== undefined) return { ...error, challenge: frozen(error.challenge) }
  try {
    if (error.branches !== undefined) {
      return { ...error, branches: error.branches.flatMap((branch) => branchesOf(withChallenges(description, branch))) }
    }
    const branches = challengesOf(description, error).map((challenge) => ({ ...error, challenge }))
    return branches.length === 1 ? branches[0]! : { ...error, branches }
  } catch (cause) {
    return raised(cause)
  }
}

/** The branches of a member that was not asked, because another member had decided. It still offers its challenge. */
export const skipped = (description: Description): ReadonlyArray<AuthError> =>
  branchesOf(withChallenges(description, absent)).map((branch) => ({ ...branch, skipped: true }))

/** The name of a kind's scheme in OpenAPI: the option `schemeName`, or a derived name; `undefined` for a plain function. */
export const schemeNameOf = (leaf: Leaf, request?: Request): string | undefined => {
  if (leaf.fields !== undefined) return leaf.schemeName ?? 'form'
  const scheme = schemeOf(leaf, request)
  return scheme === undefined ? undefined : (leaf.schemeName ?? derivedName(scheme))
}

const derivedName = (scheme: SecurityScheme): string => {
  if (scheme.type === 'apiKey') {
    return componentName(
      `${{ query: 'apiKeyQuery', header: 'apiKeyHeader', cookie: 'cookie' }[scheme.in]}_${scheme.name}`,
    )
  }
  if (scheme.type !== 'http') return scheme.type
  return componentName(
    [scheme.scheme.toLowerCase(), ...(scheme.bearerFormat ?? '').split(' ')].filter(Boolean).join('_'),
  )
}

// OpenAPI 3.1, Components Object: a name has only these characters. Any other is replaced by its code
const componentName = (name: string): string =>
  name.replaceAll(/[^A-Za-z0-9._-]/gu, (character) => `_${character.codePointAt(0)!.toString(16)}`)

/** The options of every kind of credential. */
export interface KindOptions {
  /** The protection space; default: the application's. */
  readonly realm?: string | undefined
  /** Its name in OpenAPI; without it a name is derived. */
  readonly schemeName?: string | undefined
  /** The description in OpenAPI, such as how to get a credential; CommonMark. */
  readonly description?: string | undefined
}

export const kindChecks: Checks<KindOptions> = {
  realm: is.maybe(is.realm),
  schemeName: is.maybe(is.schemeName),
  description: is.maybe(is.string),
}

/** The options of every kind whose credential is a string. */
export interface StringKindOptions extends KindOptions {
  /** The longest credential, in characters, with its scheme if it has one. Default 8192. */
  readonly maxLength?: number | undefined
}

export const stringKindChecks: Checks<StringKindOptions> = { maxLength: is.maybe(is.positive), ...kindChecks }

export const documented = <S extends SecurityScheme>(
  scheme: S,
  { schemeName, description }: KindOptions,
): { readonly scheme: S; readonly schemeName: string | undefined } => ({
  scheme: { ...scheme, ...(description !== undefined && { description }) },
  schemeName,
})

/** Throws a TypeError around an authenticator that finds objects: an outer part that decides alone would let callers in without them. */
export const refuseObjects = (caller: string, description: Description, fix: string): void => {
  if (objectsIn(description).length === 0) return
  throw new TypeError(
    `${caller}: a looks up objects, which would be missing if another alternative admitted the caller; write ${fix}`,
  )
}
