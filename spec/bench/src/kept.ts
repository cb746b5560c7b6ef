/**
 * What an idle process keeps: the memory of a session and of an API key of so many in memory, beside a Map by hand.
 * `node --expose-gc dist/kept.js <name> <count>` prints the bytes of one.
 */
import { execFileSync } from 'node:child_process'
import { hash, randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { apiKeys } from '../../../dist/keys.js'
import { memoryStore } from '../../../dist/stores.js'
import type { Section } from './Section.js'
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

const heap = async (): Promise<number> => {
  for (let at = 0; at < 3; at++) {
    globalThis.gc?.()
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return process.memoryUsage().heapUsed
}

const bytesOf = async (name: Name, count: number): Promise<number> => {
  if (globalThis.gc === undefined) throw new Error('start it with --expose-gc')
  // what is compiled and filled once
  await keepers[name](100)
  const before = await heap()
  const kept = await keepers[name](count)
  const after = await heap()
  if (Object(kept) !== kept) throw new Error('nothing is kept')
  return (after - before) / count
}

const self = fileURLToPath(import.meta.url)

/** So many of each, in several processes. */
export const kept = (count: number, rounds: number): Section => {
  const inProcess = (name: Name) =>
    Number(execFileSync(process.execPath, ['--expose-gc', self, name, String(count)], { encoding: 'utf8' }))
  return {
    title: `${count.toLocaleString('en')} sessions and API keys that an idle process keeps in memory`,
    rows: names.map((name) => ({
      name: `${name}: of each`,
      value: medianOf(Array.from({ length: rounds }, () => inProcess(name))),
      unit: 'bytes',
    })),
  }
}

if (process.argv[1] === self) {
  const name = names.find((one) => one === process.argv[2])
  if (name === undefined) throw new Error(`nothing is called ${process.argv[2]}`)
  console.log(await bytesOf(name, Number(process.argv[3])))
  process.exit(0)
}
