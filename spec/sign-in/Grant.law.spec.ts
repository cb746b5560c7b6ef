/** A refresh token is used once, and is never lost, whatever the order of requests, processes, crashes and answers. */
import { setTimeout as wait } from 'node:timers/promises'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { UnavailableError } from '../../src/core/Result.js'
import {
  GrantEnded,
  goodTokens,
  keepGrant,
  tokensAfter,
  type Grants,
  type Tokens,
} from '../../src/sign-in/oidc/Grant.js'
import { memoryStore } from '../../src/stores/memoryStore.js'
import type { Store } from '../../src/stores/Store.js'
import { samples } from '../support/runs/samples.js'
import { steppedStore } from '../support/stores/stores.js'

const keys = ['k'.repeat(32)]
const place = { key: 'koa-with-auth upstream test', lifetime: 86_400_000, user: 'anna' }
const EXPIRED: Tokens = { access: 'a0', until: 0, refresh: 'r0', scope: 'read' }

type Answer = 'ok' | 'down' | 'lost'

/** A provider that rotates, and that ends a grant whose refresh token is presented a second time. */
class Provider {
  current = 'r0'
  isEnded = false
  readonly presented: string[] = []
  /** For each call, how it goes; `lost`: the provider has rotated, and its answer does not arrive. */
  readonly #answers: ReadonlyArray<Answer>
  constructor(answers: ReadonlyArray<Answer> = []) {
    this.#answers = answers
  }
  refresh(refresh: string | undefined): Tokens {
    const answer = this.#answers[this.presented.length] ?? 'ok'
    this.presented.push(String(refresh))
    if (answer === 'down') throw new Error('500')
    if (this.isEnded || refresh !== this.current) {
      this.isEnded = true
      throw new GrantEnded('invalid_grant')
    }
    const n = this.presented.length
    this.current = `r${n}`
    if (answer === 'lost') throw new Error('socket hang up')
    return { access: `a${n}`, until: Date.now() + 3_600_000, refresh: this.current }
  }
}

const never = new Promise<never>(() => {})

interface Process extends Grants {
  isDead: boolean
}

/** A process whose every step is one of the scheduler. It dies at its n-th step: what it asked for may be done, and is not answered. */
const processOf = (s: fc.Scheduler, store: Store, provider: Provider, diesAt = Infinity): Process => {
  let steps = 0
  const step = async <A>(name: string, run: () => A | Promise<A>): Promise<A> => {
    await s.schedule(Promise.resolve(), name)
    if (self.isDead) return never
    const done = run()
    if (++steps >= diesAt) {
      self.isDead = true
      // what was sent arrives
      await Promise.resolve(done).catch(() => undefined)
      return never
    }
    return await done
  }
  const self: Process = {
    isDead: false,
    keys: () => keys,
    flights: new Map(),
    unwritten: new Set(),
    dropped: () => undefined,
    store: steppedStore(store, step),
    refresh: ({ refresh }) => step('refresh', () => provider.refresh(refresh)),
    clock: {
      now: () => Date.now(),
      pause: (ms) =>
        step('pause', () => {
          vi.setSystemTime(Date.now() + ms)
        }),
    },
  }
  return self
}

const outcomeOf = (request: Promise<Tokens>): Promise<string> =>
  request.then(
    ({ access }) => access,
    (error: unknown) =>
      error instanceof GrantEnded ? 'ended' : error instanceof UnavailableError ? 'outage' : `wrong: ${String(error)}`,
  )

/** Runs requests at processes until all have ended whose process lives. */
const run = async (s: fc.Scheduler, processes: ReadonlyArray<Process>, at: ReadonlyArray<number>) => {
  const ended = at.map(() => false)
  const outcomes = at.map((one, index) =>
    outcomeOf(goodTokens(processes[one % processes.length]!, place)).then((outcome) => {
      ended[index] = true
      return outcome
    }),
  )
  const isOpen = () => at.some((one, index) => !ended[index] && processes[one % processes.length]?.isDead === false)
  for (let steps = 0; isOpen(); steps++) {
    if (steps > 20_000) throw new Error('a request does not end')
    if (s.count() > 0) await s.waitOne()
    else await wait(0)
  }
  return Promise.all(outcomes.map(async (one, index) => (ended[index] ? one : 'died')))
}

