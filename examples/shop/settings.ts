/** What `npm run shop` reads from the environment, and its messages about invalid values. */
import { randomBytes } from 'node:crypto'
import * as E from 'fp-ts/lib/Either.js'
import * as t from 'io-ts'

/** A provider, and what the shop is registered as there. */
export interface ProviderSettings {
  readonly issuer: string
  readonly id: string
  readonly secret: string
  /** An API that takes the provider's tokens, and the scopes that it asks for. */
  readonly api?: { readonly resource: string; readonly scope: ReadonlyArray<string> }
  /** The page of the provider where users take their permission back. */
  readonly permissions?: string
}

/** A provider that speaks OAuth 2.0 without OpenID Connect. `user` answers `{ id }` to the access token. */
const PlainSettings = t.type({
  authorize: t.string,
  token: t.string,
  user: t.string,
  clientId: t.string,
  clientSecret: t.string,
})
export type PlainSettings = t.TypeOf<typeof PlainSettings>

export interface Settings {
  /** PORT (3001). With 0 the system chooses one, so ORIGIN must be given. */
  readonly port: number
  /** HOST (127.0.0.1). */
  readonly host: string
  /** ORIGIN (`http://localhost:PORT`): the public origin. */
  readonly origin: string
  /**
   * KEYS: signing keys, separated by commas; the first signs. Default: random, so a restart signs everyone out, and the second
   * factors in the file cannot be opened.
   */
  readonly keys: string[]
  /** DATABASE_URL (`file:shop.db`): an SQLite file, `postgres://...` or `mysql://...`. */
  readonly databaseUrl: string
  /** REDIS_URL. Then sessions, one-time ids and limiters are in Redis; accounts and passkeys stay in DATABASE_URL. */
  readonly redisUrl: string
  /**
   * ISSUER, CLIENT_ID, CLIENT_SECRET; API and API_SCOPE (scopes with blanks between them) are an API of the provider that has `/orders`.
   * Without ISSUER, the shop starts a provider of its own, with such an API.
   */
  readonly provider: ProviderSettings | undefined
  /** ISSUER_B, CLIENT_ID_B, CLIENT_SECRET_B. */
  readonly second: ProviderSettings | undefined
  /** PLAIN, as JSON. */
  readonly plain: PlainSettings | undefined
  /** MAIL_DIR: a folder that gets each mail as a file. Without it, mails are in the log. */
  readonly mailFolder: string
  /** LIFETIME_MS: the lifetime of every ceremony. Default: that of its kind. */
  readonly lifetime: number | undefined
  /** BREACHED: the address of a list of leaked passwords, such as `https://api.pwnedpasswords.com/range/`. Default: none is asked. */
  readonly breached: string
  /** FRESH_MS (300000): how old a proof may be where a fresh one is asked. */
  readonly fresh: number
  /** RP_ID: the domain of the passkeys. Default: the host name of ORIGIN. */
  readonly rpId: string
  /** RELATED_ORIGINS: further origins of passkeys, separated by commas. */
  readonly relatedOrigins: ReadonlyArray<string>
}

type Environment = Readonly<Record<string, string | undefined>>

const positive = (env: Environment, name: string): number | undefined => {
  const given = env[name]?.trim() ?? ''
  if (given === '') return undefined
  if (/^\d{1,12}$/.test(given) && Number(given) > 0) return Number(given)
  throw new Error(`${name} must be a number of milliseconds, not ${JSON.stringify(given)}`)
}

const providerIn = (env: Environment, suffix: string): ProviderSettings | undefined => {
  const [issuer = '', id = '', secret = ''] = ['ISSUER', 'CLIENT_ID', 'CLIENT_SECRET'].map((name) =>
    env[name + suffix]?.trim(),
  )
  if (issuer === '') return undefined
  if (id === '' || secret === '') throw new Error(`ISSUER${suffix} needs CLIENT_ID${suffix} and CLIENT_SECRET${suffix}`)
  const api = suffix === '' ? apiIn(env) : undefined
  return { issuer, id, secret, ...(api !== undefined && { api }) }
}

const apiIn = ({ API = '', API_SCOPE = '' }: Environment): ProviderSettings['api'] => {
  const resource = API.trim()
  if (resource === '') return undefined
  if (!URL.canParse(resource)) throw new Error(`API must be a URL, not ${JSON.stringify(resource)}`)
  return { resource, scope: API_SCOPE.split(' ').filter((one) => one !== '') }
}

const plainIn = (json: string): PlainSettings | undefined => {
  if (json === '') return undefined
  const given = E.flatMap(
    E.tryCatch(
      (): unknown => JSON.parse(json),
      () => [],
    ),
    PlainSettings.decode,
  )
  if (E.isRight(given)) return given.right
  throw new Error('PLAIN must be JSON with strings: { authorize, token, user, clientId, clientSecret }')
}

const list = (given: string): string[] =>
  given
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '')

/** Reads the settings. An Error names the invalid variable; its message contains no key. */
export const settingsIn = (env: Environment): Settings => {
  const setting = (name: string, otherwise: string): string => env[name]?.trim() || otherwise
  const port = setting('PORT', '3001')
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65535) {
    throw new Error(`PORT must be a number from 0 to 65535, not ${JSON.stringify(port)}`)
  }
  const origin = setting('ORIGIN', `http://localhost:${port}`).replace(/\/$/, '')
  if (!URL.canParse(origin) || new URL(origin).origin !== origin || !/^https?:/.test(origin)) {
    throw new Error(`ORIGIN must be an origin such as https://shop.example, not ${JSON.stringify(origin)}`)
  }
  const keys = setting('KEYS', randomBytes(32).toString('hex')).split(',')
  if (keys.some((key) => key.length < 32)) {
    throw new Error('KEYS must be keys of at least 32 characters each, separated by commas')
  }
  const { hostname } = new URL(origin)
  // browsers have no passkeys for addresses
  const isAddress = /^(?:[\d.]+|\[.*\])$/.test(hostname)
  return {
    port: Number(port),
    host: setting('HOST', '127.0.0.1'),
    origin,
    keys,
    databaseUrl: setting('DATABASE_URL', 'file:shop.db'),
    redisUrl: setting('REDIS_URL', ''),
    provider: providerIn(env, ''),
    second: providerIn(env, '_B'),
    plain: plainIn(setting('PLAIN', '')),
    mailFolder: setting('MAIL_DIR', ''),
    lifetime: positive(env, 'LIFETIME_MS'),
    breached: setting('BREACHED', ''),
    fresh: positive(env, 'FRESH_MS') ?? 300_000,
    rpId: setting('RP_ID', isAddress ? 'localhost' : hostname),
    relatedOrigins: list(setting('RELATED_ORIGINS', '')),
  }
}
