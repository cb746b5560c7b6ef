/** A store in the memory of one process: entry point `koa-with-auth/stores`. */
/* eslint-disable @typescript-eslint/require-await -- the methods of a store return promises */
import { steadyClock } from '../core/data.js'
import { warnOfWorkers } from '../core/memory.js'
import { declareFactory } from '../core/options.js'
import { wholeLifetime, type Store } from './Store.js'

interface KeptText {
  /** `undefined`: the key was ended. */
  readonly text: string | undefined
  /** In milliseconds since 1970. */
  readonly until: number
}

interface StoreMemory {
  readonly texts: Map<string, KeptText>
  readonly sets: Map<string, Map<string, number>>
  /** Texts and members that had expired by then are forgotten. */
  readonly overBy: () => number
  writes: number
}

const SWEEP_EVERY = 1000

const liveText = ({ texts }: StoreMemory, key: string): KeptText | undefined => {
  const kept = texts.get(key)
  return kept !== undefined && kept.until > Date.now() ? kept : undefined
}

const sweep = (self: StoreMemory): void => {
  if (++self.writes % SWEEP_EVERY !== 0) return
  const now = self.overBy()
  for (const [key, { until }] of self.texts) if (until <= now) self.texts.delete(key)
  for (const [set, members] of self.sets) {
    for (const [member, until] of members) if (until <= now) members.delete(member)
    if (members.size === 0) self.sets.delete(set)
  }
}

const keepText = (self: StoreMemory, key: string, text: string | undefined, until: number): true => {
  self.texts.set(key, { text, until })
  sweep(self)
  return true
}

const untilOf = (lifetime: number): number => Date.now() + wholeLifetime(lifetime)

const endKey = (self: StoreMemory, key: string, until: number): void => {
  const known = liveText(self, key)
  // an end is prolonged, never shortened
  const before = known !== undefined && known.text === undefined ? known.until : 0
  keepText(self, key, undefined, Math.max(before, until))
}

const addMember = (self: StoreMemory, set: string, member: string, until: number): void => {
  const members = self.sets.get(set) ?? new Map<string, number>()
  self.sets.set(set, members.set(member, Math.max(members.get(member) ?? 0, until)))
  sweep(self)
}

/**
 * A store that keeps everything in memory, and drops expired texts and members. It is for development and tests: everything is lost when the
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
  warnOfWorkers('memoryStore() is the memory of one process', 'use redisStore or another store of all workers')
  const self: StoreMemory = { texts: new Map(), sets: new Map(), overBy: steadyClock(), writes: 0 }
  return {
    get: (keys) => keys.map((key) => liveText(self, key)?.text),
    insert: async (key, text, lifetime) =>
      liveText(self, key) === undefined && keepText(self, key, text, untilOf(lifetime)),
    update: async (key, text, lifetime, was) => {
      const known = liveText(self, key)?.text
      return known !== undefined && (was ?? known) === known && keepText(self, key, text, untilOf(lifetime))
    },
    end: async (key, lifetime) => endKey(self, key, untilOf(lifetime)),
    add: async (set, member, lifetime) => addMember(self, set, member, untilOf(lifetime)),
    members: async (set) =>
      [...(self.sets.get(set) ?? [])].flatMap(([member, until]) => (until > Date.now() ? [member] : [])),
  }
}

declareFactory('memoryStore', memoryStore)
