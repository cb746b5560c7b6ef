/** The options of `passkeys`, and the bodies of its routes, for OpenAPI documents. */
import type { OpenAPIV3_1 } from 'openapi-types'
import { deepFreeze } from '../../core/data.js'
import * as is from '../../core/checks.js'
import { checkOptions, type Check, type Checks } from '../../core/options.js'
import { storeLike, timedStore, type Store } from '../../stores/Store.js'
import { PasskeysInStore } from './PasskeyRecord.js'

/** A user whose type is not given, as in `passkeys({ nameOf: (user) => user.email })`. `passkeys<User>` names another type. */
export interface NamedUser {
  readonly email: string
  readonly username: string
}

/** How an application uses passkeys. All times are in milliseconds. */
export interface PasskeysOptions<U> {
  /**
   * The relying party of the passkeys: `id` is a domain, such as `shop.example`, and `name` is shown to the user. Passkeys work on this domain
   * and its subdomains, as far as `origins` lists them. An id cannot be changed later: the passkeys belong to it. Applications with
   * several domains call `passkeys` once for each id.
   */
  readonly rp: { readonly id: string; readonly name: string }
  /**
   * The origins of the pages that register and use passkeys, such as `https://shop.example`. All others are refused. `http:` is
   * allowed for `localhost` and its subdomains. An origin of another domain is a related origin (`related`).
   */
  readonly origins: ReadonlyArray<string>
  /** Where passkeys are kept, such as `postgresStore({ query })` of `koa-with-auth/stores`; it may keep other things, too. */
  readonly store: Store
  /**
   * Returns the name of a user, by which authenticators list the passkey, such as the e-mail address. It is kept by the authenticator
   * only.
   */
  readonly nameOf: (user: U) => string
  /**
   * Origins of pages that may show ours in a frame, for browsers that say which page it is. Default: none, so every answer from a
   * frame of another origin is refused.
   */
  readonly topOrigins?: ReadonlyArray<string> | undefined
  /**
   * Whether the authenticator must verify the user by a PIN or a finger: with `required` a passkey is two factors. With `preferred`
   * it may be one factor; the proof says which. Default `required`.
   */
  readonly userVerification?: 'required' | 'preferred' | undefined
  /** How long a challenge lasts. Default 5 minutes. */
  readonly lifetime?: number | undefined
  /** The time limit of the store. Beyond it, the store counts as unavailable. Default 2 seconds. */
  readonly timeout?: number | undefined
}

const isLocal = (host: string): boolean => host === 'localhost' || host.endsWith('.localhost')

// WebAuthn §5.1.2: a valid domain, so no address. A name of one label is a public suffix, but for `localhost`
const isDomain = (u: unknown): u is string =>
  typeof u === 'string' &&
  u.length <= 253 &&
  /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(u) &&
  (isLocal(u) || u.includes('.'))

const relyingParty: Check = (where, value) => {
  // Safe: checkOptions refuses any other value
  checkOptions(where, value as PasskeysOptions<never>['rp'], { id: domain, name: is.nonEmpty })
}

const domain = is.that(
  isDomain,
  'must be a domain in lower case, such as shop.example, without scheme and port; http://127.0.0.1 cannot have passkeys, localhost can',
)

const isPageOrigin = (u: unknown): u is string => {
  if (typeof u !== 'string') return false
  // WebAuthn on Android: the hash of the certificate that signed the application
  if (/^android:apk-key-hash:[\w-]{43}$/.test(u)) return true
  if (!URL.canParse(u)) return false
  const { origin, protocol, hostname } = new URL(u)
  return origin === u && (protocol === 'https:' || (protocol === 'http:' && isLocal(hostname)))
}

const originList = is.listOf(
  isPageOrigin,
  'must be an array of at least one origin, such as https://shop.example: no path, no slash at the end, https but for localhost',
  1,
)

const checks: Checks<PasskeysOptions<never>> = {
  rp: relyingParty,
  origins: originList,
  store: storeLike,
  nameOf: is.hook(1),
  topOrigins: is.maybe(originList),
  userVerification: is.maybe(is.oneOf('required', 'preferred')),
  lifetime: is.maybe(is.positive),
  timeout: is.maybe(is.positive),
}

const isDomainOf = (id: string, origin: string): boolean => {
  if (!URL.canParse(origin)) return false
  const { hostname, protocol } = new URL(origin)
  return protocol.startsWith('http') && (hostname === id || hostname.endsWith(`.${id}`))
}

