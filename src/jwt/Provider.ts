/** A provider is made from an issuer: whose tokens are accepted, and with which keys they are verified. */
import { createPublicKey, KeyObject } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import * as E from 'fp-ts/lib/Either.js'
import type { Request } from '../core/Request.js'
import { fromNow, memory, type Memory } from '../core/memory.js'
import * as is from '../core/checks.js'
import { bare, checkOptions, isPlain, typeName } from '../core/options.js'
import { isThenable, toPromise } from '../core/Result.js'
import { checkAddress, checkUrl, discovering } from './fetching.js'
import { fetchJwks, remoteKeys, type KeyEvents, type KeyPolicy, type SigningKeySource } from './keySet.js'
import { algorithmsFor, checkPublicKey, checkSecret, oneKey, parseJwks, usableKeys } from './signature.js'
import type { AsymmetricAlgorithm, Keys, SecretAlgorithm } from './signature.js'

/** One string or several. */
export type StringOrStrings = string | readonly [string, ...string[]]

interface NamedIssuer {
  /** Compared exactly with `iss`. */
  readonly issuer: string
  /** Replaces the general audience. */
  readonly audience?: StringOrStrings | undefined
}

interface Asymmetric extends NamedIssuer {
  /** Replace the general algorithms. */
  readonly algorithms?: readonly [AsymmetricAlgorithm, ...AsymmetricAlgorithm[]] | undefined
}

interface KeySources {
  readonly jwksUri: string
  /** A JSON Web Key Set (RFC 7517 §5), such as `{ keys: [{ kty: 'EC', crv: 'P-256', x, y, kid }] }`. */
  readonly jwks: { readonly keys: ReadonlyArray<object> }
  /** A PEM, or a KeyObject of `node:crypto`. */
  readonly publicKey: string | KeyObject
  /** Random bytes: 32 for HS256, 48 for HS384, 64 for HS512. A string is its UTF-8. */
  readonly secret: Uint8Array | string
}

type Only<S extends keyof KeySources> = Pick<KeySources, S> & {
  readonly [Other in Exclude<keyof KeySources, S>]?: undefined
}

/** An issuer, with exactly one source of keys. */
export type IssuerWithKeys =
  | (Asymmetric & Only<'jwksUri'>)
  | (Asymmetric & Only<'jwks'>)
  | (Asymmetric & Only<'publicKey'>)
  | (NamedIssuer &
      Only<'secret'> & { readonly algorithms?: readonly [SecretAlgorithm, ...SecretAlgorithm[]] | undefined })

/** An issuer. A string means discovery. */
export type Issuer = string | IssuerWithKeys

const keySourceNames = ['jwksUri', 'jwks', 'publicKey', 'secret'] as const

/** Turns one string or several into an array. Throws a TypeError for an empty string. */
export const nonEmptyStrings = (where: string, given: unknown): ReadonlyArray<string> => {
  const list: ReadonlyArray<unknown> = Array.isArray(given) ? given : [given]
  if (list.length === 0 || !list.every(is.isFilled))
    throw new TypeError(`${where} must be a string or an array of strings, and none of them empty`)
  return list
}

const staticKeys = (keys: Keys): SigningKeySource => {
  const right = E.right(keys)
  const none = Promise.resolve(E.right(undefined))
  return { current: () => right, begun: () => 0, afterMiss: () => none, ready: () => Promise.resolve() }
}

const keySource = (
  source: (typeof keySourceNames)[number],
  value: unknown,
  { issuer, algorithms }: Pick<Provider, 'issuer' | 'algorithms'>,
  { caller: where, policy, events }: SharedTerms,
): SigningKeySource => {
  switch (source) {
    case 'jwksUri': {
      checkAddress(`${where}({ issuer: { jwksUri } })`, value)
      return remoteKeys((signal) => fetchJwks(value, signal), policy, events(issuer))
    }
    case 'jwks':
      return staticKeys(keySetOf(where, value))
    case 'publicKey': {
      const key = publicKeyOf(where, value)
      checkPublicKey(`${where}({ issuer: { publicKey } })`, key, algorithms)
      return staticKeys(oneKey(key))
    }
    case 'secret': {
      const secret = typeof value === 'string' ? Buffer.from(value, 'utf8') : value
      if (!(secret instanceof Uint8Array))
        throw new TypeError(`${where}({ issuer: { secret } }) must be bytes or a string`)
      checkSecret(`${where}({ issuer: { secret } })`, secret, algorithms)
      return staticKeys(oneKey(secret))
    }
  }
}

