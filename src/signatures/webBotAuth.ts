/**
 * `webBotAuth`: automated clients that identify themselves (draft-ietf-webbotauth-httpsig-protocol). They sign with the tag `web-bot-auth`,
 * and name the place of their keys in `Signature-Agent`.
 *
 * It identifies the sender of a request, never the user: combine it with a token by `allOf` if the request acts for a user.
 */
import { unlessThrown } from '../core/data.js'
import * as E from 'fp-ts/lib/Either.js'
import type { Request } from '../core/Request.js'
import { isInnerList, parseItem } from 'structured-headers'
import type { Authenticator } from '../core/Authenticator.js'
import { functionName } from '../core/functionName.js'
import * as is from '../core/checks.js'
import { checkHook, checkOptions, declareFactory } from '../core/options.js'
import { directories, WELL_KNOWN, type fetchDirectory, type DirectoryOptions } from './directory.js'
import type { Readings } from './components.js'
import { commonChecks, signatureKind, type SignatureOptions } from './httpSignature.js'
import { algorithmNames, refusedBy, type Candidate, type SignatureRules } from './verification.js'

/** An agent whose signature is good, in `ctx.request.auth`. It identifies the sender of the request, never the user. */
export interface SignedAgent {
  /** The origin of the agent, such as `https://agent.example`; or the address of its keys, if they are at another path or have a query. */
  readonly agent: string
  readonly keyid: string
  /** When it was signed. */
  readonly created: Date
}

export interface WebBotAuthOptions extends SignatureOptions {
  /**
   * The agents that are let in: https origins, or a function. For keys that are at another path of an origin, or at a path with a query, the
   * whole address counts: neither says anything about the owner of a host. The directory of an agent that is refused is never fetched.
   * With a function, five new addresses of an origin, and 60 in all, are fetched in a minute; more are a 503.
   */
  readonly agents:
    | readonly [string, ...string[]]
    | ReadonlyArray<string>
    | ((agent: string, request: Request) => boolean | Promise<boolean>)
  /** How key directories are fetched and kept. */
  readonly directory?: DirectoryOptions | undefined
}

const caller = 'webBotAuth'

// A longer address is no place of keys, and to parse a host takes a time that grows with the square of its length
const MAX_AGENT_ADDRESS = 2000

