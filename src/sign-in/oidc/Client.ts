/** The client that an application is at its provider: its id, and how it proves that it is that client. */
import type { ClientAuth, CryptoKey, PrivateKey } from 'openid-client'
import { checkOptions, maybe, typeName, nonEmpty, oneOf, type Checks } from '../../core/options.js'
import { HookRaised } from './failures.js'
import { openidClient } from './openidClient.js'

/** How a client authenticates (OpenID Connect Core §9). */
export type ClientAuthentication = 'client_secret_basic' | 'client_secret_post' | 'private_key_jwt' | 'none'

/** The registration of an application at a provider. */
export interface Client {
  /** Its `client_id`. */
  readonly id: string
  /**
   * Its secret. A function is called for each request to the provider: for a secret that is a short-lived JSON Web
   * Token, as Apple demands.
   */
  readonly secret?: string | (() => string | Promise<string>) | undefined
  /** Its private key, for `private_key_jwt` (RFC 7523); with `kid`, if the provider knows several. */
  readonly key?: CryptoKey | PrivateKey | undefined
  /**
   * How it authenticates. Default: `client_secret_basic` with a secret, `private_key_jwt` with a key, `none` without
   * either.
   */
  readonly authentication?: ClientAuthentication | undefined
}

const methods = ['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none'] as const

const checks: Checks<Client> = {
  id: nonEmpty,
  secret: maybe((where, value) => {
    if (typeof value !== 'function') nonEmpty(where, value)
  }),
  key: maybe((where, value) => {
    const key: unknown =
      typeof value === 'object' && value !== null && 'key' in value && value.key !== undefined ? value.key : value
    const isPrivate = typeof key === 'object' && key !== null && 'type' in key && key.type === 'private'
    if (!isPrivate || !('usages' in key)) {
      throw new TypeError(
        `${where} must be a private CryptoKey, or { key, kid }, not ${typeName(value)}; importPKCS8 of jose makes one`,
      )
    }
  }),
  authentication: maybe(oneOf(...methods)),
}

/** Checks a client, and says how it authenticates. Throws a TypeError for one that cannot. */
export const clientOf = (where: string, given: unknown): { readonly id: string; readonly auth: () => ClientAuth } => {
  // Safe: `checkOptions` refuses anything but an object with these members
  const { id, secret, key, authentication } = checkOptions(where, given as Client, checks)
  if (secret !== undefined && key !== undefined) {
    throw new TypeError(`${where} has a secret and a key; a client authenticates with one of them`)
  }
  const method =
    authentication ?? (secret !== undefined ? 'client_secret_basic' : key !== undefined ? 'private_key_jwt' : 'none')
  const isSecret = method === 'client_secret_basic' || method === 'client_secret_post'
  if (isSecret !== (secret !== undefined)) {
    throw new TypeError(
      `${where}: ${method} ${isSecret ? 'needs a secret' : 'uses no secret; leave the secret or the method out'}`,
    )
  }
  if ((method === 'private_key_jwt') !== (key !== undefined)) {
    throw new TypeError(`${where}: ${method} ${key === undefined ? 'needs a key' : 'uses no key'}`)
  }
  return { id, auth: () => authOf(method, secret, key) }
}

const authOf = (method: ClientAuthentication, secret: Client['secret'], key: Client['key']): ClientAuth => {
  const { ClientSecretBasic, ClientSecretPost, None, PrivateKeyJwt } = openidClient()
  if (key !== undefined) return PrivateKeyJwt(key)
  if (secret === undefined) return None()
  const withSecret = method === 'client_secret_post' ? ClientSecretPost : ClientSecretBasic
  if (typeof secret === 'string') return withSecret(secret)
  const authenticate = async (...[server, client, body, headers]: Parameters<ClientAuth>): Promise<void> => {
    const made = await Promise.resolve()
      .then(secret)
      .catch((error: unknown) => {
        throw new HookRaised('client({ secret }) threw', { cause: error })
      })
    if (typeof made !== 'string' || made === '') {
      const cause = new TypeError(`client({ secret }) must return a string that is not empty, not ${typeName(made)}`)
      throw new HookRaised(cause.message, { cause })
    }
    withSecret(made)(server, client, body, headers)
  }
  // eslint-disable-next-line @typescript-eslint/no-misused-promises -- openid-client awaits what an authentication returns
  return authenticate
}
