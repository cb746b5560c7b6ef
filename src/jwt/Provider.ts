/** A provider is made from an issuer: whose tokens are accepted, and with which keys they are verified. */
import { named } from '../core/hooks.js'
import { bare, checkOptions, nonEmpty, unchecked } from '../core/options.js'
import { algorithmsFor } from './algorithms.js'
import { severalOf, sources } from './Issuer.js'
import { discoveredKeys, keysFrom, type KeyTerms } from './issuerKeys.js'
import { fetchedKeys, type KeySource } from './keySet.js'
import { checkUrl } from './urls.js'

/** An issuer whose tokens are accepted. */
export interface Provider {
  readonly issuer: string
  readonly audiences: ReadonlyArray<string>
  readonly algorithms: ReadonlyArray<string>
  readonly keys: KeySource
  /** Whether it is found by discovery. */
  readonly isDiscovered: boolean
}

/** The options that all issuers share. */
export interface Common extends KeyTerms {
  readonly audience: unknown
  readonly algorithms: unknown
}

/** Checks the issuers, and makes a provider for each, by its name. */
export const providersOf = (given: unknown, common: Common): ReadonlyMap<string, Provider> => {
  const { place } = common
  const list: ReadonlyArray<unknown> = Array.isArray(given) ? given : [given]
  if (list.length === 0) throw new TypeError(`${place}({ issuer: [] }): an empty array; name at least one issuer`)
  const providers = new Map<string, Provider>()
  for (const one of list) {
    const provider = providerOf(one, common)
    if (providers.has(provider.issuer)) {
      throw new TypeError(`${place}({ issuer }): ${JSON.stringify(provider.issuer)} is there twice; write it once`)
    }
    providers.set(provider.issuer, provider)
  }
  return providers
}

const checks = {
  issuer: nonEmpty,
  jwksUri: unchecked,
  jwks: unchecked,
  publicKey: unchecked,
  secret: unchecked,
  audience: unchecked,
  algorithms: unchecked,
}

const providerOf = (given: unknown, common: Common): Provider => {
  const { place, policy, events } = common
  if (typeof given === 'string') {
    checkUrl(`${place}({ issuer })`, given)
    const fetch = discoveredKeys(given, policy.maxAge)
    const options = { audience: undefined, algorithms: undefined, hasSecret: false }
    return { ...settled(given, options, common), keys: fetchedKeys(fetch, policy, events(given)), isDiscovered: true }
  }
  if (typeof given !== 'object' || given === null) {
    throw new TypeError(
      `${place}({ issuer }) must be the URL of an issuer, or an object such as { issuer, jwksUri }, not ${named(given)}`,
    )
  }
  // Safe: the members are checked here and below
  const all = checkOptions(`${place}({ issuer: { ... } })`, given as { readonly issuer: string }, checks)
  const { issuer, audience, algorithms, ...others } = all as Readonly<Record<string, unknown>> & typeof all
  const rest = bare(others)
  const [source, ...more] = sources.filter((name) => rest[name] !== undefined)
  if (source === undefined || more.length > 0) {
    const all = sources.join(', ')
    throw new TypeError(
      `${place}({ issuer: { issuer: ${JSON.stringify(issuer)} } }) needs exactly one of ${all}; for discovery, pass the issuer as a string`,
    )
  }
  const base = settled(issuer, { audience, algorithms, hasSecret: source === 'secret' }, common)
  return { ...base, keys: keysFrom(source, rest[source], base, common), isDiscovered: false }
}

interface Own {
  readonly audience: unknown
  readonly algorithms: unknown
  readonly hasSecret: boolean
}

const settled = (issuer: string, own: Own, { place, ...general }: Common): Omit<Provider, 'keys' | 'isDiscovered'> => ({
  issuer,
  audiences: severalOf(`${place}({ audience })`, own.audience ?? general.audience),
  algorithms: algorithmsFor(place, own.algorithms ?? general.algorithms, own.hasSecret),
})