/** A process whose steps follow each other. */
const plainly = (store: Store, provider = new Provider()) =>
  processOf({ schedule: (p: Promise<unknown>) => p } as fc.Scheduler, store, provider)

const started = (store: Store) => keepGrant(plainly(store), place, EXPIRED)

/** A grant whose access token has expired, its provider, and a process. */
const expired = async () => {
  const [store, provider] = [memoryStore(), new Provider()]
  await started(store)
  return { store, provider, plain: plainly(store, provider) }
}

const later = (store: Store, provider: Provider) => outcomeOf(goodTokens(plainly(store, provider), place))

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }))
afterEach(() => void vi.useRealTimers())

const requests = fc.array(fc.nat({ max: 3 }), { minLength: 1, maxLength: 8 })

describe('one refresh for each grant', () => {
  it('many requests in four processes make one call, and all get its token', async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), requests, async (s, at) => {
        const [store, provider] = [memoryStore(), new Provider()]
        await started(store)
        const processes = [0, 1, 2, 3].map(() => processOf(s, store, provider))
        expect(new Set(await run(s, processes, at))).toEqual(new Set(['a1']))
        expect(provider.presented).toEqual(['r0'])
      }),
    )
  })

  it('a token that the resource refused is replaced once', async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), requests, async (s, at) => {
        const [store, provider] = [memoryStore(), new Provider()]
        const processes = [0, 1, 2, 3].map(() => processOf(s, store, provider))
        await started(store)
        const asked = Promise.all(at.map((one) => outcomeOf(tokensAfter(processes[one]!, place, 'a0'))))
        await s.waitFor(asked)
        expect(new Set(await asked)).toEqual(new Set(['a1']))
        expect(provider.presented).toEqual(['r0'])
      }),
      // one order in a thousand lets a process take over at once
      { numRuns: samples(3000) },
    )
  })

  it('a process that dies blocks the others for at most ten seconds; no live process presents a token twice', async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), requests, fc.integer({ min: 1, max: 9 }), async (s, at, diesAt) => {
        const [store, provider] = [memoryStore(), new Provider()]
        await started(store)
        const begun = Date.now()
        const processes = [processOf(s, store, provider, diesAt), ...[1, 2, 3].map(() => processOf(s, store, provider))]
        const outcomes = await run(s, processes, [0, ...at])
        expect(Date.now() - begun).toBeLessThan(4 * 12_000)
        const { presented, isEnded } = provider
        // the second is that of a process that took over
        expect(presented.filter((one) => one === 'r0').length).toBeLessThanOrEqual(processes[0]!.isDead ? 2 : 1)
        for (const outcome of outcomes) expect(['died', isEnded ? 'ended' : '', 'a1', 'a2']).toContain(outcome)
        // a session outlives its grant, and a grant that the provider has not ended is good
        vi.setSystemTime(Date.now() + 11_000)
        expect(await later(store, provider)).toMatch(provider.isEnded ? /^ended$/ : /^a[12]$/)
      }),
    )
  })

  it('a provider that fails is an outage, and ends nothing; what it rotated unseen ends the grant, and no session', async () => {
    const answers = fc.array(fc.constantFrom<Answer>('ok', 'down', 'lost'), { maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), requests, answers, async (s, at, its) => {
        const [store, provider] = [memoryStore(), new Provider(its)]
        await started(store)
        const processes = [0, 1, 2, 3].map(() => processOf(s, store, provider))
        const outcomes = await run(s, processes, at)
        for (const outcome of outcomes) expect(outcome).toMatch(/^(?:a\d+|outage|ended)$/)
        expect(outcomes.includes('ended')).toBe(provider.isEnded)
        if (its[0] === 'down') expect(outcomes).toContain('outage')
      }),
    )
  })
})

