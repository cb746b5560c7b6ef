/**
 * `Store` is the interface of a database that keeps everything: sessions, revocation stamps, lists, API keys, passkeys, one-time ids. Its callers
 * define their meaning. A store keeps texts that have a lifetime, and sets; it never decides which change is needed.
 *
 * Keys, sets and members begin with `koa-with-auth`, say which purpose they have, and are otherwise digests. Texts may name a user, but
 * contain no secret. So an attacker who reads the database cannot sign in with its contents.
 */
import * as is from '../core/checks.js'
import type { StoreContent } from '../core/events.js'
import { within } from './within.js'

/**
 * A database of texts that have a lifetime, and of sets. Lifetimes are milliseconds, at least 1, or Infinity. Each method is one atomic
 * change or one query; each may reject, which is an outage.
 */
export interface Store {
  /**
   * The live texts under these keys, in their order: `undefined` where there is none, where it has expired, and where it was ended. One
   * question for all of them. A store in memory may answer without a promise.
   */
  readonly get: (
    keys: ReadonlyArray<string>,
  ) => Promise<ReadonlyArray<string | undefined>> | ReadonlyArray<string | undefined>
  /**
   * Keeps the text under a key that is not known, and resolves to `true`. A key that is live or ended is left as it is: `false`. Of many
   * callers at once, one gets `true`.
   */
  readonly insert: (key: string, text: string, lifetime: number) => Promise<boolean>
  /**
   * Replaces the text and the lifetime of a live key: `true`. With `was`, only if its text is still that. Otherwise it changes nothing:
   * `false`.
   */
  readonly update: (key: string, text: string, lifetime: number, was?: string) => Promise<boolean>
  /** Ends a key, known or not, for `lifetime`: until then it has no text, and is neither inserted nor updated. */
  readonly end: (key: string, lifetime: number) => Promise<void>
  /** Adds a member to a set for `lifetime`, or prolongs it. */
  readonly add: (set: string, member: string, lifetime: number) => Promise<void>
  /** The live members of a set, in any order. */
  readonly members: (set: string) => Promise<ReadonlyArray<string>>
}

export const storeLike = is.withMethods(
  ['get', 'insert', 'update', 'end', 'add', 'members'],
  'see Store, or take memoryStore(), sqliteStore, redisStore, postgresStore or mysqlStore of koa-with-auth/stores',
)

// Longer than any application runs, and a whole number of milliseconds beside any time of a clock
const MAX_LIFETIME_MS = 2 ** 52

/** A lifetime as a whole number, which databases can add to their time. Throws a RangeError for any other value. */
export const wholeLifetime = (lifetime: number): number => {
  if (typeof lifetime === 'number' && lifetime >= 1) return Math.min(Math.ceil(lifetime), MAX_LIFETIME_MS)
  throw new RangeError('a lifetime is milliseconds, at least 1, or Infinity')
}

// SQLite takes 32,766 values in a statement, PostgreSQL 65,535, and a client of Redis as many as fit on the stack
const MOST_KEYS = 500

type Texts = ReadonlyArray<string | undefined>

/** Asks for at most 500 keys at once, and not at all for none. */
export const fewAtOnce = (get: (keys: ReadonlyArray<string>) => Promise<Texts>) => {
  const inParts = async (keys: ReadonlyArray<string>): Promise<Texts> => {
    const texts: Array<string | undefined> = []
    for (let at = 0; at < keys.length; at += MOST_KEYS) texts.push(...(await get(keys.slice(at, at + MOST_KEYS))))
    return texts
  }
  return (keys: ReadonlyArray<string>): Promise<Texts> =>
    keys.length > 0 && keys.length <= MOST_KEYS ? get(keys) : inParts(keys)
}

const isTextOrNone = (u: unknown): boolean => u === undefined || typeof u === 'string'

const throwWrong = (method: string, rule: string): never => {
  throw new TypeError(`${method} of the store must ${rule}`)
}

const checkTexts = (keys: ReadonlyArray<string>, texts: ReadonlyArray<string | undefined>) =>
  Array.isArray(texts) && texts.length === keys.length && texts.every(isTextOrNone)
    ? texts
    : throwWrong('get', 'return a string or undefined for each key, in their order')

const checkFlag = (method: string, answer: boolean): boolean =>
  typeof answer === 'boolean' ? answer : throwWrong(method, 'resolve to true or false')

const checkMembers = (members: ReadonlyArray<string>): ReadonlyArray<string> =>
  Array.isArray(members) && members.every((one) => typeof one === 'string')
    ? members
    : throwWrong('members', 'resolve to an array of strings')

/**
 * A store that rejects with `StoreUnavailable` when it fails, when it returns a value that no store may return, and after `timeout` milliseconds.
 * A value that a store in memory returns without a promise stays a value.
 */
export const timedStore = (content: StoreContent, store: Store, timeout: number): Store => {
  const timed = within(content, timeout)
  const get = (keys: ReadonlyArray<string>) => {
    const texts = store.get(keys)
    return Array.isArray(texts)
      ? checkTexts(keys, texts)
      : Promise.resolve(texts).then((late) => checkTexts(keys, late))
  }
  return {
    get: (keys) => timed(get, keys),
    insert: (key, text, lifetime) =>
      timed(async () => checkFlag('insert', await store.insert(key, text, wholeLifetime(lifetime)))),
    update: (key, text, lifetime, was) =>
      timed(async () => checkFlag('update', await store.update(key, text, wholeLifetime(lifetime), was))),
    // async, because to read the `then` of an answer may throw
    end: (key, lifetime) => timed(async () => store.end(key, wholeLifetime(lifetime))),
    add: (set, member, lifetime) => timed(async () => store.add(set, member, wholeLifetime(lifetime))),
    members: (set) => timed(async () => checkMembers(await store.members(set))),
  }
}
