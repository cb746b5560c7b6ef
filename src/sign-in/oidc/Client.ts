/**
 * The client that an application is at its provider, as `oidc` and `oauth2` share it: how it authenticates, the
 * parameters that a browser takes to the provider, and those that it brings back.
 */
import type {
  ClientAuth,
  Configuration,
  CryptoKey,
  CustomFetch,
  PrivateKey,
  ServerMetadata,
} from 'openid-client' with { 'resolution-mode': 'import' }
import * as is from '../../core/checks.js'
import { checkOptions, typeName, withoutUndefined, type Check, type Checks } from '../../core/options.js'
import { routePath, type Answered, type Incoming } from '../Kind.js'
import { openidClient } from './openidClient.js'

// --- authentication

/** How a client authenticates (OpenID Connect Core §9). */
export type ClientAuthentication = 'client_secret_basic' | 'client_secret_post' | 'private_key_jwt' | 'none'

/** The registration of an application at a provider. */
export interface Client {
  /** Its `client_id`. */
  readonly id: string
  /**
   * Its secret. A function is called for each request to the provider: for a secret that is a short-lived JSON Web
   * Token, as Apple demands. `undefined` without a `key` is a TypeError, because a variable that is not set would make a public client.
   */
  readonly secret?: string | (() => string | Promise<string>)
  /** Its private key, for `private_key_jwt` (RFC 7523); with `kid`, if the provider knows several. */
  readonly key?: CryptoKey | PrivateKey
  /**
   * How it authenticates. Default: `client_secret_basic` with a secret, `private_key_jwt` with a key, `none` without
   * either.
   */
  readonly authentication?: ClientAuthentication | undefined
}

// The member that each method authenticates with
const methods: Readonly<Record<ClientAuthentication, 'secret' | 'key' | undefined>> = {
  client_secret_basic: 'secret',
  client_secret_post: 'secret',
  private_key_jwt: 'key',
  none: undefined,
}

const clientChecks: Checks<Client> = {
  id: is.nonEmpty,
  secret: is.maybe((where, value) => {
    if (typeof value !== 'function') is.nonEmpty(where, value)
  }),
  key: is.maybe((where, value) => {
    const key: unknown = is.isRecord(value) && 'key' in value && value.key !== undefined ? value.key : value
    if (!is.isRecord(key) || !('usages' in key) || !('type' in key) || key.type !== 'private') {
      throw new TypeError(
        `${where} must be a private CryptoKey, or { key, kid }, not ${typeName(value)}; importPKCS8 of jose makes one`,
      )
    }
  }),
  authentication: is.maybe(is.oneOf(...Object.keys(methods))),
}

/** Checks a client, and says how it authenticates. Throws a TypeError for a client that cannot. */
export const registeredClient = (where: string, given: unknown) => {
  // Safe: `checkOptions` refuses anything but an object with these members
  const client = checkOptions(where, given as Client, clientChecks)
  const { id, secret, key } = client
  if (secret !== undefined && key !== undefined) {
    throw new TypeError(`${where} has a secret and a key; a client authenticates with one of them`)
  }
  const unset = (['secret', 'key'] as const).find((name) => Object.hasOwn(given as Client, name))
  if (unset !== undefined && (secret ?? key ?? client.authentication) === undefined) {
    throw new TypeError(
      `${where}: ${unset} is undefined, so any program could be this client; is its variable set? Leave it out for a public client`,
    )
  }
  const usual = secret !== undefined ? 'client_secret_basic' : key !== undefined ? 'private_key_jwt' : 'none'
  const { authentication: method = usual } = client
  for (const name of ['secret', 'key'] as const) {
    if (methods[method] === name && client[name] === undefined)
      throw new TypeError(`${where}: ${method} needs a ${name}`)
    if (methods[method] !== name && client[name] !== undefined)
      throw new TypeError(`${where}: ${method} uses no ${name}; leave the ${name} or the method out`)
  }
  return { id, secret, isPublic: method === 'none', auth: () => clientAuthOf(method, secret, key) }
}

export type Registered = ReturnType<typeof registeredClient>

