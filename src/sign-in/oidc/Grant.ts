/**
 * A grant: the tokens that a provider gave for a user, kept in the store, sealed. It decides which token is handed out, and that one
 * refresh serves every request in every process.
 *
 * A lock in the store names the process that refreshes. The process renews it while the provider is asked, and the store's own clock ends it
 * ten seconds later. The successor of a refresh token is written before its access token is used, by `update` with the text that was read.
 * It knows no Koa and no provider.
 */
import { UnavailableError } from '../../core/Result.js'
import { bare, withoutUndefined } from '../../core/options.js'
import { derivedFrom } from '../../crypto/appKeys.js'
import { decrypt, encrypt, randomId } from '../../crypto/secrets.js'
import type { Store } from '../../stores/Store.js'

export interface Tokens {
  readonly access: string
  /** When the access token expires, in milliseconds since 1970; left out if the provider did not say. */
  readonly until?: number | undefined
  /** When it was granted, in milliseconds since 1970. */
  readonly at?: number | undefined
  readonly refresh?: string | undefined
  readonly scope?: string | undefined
  /** The subject of the ID token. A refresh must not change it (OpenID Connect Core §12.2). */
  readonly subject?: string | undefined
}

/** The provider ended the grant, or there is none. */
export class GrantEnded extends Error {
  override readonly name = 'GrantEnded'
}

export interface GrantPlace {
  readonly key: string
  /** How long, in milliseconds. */
  readonly lifetime: number
  readonly user: string
}

export interface Grants {
  readonly store: Store
  readonly keys: () => unknown
  /** Asks the provider for the successors of tokens. Throws `GrantEnded` for `invalid_grant`; any other exception is an outage. */
  readonly refresh: (tokens: Tokens, place: GrantPlace) => Promise<Tokens>
  /** Gets the tokens that came after their grant had ended. They are in no store. */
  readonly dropped: (tokens: Tokens) => void
  readonly clock: typeof systemClock
  /** The refreshes of this process that are under way, by key. */
  readonly flights: Map<string, Promise<Tokens>>
  /** Successors that this process got, and that the store has not taken yet, by key. */
  readonly unwritten: Set<string>
}

/** The clock of this process, in milliseconds since 1970. */
export const systemClock = {
  now: (): number => Date.now(),
  pause: (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms)),
}

// All times are in milliseconds
/** How long an access token that is handed out is good at least, in milliseconds. */
export const SPARE = 10_000
/** How long a process that refreshes, or that died meanwhile, holds the others off, in milliseconds. */
const LOCK = 10_000
/** How far the clocks of processes that refresh may differ, in milliseconds. */
const SKEW = 60_000
/** How often a process looks whether another process has refreshed, in milliseconds. */
const POLL = 25
/** How long a provider that failed is not asked again, in milliseconds. */
const FAILED_FOR = 1000
/** For so many pauses a successor that cannot be written is tried again. */
const WRITES = 20

const purpose = 'koa-with-auth upstream'

// --- the text in the store

const sealedText = (self: Grants, { key }: GrantPlace, tokens: Tokens): string => {
  const [first] = derivedFrom(self.keys(), purpose)
  if (first === undefined) throw new TypeError('app.keys is empty, so no token of a provider can be kept')
  return encrypt(first, JSON.stringify(tokens), key).toString('base64url')
}

// `undefined` for the text of another application, of keys that were rotated out, and for garbage
const tokensIn = (self: Grants, { key }: Pick<GrantPlace, 'key'>, text: string): Tokens | undefined => {
  const raw = Buffer.from(text, 'base64url')
  for (const derived of derivedFrom(self.keys(), purpose)) {
    const content = decrypt(derived, raw, key)
    // Safe: only `sealedText` has the key
    if (content !== undefined) return bare(JSON.parse(content.toString()) as Tokens)
  }
  return undefined
}

