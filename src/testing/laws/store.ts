/** The laws of a store. They write to it, under random keys. */
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { inspect, isDeepStrictEqual } from 'node:util'
import fc, { type Arbitrary, type Scheduler } from 'fast-check'
import * as is from '../../core/checks.js'
import { checkOptions } from '../../core/options.js'
import { storeLike, type Store } from '../../stores/Store.js'
import { wrongHistory, type Called, type StoreCall } from './history.js'
import { lawsOf, type Laws } from './Law.js'

/** Makes an empty store, or a promise of it. It is called for each law. */
export type MakeStore = () => Store | Promise<Store>

/** Further options of the laws of a store. */
export interface StoreLawOptions {
  /**
   * Lets milliseconds pass for the store, if its clock can be set. The laws about lifetimes await it. By default they wait, and ask again
   * for up to 5 seconds, so a busy machine changes nothing.
   */
  readonly elapse?: ((ms: number) => unknown) | undefined
  /** How many random sequences and interleavings are tried. Default 40 of each. */
  readonly runs?: number | undefined
}

/** A law, and a trial of it. A violation is the first result that differs from the expected result. */
interface StoreLaw {
  readonly name: string
  readonly fix: string
  readonly hold: (store: Store, options: StoreLawOptions & { readonly runs: number }) => Promise<void>
}

class UnexpectedResult extends Error {}

const expect = (done: string, actual: unknown, expected: unknown): void => {
  if (isDeepStrictEqual(actual, expected)) return
  throw new UnexpectedResult(
    `${done}: ${inspect(actual, { depth: 5 })}\nit must be: ${inspect(expected, { depth: 5 })}`,
  )
}

const LONG = 120_000
// Only for strings that the law reads after they expired: a busy store can take longer to read them
const SHORT = 40
const LONGEST_WAIT = 5_000

const strange = `Ünïcødé 日本語 🔑 '"\\%_*?:{}$1; drop table auth_texts; --\r\n\t`

const lawKey = (): string => `koa-with-auth/law/${randomUUID()}`

const keptText = async (store: Store, key: string): Promise<string | undefined> => (await store.get([key]))[0]

const sortedMembers = async (store: Store, set: string): Promise<ReadonlyArray<string>> =>
  [...(await store.members(set))].sort()

const waitUntil = async <A>(
  elapse: StoreLawOptions['elapse'],
  ask: () => Promise<A>,
  isIt: (answer: A) => boolean,
): Promise<A> => {
  await elapse?.(SHORT + 5)
  for (let waited = 0; ; waited += SHORT) {
    const answer = await ask()
    if (isIt(answer) || waited >= LONGEST_WAIT || elapse !== undefined) return answer
    await pause(SHORT)
  }
}

const waitUntilOver = (elapse: StoreLawOptions['elapse'], store: Store, ...keys: ReadonlyArray<string>) =>
  waitUntil(
    elapse,
    async () => store.get(keys),
    (texts) => texts.every((text) => text === undefined),
  )

/** The number of `true` among the results of so many calls at once. */
const winners = async (calls: number, call: (at: number) => Promise<boolean>): Promise<number> =>
  (await Promise.all(Array.from({ length: calls }, (_, at) => call(at)))).filter((one) => one === true).length