const clientAuthOf = (method: ClientAuthentication, secret: Client['secret'], key: Client['key']): ClientAuth => {
  const { ClientSecretBasic, ClientSecretPost, None, PrivateKeyJwt } = openidClient()
  if (key !== undefined) return PrivateKeyJwt(key)
  if (secret === undefined) return None()
  const withSecret = method === 'client_secret_post' ? ClientSecretPost : ClientSecretBasic
  if (typeof secret === 'string') return withSecret(secret)
  const authenticate = async (...request: Parameters<ClientAuth>): Promise<void> => {
    const made = await answerOf(async () => {
      const answer: unknown = await secret()
      if (is.isFilled(answer)) return answer
      throw new TypeError(`client({ secret }) must return a string that is not empty, not ${typeName(answer)}`)
    })
    withSecret(made)(...request)
  }
  // eslint-disable-next-line @typescript-eslint/no-misused-promises -- openid-client awaits what an authentication returns
  return authenticate
}

export interface ClientSettings {
  readonly timeout: number
  /** In seconds. */
  readonly clockTolerance: number
  /** Whether http is not refused: the addresses are checked where they are asked. */
  readonly isInsecure: boolean
  readonly algorithm?: string | undefined
}

export const clientMetadataOf = ({ clockTolerance, algorithm }: ClientSettings) => ({
  [openidClient().clockTolerance]: clockTolerance,
  ...(algorithm !== undefined && { id_token_signed_response_alg: algorithm }),
})

export const configurationOf = (
  server: ServerMetadata,
  { id, auth }: Registered,
  settings: ClientSettings,
  fetch: CustomFetch,
  known?: Configuration,
): Configuration => {
  const openid = openidClient()
  const made = known ?? new openid.Configuration(server, id, clientMetadataOf(settings), auth())
  const { timeout, isInsecure } = settings
  made.timeout = timeout / 1000
  made[openid.customFetch] = fetch
  if (isInsecure) openid.allowInsecureRequests(made)
  return made
}

/** A hook of the application threw its cause, while a provider was asked. */
export class HookRaised extends Error {
  override readonly name = 'HookRaised'
}

/** The answer of a hook. Rejects with `HookRaised`. */
export const answerOf = <A>(hook: () => A | Promise<A>): Promise<A> =>
  Promise.resolve()
    .then(hook)
    .catch((cause: unknown) => {
      throw new HookRaised('a hook threw', { cause })
    })

/** An answer of a provider that a check of our own refuses. */
export class Rejected extends Error {
  override readonly name = 'Rejected'
}

// --- the request that a browser takes to a provider

/** How the application and a provider know each other. */
export interface ProviderOptions {
  /** The registration of the application. */
  readonly client: Client
  /**
   * The path of the route that has `finish(...)`. With the application's `origin` it is the redirect URI to register.
   * Each provider has its own. It is the path that browsers see: with the prefixes of routers and mounted applications.
   */
  readonly callback: string
  /** The scopes that are asked for. Default `['openid']`, which must be among them; none for `oauth2`. */
  readonly scope?: ReadonlyArray<string> | undefined
  /** Parameters of the provider's own, such as `{ hd: 'shop.example' }`. A user can change them, so the hook compares the claim. */
  readonly parameters?: Readonly<Record<string, string>> | undefined
  /** How long a sign-in may take, in milliseconds. Default 15 minutes. */
  readonly lifetime?: number | undefined
}

/** Options of a single sign-in at the provider (OpenID Connect Core §3.1.2.1). */
export interface Asking {
  /** `login` asks for the password again, `none` for no page at all. */
  readonly prompt?: 'none' | 'login' | 'consent' | 'select_account' | 'create' | undefined
  /** The user who is expected, such as an e-mail address. The provider may ignore it. */
  readonly loginHint?: string | undefined
  /**
   * How long ago the user may have signed in at the provider, in milliseconds; 0 means now. The answer is refused if it
   * was longer ago, or if the provider does not say when.
   */
  readonly maxAge?: number | undefined
  /** Classes of authentication (`acr`), the best one first. An answer of another class is refused. */
  readonly acrValues?: ReadonlyArray<string> | undefined
}

