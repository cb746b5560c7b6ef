/**
 * An OpenID provider: its identity (`issuer`), its addresses, its metadata and keys, and openid-client set up for it. Nothing is
 * asked before it is used.
 */
import * as E from 'fp-ts/lib/Either.js'
import { identity } from 'fp-ts/lib/function.js'
import type { Configuration, CustomFetch, ServerMetadata } from 'openid-client' with { 'resolution-mode': 'import' }
import type { Result } from '../../core/Result.js'
import { isYounger, thisMoment, type Moment } from '../../core/data.js'
import * as is from '../../core/checks.js'
import { bare, type Check } from '../../core/options.js'
import { readCompact, type Json } from '../../jwt/claims.js'
import { checkAddress, checkUrl, documentsOf, fetchJson, isInside, isSecure, Outage } from '../../jwt/fetching.js'
import { FetchedDocument, fetchJwks, type KeyPolicy } from '../../jwt/keySet.js'
import { checkSignature, oneKey, type AsymmetricAlgorithm, type Keys, type SigningKeySet } from '../../jwt/signature.js'
import { clientMetadataOf, configurationOf, Rejected, type ClientSettings, type Registered } from './Client.js'
import { openidClient, openidClientLoaded } from './openidClient.js'
import { askedFor, jsonResponse } from './ProviderRequest.js'

/** The addresses of a provider, apart from its identity. */
export interface ProviderPlace {
  /**
   * The address of the discovery document, if it is not below the issuer: for a container that reaches its provider by another name, and
   * for Azure AD B2C. The document must name exactly the `issuer`. http:// is allowed on a loopback address, and in a private network: a
   * name without a dot, `.internal`, `.local`, `.svc`, or a private address. Default: below the issuer.
   */
  readonly discovery?: string | undefined
  /** The metadata of a provider without a discovery document that can be reached; none is asked for. Addresses as for `discovery`. */
  readonly metadata?: ProviderMetadata | undefined
}

/** The members of a discovery document (OpenID Connect Discovery 1.0 §3). `issuer` may be left out; `jwks_uri` for ID tokens by HS256 alone. */
export interface ProviderMetadata {
  readonly authorization_endpoint: string
  readonly token_endpoint: string
  readonly jwks_uri?: string | undefined
  readonly userinfo_endpoint?: string | undefined
  readonly end_session_endpoint?: string | undefined
  readonly [name: string]: unknown
}

/** The only algorithm of ID tokens. */
export type IdTokenAlgorithm = AsymmetricAlgorithm | 'HS256'

export const idTokenAlgorithms: ReadonlyArray<IdTokenAlgorithm> = [
  ...(['RS', 'PS', 'ES'] as const).flatMap((family) => [`${family}256`, `${family}384`, `${family}512`] as const),
  ...(['EdDSA', 'Ed25519', 'HS256'] as const),
]

// --- addresses

const addresses = ['authorization_endpoint', 'token_endpoint', 'jwks_uri', 'userinfo_endpoint', 'end_session_endpoint']
const needed = addresses.slice(0, 2)

const checkMetadata: Check = (where, value) => {
  is.record(where, value)
  // Safe: a record
  const given = bare(value as Json)
  for (const name of needed) is.nonEmpty(`${where}: ${name}`, given[name])
  for (const name of addresses) if (given[name] !== undefined) checkAddress(`${where}: ${name}`, given[name])
}

export const placeChecks = { discovery: is.maybe(checkAddress), metadata: is.maybe(checkMetadata) }

// --- issuers with a place for the tenant

const TENANT = '{tenantid}'

// The names that Entra ID has for "the tenant of the user"
const ofUser = ['organizations', 'common']

// The issuer of the tokens as a document says it; `undefined` for another provider's
const issuerIn = (issuer: string, named: unknown): string | undefined => {
  if (named === issuer) return issuer
  const isTemplate = typeof named === 'string' && ofUser.some((name) => named.replace(TENANT, name) === issuer)
  return isTemplate ? named : undefined
}

export const isOfTenants = (issuer: string): boolean => issuer.includes(TENANT)

/** The issuer that a token must have, by its claim `tid`; `undefined` for a token that cannot be one. */
export const issuerFor = (issuer: string, tid: unknown): string | undefined => {
  if (!isOfTenants(issuer)) return issuer
  return typeof tid === 'string' && /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(tid)
    ? issuer.replace(TENANT, tid)
    : undefined
}

