/** The laws of one-time ids. They write to the store, with random ids. */
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Spent } from '../../core/Spent.js'
import * as is from '../../core/checks.js'
import { checkOptions } from '../../core/options.js'
import { storeLaws, type Laws, type StoreLaw } from './Law.js'

const LONG = 60_000
const SHORT = 50
// So long a busy store may need to forget an id. It is shorter than SHORT would be in seconds.
const PATIENCE = 30_000

/** Spends a new id for so long that the id outlives the call: a busy store can take longer than a short lifetime. */
const spendShortly = async (
  store: Spent,
  lifetime: number,
): Promise<readonly [id: string, result: boolean, lifetime: number]> => {
  const id = randomUUID()
  const start = performance.now()
  const result = await store.spend(id, lifetime)
  const outlived = performance.now() - start < lifetime
  return result || outlived || lifetime > LONG ? [id, result, lifetime] : spendShortly(store, 4 * lifetime)
}

type Elapse = (ms: number) => unknown

// In real time it asks until the id is forgotten
const spendLater = async (store: Spent, id: string, elapse: Elapse | undefined): Promise<boolean> => {
  if (elapse !== undefined) return store.spend(id, LONG)
  for (let waited = 0; waited < PATIENCE; waited += SHORT) {
    if (await store.spend(id, LONG)) return true
    await pause(SHORT)
  }
  return false
}

const lawsWith = (elapse: Elapse | undefined): ReadonlyArray<StoreLaw<Spent>> => [
  {
    name: 'once: of twenty callers at the same time, one gets true',
    fix: 'insert if absent in one step: insert ... on conflict do nothing, or SET NX PX',
    hold: async ({ store, expect }) => {
      for (let round = 0; round < 5; round += 1) {
        const id = randomUUID()
        const results = await Promise.all(Array.from({ length: 20 }, () => store.spend(id, LONG)))
        expect('how many of 20 get true', results.filter((one) => one === true).length, 1)
        expect('how many of 20 get false', results.filter((one) => one === false).length, 19)
        expect('spend it again', await store.spend(id, LONG), false)
      }
    },
  },
  {
    name: 'lasts as long as its lifetime, in milliseconds',
    fix: 'keep the id for the lifetime, and not longer',
    hold: async ({ store, expect }) => {
      const long = randomUUID()
      expect('spend an id', await store.spend(long, LONG), true)
      const [short, result, lifetime] = await spendShortly(store, SHORT)
      expect('spend another one for a short time', result, true)
      await (elapse ?? pause)(lifetime + 5 * SHORT)
      expect('spend the first again', await store.spend(long, LONG), false)
      expect('spend the other again, after its lifetime', await spendLater(store, short, elapse), true)
      expect('spend it once more', await store.spend(short, LONG), false)
    },
  },
  {
    name: 'apart: ids that differ in any character are different',
    fix: 'compare ids as they are, or by a digest',
    hold: async ({ store, expect }) => {
      const id = `a${randomUUID()}`
      const long = 'x'.repeat(4000)
      const near = [id.toUpperCase(), `${id} `, ` ${id}`, `${id}.0`, `${id}\n`, id.slice(1)]
      const behind = [long, `${long}b`, 'é', 'e\u0301', '__proto__', '%', '*'].map((start) => `${start}${id}`)
      for (const one of [id, ...near, ...behind]) {
        expect(`spend ${JSON.stringify(one)}`, await store.spend(one, LONG), true)
      }
    },
  },
]

const releasingWith = (elapse: Elapse | undefined): StoreLaw<Spent> => ({
  name: 'release: a released id can be spent again, once, at once or after a time',
  fix: 'forget the id, or keep it for the time that is given, and forget no other',
  hold: async ({ store, expect }) => {
    const [id, other] = [randomUUID(), randomUUID()]
    for (const one of [id, other]) expect('spend an id', await store.spend(one, LONG), true)
    await store.release?.(id)
    // a clock that is set does not move meanwhile, and a store may keep the id for a millisecond
    await elapse?.(2)
    expect('spend it again, after its release', await store.spend(id, LONG), true)
    expect('spend it once more', await store.spend(id, LONG), false)
    expect('spend another one again', await store.spend(other, LONG), false)
    await store.release?.(randomUUID())
    await store.release?.(other, SHORT)
    await elapse?.(5 * SHORT)
    expect('spend the other again, after its time', await spendLater(store, other, elapse), true)
  },
})

/** What the laws of one-time ids need besides. */
export interface SpentLawOptions {
  /** The same over a store that is down. With it, there is a law about outages. */
  readonly down?: Spent | undefined
  /**
   * Lets milliseconds pass for the store, if its clock can be set. The laws about times await it. By default they wait, and
   * ask again for up to 30 seconds, so a busy machine changes nothing.
   */
  readonly elapse?: Elapse | undefined
}

const outage = (down: Spent): StoreLaw<Spent> => ({
  name: 'outage: while the store is down, each call rejects',
  fix: 'pass the failure of the store on, and give a store that does not answer a time limit',
  hold: async ({ expect }) => {
    for (let time = 0; time < 5; time += 1) {
      const result = await down.spend(randomUUID(), LONG).then(
        (answer) => `it resolves to ${String(answer)}`,
        () => 'it rejects',
      )
      expect('spend an id', result, 'it rejects')
    }
  },
})

const spender = is.withMethods(['spend'], 'pass what spentOver(store) returns')

export const spentLaws = (spent: Spent, options: SpentLawOptions = {}): Laws => {
  const caller = 'laws.spent(spent)'
  spender(caller, spent)
  const { down, elapse } = checkOptions(`${caller}, options`, options, {
    down: is.maybe(spender),
    elapse: is.maybe(is.hook(1)),
  })
  const laws = [
    ...lawsWith(elapse),
    ...(spent.release === undefined ? [] : [releasingWith(elapse)]),
    ...(down === undefined ? [] : [outage(down)]),
  ]
  return storeLaws('one-time ids', laws, spent)
}