const keySetOf = (where: string, value: unknown): Keys => {
  const jwks = usableKeys(value)
  if (jwks === undefined)
    throw new TypeError(`${where}({ issuer: { jwks } }) must be { keys: [...] } with a public key for signatures`)
  if (jwks.keys.some((jwk) => 'd' in jwk))
    throw new TypeError(`${where}({ issuer: { jwks } }) holds a private key; pass the public keys, without "d"`)
  return parseJwks(jwks)
}

const publicKeyOf = (where: string, value: unknown): KeyObject => {
  if (value instanceof KeyObject) return value
  const wrong = `${where}({ issuer: { publicKey } }) must be a PEM of a public key with its lines (in a variable with \\n, .replaceAll('\\\\n', '\\n')), or a KeyObject; for a JSON Web Key, jwks: { keys: [key] }`
  if (typeof value !== 'string') throw new TypeError(wrong)
  // Node would use its public half
  if (value.includes('PRIVATE KEY'))
    throw new TypeError(`${where}({ issuer: { publicKey } }) is a private key; pass the public key`)
  try {
    return createPublicKey(value)
  } catch {
    throw new TypeError(wrong)
  }
}

export interface Provider {
  readonly issuer: string
  /** `false`: `aud` is not looked at. */
  readonly audiences: ReadonlyArray<string> | false
  readonly algorithms: ReadonlyArray<string>
  readonly keys: SigningKeySource
  readonly isDiscovered: boolean
}

/** The terms that all issuers of one authenticator share: the caller for messages, how long keys are kept, and where outages are reported. */
interface SharedTerms {
  readonly caller: string
  readonly policy: KeyPolicy
  readonly events: (issuer: string) => KeyEvents
  readonly audience: unknown
  readonly algorithms: unknown
}

/**
 * Names the issuer of a token, if it is accepted. It is asked for each request, with `iss`, which nothing has verified yet. One that
 * depends on `iss` alone is written as `{ ofIssuerAlone: f }`: it is asked once for an issuer that is kept.
 */
export type FindIssuer = (iss: string, request: Request) => Issuer | undefined | Promise<Issuer | undefined>

/** Names the issuer of a token as `FindIssuer` does, and depends on `iss` alone, so its results are kept. */
export interface FindIssuerAlone {
  readonly ofIssuerAlone: (iss: string) => Issuer | undefined | Promise<Issuer | undefined>
}

/** The function that finds issuers; `undefined` for any other value of the option. */
export const finderIn = (given: unknown): Function | undefined => {
  if (typeof given === 'function') return given
  if (!isPlain(given) || !Object.hasOwn(given, 'ofIssuerAlone')) return undefined
  const { ofIssuerAlone } = checkOptions('httpJwt({ issuer })', given as FindIssuerAlone, { ofIssuerAlone: is.hook(1) })
  return ofIssuerAlone
}

export interface Providers {
  /** The provider of this name; `undefined` if it is not accepted. Rejects or throws if the application's function does. */
  readonly find: (iss: string, request: Request) => Provider | undefined | Promise<Provider | undefined>
  /** Whether a provider that was found before would be found now. */
  readonly isCurrent: (provider: Provider) => boolean
  readonly known: ReadonlyArray<Provider>
}

const KEPT = 1000

export const providersOf = (given: unknown, common: SharedTerms): Providers => {
  const find = finderIn(given)
  if (find !== undefined) return foundProviders(find, find === given, common)
  const all = listedProviders(given, common)
  return { find: (iss) => all.get(iss), isCurrent: () => true, known: [...all.values()] }
}

// Providers that the application finds, such as a provider for each tenant. The last thousand are kept for `keys.maxAge`, so a tenant that
// is removed is refused after that time. Those with one `jwksUri` share its keys. Unknown issuers are never fetched.
const foundProviders = (find: Function, isOfRequest: boolean, common: SharedTerms): Providers => {
  const { maxAge } = common.policy
  const kept = memory<{ readonly issuer: unknown; readonly provider: Provider }>({
    size: KEPT,
    maxAge,
    dropsFirst: 'least recently used',
  })
  const shared = memory<SigningKeySource>({ size: KEPT, maxAge: Infinity, dropsFirst: 'least recently used' })
  const made = (iss: string, issuer: unknown): Provider | undefined => {
    if (issuer === undefined || issuer === null || issuer === false) return undefined
    const before = kept.get(iss)
    if (before !== undefined && isDeepStrictEqual(before.issuer, issuer)) return before.provider
    // a copy, because the application may change its object and return it again, also while keys are fetched
    const own = copyOfIssuer(issuer)
    const provider = providerOf(own, common, shared)
    // a token of one tenant must not be valid because another tenant was found
    if (provider.issuer !== iss) return undefined
    kept.set(iss, fromNow({ issuer: own, provider }))
    return provider
  }
  return {
    find: (iss, request) => {
      const before = isOfRequest ? undefined : kept.get(iss)
      if (before !== undefined) return before.provider
      const found: unknown = Reflect.apply(find, undefined, isOfRequest ? [iss, request] : [iss])
      return isThenable(found) ? toPromise(found).then((late) => made(iss, late)) : made(iss, found)
    },
    isCurrent: (provider) => !isOfRequest && kept.get(provider.issuer)?.provider === provider,
    known: [],
  }
}

