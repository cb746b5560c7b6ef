/**
 * `webBotAuth`: automated clients that say who they are (draft-ietf-webbotauth-httpsig-protocol). They sign with the tag `web-bot-auth`,
 * and name the place of their keys in `Signature-Agent`.
 *
 * It says who sent a request, never for whom: combine it with a token by `allOf` if the request acts for a user.
 */
import * as E from 'fp-ts/lib/Either.js'
import type { Request } from '../core/Request.js'
import { isInnerList, parseDictionary, parseItem } from 'structured-headers'
import * as O from 'fp-ts/lib/Option.js'
import type { Authenticator } from '../core/Authenticator.js'
import { fromHeader } from '../core/RequestFields.js'
import { nameAndDigest } from '../core/functionName.js'
import * as is from '../core/checks.js'
import { checkHook, checkOptions, declareFactory } from '../core/options.js'
import { directories, WELL_KNOWN, type fetchDirectory, type DirectoryOptions } from './directory.js'
import { commonChecks, signatureKind, type SignatureOptions } from './httpSignature.js'
import { algorithmNames, refusedFor, type Candidate } from './verification.js'

/** An agent whose signature is good: what `ctx.request.auth` is. It says who sent the request, never for whom. */
export interface SignedAgent {
  /** The origin of the agent, such as `https://agent.example`; or the address of its keys, if that is another path of it. */
  readonly agent: string
  readonly keyid: string
  /** When it was signed. */
  readonly created: Date
}

export interface WebBotAuthOptions extends SignatureOptions {
  /**
   * The agents that are let in: https origins, or a function. For keys that are at another path of an origin, the whole address counts,
   * because a path says nothing about the owner of a host. The directory of an agent that is refused is never fetched.
   */
  readonly agents:
    | readonly [string, ...string[]]
    | ReadonlyArray<string>
    | ((agent: string, request: Request) => boolean | Promise<boolean>)
  /** How key directories are fetched and kept. */
  readonly directory?: DirectoryOptions | undefined
}

const caller = 'webBotAuth'

const directoryChecks = {
  timeout: is.maybe(is.positive),
  maxAge: is.maybe(is.positive),
  maxLength: is.maybe(is.positive),
}

interface Named {
  readonly agent: string
  readonly url: string
}

// An origin stands for the well-known address. A query makes no other agent
const agentIn = (given: unknown): Named | undefined => {
  if (typeof given !== 'string' || !URL.canParse(given) || !/^https:\/\//i.test(given)) return undefined
  const { origin, pathname, search, username, password, hash } = new URL(given)
  if (username !== '' || password !== '' || hash !== '' || given.endsWith('#')) return undefined
  const path = pathname === '/' ? WELL_KNOWN : pathname
  return { agent: path === WELL_KNOWN ? origin : origin + path, url: origin + path + search }
}

// The member of `Signature-Agent` that a signature covers. Signatures of one request may name several agents
const agentOf = (request: Request, { input, label }: Candidate): Named | undefined => {
  const covered = input[0].filter(([name]) => name === 'signature-agent')
  const own = covered.length > 1 ? covered.filter(([, parameters]) => parameters.get('key') === label) : covered
  const [only, ...others] = own
  const field = fromHeader('Signature-Agent')(request)
  if (only === undefined || others.length > 0 || O.isNone(field)) return undefined
  const [, parameters] = only
  const key = parameters.get('key')
  const text = [field.value].flat().join(', ')
  try {
    // Earlier drafts: a string alone
    if (parameters.size === 0 && text.startsWith('"')) {
      const [value, flags] = parseItem(text)
      return flags.size === 0 ? agentIn(value) : undefined
    }
    const member = typeof key === 'string' ? parseDictionary(text).get(key) : undefined
    // the draft: a member with parameters must be ignored
    return member === undefined || isInnerList(member) || member[1].size > 0 ? undefined : agentIn(member[0])
  } catch {
    return undefined
  }
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
  const isAllowed = allowing(agents)
  const directory = {
    timeout: 5000,
    maxAge: 600_000,
    maxLength: 65_536,
    ...checkOptions(`${caller}({ directory: { ... } })`, given.directory ?? {}, directoryChecks),
  }
  const keysFor = directories(directory, fetch)
  return signatureKind<SignedAgent>(given, {
    caller,
    tag: 'web-bot-auth',
    // a shared secret says nothing about who has signed
    algorithms: algorithmNames.filter((name) => name !== 'hmac-sha256'),
    signerOf: async (candidate, covered, request) => {
      const { keyid, created, expires } = candidate.parameters
      const isBound = covered.some(({ name }) => name === '@authority' || name === '@target-uri')
      const named = agentOf(request, candidate)
      if (!isBound || expires === undefined || named === undefined) return refusedFor('components')
      const allowed = isAllowed(named.agent, request)
      // Only `true`: a promise that was not awaited is truthy
      if ((allowed instanceof Promise ? await allowed : allowed) !== true) return refusedFor('party')
      const keys = await keysFor(named.url, keyid)
      if (E.isLeft(keys)) return keys
      const own = keys.right.all.filter(({ kid }) => kid === keyid)
      return E.right({
        keys: { all: own },
        principal: { agent: named.agent, keyid, created: new Date(created * 1000) },
      })
    },
    reads: ['signature-agent'],
    words: [
      'web-bot-auth',
      typeof agents === 'function' ? `agents by ${nameAndDigest(agents)}` : `of ${[...agents].sort().join(' ')}`,
      `directory ${directory.timeout} ms ${directory.maxAge} ms ${directory.maxLength}`,
    ],
    functions: typeof agents === 'function' ? [[nameAndDigest(agents), agents]] : [],
  })
}

declareFactory(caller, webBotAuth)

const allowing = (
  agents: WebBotAuthOptions['agents'],
): ((agent: string, request: Request) => boolean | Promise<boolean>) => {
  const where = `${caller}({ agents })`
  if (typeof agents === 'function') {
    checkHook(where, agents, 2)
    return agents
  }
  const list: ReadonlyArray<unknown> = Array.isArray(agents) ? agents : []
  const named = list.map(agentIn)
  const wrong = named.findIndex((one, at) => one === undefined || (one.agent !== list[at] && one.url !== list[at]))
  if (list.length === 0 || wrong >= 0) {
    throw new TypeError(`${where} must be a function, or an array of https origins such as 'https://agent.example'`)
  }
  const all = new Set(named.map((one) => one?.agent))
  return (agent) => all.has(agent)
}