it('a provider that failed is not asked again within a second, by any process', async () => {
  const [store, provider] = [memoryStore(), new Provider(['down', 'ok'])]
  await started(store)
  expect(await later(store, provider)).toBe('outage')
  expect(await later(store, provider)).toBe('outage')
  expect(provider.presented).toEqual(['r0'])
  vi.setSystemTime(Date.now() + 1000)
  expect(await later(store, provider)).toBe('a2')
})

it.each<readonly [Answer, number, string]>([
  ['ok', -3_600_000, 'a2'],
  ['down', -3_600_000, 'a2'],
  ['down', -30_000, 'outage'],
])('after an answer that is %s, and all clocks going %d ms, a request gets %s', async (answer, ms, outcome) => {
  const [store, provider] = [memoryStore(), new Provider([answer])]
  await started(store)
  await later(store, provider)
  vi.setSystemTime(Date.now() + ms)
  const refused = answer === 'ok' ? 'a1' : 'a0'
  expect(await outcomeOf(tokensAfter(plainly(store, provider), place, refused))).toBe(outcome)
})

it.each([
  ['which has a successor, is not handed out', 'r0', 'a1'],
  ['which has no successor, ends no grant', undefined, 'a0'],
])('a token of a time to which the clock was set back, %s', async (_what, refresh, outcome) => {
  const [store, provider] = [memoryStore(), new Provider()]
  const now = Date.now()
  await keepGrant(plainly(store, provider), place, { access: 'a0', at: now, until: now + 300_000, refresh })
  vi.setSystemTime(now - 59_000)
  expect(await later(store, provider)).toBe('a0')
  vi.setSystemTime(now - 3_600_000)
  expect(await later(store, provider)).toBe(outcome)
})

it('a process that stood still after it got the lock does not ask, because another may have it by now', async () => {
  const { store, provider, plain } = await expired()
  let asked = 0
  const get: Store['get'] = (keys) => {
    // the look before, the look for the lock, and the look that has it
    if (++asked === 3) vi.setSystemTime(Date.now() + 4000)
    return store.get(keys)
  }
  expect(await outcomeOf(goodTokens({ ...plain, store: { ...plain.store, get } }, place))).toBe('outage')
  expect([asked, provider.presented]).toEqual([3, []])
})

it('a provider that takes longer than a lock is asked once, by the process that asked first', async () => {
  vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'setInterval', 'clearInterval'] })
  const { store, provider, plain } = await expired()
  const refresh: Grants['refresh'] = async (tokens) => {
    const answer = await plain.refresh(tokens, place)
    await new Promise((resolve) => setTimeout(resolve, 15_000))
    return answer
  }
  const first = outcomeOf(goodTokens({ ...plain, refresh }, place))
  await vi.waitUntil(() => provider.presented.length > 0)
  const pause = async (ms: number) => void (await vi.advanceTimersByTimeAsync(ms))
  const other = plainly(store, provider)
  const second = await outcomeOf(goodTokens({ ...other, clock: { ...other.clock, pause } }, place))
  await pause(15_000)
  expect([await first, second, provider.presented]).toEqual(['a1', 'a1', ['r0']])
  expect(vi.getTimerCount()).toBe(0)
})

