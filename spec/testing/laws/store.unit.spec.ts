/** The laws of a store find each store that is wrong, and say which law it breaks. */
import { memoryStore, type Store } from 'koa-with-auth/stores'
import { laws } from 'koa-with-auth/testing/laws'
import { describe, expect, it } from 'vitest'
import { violationsOf } from '../../support/models/brokenLaws.js'
import { stoppedClock } from '../../support/runs/clock.js'

/** A right store, with the methods that are wrong. */
type Wrong = (right: Store) => Partial<{ readonly [K in keyof Store]: Store[K] }>

const FOREVER = Infinity

const breachesOf = async (store: () => Store): Promise<ReadonlyArray<string>> => {
  const clock = stoppedClock()
  const violations = await violationsOf(laws.store(store, { elapse: clock.move }).check())
  return violations.map(({ law }) => law.split(':')[0] ?? '')
}

const textOf = async (store: Store, key: string) => (await store.get([key]))[0]

/** Keys and members as another store would read them. */
const renamed =
  (rename: (text: string) => string): Wrong =>
  (right) => ({
    get: (keys) => right.get(keys.map(rename)),
    insert: (key, ...rest) => right.insert(rename(key), ...rest),
    update: (key, ...rest) => right.update(rename(key), ...rest),
    end: (key, lifetime) => right.end(rename(key), lifetime),
    add: (set, member, lifetime) => right.add(rename(set), member, lifetime),
    members: (set) => right.members(rename(set)),
  })

/** Lifetimes as another store would keep them. */
const lasting =
  (change: (lifetime: number) => number): Wrong =>
  (right) => ({
    insert: (key, text, lifetime) => right.insert(key, text, change(lifetime)),
    update: (key, text, lifetime, was) => right.update(key, text, change(lifetime), was),
    end: (key, lifetime) => right.end(key, change(lifetime)),
    add: (set, member, lifetime) => right.add(set, member, change(lifetime)),
  })

const forever = (ms: number): number => (ms === FOREVER ? 1 : ms)
const upserting: Wrong = (right) => ({
  update: async (...args) => (await right.update(...args)) || right.insert(args[0], args[1], args[2]),
})
const replacing: Wrong = (right) => ({
  insert: async (...args) => (await right.update(...args)) || right.insert(...args),
})