const storeLaws: ReadonlyArray<StoreLaw> = [
  {
    name: 'get: the texts as they were written, in the order of the keys',
    fix: 'return an array with a string or undefined for each key; the rows of a database come in any order, so look each key up in them',
    hold: async (store) => {
      const texts = ['', '0', 'null', ' ', 'a ', strange, JSON.stringify({ a: [1, '"'] }), 'x'.repeat(100_000)]
      const keys = texts.map(lawKey)
      for (const [at, key] of keys.entries()) {
        expect('insert a new key', await store.insert(key, texts[at] ?? '', LONG), true)
        expect('get it', await store.get([key]), [texts[at]])
      }
      const [unknown, reversed] = [lawKey(), keys.toReversed()]
      expect('get many keys', await store.get([...reversed, unknown]), [...texts.toReversed(), undefined])
      expect('get a key twice', await store.get([keys[3]!, unknown, keys[3]!]), [' ', undefined, ' '])
      expect('get no key', await store.get([]), [])
    },
  },
  {
    name: 'apart: keys, texts and members that differ in any character are different, and so are a key and a set',
    fix: 'compare strings byte by byte: a collation may ignore case, accents and blanks at the end; and keep sets apart from texts',
    hold: async (store) => {
      const key = lawKey()
      const near = [`${key} `, ` ${key}`, `${key}\n`, `${key}/`, key.slice(0, -1), `${key}a`, `${key}A`, `${key}ä`]
      const more = ['e\u0301', 'é', '%', '*', '_', ':a'].map((end) => `${key}${end}`)
      const long = `${'x'.repeat(3000)}${key}`
      const keys = [key, ...near, ...more, long, `${long}b`]
      for (const one of keys) expect(`insert ${JSON.stringify(one)}`, await store.insert(one, one, LONG), true)
      expect('get all of them', await store.get(keys), keys)
      const members = keys.filter((one) => one.length < 1000)
      for (const one of members) await store.add(key, one, LONG)
      expect('members', await sortedMembers(store, key), members.toSorted())
      expect('members of a set that is near', await sortedMembers(store, `${key} `), [])
      for (const was of [`${key} `, key.toUpperCase(), '']) {
        expect(`update where the text is ${JSON.stringify(was)}`, await store.update(key, 'no', LONG, was), false)
      }
      expect('get them again', await store.get(keys), keys)
    },
  },
  {
    name: 'insert: only a key that is not known',
    fix: 'insert if absent in one step: insert ... on conflict do nothing, or SET NX',
    hold: async (store) => {
      const [key, ended, unknown] = [lawKey(), lawKey(), lawKey()]
      expect('insert a new key', await store.insert(key, 'first', LONG), true)
      expect('insert it again', await store.insert(key, 'second', LONG), false)
      expect('insert the same text again', await store.insert(key, 'first', LONG), false)
      await store.insert(ended, 'first', LONG)
      await store.end(ended, LONG)
      await store.end(unknown, LONG)
      for (const one of [ended, unknown])
        expect('insert a key that was ended', await store.insert(one, 'second', LONG), false)
      expect('get them', await store.get([key, ended, unknown]), ['first', undefined, undefined])
    },
  },
  {
    name: 'update: only a live key, and with `was` only if its text is still that',
    fix: 'update ... where the key is live and the text is `was`, in one step; no upsert',
    hold: async (store) => {
      const [key, unknown] = [lawKey(), lawKey()]
      expect('update an unknown key', await store.update(unknown, 'a', LONG), false)
      expect('update an unknown key with was', await store.update(unknown, 'a', LONG, ''), false)
      expect('get it', await keptText(store, unknown), undefined)
      await store.insert(key, 'a', LONG)
      expect('update', await store.update(key, 'b', LONG), true)
      expect('update to the same text and lifetime', await store.update(key, 'b', LONG), true)
      expect('update with the text before it', await store.update(key, 'c', LONG, 'a'), false)
      expect('get it', await keptText(store, key), 'b')
      expect('update with its text', await store.update(key, 'c', LONG, 'b'), true)
      expect('update with the same text', await store.update(key, 'c', LONG, 'c'), true)
      expect('get it', await keptText(store, key), 'c')
    },
  },
  {
    name: 'end: nothing brings a key back that was ended, known or not',
    fix: 'keep that a key was ended; insert and update leave it as it is',
    hold: async (store) => {
      const [key, unknown] = [lawKey(), lawKey()]
      await store.insert(key, 'a', LONG)
      for (const one of [key, unknown]) {
        await store.end(one, LONG)
        expect('insert', await store.insert(one, 'b', LONG), false)
        expect('update', await store.update(one, 'b', LONG), false)
        expect('update with was', await store.update(one, 'b', LONG, 'a'), false)
        await store.end(one, LONG)
        expect('get', await keptText(store, one), undefined)
      }
      await store.add(key, 'm', LONG)
      expect('members of a set that has the name of an ended key', await sortedMembers(store, key), ['m'])
    },
  },
  {
    name: 'sets: each member once, in any order',
    fix: 'the key of a member is the set and the member',
    hold: async (store) => {
      const [set, other] = [lawKey(), lawKey()]
      expect('members of an unknown set', await sortedMembers(store, set), [])
      for (const member of ['b', 'a', strange, 'b', '']) await store.add(set, member, LONG)
      await store.add(other, 'c', LONG)
      expect('members', await sortedMembers(store, set), ['', 'a', 'b', strange].sort())
      const many = Array.from({ length: 20 }, (_, at) => `m${at}`).sort()
      const crowd = lawKey()
      await Promise.all(many.map((member) => store.add(crowd, member, LONG)))
      expect('members that were added at once', await sortedMembers(store, crowd), many)
      expect('members of the other', await sortedMembers(store, other), ['c'])
      expect('get the set as a key', await keptText(store, set), undefined)
    },
  },
  {
    name: 'lifetimes: texts, ends and members last as long as they should, and not longer',
    fix: 'keep until when each is good, in milliseconds, and compare it with the time; an expired key counts as unknown',
    hold: async (store, { elapse }) => {
      const [short, shorter, longer, ended, set] = [lawKey(), lawKey(), lawKey(), lawKey(), lawKey()]
      const [inserted, updated, endedForEver] = [lawKey(), lawKey(), lawKey()]
      await store.insert(inserted, 'a', Infinity)
      await store.insert(updated, 'b', LONG)
      await store.update(updated, 'a', Infinity)
      await store.end(endedForEver, Infinity)
      await store.insert(longer, 'a', LONG)
      await store.update(longer, 'b', 2 * LONG)
      await store.insert(shorter, 'a', LONG)
      await store.insert(short, 'a', SHORT)
      await store.update(shorter, 'b', SHORT)
      await store.end(ended, SHORT)
      await store.add(set, 'long', LONG)
      await store.add(set, 'short', SHORT)
      await store.add(set, 'forever', Infinity)
      const gone = await waitUntilOver(elapse, store, short, shorter)
      expect('get texts whose lifetime has ended', gone, [undefined, undefined])
      const members = await waitUntil(
        elapse,
        () => sortedMembers(store, set),
        (all) => all.length <= 2,
      )
      expect('members, one of which has expired', members, ['forever', 'long'])
      // seconds that were taken for milliseconds would be over by now
      await (elapse ?? pause)(LONG / 500)
      expect('update an expired text', await store.update(shorter, 'c', LONG), false)
      expect('insert over an expired text', await store.insert(shorter, 'c', LONG), true)
      const isAgain = await waitUntil(
        elapse,
        () => store.insert(ended, 'd', LONG),
        (one) => one,
      )
      expect('insert a key whose end has expired', isAgain, true)
      expect('insert a key that was ended forever', await store.insert(endedForEver, 'e', LONG), false)
      const lasting = await store.get([longer, shorter, ended, inserted, updated])
      expect('get texts that last', lasting, ['b', 'c', 'd', 'a', 'a'])
    },
  },
  {
    name: 'prolonged: a second end and a second add never shorten',
    fix: 'keep the later one of both times',
    hold: async (store, { elapse }) => {
      const [ended, prolonged, set, witness] = [lawKey(), lawKey(), lawKey(), lawKey()]
      await store.end(ended, LONG)
      await store.add(set, 'a', LONG)
      await store.end(prolonged, SHORT)
      await store.end(prolonged, LONG)
      await store.add(set, 'b', SHORT)
      await store.add(set, 'b', LONG)
      await store.end(ended, SHORT)
      await store.add(set, 'a', SHORT)
      await store.insert(witness, 'a', SHORT)
      await waitUntilOver(elapse, store, witness)
      expect('insert an ended key', await store.insert(ended, 'x', LONG), false)
      expect('insert a key whose end was prolonged', await store.insert(prolonged, 'x', LONG), false)
      expect('members', await sortedMembers(store, set), ['a', 'b'])
    },
  },
  {
    name: 'one winner: of twenty callers at once, one inserts, and one updates the same text',
    fix: 'each method is one statement or one script; nothing is read first',
    hold: async (store, { elapse }) => {
      for (let round = 0; round < 5; round += 1) {
        const key = lawKey()
        expect('how many of 20 insert', await winners(20, (at) => store.insert(key, `${at}`, LONG)), 1)
        const text = await keptText(store, key)
        expect('how many of 20 update', await winners(20, (at) => store.update(key, `new ${at}`, LONG, text)), 1)
      }
      const over = lawKey()
      await store.insert(over, 'a', SHORT)
      await waitUntilOver(elapse, store, over)
      expect('how many of 20 insert over expired text', await winners(20, (at) => store.insert(over, `${at}`, LONG)), 1)
    },
  },
  {
    name: 'no way back: an ended key stays ended, whatever happens at the same time',
    fix: 'update and insert decide about the ended key in the statement that writes',
    hold: async (store) => {
      for (let round = 0; round < 5; round += 1) {
        const [known, unknown] = [lawKey(), lawKey()]
        await store.insert(known, 'a', LONG)
        const writes = (key: string) => [
          store.update(key, 'b', LONG),
          store.insert(key, 'c', LONG),
          store.update(key, 'd', LONG, 'a'),
        ]
        await Promise.all([known, unknown].flatMap((key) => [...writes(key), store.end(key, LONG), ...writes(key)]))
        expect('get both', await store.get([known, unknown]), [undefined, undefined])
      }
    },
  },
  {
    name: 'one after another: random calls have the results of a list in memory',
    fix: 'compare the calls with the documentation of Store',
    hold: (store, { runs }) =>
      checkProperty(
        fc.asyncProperty(fc.array(calls, { minLength: 1, maxLength: 12 }), async (all) => {
          const run = recordCalls(store)
          for (const one of all) await run.call(one)
          run.judge()
        }),
        runs,
      ),
  },
  {
    name: 'at the same time: calls that overlap have the results of some order of them',
    fix: 'each method is one atomic change or one query',
    hold: (store, { runs }) =>
      checkProperty(
        fc.asyncProperty(fc.scheduler(), fc.array(calls, { minLength: 2, maxLength: 7 }), async (scheduler, all) => {
          const run = recordCalls(store)
          await Promise.all([overlapping(scheduler, run.call, all), scheduler.waitAll()])
          run.judge()
        }),
        runs,
      ),
  },
]

