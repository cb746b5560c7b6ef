/** What every store of sessions must do, as `SessionStore` promises; each on the real database. */
import { randomUUID } from 'node:crypto'
import type { SessionStore } from 'koa-with-auth/sessions'
import { describe, expect, it } from 'vitest'
import { describeEveryStore, outlived } from '../support/stores/sessionStores.js'

const LONG = 60_000
const SHORT = 100

// What was written for SHORT is over when something is that was written for as long, but later
const over = (store: SessionStore) => outlived(store, SHORT)

// Does what must be done before SHORT is over; repeats it with another id if a busy machine took longer
const inTime = async (steps: (id: string) => Promise<unknown>): Promise<string> => {
  for (;;) {
    const id = randomUUID()
    const begun = performance.now()
    await steps(id)
    if (performance.now() - begun < SHORT) return id
  }
}

describeEveryStore((store) => {
  describe.concurrent('read', () => {
    it('returns undefined for an id that was never stored', async () => {
      expect(await store().read(randomUUID())).toBeUndefined()
    })

    it.each([
      ['JSON', '{"auth":{"id":"anna"}}'],
      ['an empty string', ''],
      ['the prefix of an ended session', '-'],
      ['the prefix of a live session', '+'],
      ['letters outside of ASCII', 'Ünïcødé 日本語 🔑'],
      ['line breaks and quotes', "'\"\\\r\n\t'; drop table auth_sessions; --"],
      ['the longest session', 'x'.repeat(16_384)],
    ])('returns the string as it was stored: %s', async (_what, text) => {
      const id = randomUUID()
      await store().insert(id, text, LONG)
      expect(await store().read(id)).toBe(text)
      await store().update(id, `${text}${text}`, LONG)
      expect(await store().read(id)).toBe(`${text}${text}`)
    })

    it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty', '', ' ', '*', "'", 'a:b', '日本語'])(
      'D-S10 treats the id %j like any other: it does not exist until it is stored',
      async (id) => {
        await store().update(id, 'updated', LONG)
        expect(await store().read(id)).toBeUndefined()
        expect(await store().markOf(id)).toBe('')
        await store().insert(id, 'kept', LONG)
        await store().mark(id, 'marked', LONG)
        expect([await store().read(id), await store().markOf(id)]).toEqual(['kept', 'marked'])
      },
    )
  })

  describe.concurrent('insert', () => {
    it('does nothing if the id exists', async () => {
      const id = randomUUID()
      await store().insert(id, 'first', LONG)
      await store().insert(id, 'second', LONG)
      expect(await store().read(id)).toBe('first')
    })

    it('does not prolong an existing session', async () => {
      const id = await inTime(async (id) => {
        await store().insert(id, 'first', SHORT)
        await store().insert(id, 'second', LONG)
      })
      await over(store())
      expect(await store().read(id)).toBeUndefined()
    })

    it('many times at once stores exactly one', async () => {
      const id = randomUUID()
      await Promise.all(Array.from({ length: 20 }, (_, at) => store().insert(id, `text ${at}`, LONG)))
      const kept = await store().read(id)
      expect(kept).toMatch(/^text \d+$/)
      await store().insert(id, 'late', LONG)
      expect(await store().read(id)).toBe(kept)
    })

    it('stores an id again that is over', async () => {
      const id = randomUUID()
      await store().insert(id, 'first', SHORT)
      await over(store())
      await store().insert(id, 'second', LONG)
      expect(await store().read(id)).toBe('second')
    })
  })

  describe.concurrent('update', () => {
    it('does nothing if the id does not exist', async () => {
      const id = randomUUID()
      await store().update(id, 'text', LONG)
      expect(await store().read(id)).toBeUndefined()
    })

    it('does nothing if the time is over', async () => {
      const id = randomUUID()
      await store().insert(id, 'text', SHORT)
      await over(store())
      await store().update(id, 'revived', LONG)
      expect(await store().read(id)).toBeUndefined()
    })

    it('prolongs a session', async () => {
      const id = await inTime(async (id) => {
        await store().insert(id, 'text', SHORT)
        await store().update(id, 'text', LONG)
      })
      await over(store())
      expect(await store().read(id)).toBe('text')
    })

    it('shortens a session', async () => {
      let found: string | undefined
      const id = await inTime(async (id) => {
        await store().insert(id, 'text', LONG)
        await store().update(id, 'text', SHORT)
        found = await store().read(id)
      })
      expect(found).toBe('text')
      await over(store())
      expect(await store().read(id)).toBeUndefined()
    })
  })

  describe.concurrent('end', () => {
    it('D-S4 leaves a tombstone that neither an update nor an insert replaces', async () => {
      const id = randomUUID()
      await store().insert(id, 'text', LONG)
      await store().end(id, LONG)
      expect(await store().read(id)).toBeUndefined()
      await store().update(id, 'revived', LONG)
      expect(await store().read(id)).toBeUndefined()
      await store().insert(id, 'revived', LONG)
      expect(await store().read(id)).toBeUndefined()
    })

    it('D-S4 leaves a tombstone for an id that was never stored, too', async () => {
      const id = randomUUID()
      await store().end(id, LONG)
      await store().insert(id, 'late', LONG)
      expect(await store().read(id)).toBeUndefined()
    })

    it('D-S4 wins against updates at the same time', async () => {
      const id = randomUUID()
      await store().insert(id, 'text', LONG)
      const updates = (from: number) =>
        Array.from({ length: 10 }, (_, at) => store().update(id, `text ${from + at}`, LONG))
      await Promise.all([...updates(0), store().end(id, LONG), ...updates(10)])
      expect(await store().read(id)).toBeUndefined()
    })

    it('keeps its tombstone until its own time is over, however short the session was', async () => {
      const id = randomUUID()
      await store().insert(id, 'text', SHORT)
      await store().end(id, LONG)
      await over(store())
      await store().insert(id, 'revived', LONG)
      expect(await store().read(id)).toBeUndefined()
    })

    it('keeps its tombstone no longer; an update restores nothing then either', async () => {
      const id = randomUUID()
      await store().insert(id, 'text', LONG)
      await store().end(id, SHORT)
      await over(store())
      await store().update(id, 'revived', LONG)
      expect(await store().read(id)).toBeUndefined()
      await store().insert(id, 'new', LONG)
      expect(await store().read(id)).toBe('new')
    })

    it('ends no other session', async () => {
      const [id, other] = [randomUUID(), randomUUID()]
      await store().insert(id, 'text', LONG)
      await store().insert(other, 'other', LONG)
      await store().mark(id, 'mark', LONG)
      await store().end(id, LONG)
      expect([await store().read(other), await store().markOf(id)]).toEqual(['other', 'mark'])
    })
  })

  describe.concurrent('marks', () => {
    it('are the empty string until one is set, then the last one', async () => {
      const user = randomUUID()
      expect(await store().markOf(user)).toBe('')
      await store().mark(user, 'a', LONG)
      expect(await store().markOf(user)).toBe('a')
      await store().mark(user, 'b', LONG)
      expect(await store().markOf(user)).toBe('b')
      expect(await store().markOf(`${user} `)).toBe('')
    })

    it('are deleted when their time is over', async () => {
      const user = randomUUID()
      await store().mark(user, 'a', SHORT)
      await over(store())
      expect(await store().markOf(user)).toBe('')
    })

    it('of a user are not a session of that name, and the reverse', async () => {
      const name = randomUUID()
      await store().mark(name, 'mark', LONG)
      expect(await store().read(name)).toBeUndefined()
      const id = randomUUID()
      await store().insert(id, 'text', LONG)
      expect(await store().markOf(id)).toBe('')
    })
  })

  it.each([0.2, 1.5, 1000 / 3])('sessions and marks may have a lifetime of %d milliseconds', async (lifetime) => {
    const [id, user] = [randomUUID(), randomUUID()]
    await store().insert(id, 'text', lifetime)
    await store().update(id, 'text', lifetime)
    await store().end(id, lifetime)
    await store().mark(user, 'mark', lifetime)
  })
})