// Entra ID has keys that sign for one issuer alone, and says so in the key
const keysFor = ({ keys }: SigningKeySet, issuer: string, tid: unknown): SigningKeySet => ({
  keys: keys.filter(({ issuer: of }) => of === undefined || of === issuer || of === issuerFor(issuer, tid)),
})

// --- the provider

/** A provider as an application is registered there. The tolerance is in seconds. */
interface ProviderRegistration extends ProviderPlace {
  readonly issuer: string
  readonly client: Registered
  readonly policy: KeyPolicy
  readonly clockTolerance: number
  readonly algorithm: IdTokenAlgorithm | undefined
}

/** A provider that was not asked yet. Throws a TypeError for an issuer that is not an https URL. */
export const remoteProvider = (registration: ProviderRegistration) => {
  const { issuer, client, policy, discovery, metadata: given, algorithm, clockTolerance } = registration
  checkUrl('oidc({ issuer })', issuer)
  const isApart = discovery !== undefined || given !== undefined
  const trusts = isApart ? isInside : isSecure
  const isInsecure = isApart || new URL(issuer).protocol === 'http:'
  const self: Remote = {
    ...registration,
    trusts,
    settings: { timeout: policy.timeout, clockTolerance, isInsecure, algorithm },
    secret: algorithm === 'HS256' ? oneKey(Buffer.from(String(client.secret))) : undefined,
  }
  const unreadable = 'answered a document that openid-client does not take'
  const failed = (problem: string): void => warnOfProvider(issuer, problem)
  const kept = <J, A>(fetch: (signal: AbortSignal) => Promise<J>, read: (json: J) => A) =>
    new FetchedDocument({ fetch, read, unreadable, issuer, failed }, { ...policy, refreshAhead: false })
  // the metadata do not change a request of a browser, so one set-up serves all until they do
  const setUps = kept(
    (signal) => metadataOf(self, signal),
    (metadata) => setUp(self, metadata, askedFor(undefined, trusts)),
  )

  const fetchKeys = async (signal: AbortSignal): Promise<SigningKeySet> => {
    const found = await setUps.current()
    const url = E.isRight(found) ? found.right.serverMetadata().jwks_uri : undefined
    if (url === undefined || !trusts(url))
      throw new Outage('answered a discovery document without a jwks_uri that can be used', true)
    return fetchJwks(url, signal)
  }
  const keySets = kept(fetchKeys, identity)

  const known: KnownKeys = { keySets, cooldown: policy.cooldown, missedAt: undefined }
  const keysWith = (kid: string | undefined) => providerKeys(known, kid)
  // it fetches metadata and keys that are missing, and never rejects
  const ready = async (): Promise<void> => void (await (self.secret === undefined ? keySets : setUps).current())
  const verifying = () => verifySetUp(self, setUps.current, keysWith)
  return { configuration: setUps.current, verifying, keysWith, ready }
}

interface KnownKeys {
  readonly keySets: FetchedDocument<SigningKeySet, SigningKeySet>
  readonly cooldown: number
  missedAt: Moment | undefined
}

const providerKeys = async (known: KnownKeys, kid: string | undefined): Promise<Result<SigningKeySet>> => {
  const latest = await known.keySets.current()
  if (E.isLeft(latest) || kid === undefined || latest.right.keys.some((key) => key['kid'] === kid)) return latest
  return newer(known, latest.right)
}

// Newer keys than these, which lacked one; the same ones if the provider has no newer
const newer = async (known: KnownKeys, than: SigningKeySet): Promise<Result<SigningKeySet>> => {
  const { keySets, cooldown } = known
  if (keySets.latest !== undefined && keySets.latest.value !== than) return keySets.latest.right
  if (keySets.isPaused()) return keySets.outage()
  if (!keySets.isDown && isYounger(known.missedAt, cooldown)) return E.right(than)
  if (!(await keySets.refresh())) return keySets.outage()
  known.missedAt = thisMoment()
  return keySets.latest?.right ?? keySets.outage()
}

interface Remote extends ProviderRegistration {
  readonly trusts: (url: string) => boolean
  readonly settings: ClientSettings
  readonly secret: Keys | undefined
}

