/**
 * API keys behave like a small model on every store, whatever is issued, rotated, revoked and expires, in any order. While they are
 * rotated and revoked, a valid secret is never refused, and none is accepted after a revocation has returned.
 */
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { either as E } from 'fp-ts'
import { apiKeys, NoLiveKey, type ApiKey, type ApiKeys } from 'koa-with-auth/keys'
import { mockRequest } from 'koa-with-auth/testing'
import { afterEach, expect, it, vi } from 'vitest'
import { noting, overEveryStore } from '../support/stores/stores.js'

interface Secret {
  readonly key: string
  /** When a replaced secret ends. */
  until: number
  /** Whether the store has deleted the secret: it was over when another secret was replaced. */
  isForgotten: boolean
}

interface Kept {
  readonly id: string
  readonly owner: string
  readonly expiresAt: number
  isRevoked: boolean
  /** The secrets of the key; the last one is the current one. */
  readonly secrets: Secret[]
}

interface Model {
  readonly keys: Kept[]
}

interface Real {
  readonly keys: ApiKeys<string>
  readonly calls: string[]
  readonly run: string
}

type Step = fc.AsyncCommand<Model, Real>

const step = (name: string, act: (model: Model, real: Real) => Promise<void>): Step => ({
  check: () => true,
  run: act,
  toString: () => name,
})

const request = mockRequest({})
const verdictOf = (result: E.Either<{ readonly _tag: string }, ApiKey>) =>
  E.isRight(result) ? result.right.id : result.left._tag

const expected = (kept: Kept, { until, isForgotten }: Secret): string => {
  if (kept.isRevoked || isForgotten) return 'invalid'
  return Math.min(kept.expiresAt, until) <= Date.now() ? 'expired' : kept.id
}
const isLive = (kept: Kept): boolean => !kept.isRevoked && kept.expiresAt > Date.now()

const owner = fc.constantFrom('anna', 'sam', '__proto__')
// Few, so that one key is rotated several times
const at = fc.nat(3)
const pick = <A>(all: ReadonlyArray<A>, place: number): A | undefined => all[place % Math.max(1, all.length)]

const issuing = fc.tuple(owner, fc.constantFrom(undefined, 50, 1000)).map(([whose, lifetime]) =>
  step(`issue to ${whose} for ${lifetime}`, async ({ keys }, real) => {
    const expiresAt = lifetime === undefined ? undefined : new Date(Date.now() + lifetime)
    const { key, id } = await real.keys.issue({ owner: real.run + whose, ...(expiresAt && { expiresAt }) })
    const secrets = [{ key, until: Infinity, isForgotten: false }]
    keys.push({ id, owner: whose, expiresAt: expiresAt?.getTime() ?? Infinity, isRevoked: false, secrets })
  }),
)

const rotating = fc.tuple(at, fc.constantFrom(0, 20, 100, 0.5)).map(([place, overlap]) =>
  step(`rotate ${place} with ${overlap}`, async ({ keys }, real) => {
    const kept = pick(keys, place)
    const rotating = real.keys.rotate(kept?.id ?? 'none', { overlap })
    if (kept === undefined || !isLive(kept)) return expect(rotating).rejects.toThrow(NoLiveKey)
    const { key, id } = await rotating
    expect(id).toBe(kept.id)
    const now = Date.now()
    for (const secret of kept.secrets) {
      if (secret.until <= now) secret.isForgotten = true
      secret.until = Math.min(secret.until, now + Math.ceil(overlap))
    }
    kept.secrets.push({ key, until: Infinity, isForgotten: false })
  }),
)

const revoking = at.map((place) =>
  step(`revoke ${place}`, async ({ keys }, real) => {
    const kept = pick(keys, place)
    expect(await real.keys.revoke(kept?.id ?? 'none')).toBe(kept !== undefined)
    if (kept !== undefined) kept.isRevoked = true
  }),
)

const waiting = fc.constantFrom(1, 20, 60, 500).map((ms) =>
  // Only the clock of the application counts: no store has its own
  step(`wait ${ms}`, async () => void vi.setSystemTime(Date.now() + ms)),
)

const authenticating = fc.tuple(at, at).map(([place, which]) =>
  step(`authenticate ${place}, secret ${which}`, async ({ keys }, real) => {
    const kept = pick(keys, place)
    const secret = kept && pick(kept.secrets, which)
    if (kept === undefined || secret === undefined) return
    const result = await real.keys.authenticate(request, secret.key)
    expect(verdictOf(result)).toBe(expected(kept, secret))
    if (E.isLeft(result)) return
    const limit = Math.min(kept.expiresAt, secret.until)
    expect(result.right.expiresAt?.getTime() ?? Infinity).toBe(limit)
    expect(result.right.owner).toBe(real.run + kept.owner)
  }),
)

const mistyping = fc.tuple(at, at, fc.nat(50)).map(([place, which, letter]) =>
  step(`mistype ${place}, secret ${which}, letter ${letter}`, async ({ keys }, real) => {
    const key = pick(pick(keys, place)?.secrets ?? [], which)?.key
    if (key === undefined) return
    const wrong = letter % key.length
    const other = key[wrong] === 'x' ? 'y' : 'x'
    const before = real.calls.length
    const result = await real.keys.authenticate(request, key.slice(0, wrong) + other + key.slice(wrong + 1))
    expect([verdictOf(result), real.calls.length]).toEqual(['malformed', before])
  }),
)