// Few keys and texts, so that calls meet
const keys = fc.constantFrom('a', 'b')
const texts = fc.constantFrom('1', '2')

const calls: Arbitrary<StoreCall> = fc.oneof(
  fc.record({ name: fc.constantFrom('get' as const, 'end' as const), key: keys }),
  fc.record({ name: fc.constant('insert' as const), key: keys, text: texts }),
  fc.record({ name: fc.constant('update' as const), key: keys, text: texts }),
  fc.record({ name: fc.constant('update' as const), key: keys, text: texts, was: texts }),
  fc.record({ name: fc.constant('add' as const), key: keys, member: texts }),
  fc.record({ name: fc.constant('members' as const), key: keys }),
)

const recordCalls = (store: Store) => {
  const begin = `${lawKey()}/`
  const history: Called[] = []
  let moment = 0
  return {
    call: async (call: StoreCall): Promise<void> => {
      const begun = ++moment
      const result = await callStore(store, begin + call.key, call)
      history.push({ call, result, begun, ended: ++moment })
    },
    judge: (): void => {
      const moments = 'calls, with the moments of their beginning and end'
      expect(moments, wrongHistory(history) ?? inSomeOrder, inSomeOrder)
    },
  }
}

const callStore = async (store: Store, key: string, call: StoreCall): Promise<unknown> => {
  switch (call.name) {
    case 'get':
      return keptText(store, key)
    case 'end':
      return void (await store.end(key, LONG))
    case 'insert':
      return store.insert(key, call.text, LONG)
    case 'update':
      return store.update(key, call.text, LONG, call.was)
    case 'add':
      return void (await store.add(key, call.member, LONG))
    case 'members':
      return sortedMembers(store, key)
  }
}