const wordList = is.listOf(
  (one) => typeof one === 'string' && /^[\x21-\x7e]+$/.test(one),
  'must be an array of strings without blanks, and none of them empty',
  1,
)

export const askingChecks: Checks<Asking> = {
  prompt: is.maybe(is.oneOf('none', 'login', 'consent', 'select_account', 'create')),
  loginHint: is.maybe(is.nonEmpty),
  maxAge: is.maybe(is.except(0, is.positive)),
  acrValues: is.maybe(wordList),
}

/** The demands on an answer. They travel in the handle. */
export interface ExpectedAnswer {
  /** In seconds. */
  readonly maxAge?: number | undefined
  readonly acr?: ReadonlyArray<string> | undefined
}

/** The parameters of an authorization request, and the demands on its answer. */
export const authorizationQuestions = ({ prompt, loginHint, maxAge, acrValues }: Asking) => {
  const seconds = maxAge === undefined ? undefined : Math.floor(maxAge / 1000)
  const asked = { prompt, login_hint: loginHint, max_age: seconds?.toString(), acr_values: acrValues?.join(' ') }
  const expected: ExpectedAnswer = withoutUndefined({ maxAge: seconds, acr: acrValues })
  return { parameters: withoutUndefined(asked), expected }
}

// The security of a sign-in depends on them; each with its option, if there is such an option
const protocolParameters: ReadonlyMap<string, string> = new Map([
  ...['response_type', 'display', 'state', 'nonce', 'code_challenge'].map((name) => [name, ''] as const),
  ...['code_challenge_method', 'request', 'request_uri', 'registration'].map((name) => [name, ''] as const),
  ...([
    ['client_id', 'client'],
    ['redirect_uri', 'callback'],
    ['response_mode', 'responseMode of oidc'],
    ['scope', 'scope'],
    ['prompt', 'prompt of oidc'],
    ['login_hint', 'loginHint of oidc'],
    ['max_age', 'maxAge of oidc'],
    ['acr_values', 'acrValues of oidc'],
  ] as const),
])

// Parameters of a provider's own, such as `access_type` of Google's
const furtherParameters: Check = (where, value) => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new TypeError(`${where} must be an object of strings, not ${typeName(value)}`)
  }
  for (const [name, text] of Object.entries(value)) {
    const option = protocolParameters.get(name)
    if (option !== undefined)
      throw new TypeError(
        `${where}: ${name} belongs to the protocol; ${option ? `write the option ${option}` : 'leave it out'}`,
      )
    is.nonEmpty(`${where}: ${name}`, text)
  }
}

export const providerChecks: Checks<ProviderOptions> = {
  client: is.unchecked,
  callback: routePath("the callback's route, such as '/sign-in/google/callback'"),
  scope: is.maybe(wordList),
  parameters: is.maybe(furtherParameters),
  lifetime: is.maybe(is.positive),
}

/** How long a sign-in may take, in milliseconds. */
export const SIGN_IN_MS = 15 * 60_000

// --- the response that a browser brings back

/** The parameters that are read. `error_description` is not among them: it could say anything. */
export const responseFields = ['code', 'state', 'iss', 'error'] as const

/** A response that can be an answer: every parameter comes at most once, and there is either a code or an error. */
export interface AuthorizationResponse {
  /** As a query. */
  readonly parameters: string
  readonly state: string
  /** The member `user` of a posted answer, as JSON. */
  readonly user: string | undefined
}

const MAX_RESPONSE = 8192

/** Reads the response in a query; `undefined` if there is none. */
export const readResponse = ({ query }: Incoming): Answered<AuthorizationResponse> | undefined => {
  const read = new URLSearchParams()
  for (const name of responseFields) {
    const [value, ...more] = query.getAll(name)
    if (more.length > 0) return undefined
    if (value !== undefined) read.set(name, value)
  }
  const { code, state, error } = Object.fromEntries(read)
  const parameters = read.toString()
  if (!state || (code ? error !== undefined : !error) || parameters.length > MAX_RESPONSE) return undefined
  return { handle: state, answer: { parameters, state, user: query.get('user') ?? undefined } }
}
