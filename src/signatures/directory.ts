/**
 * The key directories of agents, which are fetched from addresses that strangers name: only https, only from public addresses, without
 * redirects, within a limit of size and of time. The address is looked up once, and the connection is made to the found address.
 */
import { jsonFields, unlessThrown } from '../core/data.js'
import dns from 'node:dns'
import type { IncomingMessage } from 'node:http'
import { request as httpsRequest, type RequestOptions } from 'node:https'
import { isIP } from 'node:net'
import * as E from 'fp-ts/lib/Either.js'
import ipaddr from 'ipaddr.js'
import { unavailable } from '../core/AuthError.js'
import type { Result } from '../core/Result.js'
import { fromNow, memory } from '../core/memory.js'
import { bytesOf, Outage, problemOf, withinTime } from '../jwt/fetching.js'
import { keyPolicyOf, remoteKeys, type SigningKeySource } from '../jwt/keySet.js'
import { thumbprintOf, usableKeys, type Keys, type SigningKeySet } from '../jwt/signature.js'
import { refusedBy, withJoseName } from './verification.js'

/** How key directories are fetched and kept. */
export interface DirectoryOptions {
  /** How long a fetch may take, in milliseconds. Default 5000. */
  readonly timeout?: number | undefined
  /** How long a directory is used without a new fetch, in milliseconds. Default 600 000. While it cannot be fetched, an hour longer. */
  readonly maxAge?: number | undefined
  /** The longest directory, in bytes. Default 65 536. */
  readonly maxLength?: number | undefined
}

type DirectoryPolicy = { readonly [K in keyof DirectoryOptions]-?: number }

/** Where keys are if an agent is named by its origin. */
export const WELL_KNOWN = '/.well-known/http-message-signatures-directory'

// How many agents of a function are kept, and how many keys of an agent
const MAX_AGENTS = 1000
const MAX_KEYS = 100

/** Whether an address is one of the public internet: not of this machine, of a private network, of a carrier or of a tunnel. */
export const isPublicAddress = (address: string): boolean => {
  // IPv4 that is written as IPv6 is IPv4
  const found = isIP(address) === 0 ? undefined : unlessThrown(() => ipaddr.process(address))
  // RFC 4291 §2.4: of IPv6, only 2000::/3 is public; `::7f00:1` is an old way to write 127.0.0.1
  return found?.range() === 'unicast' && (found.kind() === 'ipv4' || (found.toByteArray()[0] ?? 0) >> 5 === 1)
}

class NotPublic extends Error {}

const urlHost = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '')

// A look-up holds one of the few threads of Node, which hash passwords, too, and cannot be ended. Node makes two look-ups at once, for the
// whole process. Strangers can name hosts whose look-ups hang, so names that were not found yet get one of the two
const MAX_WAITING = 100

const oneAtATime = () => {
  const waiting: Array<() => void> = []
  let isRunning = false
  return async <A>(run: () => Promise<A>): Promise<A> => {
    if (waiting.length >= MAX_WAITING) throw new Outage('cannot be looked up: too many others are', false)
    if (isRunning) await new Promise<void>((begin) => waiting.push(begin))
    isRunning = true
    try {
      return await run()
    } finally {
      const next = waiting.shift()
      if (next === undefined) isRunning = false
      else next()
    }
  }
}

const [forNewNames, forFoundNames] = [oneAtATime(), oneAtATime()]
const foundNames = memory<true>({ size: MAX_AGENTS, maxAge: Infinity, dropsFirst: 'least recently used' })

const lookedUp = (host: string, signal: AbortSignal): Promise<dns.LookupAddress[]> =>
  (foundNames.get(host) === true ? forFoundNames : forNewNames)(async () => {
    signal.throwIfAborted()
    const found = await new Promise<dns.LookupAddress[]>((resolve, reject) => {
      dns.lookup(host, { all: true }, (error, all) => (error === null ? resolve(all) : reject(error)))
    })
    foundNames.set(host, fromNow(true))
    return found
  })

// Every address must be public: a host that has a private address, too, could be asked at that address
const publicAddressOf = async (url: URL, isPublic: typeof isPublicAddress, signal: AbortSignal) => {
  const host = urlHost(url)
  const found = isIP(host) === 0 ? await lookedUp(host, signal) : [{ address: host, family: isIP(host) }]
  const [first] = found
  if (first === undefined || !found.every(({ address }) => isPublic(address))) throw new NotPublic('not public')
  return first
}

/** The bytes at a URL. Rejects for anything but a 200 within the limits. `isPublic` is for tests. */
export const fetchDirectory = (url: URL, policy: DirectoryPolicy, isPublic = isPublicAddress): Promise<Buffer> =>
  withinTime(policy.timeout, (signal) => bytesAt(url, policy.maxLength, isPublic, signal))

