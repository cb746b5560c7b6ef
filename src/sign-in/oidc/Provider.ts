/** An OpenID provider that is found by discovery at first use: its metadata, its keys, and openid-client set up for it. */
import * as E from 'fp-ts/lib/Either.js'
import type { ClientAuth, Configuration, CustomFetch } from 'openid-client'
import { identity } from 'fp-ts/lib/function.js'
import type { AuthError } from '../../core/AuthError.js'
import { isYounger, thisMoment, type Moment } from '../../core/data.js'
import type { Json } from '../../jwt/claims.js'
import { checkUrl, Outage } from '../../jwt/fetching.js'
import { fetched, type Fetched, type KeyPolicy } from '../../jwt/keySet.js'
import { usableKeys, type SigningKeySet } from '../../jwt/signature.js'
import { responseTo, askedFor, jsonOf, jsonResponse } from './asking.js'
import { openidClient } from './openidClient.js'

/** How a provider is asked. */
export interface ProviderOptions {
  /** The URL of the issuer. */
  readonly issuer: string
  readonly client: { readonly id: string; readonly auth: () => ClientAuth }
  readonly policy: KeyPolicy
  /** In seconds. */
  readonly clockTolerance: number
}

/** A provider. */
export interface Provider {
  /** openid-client, set up to send a browser to the provider. It asks nothing that needs keys. */
  readonly configuration: () => Promise<E.Either<AuthError, Configuration>>
  /** The same for one answer of the provider: it verifies signatures with the provider's current keys. */
  readonly verifying: () => Promise<E.Either<AuthError, Configuration>>
  /** The provider's current keys; newer ones, if they have none with this `kid`. */
  readonly keysFor: (kid: string | undefined) => Promise<E.Either<AuthError, SigningKeySet>>
  /** Fetches metadata and keys that are missing. Never rejects. */
  readonly ready: () => Promise<void>
}

/** The discovery document, and where it is. */
interface Document {
  readonly address: string
  readonly metadata: Json
}

/** The `kid` of a token's header, if it has one. */
const kidOf = (token: string): string | undefined => {
  const header = jsonOf(Buffer.from(token.split('.', 1)[0] ?? '', 'base64url').toString('utf8'))
  const kid = header?.['kid']
  return typeof kid === 'string' ? kid : undefined
}