// The name of an agent is the address of its keys, so the compared address is the fetched address. An origin stands for the well-known address
const agentIn = (given: unknown): string | undefined => {
  if (typeof given !== 'string' || given.length > MAX_AGENT_ADDRESS) return undefined
  if (!/^https:\/\//i.test(given) || !URL.canParse(given)) return undefined
  const { origin, pathname, search, username, password, hash } = new URL(given)
  if (username !== '' || password !== '' || hash !== '' || given.endsWith('#')) return undefined
  const place = pathname + search
  return place === '/' || place === WELL_KNOWN ? origin : origin + place
}

const keysAddress = (agent: string): string => (new URL(agent).origin === agent ? agent + WELL_KNOWN : agent)

// The member of `Signature-Agent` that a signature covers. Signatures of one request may name several agents
const agentOf = ({ lines, members }: Readings, { input, label }: Candidate): string | undefined => {
  const name = 'signature-agent'
  const covered = input[0].filter(([one]) => one === name)
  const own = covered.length > 1 ? covered.filter(([, parameters]) => parameters.get('key') === label) : covered
  const [only, ...others] = own
  const field = lines(name)
  if (only === undefined || others.length > 0 || field === undefined) return undefined
  const [, parameters] = only
  const key = parameters.get('key')
  // Earlier drafts: a string alone
  if (parameters.size === 0 && field[0]?.startsWith('"') === true) return agentIn(structuredString(field.join(', ')))
  const member = typeof key === 'string' ? members(name)?.get(key) : undefined
  // the draft: a member with parameters must be ignored
  return member === undefined || isInnerList(member) || member[1].size > 0 ? undefined : agentIn(member[0])
}

const structuredString = (text: string): unknown => {
  const [value, flags] = unlessThrown(() => parseItem(text)) ?? []
  return flags?.size === 0 ? value : undefined
}

/**
 * Authenticates automated clients by their signatures (Web Bot Auth). A signature must cover the authority or the whole URI, and the
 * member of `Signature-Agent` that names its agent; it must have an end, and its key must be in the directory of the agent. Throws a
 * TypeError for options that cannot work. It needs the package `structured-headers`.
 *
 * @example
 * import { webBotAuth } from 'koa-with-auth/signatures'
 *
 * const crawler = webBotAuth({ origin: 'https://shop.example', agents: ['https://search.example'] })
 */
export const webBotAuth = (options: WebBotAuthOptions): Authenticator<SignedAgent> => webBotAuthOver(options)

/** @internal The same with another fetch: no test can serve a public address. */
export const webBotAuthOver = (
  options: WebBotAuthOptions,
  fetch?: typeof fetchDirectory,
): Authenticator<SignedAgent> => {
  const given = checkOptions(caller, options, { agents: is.unchecked, directory: is.unchecked, ...commonChecks })
  const { agents } = given
  const directory = {
    timeout: 5000,
    maxAge: 600_000,
    maxLength: 65_536,
    ...checkOptions(`${caller}({ directory: { ... } })`, given.directory ?? {}, {
      timeout: is.maybe(is.positive),
      maxAge: is.maybe(is.positive),
      maxLength: is.maybe(is.positive),
    }),
  }
  const keysFor = directories(directory, Array.isArray(agents) ? agents.length : undefined, fetch)
  return signatureKind<SignedAgent>(given, {
    caller,
    tag: 'web-bot-auth',
    // a directory has public keys only, so none by a secret
    algorithms: algorithmNames,
    signerOf: agentSigner(allowing(agents), keysFor),
    reads: ['signature-agent'],
    words: [
      'web-bot-auth',
      typeof agents === 'function' ? `agents by ${functionName(agents)}` : `of ${[...agents].sort().join(' ')}`,
      `directory ${directory.timeout} ms ${directory.maxAge} ms ${directory.maxLength}`,
    ],
    functions: typeof agents === 'function' ? [[functionName(agents), agents]] : [],
  })
}

declareFactory(caller, webBotAuth)

const agentSigner =
  (
    isAllowed: ReturnType<typeof allowing>,
    keysFor: ReturnType<typeof directories>,
  ): SignatureRules<SignedAgent>['signerOf'] =>
  async (candidate, covered, readings) => {
    const { keyid, created, expires } = candidate.parameters
    const isBound = covered.some(({ name }) => name === '@authority' || name === '@target-uri')
    const agent = agentOf(readings, candidate)
    if (!isBound || expires === undefined || agent === undefined) return refusedBy('components')
    // Only `true`, whatever a function of an application returns
    if ((await isAllowed(agent, readings.request)) !== true) return refusedBy('party')
    const keys = await keysFor(keysAddress(agent), keyid)
    if (E.isLeft(keys)) return keys
    const own = keys.right.all.filter(({ kid }) => kid === keyid)
    return E.right({ keys: { all: own }, principal: { agent, keyid, created: new Date(created * 1000) } })
  }

const allowing = (agents: WebBotAuthOptions['agents']) => {
  const where = `${caller}({ agents })`
  if (typeof agents === 'function') {
    checkHook(where, agents, 2)
    return agents
  }
  const list: ReadonlyArray<unknown> = Array.isArray(agents) ? agents : []
  const named = list.map(agentIn)
  const wrong = named.findIndex((one, at) => one === undefined || (one !== list[at] && keysAddress(one) !== list[at]))
  if (list.length === 0 || wrong >= 0) {
    throw new TypeError(`${where} must be a function, or an array of https origins such as 'https://agent.example'`)
  }
  const all = new Set(named)
  return (agent: string) => all.has(agent)
}
