/** What an idle process keeps: the memory of a session and of an API key of so many in memory, beside a Map by hand. */
import { hash, randomBytes } from 'node:crypto'
import { apiKeys } from '../../../dist/keys.js'
import { memoryStore } from '../../../dist/stores.js'
import { apart, oneByOne } from './inProcess.js'
import { collecting, heapOf } from './memory.js'
import type { Row, Section } from './Section.js'
import { byHand, inMemory, ours, visitorOf } from './sessionApps.js'
import { medianOf } from './statistics.js'

/** Each keeps so many, and returns what holds them. */
const keepers = {
  'a session, by hand': async (count: number) => {
    const listener = byHand(inMemory())
    for (let at = 0; at < count; at++) await visitorOf(listener)
    return listener
  },
  'a session, ours': async (count: number) => {
    const listener = ours(memoryStore())
    for (let at = 0; at < count; at++) await visitorOf(listener)
    return listener
  },
  'an API key, by hand': async (count: number) => {
    const kept = new Map<string, string>()
    for (let at = 0; at < count; at++) {
      const key = { id: randomBytes(12).toString('base64url'), owner: `owner-${at}`, scopes: ['read'], createdAt: at }
      kept.set(hash('sha256', randomBytes(32).toString('base64url')), JSON.stringify(key))
    }
    return kept
  },
  'an API key, ours': async (count: number) => {
    const keys = apiKeys({ prefix: 'acme', store: memoryStore() })
    for (let at = 0; at < count; at++) await keys.issue({ owner: `owner-${at}`, name: 'bench', scopes: ['read'] })
    return keys
  },
} satisfies Readonly<Record<string, (count: number) => Promise<object>>>
type Name = keyof typeof keepers
// Safe: these are its keys
const names = Object.keys(keepers) as ReadonlyArray<Name>

const bytesOf = apart(
  import.meta.url,
  async (name: Name, count: number) => {
    // what is compiled and filled once
    await keepers[name](100)
    return (await heapOf(() => keepers[name](count))) / count
  },
  collecting,
)

/** So many of each, in several processes. */
export const kept = async (count: number, rounds: number): Promise<Section> => {
  const rows: Row[] = []
  for (const name of names) {
    const value = medianOf(await oneByOne(rounds, () => bytesOf(name, count)))
    rows.push({ name: `${name}: of each`, value, unit: 'bytes' })
  }
  return { title: `${count.toLocaleString('en')} sessions and API keys that an idle process keeps in memory`, rows }
}