/** Makes a provider. Nothing is asked before it is used. Throws a TypeError for an issuer that is not an https URL. */
export const providerOf = (where: string, options: ProviderOptions): Provider => {
  const { issuer, client, policy, clockTolerance } = options
  checkUrl(`${where}({ issuer })`, issuer)
  const server = new URL(issuer)
  const seconds = policy.timeout / 1000

  // openid-client finds the document by `fetch`, which may have it already
  const discovered = (fetch: CustomFetch): Promise<Configuration> => {
    const openid = openidClient()
    const metadata = { [openid.clockTolerance]: clockTolerance }
    return openid.discovery(server, client.id, metadata, client.auth(), {
      [openid.customFetch]: fetch,
      timeout: seconds,
      execute: [
        // RFC 9700 does not demand it of a token from the token endpoint; a proxy that ends TLS is a reason to
        openid.enableNonRepudiationChecks,
        ...(server.protocol === 'http:' ? [openid.allowInsecureRequests] : []),
      ],
    })
  }

  const fetchDocument = async (): Promise<Document> => {
    let address = ''
    let metadata: Json | undefined
    await discovered(async (url, init) => {
      address = url
      const response = await askedFor()(url, init)
      metadata = jsonOf(await response.clone().text())
      return response
    }).catch((error: unknown) => {
      throw outageOf(error)
    })
    if (metadata === undefined) throw new Outage('answered no discovery document', true)
    // OpenID Connect Discovery 1.0 §4.3. openid-client compares them as URLs, which have a slash at the end of an origin
    if (metadata['issuer'] !== issuer) {
      throw new Outage('names another issuer in its discovery document; compare them, also a slash at the end', true)
    }
    return { address, metadata }
  }
  const kept = <A>(fetch: () => Promise<A>): Fetched<A> =>
    fetched(
      { fetch, read: identity, unreadable: 'answered what openid-client does not take' },
      { ...policy, refreshAhead: false },
      { issuer, failed: (problem) => warn(issuer, problem) },
    )
  const documents = kept(fetchDocument)

  const fetchJwks = async (): Promise<SigningKeySet> => {
    const document = await documents.current()
    const url = E.isRight(document) ? document.right.metadata['jwks_uri'] : undefined
    if (typeof url !== 'string') throw new Outage('answered a discovery document without a jwks_uri', true)
    const headers = { Accept: 'application/json, application/jwk-set+json' }
    const { status, text } = await responseTo(url, { headers, signal: AbortSignal.timeout(Math.ceil(policy.timeout)) })
    if (status !== 200) throw new Outage(`answered ${status}`, true)
    const keys = usableKeys(jsonOf(text))
    if (keys === undefined) throw new Outage('answered a key set without a key for signatures', true)
    return keys
  }
  const keySets = kept(fetchJwks)

  // Newer keys than these, which lacked one; the same ones if the provider has no newer
  let missedAt: Moment | undefined
  const newer = async (than: SigningKeySet): Promise<E.Either<AuthError, SigningKeySet>> => {
    const known = keySets.latest()
    if (known !== undefined && known.value !== than) return known.right
    if (keySets.isPaused()) return keySets.outage()
    if (!keySets.isDown() && isYounger(missedAt, policy.cooldown)) return E.right(than)
    if (!(await keySets.refresh())) return keySets.outage()
    missedAt = thisMoment()
    return keySets.latest()?.right ?? keySets.outage()
  }

  const keysFor = async (kid: string | undefined): Promise<E.Either<AuthError, SigningKeySet>> => {
    const latest = await keySets.current()
    if (E.isLeft(latest) || kid === undefined || latest.right.keys.some((key) => key['kid'] === kid)) return latest
    return newer(latest.right)
  }

  const setUp = async (fetch: (document: Document) => CustomFetch): Promise<E.Either<AuthError, Configuration>> => {
    const document = await documents.current()
    return E.isLeft(document) ? document : E.right(await discovered(fetch(document.right)))
  }

  // The metadata do not change a request of a browser, so one set-up serves all until they do
  let setUpFor: { readonly document: Document; readonly configuration: Promise<Configuration> } | undefined
  const configuration = async (): Promise<E.Either<AuthError, Configuration>> => {
    const document = await documents.current()
    if (E.isLeft(document)) return document
    if (setUpFor?.document !== document.right) {
      setUpFor = { document: document.right, configuration: discovered(knowing(document.right, askedFor())) }
    }
    return E.right(await setUpFor.configuration)
  }

  /*
   * openid-client keeps the keys of a set-up for five minutes, and does not ask again for one. So each answer has its own
   * set-up, whose keys are those kept here: a rotated key is found at once, and an outage of the provider's keys is one
   * only after `staleIfError`.
   */
  const verifying = (): Promise<E.Either<AuthError, Configuration>> =>
    setUp((document) => {
      let kid: string | undefined
      const ask = askedFor((token) => {
        kid = kidOf(token)
      })
      const jwksUri = document.metadata['jwks_uri']
      return knowing(document, async (url, init) => {
        if (typeof jwksUri !== 'string' || url !== new URL(jwksUri).href) return ask(url, init)
        const keys = await keysFor(kid)
        if (E.isLeft(keys)) throw new Outage('answers no keys', false)
        return jsonResponse(keys.right)
      })
    })

  const ready = async (): Promise<void> => {
    await keySets.current()
  }
  return { configuration, verifying, keysFor, ready }
}

// Answers the discovery document that is known already
const knowing =
  ({ address, metadata }: Document, ask: CustomFetch): CustomFetch =>
  (url, init) =>
    url === address ? Promise.resolve(jsonResponse(metadata)) : ask(url, init)

const outageOf = (error: unknown): Outage => {
  if (error instanceof Outage) return error
  if (error instanceof Error && error.cause instanceof Outage) return error.cause
  return new Outage('answered a discovery document that cannot be used, or one of another issuer', true)
}

const warn = (issuer: string, problem: string): void =>
  process.emitWarning(
    `oidc: ${issuer} cannot be used: it ${problem}. Sign-ins that need it are answered with 503`,
    'ProviderWarning',
  )