const keptIn = (self: Grants, place: GrantPlace, text: string | undefined) => {
  const tokens = text === undefined ? undefined : tokensIn(self, place, text)
  if (text === undefined || tokens === undefined) throw new GrantEnded('there is no grant')
  return { text, tokens }
}

// --- keeping and ending

/** Keeps the tokens that a provider granted, instead of those kept before. Rejects in an outage. */
export const keepGrant = async (self: Grants, place: GrantPlace, tokens: Tokens): Promise<void> => {
  const { key, lifetime } = place
  const text = sealedText(self, place, tokens)
  // of two sign-ins at once, the later sign-in counts
  if (await self.store.update(key, text, lifetime)) return
  if (await self.store.insert(key, text, lifetime)) return
  if (await self.store.update(key, text, lifetime)) return
  throw new UnavailableError('the store refuses a grant')
}

// Ends a grant, if its text is still that; `false` otherwise. Rejects in an outage. The key is free at once, for the next sign-in; a write
// of the text that was there before fails.
const endGrant = ({ store }: Grants, key: string, was?: string): Promise<boolean> => store.update(key, ENDED, 1, was)

const ENDED = 'ended'

/** The tokens of a grant, which is ended; `undefined` if there is none. Rejects in an outage. */
export const takeGrant = async (self: Grants, place: Pick<GrantPlace, 'key'>): Promise<Tokens | undefined> => {
  const [text] = await self.store.get([place.key])
  const tokens = text === undefined ? undefined : tokensIn(self, place, text)
  if (text !== undefined) await endGrant(self, place.key)
  return tokens
}

// --- an access token that is good

/** Tokens whose access token is good for at least ten seconds. Rejects with `GrantEnded`, or an `UnavailableError`. */
export const goodTokens = async (self: Grants, place: GrantPlace): Promise<Tokens> => {
  const { text, tokens } = await read(self, place)
  return isGood(tokens, self.clock.now()) ? tokens : inFlight(self, place, text)
}

// A token that was granted in the future shows that the clock was set back. So its end is not known
const isGood = ({ until = Infinity, at = 0, refresh }: Tokens, now: number): boolean =>
  until - now >= SPARE && (at - now < SKEW || refresh === undefined)

/** Tokens with another access token than this one, which the resource refused. Rejects as `goodTokens` does. */
export const tokensAfter = async (self: Grants, place: GrantPlace, refused: string): Promise<Tokens> => {
  const { text, tokens } = await read(self, place)
  return tokens.access === refused ? inFlight(self, place, text) : tokens
}

const read = async (self: Grants, place: GrantPlace) => {
  const [text] = await self.store.get([place.key])
  return keptIn(self, place, text)
}

// Requests of this process share one refresh
const inFlight = (self: Grants, place: GrantPlace, before: string): Promise<Tokens> => {
  const underWay = self.flights.get(place.key)
  if (underWay !== undefined) return underWay
  const flight = awaited(self, place, before).finally(() => self.flights.delete(place.key))
  self.flights.set(place.key, flight)
  return flight
}

const lockOf = ({ key }: GrantPlace): string => `${key} refresh`

// The lock that a process has left has this text, and the moment at which the provider failed, or 0
const LEFT = 'left '

// A provider may take longer than a lock lasts, and another process that took over would present the same token
const holding = ({ store }: Grants, place: GrantPlace, mine: string): (() => void) => {
  const renew = (): void => void store.update(lockOf(place), mine, LOCK, mine).catch(() => undefined)
  const timer = setInterval(renew, LOCK / 4).unref()
  return () => clearInterval(timer)
}