/** Checks the options, and adds the defaults. Throws a TypeError for options that cannot work. */
export const checkPasskeysOptions = <U>(options: PasskeysOptions<U>) => {
  const given = checkOptions('passkeys', options, checks)
  const { rp, store, nameOf, userVerification = 'required', lifetime = 300_000, timeout = 2000 } = given
  const [origins, topOrigins] = [[...given.origins], [...(given.topOrigins ?? [])]]
  if (!origins.some((one) => isDomainOf(rp.id, one))) {
    throw new TypeError(
      `passkeys({ origins }) has no origin of ${rp.id}; add https://${rp.id}, because browsers fetch the related origins from there`,
    )
  }
  return {
    party: Object.freeze({ id: rp.id, name: rp.name, origins, topOrigins, userVerification }),
    inStore: new PasskeysInStore(rp.id, timedStore('passkeys', store, timeout)),
    nameOf,
    lifetime,
    // those that are not of the domain of the RP id
    related: origins.filter((one) => one.startsWith('http') && !isDomainOf(rp.id, one)),
  }
}

// --- the bodies of the routes: parts of Operation Objects for `operation({ ... })`

type BodySchema = OpenAPIV3_1.SchemaObject
type DescribedRoute = Pick<OpenAPIV3_1.OperationObject, 'requestBody' | 'responses'>

const text: BodySchema = { type: 'string' }
const texts: BodySchema = { type: 'array', items: text }
const bytes: BodySchema = { type: 'string', pattern: '^[A-Za-z0-9_-]+$', description: 'Base64url without padding.' }
const type: BodySchema = { type: 'string', const: 'public-key' }
const userVerification: BodySchema = { type: 'string', enum: ['required', 'preferred'] }
const timeout: BodySchema = { type: 'integer', description: 'In milliseconds.' }

// All properties are required, unless they are optional
const object = (
  properties: Readonly<Record<string, BodySchema>>,
  optional: Readonly<Record<string, BodySchema>> = {},
): BodySchema => ({
  type: 'object',
  properties: { ...properties, ...optional },
  required: Object.keys(properties),
})

const credential = (description: string, response: BodySchema): BodySchema => ({
  ...object(
    { id: bytes, rawId: bytes, type, response },
    { authenticatorAttachment: text, clientExtensionResults: { type: 'object' } },
  ),
  description,
})

const creation = object({
  challenge: bytes,
  rp: object({ id: text, name: text }),
  user: object({ id: bytes, name: text, displayName: text }),
  pubKeyCredParams: { type: 'array', items: object({ type, alg: { type: 'integer' } }) },
  timeout,
  excludeCredentials: { type: 'array', items: object({ id: bytes, type, transports: texts }) },
  authenticatorSelection: object({
    residentKey: { type: 'string', const: 'required' },
    requireResidentKey: { type: 'boolean' },
    userVerification,
  }),
  attestation: { type: 'string', const: 'none' },
})

const registration = credential(
  'A `RegistrationResponseJSON` of WebAuthn.',
  object(
    { clientDataJSON: bytes, attestationObject: bytes },
    { authenticatorData: bytes, transports: texts, publicKey: bytes, publicKeyAlgorithm: { type: 'integer' } },
  ),
)

const request = object({ challenge: bytes, rpId: text, timeout, userVerification })

const assertion = credential(
  'An `AuthenticationResponseJSON` of WebAuthn.',
  object({ clientDataJSON: bytes, authenticatorData: bytes, signature: bytes, userHandle: bytes }),
)

const jsonContent = (description: string, schema: BodySchema) => ({
  description,
  content: { 'application/json': { schema } },
})

const returnTo = object({}, { returnTo: { ...text, description: 'The path of this origin that follows.' } })

const beginRoute = (description: string, options: BodySchema): DescribedRoute => ({
  requestBody: { ...jsonContent('Where to go afterwards', returnTo), required: false },
  responses: { 200: jsonContent(description, options) },
})

const refusedResponse = {
  description: 'The answer is wrong or was used (`unknown`), or it was begun too long ago (`late`)',
  content: {
    'application/problem+json': { schema: object({ reason: { type: 'string', enum: ['unknown', 'late'] } }) },
  },
}

const finishRoute = (description: string, answer: BodySchema): DescribedRoute => ({
  requestBody: { ...jsonContent('The `toJSON()` of the credential', answer), required: true },
  responses: { 200: jsonContent(description, object({ returnTo: text })), 400: refusedResponse },
})

/**
 * The bodies of the four routes: `begin` and `finish` of a sign-in or a step-up, `beginRegistration` and `finishRegistration`. Each is
 * a part of an Operation Object of OpenAPI 3.1. Write it into `operation({ ... })`, and replace the responses that your hook writes.
 *
 * @example
 * import { operation } from 'koa-with-auth'
 * import { passkeyOperations } from 'koa-with-auth/sign-in/passkeys'
 *
 * const described = operation({ summary: 'Sign in with a passkey', ...passkeyOperations.finish })
 */
export const passkeyOperations: Readonly<
  Record<'begin' | 'finish' | 'beginRegistration' | 'finishRegistration', DescribedRoute>
> = deepFreeze({
  begin: beginRoute('Options for `navigator.credentials.get`', request),
  finish: finishRoute('Signed in', assertion),
  beginRegistration: beginRoute('Options for `navigator.credentials.create`', creation),
  finishRegistration: finishRoute('Registered', registration),
})