const wrong: Readonly<Record<string, readonly [breaks: string, wrong: Wrong]>> = {
  'update inserts what is not there, as `set` of most session stores': ['update', upserting],
  'end only deletes: a request that is under way brings the session back': [
    'end',
    (right) => {
      let turn = 0
      const turns = new Map<string, number>()
      const now = (key: string) => `${key}#${turns.get(key) ?? 0}`
      return {
        get: (keys) => right.get(keys.map(now)),
        insert: (key, ...rest) => right.insert(now(key), ...rest),
        update: (key, ...rest) => right.update(now(key), ...rest),
        end: async (key) => void turns.set(key, ++turn),
      }
    },
  ],
  'end of an unknown key does nothing': [
    'end',
    (right) => ({
      end: async (key, lifetime) => {
        if ((await textOf(right, key)) !== undefined) await right.end(key, lifetime)
      },
    }),
  ],
  'insert replaces': ['insert', replacing],
  'insert looks first, then writes': [
    'one winner',
    (right) => ({
      insert: async (key, text, lifetime) => {
        if ((await textOf(right, key)) !== undefined) return false
        await Promise.resolve()
        return (await right.insert(key, text, lifetime)) || right.update(key, text, lifetime)
      },
    }),
  ],
  'update does not look at `was`': ['update', (right) => ({ update: (key, text, ms) => right.update(key, text, ms) })],
  'update looks at `was`, then writes': [
    'one winner',
    (right) => ({
      update: async (key, text, lifetime, was) => {
        if (was !== undefined && (await textOf(right, key)) !== was) return false
        return right.update(key, text, lifetime)
      },
    }),
  ],
  'update with `was` of what is not there inserts it': [
    'update',
    (right) => ({
      update: async (key, text, lifetime, was) =>
        (await right.update(key, text, lifetime, was)) || (was === '' && right.insert(key, text, lifetime)),
    }),
  ],
  'update reports a change only if the text is another one': [
    'update',
    (right) => ({
      update: async (key, text, lifetime, was) => {
        const before = await textOf(right, key)
        return (await right.update(key, text, lifetime, was)) && before !== text
      },
    }),
  ],
  'get reads a replica that is one write behind': [
    'one after another',
    (right) => {
      const behind = new Map<string, string | undefined>()
      const note = async (key: string) => void behind.set(key, await textOf(right, key))
      return {
        get: (keys) => keys.map((key) => behind.get(key)),
        insert: (key, ...rest) => note(key).then(() => right.insert(key, ...rest)),
        update: (key, ...rest) => note(key).then(() => right.update(key, ...rest)),
      }
    },
  ],
  'nothing expires': ['lifetimes', lasting(() => FOREVER)],
  'lifetimes are taken for seconds': ['lifetimes', lasting((ms) => ms * 1000)],
  'lifetimes are kept in seconds, and taken for milliseconds': ['lifetimes', lasting((ms) => Math.max(1, ms / 1000))],
  'Infinity is no time at all': ['lifetimes', lasting(forever)],
  'Infinity is no time at all where a text is updated': [
    'lifetimes',
    (right) => ({ update: (key, text, ms, was) => right.update(key, text, forever(ms), was) }),
  ],
  'Infinity is no time at all where a key is ended': [
    'lifetimes',
    (right) => ({ end: (key, ms) => right.end(key, forever(ms)) }),
  ],
  'update keeps the lifetime of before': [
    'lifetimes',
    (right) => {
      const lifetimes = new Map<string, number>()
      return {
        insert: (key, text, lifetime) => {
          lifetimes.set(key, lifetimes.get(key) ?? lifetime)
          return right.insert(key, text, lifetime)
        },
        update: (key, text, lifetime, was) => right.update(key, text, lifetimes.get(key) ?? lifetime, was),
      }
    },
  ],
  'update forgets the lifetime, as SET without PX does': [
    'lifetimes',
    (right) => ({ update: (key, text, _lifetime, was) => right.update(key, text, FOREVER, was) }),
  ],
  'members never expire': ['lifetimes', (right) => ({ add: (set, member) => right.add(set, member, FOREVER) })],
  'ends never expire': ['lifetimes', (right) => ({ end: (key) => right.end(key, FOREVER) })],
  'get leaves out what is not there': [
    'get',
    (right) => ({ get: async (keys) => (await right.get(keys)).filter((text) => text !== undefined) }),
  ],
  'get answers in the order of a database': ['get', (right) => ({ get: async (keys) => right.get([...keys].sort()) })],
  'get answers null': [
    'get',
    // Safe: that it is wrong is what is tested
    (right) => ({ get: async (keys) => (await right.get(keys)).map((text) => text ?? null) as never }),
  ],
  'texts are cut after 255 characters': [
    'get',
    (right) => ({ insert: (key, text, lifetime) => right.insert(key, text.slice(0, 255), lifetime) }),
  ],
  'keys are compared without case': ['apart', renamed((key) => key.toLowerCase())],
  'keys are compared without blanks at their end': ['apart', renamed((key) => key.replace(/ +$/, ''))],
  'keys are compared without accents': ['apart', renamed((key) => key.normalize('NFD').replace(/\p{M}/gu, ''))],
  'keys are cut after 255 characters': ['apart', renamed((key) => key.slice(0, 255))],
  'sets are keys': [
    'sets',
    (right) => ({
      add: async (set, member, lifetime) => {
        await right.add(set, member, lifetime)
        await right.insert(set, member, lifetime)
      },
    }),
  ],
  'sets are lists': [
    'sets',
    (right) => {
      const all: string[] = []
      return {
        add: async (set, member, lifetime) => {
          all.push(`${set}\n${member}`)
          await right.add(set, member, lifetime)
        },
        members: async (set) => all.flatMap((one) => (one.startsWith(`${set}\n`) ? [one.slice(set.length + 1)] : [])),
      }
    },
  ],
  'a set is one text, which add reads and writes': [
    'sets',
    (right) => {
      const sets = new Map<string, ReadonlyArray<string>>()
      return {
        add: async (set, member, lifetime) => {
          const before = sets.get(set) ?? []
          await right.add(set, member, lifetime)
          sets.set(set, [...new Set([...before, member])])
        },
        members: async (set) => {
          const live = await right.members(set)
          return live.filter((member) => sets.get(set)?.includes(member))
        },
      }
    },
  ],
  'a second end shortens': [
    'prolonged',
    (right) => {
      const ended = new Map<string, number>()
      const isEnded = (key: string) => (ended.get(key) ?? 0) > Date.now()
      return {
        get: async (keys) => (await right.get(keys)).map((text, at) => (isEnded(keys[at] ?? '') ? undefined : text)),
        insert: async (key, ...rest) => !isEnded(key) && right.insert(key, ...rest),
        update: async (key, ...rest) => !isEnded(key) && right.update(key, ...rest),
        end: async (key, lifetime) => {
          ended.set(key, Date.now() + lifetime)
        },
      }
    },
  ],
  'a second add shortens': [
    'prolonged',
    (right) => {
      const untils = new Map<string, number>()
      return {
        add: async (set, member, lifetime) => {
          untils.set(`${set} ${member}`, Date.now() + lifetime)
          await right.add(set, member, lifetime)
        },
        members: async (set) =>
          (await right.members(set)).filter((member) => (untils.get(`${set} ${member}`) ?? 0) > Date.now()),
      }
    },
  ],
  'update looks whether the key is live, then writes': [
    'no way back',
    (right) => {
      const back = new Map<string, string>()
      return {
        get: async (keys) => (await right.get(keys)).map((text, at) => back.get(keys[at] ?? '') ?? text),
        update: async (key, text, lifetime, was) => {
          if ((await textOf(right, key)) === undefined) return false
          if (await right.update(key, text, lifetime, was)) return true
          if (was !== undefined) return false
          back.set(key, text)
          return true
        },
      }
    },
  ],
}

describe('laws.store', () => {
  it('hold for the store in memory', async () => {
    expect(await breachesOf(memoryStore)).toStrictEqual([])
  })

  it.each(Object.entries(wrong))('find that %s', async (_name, [law, make]) => {
    const broken = await breachesOf(() => {
      const right = memoryStore()
      return { ...right, ...make(right) }
    })
    expect(broken).toContain(law)
  })

  it('report a store that fails, with its error', async () => {
    const broken = await breachesOf(() => ({ ...memoryStore(), end: () => Promise.reject(new Error('no end')) }))
    expect(broken).toContain('end')
  })

  it.each([undefined, memoryStore(), 7])('take a function that makes a store, not %s', (make) => {
    // Safe: that it is wrong is what is tested
    expect(() => laws.store(make as never)).toThrow(
      'laws.store(make) must be a function that makes a store, such as memoryStore',
    )
  })

  it('name the method that a store lacks', async () => {
    // Safe: that it is wrong is what is tested
    const [first] = laws.store(() => ({ ...memoryStore(), add: undefined }) as never).tests
    await expect(first?.check()).rejects.toThrow('laws.store(make) has no method add')
  })
})
