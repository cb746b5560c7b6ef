/**
 * What a browser sends: the JSON of a `PublicKeyCredential`, as its `toJSON()` writes it. A request is decoded here, once.
 *
 * Only the members that are checked are copied, as far as they are own properties. Everything has a maximum length, because
 * reading CBOR takes time and stack.
 */
import * as O from 'fp-ts/lib/Option.js'
import { ownField } from '../../core/data.js'

/** The members that both answers have. */
interface Answer {
  /** The id of the credential, in base64url. */
  readonly id: string
  readonly clientDataJSON: string
  /** What `clientDataJSON` contains. */
  readonly client: ClientData
}

/** What the browser adds to the challenge before the authenticator signs (WebAuthn §5.8.1). */
interface ClientData {
  readonly challenge: string
  /** Whether the page was in a frame of another origin. */
  readonly crossOrigin: boolean
  /** The origin of the page around that frame; `undefined` if the browser does not say it. */
  readonly topOrigin: string | undefined
}

/** A registration. */
export interface Registration extends Answer {
  readonly attestationObject: string
  readonly transports: ReadonlyArray<string>
}

/** An assertion. */
export interface Assertion extends Answer {
  readonly authenticatorData: string
  readonly signature: string
  readonly userHandle: string
}

// Characters of base64url. An id has at most 1,023 bytes, and a user handle 64 (WebAuthn §4, §5.4.3). A signature is as long as the
// modulus of RSA. An attestation with certificates has about 5 kB.
const limits = {
  id: 1364,
  clientDataJSON: 8192,
  attestationObject: 16_384,
  authenticatorData: 4096,
  signature: 1024,
  userHandle: 86,
}

const base64url = (object: object, name: keyof typeof limits): string | undefined => {
  const value = ownField(object, name)
  const isShort = typeof value === 'string' && value.length > 0 && value.length <= limits[name]
  return isShort && /^[\w-]+$/.test(value) ? value : undefined
}

const isObject = (u: unknown): u is object => typeof u === 'object' && u !== null && !Array.isArray(u)

const parsed = (json: string): unknown => {
  try {
    return JSON.parse(Buffer.from(json, 'base64url').toString())
  } catch {
    return undefined
  }
}

const clientDataIn = (json: string): ClientData | undefined => {
  const data = parsed(json)
  if (!isObject(data)) return undefined
  const [challenge, crossOrigin = false, topOrigin] = ['challenge', 'crossOrigin', 'topOrigin'].map((name) =>
    ownField(data, name),
  )
  if (typeof challenge !== 'string' || typeof crossOrigin !== 'boolean') return undefined
  return topOrigin === undefined || typeof topOrigin === 'string' ? { challenge, crossOrigin, topOrigin } : undefined
}

const answerIn = (u: unknown): (Answer & { readonly response: object }) | undefined => {
  if (!isObject(u) || ownField(u, 'type') !== 'public-key') return undefined
  const id = base64url(u, 'id')
  const response = ownField(u, 'response')
  if (id === undefined || ownField(u, 'rawId') !== id || !isObject(response)) return undefined
  const clientDataJSON = base64url(response, 'clientDataJSON')
  const client = clientDataJSON === undefined ? undefined : clientDataIn(clientDataJSON)
  return clientDataJSON === undefined || client === undefined ? undefined : { id, clientDataJSON, client, response }
}

// Hints of the browser: what is not one is left out
const transportsIn = (response: object): ReadonlyArray<string> => {
  const given = ownField(response, 'transports')
  const hints = Array.isArray(given) ? given.slice(0, 16) : []
  return [...new Set(hints.filter((one): one is string => typeof one === 'string' && /^[a-z-]{1,32}$/.test(one)))]
}

/** Reads a registration. */
export const registrationIn = (u: unknown): O.Option<Registration> => {
  const answer = answerIn(u)
  if (answer === undefined) return O.none
  const { response, ...common } = answer
  const attestationObject = base64url(response, 'attestationObject')
  if (attestationObject === undefined) return O.none
  return O.some({ ...common, attestationObject, transports: transportsIn(response) })
}

/** Reads an assertion. One without a user handle is none: every passkey has one. */
export const assertionIn = (u: unknown): O.Option<Assertion> => {
  const answer = answerIn(u)
  if (answer === undefined) return O.none
  const { response, ...common } = answer
  const authenticatorData = base64url(response, 'authenticatorData')
  const signature = base64url(response, 'signature')
  const userHandle = base64url(response, 'userHandle')
  if (authenticatorData === undefined || signature === undefined || userHandle === undefined) return O.none
  return O.some({ ...common, authenticatorData, signature, userHandle })
}