// Waits until another process has refreshed, or refreshes. A process that died holds the lock until the store ends it
const awaited = async (self: Grants, place: GrantPlace, before: string): Promise<Tokens> => {
  if (self.unwritten.has(place.key)) throw new UnavailableError('the successor of a refresh token is not written yet')
  const lock = lockOf(place)
  for (let waited = 0; waited <= 2 * LOCK; waited += POLL) {
    const [text, held] = await self.store.get([place.key, lock])
    const kept = keptIn(self, place, text)
    if (kept.text !== before) return kept.tokens
    // a store whose clock was set back keeps these texts for longer than a second
    const failedAt = held?.startsWith(LEFT) === true ? Number(held.slice(LEFT.length)) : undefined
    if (failedAt !== undefined && Math.abs(self.clock.now() - failedAt) < SKEW)
      throw new UnavailableError('the provider failed a moment ago')
    if (held === undefined || failedAt !== undefined) {
      const mine = randomId(16)
      const { store } = self
      const isTaken = await (held === undefined ? store.insert(lock, mine, LOCK) : store.update(lock, mine, LOCK, held))
      if (isTaken) return locked(self, place, before, mine)
    }
    await self.clock.pause(POLL)
  }
  throw new UnavailableError('another process did not refresh in time')
}

const locked = async (self: Grants, place: GrantPlace, before: string, mine: string): Promise<Tokens> => {
  let isOutage = false
  const release = holding(self, place, mine)
  try {
    const began = self.clock.now()
    // another process may have refreshed between the look and the lock
    const kept = await read(self, place)
    if (kept.text !== before) return kept.tokens
    if (kept.tokens.refresh === undefined) throw new GrantEnded('the access token has expired, and there is no other')
    // this process stood still: another process may have the lock by now
    if (Math.abs(self.clock.now() - began) > LOCK / 3) throw new UnavailableError('a refresh came too late')
    return await succeeded(self, place, kept, await self.refresh(kept.tokens, place))
  } catch (error) {
    isOutage = !(error instanceof GrantEnded)
    // not the grant that another sign-in of the user has kept meanwhile
    if (!isOutage && !(await endGrant(self, place.key, before))) return (await read(self, place)).tokens
    if (!isOutage || error instanceof UnavailableError) throw error
    throw new UnavailableError('the provider did not refresh', { cause: error })
  } finally {
    release()
    // in an outage of the store, its clock ends the lock. A renewal that comes late finds another text
    const left = LEFT + String(isOutage ? self.clock.now() : 0)
    await self.store.update(lockOf(place), left, isOutage ? FAILED_FOR : 1, mine).catch(() => undefined)
  }
}

// --- the successor is written before it is used

const succeeded = async (
  self: Grants,
  place: GrantPlace,
  { text: was, tokens }: ReturnType<typeof keptIn>,
  next: Tokens,
): Promise<Tokens> => {
  // a provider that does not rotate, or that names no scope, leaves them as they were (RFC 6749 §6)
  const successor: Tokens = { ...tokens, until: undefined, ...withoutUndefined(next) }
  const text = sealedText(self, place, successor)
  try {
    return await writeSuccessor(self, place, was, text, successor)
  } catch (error) {
    if (error instanceof GrantEnded) {
      self.dropped(successor)
      throw error
    }
    void writeSuccessorLater(self, place, was, text, successor)
    throw new UnavailableError('the store did not take the successor of a refresh token', { cause: error })
  }
}

// A write that was not acknowledged may have been done, so the text decides
const writeSuccessor = async (
  self: Grants,
  place: GrantPlace,
  was: string,
  text: string,
  successor: Tokens,
): Promise<Tokens> => {
  if (await self.store.update(place.key, text, place.lifetime, was)) return successor
  const [now] = await self.store.get([place.key])
  return now === text ? successor : keptIn(self, place, now).tokens
}

// The provider has rotated, so this process alone knows the only refresh token that works
const writeSuccessorLater = async (...args: Parameters<typeof writeSuccessor>): Promise<void> => {
  const [self, { key }, , , successor] = args
  self.unwritten.add(key)
  for (let at = 1; at <= WRITES; at++) {
    await self.clock.pause(100 * at)
    const done = await writeSuccessor(...args).then(
      () => true,
      (error: unknown) => {
        const hasEnded = error instanceof GrantEnded
        if (hasEnded) self.dropped(successor)
        return hasEnded
      },
    )
    if (done) break
  }
  self.unwritten.delete(key)
}
