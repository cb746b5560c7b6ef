/** A store in the memory of one process: entry point `koa-with-auth/stores`. */
import { steadyClock } from '../core/data.js'
import { declareFactory } from '../core/options.js'
import { wholeLifetime, type Store } from './Store.js'

interface Kept {
  /** `undefined`: the key was ended. */
  readonly text: string | undefined
  /** In milliseconds since 1970. */
  readonly until: number
}

interface Memory {
  readonly texts: Map<string, Kept>
  readonly sets: Map<string, Map<string, number>>
  /** What had expired by then is forgotten. */
  readonly overBy: () => number
  writes: number
}

const SWEEP_EVERY = 1000

const found = ({ texts }: Memory, key: string): Kept | undefined => {
  const kept = texts.get(key)
  return kept !== undefined && kept.until > Date.now() ? kept : undefined
}

const untilOf = (lifetime: number): number => Date.now() + wholeLifetime(lifetime)

const sweep = (self: Memory): void => {
  if (++self.writes % SWEEP_EVERY !== 0) return
  const now = self.overBy()
  for (const [key, { until }] of self.texts) if (until <= now) self.texts.delete(key)
  for (const [set, members] of self.sets) {
    for (const [member, until] of members) if (until <= now) members.delete(member)
    if (members.size === 0) self.sets.delete(set)
  }
}

const keep = (self: Memory, key: string, kept: Kept): true => {
  self.texts.set(key, kept)
  sweep(self)
  return true
}

const insert = (self: Memory, key: string, text: string, lifetime: number): boolean =>
  found(self, key) === undefined && keep(self, key, { text, until: untilOf(lifetime) })

const update = (self: Memory, key: string, text: string, lifetime: number, was?: string): boolean => {
  const known = found(self, key)?.text
  return known !== undefined && (was ?? known) === known && keep(self, key, { text, until: untilOf(lifetime) })
}

const end = (self: Memory, key: string, lifetime: number): void => {
  const known = found(self, key)
  // an end is prolonged, never shortened
  const before = known !== undefined && known.text === undefined ? known.until : 0
  keep(self, key, { text: undefined, until: Math.max(before, untilOf(lifetime)) })
}

const add = (self: Memory, set: string, member: string, lifetime: number): void => {
  const members = self.sets.get(set) ?? new Map<string, number>()
  self.sets.set(set, members.set(member, Math.max(members.get(member) ?? 0, untilOf(lifetime))))
  sweep(self)
}

const membersOf = (self: Memory, set: string): ReadonlyArray<string> =>
  [...(self.sets.get(set) ?? [])].flatMap(([member, until]) => (until > Date.now() ? [member] : []))

const promised = <A>(change: () => A): Promise<A> =>
  new Promise((resolve) => {
    resolve(change())
  })

/**
 * A store that keeps everything in memory, and drops what has expired. It is for development and tests: everything is lost when the
 * process ends, and no other process knows it.
 *
 * @example
 * import { memoryStore } from 'koa-with-auth/stores'
 *
 * const store = memoryStore()
 * await store.insert('a', 'text', 60_000)
 * assert.deepStrictEqual(await store.get(['a', 'b']), ['text', undefined])
 */
export const memoryStore = (): Store => {
  const self: Memory = { texts: new Map(), sets: new Map(), overBy: steadyClock(), writes: 0 }
  return {
    get: (keys) => keys.map((key) => found(self, key)?.text),
    insert: (key, text, lifetime) => promised(() => insert(self, key, text, lifetime)),
    update: (key, text, lifetime, was) => promised(() => update(self, key, text, lifetime, was)),
    end: (key, lifetime) => promised(() => end(self, key, lifetime)),
    add: (set, member, lifetime) => promised(() => add(self, set, member, lifetime)),
    members: (set) => promised(() => membersOf(self, set)),
  }
}

declareFactory('memoryStore', memoryStore)