describe('a rotated refresh token is never lost', () => {
  it.each([
    ['is refused', 0],
    ['is done, and not acknowledged', 1],
  ])('although its first write %s', async (_name, doneBefore) => {
    const { store, provider, plain } = await expired()
    let failures = 0
    const update: Store['update'] = async (...args) => {
      if (args[0] === place.key && failures++ === 0) {
        if (doneBefore === 1) await store.update(...args)
        throw new Error('ECONNRESET')
      }
      return store.update(...args)
    }
    const process = { ...plain, store: { ...plain.store, update } }
    // its access token is not used before it is written
    expect(await outcomeOf(goodTokens(process, place))).toBe('outage')
    await vi.waitUntil(() => process.unwritten.size === 0)
    vi.setSystemTime(Date.now() + 2000)
    expect(await outcomeOf(goodTokens(process, place))).toBe('a1')
    expect(provider.presented).toEqual(['r0'])
    vi.setSystemTime(Date.now() + 3_600_000)
    expect(await later(store, provider)).toBe('a2')
    expect(provider.presented).toEqual(['r0', 'r1'])
  })

  it('the grant of another sign-in is not replaced by a refresh that was under way', async () => {
    const { store, provider, plain } = await expired()
    const refresh: Grants['refresh'] = async (tokens) => {
      const answer = await plain.refresh(tokens, place)
      await keepGrant(plain, place, { access: 'new', until: Date.now() + 3_600_000, refresh: 'n0' })
      return answer
    }
    expect(await outcomeOf(goodTokens({ ...plain, refresh }, place))).toBe('new')
    expect(await later(store, provider)).toBe('new')
  })

  it('the grant of another sign-in is not ended by a refresh of the one before that the provider refuses', async () => {
    const { store, provider, plain } = await expired()
    const refresh: Grants['refresh'] = async () => {
      await keepGrant(plain, place, { access: 'new', until: Date.now() + 3_600_000, refresh: 'n0' })
      // the sign-in has ended what was granted before
      throw new GrantEnded('invalid_grant')
    }
    expect(await outcomeOf(goodTokens({ ...plain, refresh }, place))).toBe('new')
    vi.setSystemTime(Date.now() + 2)
    expect(await later(store, provider)).toBe('new')
  })
})

describe('what is kept', () => {
  it('is sealed, for its own key, by the keys of the application', async () => {
    const store = memoryStore()
    const plain = plainly(store)
    const [access, refresh] = ['access-token-of-the-user', 'refresh-token-of-the-user']
    await keepGrant(plain, place, { access, until: Date.now() + 3_600_000, refresh })
    const [sealed] = await store.get([place.key])
    expect(sealed).not.toContain(access)
    expect(Buffer.from(String(sealed), 'base64url').toString('latin1')).not.toMatch(/of-the-user/)
    await started(store)
    const [text] = await store.get([place.key])
    await store.insert('another', String(text), 1000)
    expect(await outcomeOf(goodTokens(plain, { ...place, key: 'another' }))).toBe('ended')
    expect(await outcomeOf(goodTokens({ ...plain, keys: () => ['x'.repeat(32)] }, place))).toBe('ended')
    const rotated = { ...plain, keys: () => ['x'.repeat(32), ...keys] }
    expect(await outcomeOf(goodTokens(rotated, place))).toBe('a1')
  })

  it('is nothing where the store refuses it', async () => {
    const refuse = () => Promise.resolve(false)
    const store = { ...memoryStore(), insert: refuse, update: refuse }
    const plain = plainly(store)
    await expect(keepGrant(plain, place, { access: 'a' })).rejects.toBeInstanceOf(UnavailableError)
  })

  it.each(['', 'garbage', '{}', '\0'])('%j is no grant', async (text) => {
    const store = memoryStore()
    await store.insert(place.key, text, 1000)
    expect(await later(store, new Provider())).toBe('ended')
  })

  it('without a refresh token the end of the access token ends the grant', async () => {
    const store = memoryStore()
    const provider = new Provider()
    const plain = plainly(store, provider)
    await keepGrant(plain, place, { access: 'a', until: Date.now() + 9000 })
    expect(await outcomeOf(goodTokens(plain, place))).toBe('ended')
    vi.setSystemTime(Date.now() + 1)
    expect(await store.get([place.key])).toEqual([undefined])
    // the next sign-in is kept at once
    await keepGrant(plain, place, { access: 'b', until: Date.now() + 11_000 })
    expect(await outcomeOf(goodTokens(plain, place))).toBe('b')
    expect(provider.presented).toEqual([])
  })
})
