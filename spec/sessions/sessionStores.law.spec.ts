/** Every store of sessions behaves like a small model, whatever is done to it, in any order. */
import * as fc from 'fast-check'
import type { SessionStore } from 'koa-with-auth/sessions'
import { expect, it } from 'vitest'
import { describeEveryStore, outlived } from '../support/stores/sessionStores.js'

/** What the store has: a string, or `null` for a session that was ended. What is over is not in it. */
interface Model {
  readonly sessions: Map<string, string | null>
  readonly marks: Map<string, string>
}

type Step = fc.AsyncCommand<Model, Real>

/** Keeps ids apart from those of other runs. */
interface Real {
  readonly store: SessionStore
  readonly run: string
}

const LONG = 60_000
const SHORT = 1

// After a short lifetime, what was written is over, and no later step comes before that
const lasting = async (store: SessionStore, lifetime: number, forget: () => void): Promise<void> => {
  if (lifetime === LONG) return
  await outlived(store, SHORT)
  forget()
}

const step = (name: string, act: (model: Model, real: Real) => Promise<void>): Step => ({
  check: () => true,
  run: act,
  toString: () => name,
})

const id = fc.constantFrom('a', 'b', '__proto__')
const text = fc.string({ unit: 'grapheme', maxLength: 8 })
const lifetime = fc.oneof({ weight: 5, arbitrary: fc.constant(LONG) }, { weight: 1, arbitrary: fc.constant(SHORT) })

const steps: ReadonlyArray<fc.Arbitrary<Step>> = [
  id.map((one) =>
    step(`read ${one}`, async ({ sessions }, { store, run }) => {
      expect(await store.read(run + one)).toBe(sessions.get(one) ?? undefined)
    }),
  ),
  fc.tuple(id, text, lifetime).map(([one, kept, ms]) =>
    step(`insert ${one} ${JSON.stringify(kept)} ${ms}`, async ({ sessions }, { store, run }) => {
      await store.insert(run + one, kept, ms)
      if (sessions.has(one)) return
      sessions.set(one, kept)
      await lasting(store, ms, () => sessions.delete(one))
    }),
  ),
  fc.tuple(id, text, lifetime).map(([one, kept, ms]) =>
    step(`update ${one} ${JSON.stringify(kept)} ${ms}`, async ({ sessions }, { store, run }) => {
      const lives = typeof sessions.get(one) === 'string'
      expect(await store.update(run + one, kept, ms)).toBe(lives)
      if (!lives) return
      sessions.set(one, kept)
      await lasting(store, ms, () => sessions.delete(one))
    }),
  ),
  fc.tuple(id, lifetime).map(([one, ms]) =>
    step(`end ${one} ${ms}`, async ({ sessions }, { store, run }) => {
      await store.end(run + one, ms)
      sessions.set(one, null)
      await lasting(store, ms, () => sessions.delete(one))
    }),
  ),
  fc.tuple(id, text, lifetime).map(([user, mark, ms]) =>
    step(`mark ${user} ${JSON.stringify(mark)} ${ms}`, async ({ marks }, { store, run }) => {
      await store.mark(run + user, mark, ms)
      marks.set(user, mark)
      await lasting(store, ms, () => marks.delete(user))
    }),
  ),
  id.map((user) =>
    step(`markOf ${user}`, async ({ marks }, { store, run }) => {
      expect(await store.markOf(run + user)).toBe(marks.get(user) ?? '')
    }),
  ),
]

const sameAtLast = async ({ sessions, marks }: Model, { store, run }: Real): Promise<void> => {
  for (const one of ['a', 'b', '__proto__']) {
    expect(await store.read(run + one)).toBe(sessions.get(one) ?? undefined)
    expect(await store.markOf(run + one)).toBe(marks.get(one) ?? '')
  }
}

let runs = 0

describeEveryStore((store) => {
  it('a store returns the same as the model, after any steps', async () => {
    await fc.assert(
      fc.asyncProperty(fc.commands([...steps], { maxCommands: 25, size: 'max' }), async (commands) => {
        const model: Model = { sessions: new Map(), marks: new Map() }
        const real: Real = { store: store(), run: `${runs++}:` }
        await fc.asyncModelRun(() => ({ model, real }), commands)
        await sameAtLast(model, real)
      }),
      { numRuns: 40 },
    )
  })

  // D-S4: whatever others do at the same time, an ended session stays ended
  it('an end wins against any inserts and updates at the same time', async () => {
    const change = fc.record({ kind: fc.constantFrom('insert', 'update', 'end'), text })
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 8 }), fc.nat(), async (changes, place) => {
        const one = `race ${runs++}`
        await store().insert(one, 'text', LONG)
        const ended = [...changes]
        ended.splice(place % (changes.length + 1), 0, { kind: 'end', text: '' })
        await Promise.all(
          ended.map(({ kind, text }) => {
            if (kind === 'end') return store().end(one, LONG)
            return kind === 'insert' ? store().insert(one, text, LONG) : store().update(one, text, LONG)
          }),
        )
        expect(await store().read(one)).toBeUndefined()
      }),
      { numRuns: 30 },
    )
  })
})