const bytesAt = async (url: URL, maxLength: number, isPublic: typeof isPublicAddress, signal: AbortSignal) => {
  const { address, family } = await publicAddressOf(url, isPublic, signal)
  const res = await new Promise<IncomingMessage>((resolve, reject) => {
    const options: RequestOptions = {
      signal,
      agent: false,
      headers: { accept: 'application/http-message-signatures-directory+json, application/json' },
      // the name is not looked up again: it could lead to another address now
      lookup: (_host, { all }, callback) => {
        if (all === true) callback(null, [{ address, family }])
        else callback(null, address, family)
      },
    }
    // as after a 101, whose connection Node closes
    const refuse = (): void => reject(new Outage('answered no HTTP response', true))
    httpsRequest(url, options, resolve).on('error', reject).on('close', refuse).end()
  })
  if (res.statusCode === 200) return bytesOf(res, maxLength, `${maxLength} bytes`)
  res.destroy()
  throw new Outage(`answered ${res.statusCode}`, true)
}

// Directories write seconds, and some milliseconds
const inMilliseconds = (time: number): number => (time > 1e11 ? time : time * 1000)

const isCurrentKey = ({ nbf, exp }: Readonly<Record<string, unknown>>): boolean =>
  (typeof nbf !== 'number' || inMilliseconds(nbf) <= Date.now()) &&
  (typeof exp !== 'number' || inMilliseconds(exp) > Date.now())

/** The keys of a directory, each under its thumbprint. */
const keySetIn = (bytes: Buffer): SigningKeySet => {
  const set = usableKeys(jsonFields(bytes.toString('utf8')))
  if (set === undefined || set.keys.length > MAX_KEYS)
    throw new Outage('answered no key directory that can be used', true)
  const keys = set.keys.filter(isCurrentKey).map((jwk) => ({ ...withJoseName(jwk), kid: thumbprintOf(jwk) }))
  return { keys }
}

// Strangers can name as many addresses of an origin as they like, and as many origins as a function admits, such as subdomains
const MAX_NEW_OF_ORIGIN = 5
const MAX_NEW = 60
const NEW_EVERY = 60_000

/** Whether one more new address of an origin may be fetched now. */
const newAddresses = () => {
  const counts = memory<{ used: number }>({ size: MAX_AGENTS, maxAge: NEW_EVERY, dropsFirst: 'least recently used' })
  const hasRoom = (name: string, most: number): boolean => {
    const count = counts.get(name) ?? { used: 0 }
    if (count.used === 0) counts.set(name, fromNow(count))
    return count.used++ < most
  }
  return (origin: string): boolean => hasRoom(origin, MAX_NEW_OF_ORIGIN) && hasRoom('all', MAX_NEW)
}

/** Finds the keys at a URL that have an id, in directories that are kept. `listed`: how many agents there are, if they are listed. */
export const directories = (
  policy: DirectoryPolicy,
  listed: number | undefined,
  fetch: (url: URL, policy: DirectoryPolicy) => Promise<Buffer> = fetchDirectory,
): ((url: string, keyid: string) => Promise<Result<Keys>>) => {
  type Agent = { readonly source: SigningKeySource; isPrivate: boolean }
  const agents = memory<Agent>({ size: listed ?? MAX_AGENTS, maxAge: Infinity, dropsFirst: 'least recently used' })
  const keyPolicy = keyPolicyOf('webBotAuth({ directory })', { maxAge: policy.maxAge, timeout: policy.timeout })
  const mayFetch = listed === undefined ? newAddresses() : () => true
  const agentOf = (url: string): Agent | undefined => {
    const known = agents.get(url)
    if (known !== undefined) return known
    if (!mayFetch(new URL(url).origin)) return undefined
    const load = async (): Promise<SigningKeySet> => {
      try {
        return keySetIn(await fetch(new URL(url), policy))
      } catch (error) {
        agent.isPrivate = error instanceof NotPublic
        throw error instanceof Outage
          ? error
          : new Outage(agent.isPrivate ? 'has no public address' : problemOf(error), false)
      }
    }
    const unheard = { issuer: url, failed: () => {} }
    const agent: Agent = { source: remoteKeys(load, keyPolicy, unheard), isPrivate: false }
    agents.set(url, fromNow(agent))
    return agent
  }
  return async (url, keyid) => {
    const host = urlHost(new URL(url))
    // no fetch, and so no event
    if (isIP(host) !== 0 && !isPublicAddress(host)) return refusedBy('party')
    const agent = agentOf(url)
    if (agent === undefined) return E.left(unavailable(NEW_EVERY / 1000))
    const { source } = agent
    const began = source.begun()
    const current = await source.current()
    if (E.isLeft(current)) return agent.isPrivate ? refusedBy('party') : current
    if (hasKey(current.right, keyid)) return current
    const newer = await source.afterMiss(current.right, began, keyid)
    if (E.isLeft(newer)) return newer
    return newer.right !== undefined && hasKey(newer.right, keyid) ? E.right(newer.right) : refusedBy('key')
  }
}

const hasKey = ({ all }: Keys, keyid: string): boolean => all.some(({ kid }) => kid === keyid)