const metadataOf = async ({ issuer, discovery, metadata: given, trusts }: Remote, signal: AbortSignal) => {
  await openidClientLoaded()
  const address = discovery ?? documentsOf(issuer)[1]
  const headers = { Accept: 'application/json' }
  const metadata = bare<Json>(given ?? (await fetchJson(address, { signal, headers })))
  // found at the beginning, not when the user comes back
  for (const name of needed) {
    if (typeof metadata[name] !== 'string') throw new Outage(`answered a discovery document without ${name}`, true)
  }
  const isInsecure = (name: string) => typeof metadata[name] === 'string' && !trusts(metadata[name])
  const insecure = discovery === undefined ? undefined : addresses.find(isInsecure)
  if (insecure !== undefined) throw new Outage(`answered a discovery document whose ${insecure} is not https`, true)
  // OpenID Connect Discovery 1.0 §4.3: exactly equal, a slash at the end, too
  const named = issuerIn(issuer, given === undefined ? metadata['issuer'] : (given['issuer'] ?? issuer))
  if (named === undefined) {
    const { issuer: other } = metadata
    const shown = typeof other === 'string' ? JSON.stringify(other.slice(0, 200)) : 'none'
    throw new Outage(`names another issuer in its discovery document: ${shown}`, true)
  }
  // Safe: openid-client checks the members that it reads
  const found = { ...metadata, issuer: named } as ServerMetadata
  // the response would name an issuer that is not known before the tenant is
  return isOfTenants(named) ? { ...found, authorization_response_iss_parameter_supported: false } : found
}

const setUp = (self: Remote, metadata: ServerMetadata, fetch: CustomFetch, known?: Configuration): Configuration => {
  const made = configurationOf(metadata, self.client, self.settings, fetch, known)
  // RFC 9700 does not demand it of a token from the token endpoint; a proxy that ends TLS is a reason to. openid-client cannot check a
  // MAC: `checkMac` does
  if (self.secret === undefined) openidClient().enableNonRepudiationChecks(made)
  return made
}

/*
 * openid-client keeps the keys of a set-up for five minutes, and does not ask again for one. So each answer has its own
 * set-up, whose keys are those kept here: a rotated key is found at once, and an outage of the provider's keys is one
 * only after `staleIfError`.
 */
const verifySetUp = async (
  self: Remote,
  current: () => Result<Configuration> | Promise<Result<Configuration>>,
  keysWith: (kid: string | undefined) => Promise<Result<SigningKeySet>>,
): Promise<Result<Configuration>> => {
  const found = await current()
  if (E.isLeft(found)) return found
  const metadata = found.right.serverMetadata()
  let seen: { readonly kid: string | undefined; readonly tid: unknown } | undefined
  const ask = askedFor(async (token, isIdToken) => {
    const read = readCompact(token)
    const kid = read?.header['kid']
    seen = { kid: typeof kid === 'string' ? kid : undefined, tid: read?.claims['tid'] }
    if (self.secret !== undefined) await checkMac(read, isIdToken, self.secret)
  }, self.trusts)
  const answer: CustomFetch = async (url, init) => {
    if (typeof metadata.jwks_uri !== 'string' || url !== new URL(metadata.jwks_uri).href) return ask(url, init)
    const keys = await keysWith(seen?.kid)
    if (E.isLeft(keys)) throw new Outage('answers no keys', false)
    return jsonResponse(keysFor(keys.right, metadata.issuer, seen?.tid))
  }
  return E.right(
    setUp(self, metadata, answer, isOfTenants(metadata.issuer) ? await tenants(self, metadata) : undefined),
  )
}

// OpenID Connect Core §10.1; openid-client checks the algorithm. A signed userinfo would have to be signed by a key, so it is none
const checkMac = async (token: ReturnType<typeof readCompact>, isIdToken: boolean, secret: Keys): Promise<void> => {
  if (!isIdToken) throw new Rejected('signed userinfo')
  if (token === undefined || (await checkSignature(token, secret)) !== 'good') throw new Rejected('signature')
}

// openid-client knows how Entra ID writes its issuer, by the address at which that is discovered
const tenants = ({ client, settings }: Remote, metadata: ServerMetadata): Promise<Configuration> => {
  const { discovery, customFetch } = openidClient()
  const answer = () => Promise.resolve(jsonResponse(metadata))
  const server = new URL('https://login.microsoftonline.com/common/v2.0')
  return discovery(server, client.id, clientMetadataOf(settings), client.auth(), { [customFetch]: answer })
}

const warnOfProvider = (issuer: string, problem: string): void =>
  process.emitWarning(
    `oidc: ${issuer} cannot be used: it ${problem}. Sign-ins that need it are answered with 503`,
    'ProviderWarning',
  )