const listing = owner.map((whose) =>
  step(`list ${whose}`, async ({ keys }, real) => {
    const listed = await real.keys.list(real.run + whose)
    const own = keys.filter((kept) => kept.owner === whose)
    expect(listed.map(({ id }) => id).sort()).toEqual(own.map(({ id }) => id).sort())
    for (const { id, revokedAt, last4 } of listed) {
      const kept = own.find((one) => one.id === id)
      expect(revokedAt !== undefined).toBe(kept?.isRevoked)
      expect(kept?.secrets.at(-1)?.key.endsWith(last4 ?? 'none')).toBe(true)
    }
    for (const { key } of own.flatMap(({ secrets }) => secrets)) expect(JSON.stringify(listed)).not.toContain(key)
  }),
)

const steps = [
  ...[issuing, revoking, listing, mistyping],
  ...[rotating, rotating, rotating, rotating],
  ...[waiting, waiting, authenticating, authenticating],
]

const DAY = 86_400_000
const PEPPERS = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)]

let runs = 0
afterEach(() => void vi.useRealTimers())

overEveryStore((store, name) => {
  it('K-08 keys behave like the model, after any steps', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 1_800_000_000_000 })
    await fc.assert(
      fc.asyncProperty(fc.commands([...steps], { maxCommands: 40, size: 'max' }), async (commands) => {
        const model: Model = { keys: [] }
        const { store: watched, calls } = noting(store())
        const real: Real = {
          keys: apiKeys({ prefix: 'acme', store: watched, timeout: 20_000 }),
          calls,
          run: `${name} ${runs++}:`,
        }
        await fc.asyncModelRun(() => ({ model, real }), commands)
        for (const kept of model.keys) {
          for (const secret of kept.secrets) {
            const result = await real.keys.authenticate(request, secret.key)
            expect(verdictOf(result)).toBe(expected(kept, secret))
          }
        }
      }),
      { numRuns: 60 },
    )
  })

  it('K-10 a revocation wins against all rotations at the same time: no secret is valid after it', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(8), fc.integer({ min: 1, max: 8 }), async (place, count) => {
        const keys = apiKeys({ prefix: 'acme', store: store(), timeout: 20_000 })
        const first = await keys.issue({ owner: 'race' })
        const rotating = Array.from({ length: count }, () => () => keys.rotate(first.id, { overlap: 60_000 }))
        const work: (() => Promise<unknown>)[] = [...rotating]
        work.splice(place % (count + 1), 0, () => keys.revoke(first.id))
        const made = await Promise.allSettled(work.map((one) => one()))
        const secrets = made.flatMap((one) => {
          if (one.status === 'rejected') expect(one.reason).toBeInstanceOf(NoLiveKey)
          const value: unknown = one.status === 'fulfilled' ? one.value : undefined
          return typeof value === 'object' && value !== null && 'key' in value ? [String(value.key)] : []
        })
        for (const key of [first.key, ...secrets]) {
          expect(verdictOf(await keys.authenticate(request, key))).toBe('invalid')
        }
      }),
      { numRuns: 20 },
    )
  })

  it('K-09 after several rotations at the same time, exactly one secret has no end, and all others have one', async () => {
    const keys = apiKeys({ prefix: 'acme', store: store(), timeout: 20_000 })
    const first = await keys.issue({ owner: 'race' })
    const rotated = await Promise.all(Array.from({ length: 8 }, () => keys.rotate(first.id, { overlap: 60_000 })))
    const results = await Promise.all([first, ...rotated].map(async ({ key }) => keys.authenticate(request, key)))
    const ends = results.map((result) => (E.isRight(result) ? result.right.expiresAt : result.left._tag))
    expect(ends.filter((end) => end === undefined)).toHaveLength(1)
    expect(ends.filter((end) => end instanceof Date)).toHaveLength(8)
  })

  // two users of one store, as two processes are
  it('K-10 no rotation refuses a valid secret, and no secret is accepted after a revocation', async () => {
    const [one, two] = [1, 2].map(() =>
      apiKeys({ prefix: 'acme', store: store(), touch: 1, pepper: PEPPERS, timeout: 20_000 }),
    )
    const both = [one!, two!]
    const { id, key } = await both[0]!.issue({ owner: 'race' })
    const secrets = [key]
    const seen: { readonly begun: number; readonly isIn: boolean }[] = []
    let [events, revokedAt, isOver] = [0, Infinity, false]
    const asking = both.flatMap((keys) =>
      [0, 1].map(async () => {
        while (!isOver) {
          const begun = events++
          const result = await keys.authenticate(request, secrets[begun % secrets.length]!)
          seen.push({ begun, isIn: E.isRight(result) })
          await turn()
        }
      }),
    )
    for (let at = 0; at < 12; at++) {
      const rotating = both[at % 2]!.rotate(id, { overlap: DAY })
      const answered = seen.length
      secrets.push((await rotating).key)
      while (seen.length < answered + 4) await turn()
    }
    const beforehand = events++
    const late = both.map((keys) => keys.rotate(id, { overlap: DAY }).catch((error: unknown) => error))
    expect(await both[1]!.revoke(id)).toBe(true)
    revokedAt = events++
    for (const one of await Promise.all(late)) if (!(one instanceof NoLiveKey)) expect(one).toMatchObject({ id })
    while (seen.filter(({ begun }) => begun > revokedAt).length < 8) await turn()
    isOver = true
    await Promise.all(asking)
    const before = seen.filter(({ begun }) => begun < beforehand)
    expect(before.length).toBeGreaterThanOrEqual(48)
    // Only a request that was sent before the revocation may be refused by it
    const answered = before.slice(0, -4)
    expect(answered.filter(({ isIn }) => !isIn)).toEqual([])
    expect(seen.filter(({ begun, isIn }) => begun > revokedAt && isIn)).toEqual([])
  })
})