// The scheduler decides when each call begins, and in which order waiting callers go on
const overlapping = (scheduler: Scheduler, call: (one: StoreCall) => Promise<void>, all: ReadonlyArray<StoreCall>) =>
  Promise.all(all.map((one) => scheduler.schedule(Promise.resolve(), one.name).then(() => call(one))))

const inSomeOrder = 'the results of some order of them'

const checkProperty = async <T>(property: fc.IAsyncProperty<T>, runs: number): Promise<void> => {
  const { failed, errorInstance } = await fc.check(property, { numRuns: runs })
  if (failed) throw errorInstance
}

export const storeLawsOf = (make: MakeStore, options: StoreLawOptions = {}): Laws => {
  const caller = 'laws.store(make)'
  is.that((value) => typeof value === 'function', 'must be a function that makes a store, such as memoryStore')(
    caller,
    make,
  )
  const { elapse, runs = 40 } = checkOptions(`${caller}, options`, options, {
    elapse: is.maybe(is.hook(1)),
    runs: is.maybe(is.positive),
  })
  const laws = storeLaws.map(({ name, fix, hold }) => ({
    name,
    find: async () => {
      try {
        const store = await make()
        storeLike(caller, store)
        return void (await hold(store, { elapse, runs }))
      } catch (error) {
        return {
          counterexample: error instanceof UnexpectedResult ? error.message : `it throws: ${inspect(error)}`,
          fix,
        }
      }
    },
  }))
  return lawsOf('a store', laws, make)
}