const copyOfIssuer = (u: unknown): unknown => {
  if (Array.isArray(u)) return u.map(copyOfIssuer)
  // a copy of its own class, which `slice` of a Buffer is not
  if (u instanceof Uint8Array) return Uint8Array.prototype.slice.call(u)
  return isPlain(u) ? Object.fromEntries(Object.entries(u).map(([name, one]) => [name, copyOfIssuer(one)])) : u
}

const listedProviders = (given: unknown, common: SharedTerms): ReadonlyMap<string, Provider> => {
  const { caller: where } = common
  const list: ReadonlyArray<unknown> = Array.isArray(given) ? given : [given]
  if (list.length === 0) throw new TypeError(`${where}({ issuer: [] }): an empty array; name at least one issuer`)
  const providers = new Map<string, Provider>()
  const shared = memory<SigningKeySource>({ size: Infinity, maxAge: Infinity, dropsFirst: 'oldest' })
  for (const one of list) {
    const provider = providerOf(one, common, shared)
    if (providers.has(provider.issuer))
      throw new TypeError(`${where}({ issuer }): ${JSON.stringify(provider.issuer)} is there twice; write it once`)
    providers.set(provider.issuer, provider)
  }
  return providers
}

const checks = {
  issuer: is.nonEmpty,
  jwksUri: is.unchecked,
  jwks: is.unchecked,
  publicKey: is.unchecked,
  secret: is.unchecked,
  audience: is.unchecked,
  algorithms: is.unchecked,
}

const providerOf = (given: unknown, common: SharedTerms, shared: Memory<SigningKeySource>): Provider => {
  const { caller: where, policy, events } = common
  // one flight and one set of keys for each address, also if the provider itself was forgotten
  const sharing = (address: string, make: () => SigningKeySource): SigningKeySource => {
    const before = shared.get(address)
    if (before !== undefined) return before
    const keys = make()
    shared.set(address, fromNow(keys))
    return keys
  }
  if (typeof given === 'string') {
    checkUrl(`${where}({ issuer })`, given)
    const ask = discovering(given, 'jwks_uri', policy.maxAge)
    const fetch = (signal: AbortSignal) => ask(signal, (url) => fetchJwks(url, signal))
    // not the name of a `jwksUri`: a tenant may have the issuer of another tenant as its own
    const keys = sharing(`discovery ${given}`, () => remoteKeys(fetch, policy, events(given)))
    return { ...settled(given, bare({}), false, common), keys, isDiscovered: true }
  }
  if (typeof given !== 'object' || given === null)
    throw new TypeError(
      `${where}({ issuer }) must be the URL of an issuer, or an object such as { issuer, jwksUri }, not ${typeName(given)}`,
    )
  // Safe: the members are checked here and below
  const all = checkOptions(`${where}({ issuer: { ... } })`, given as { readonly issuer: string }, checks)
  const { issuer, audience, algorithms, ...others } = all as Readonly<Record<string, unknown>> & typeof all
  const rest = bare(others)
  const [source, ...more] = keySourceNames.filter((name) => rest[name] !== undefined)
  if (source === undefined || more.length > 0) {
    const all = keySourceNames.join(', ')
    throw new TypeError(
      `${where}({ issuer: { issuer: ${JSON.stringify(issuer)} } }) needs exactly one of ${all}; for discovery, pass the issuer as a string`,
    )
  }
  const base = settled(issuer, { audience, algorithms }, source === 'secret', common)
  const make = () => keySource(source, rest[source], base, common)
  const keys = source === 'jwksUri' ? sharing(String(rest[source]), make) : make()
  return { ...base, keys, isDiscovered: false }
}

const settled = (
  issuer: string,
  own: { readonly audience?: unknown; readonly algorithms?: unknown },
  hasSecret: boolean,
  { caller: where, ...general }: SharedTerms,
) => {
  const audience = own.audience ?? general.audience
  return {
    issuer,
    audiences: audience === false ? (false as const) : nonEmptyStrings(`${where}({ audience })`, audience),
    algorithms: algorithmsFor(where, own.algorithms ?? general.algorithms, hasSecret),
  }
}
