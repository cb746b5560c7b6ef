/** What every store of sessions must do, by the promises of `SessionStore`; each on the real thing. */
import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { describeEveryStore } from '../support/sessionStores.js'

const LONG = 60_000
const SHORT = 100
const over = () => new Promise((resolve) => setTimeout(resolve, 2 * SHORT))

// Does what must be done before SHORT is over; again, with another id, where a busy machine took longer
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
    it('answers nothing for an id that was never kept', async () => {
      expect(await store().read(randomUUID())).toBeUndefined()
    })

    it.each([
      ['JSON', '{"auth":{"id":"anna"}}'],
      ['no text', ''],
      ['what marks an end', '-'],
      ['what marks a life', '+'],
      ['letters beyond ASCII', 'Ünïcødé 日本語 🔑'],
      ['line breaks and quotes', "'\"\\\r\n\t'; drop table auth_sessions; --"],
      ['the longest session', 'x'.repeat(16_384)],
    ])('answers the text as it was kept: %s', async (_what, text) => {
      const id = randomUUID()
      await store().insert(id, text, LONG)
      expect(await store().read(id)).toBe(text)
      await store().update(id, `${text}${text}`, LONG)
      expect(await store().read(id)).toBe(`${text}${text}`)
    })

    it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty', '', ' ', '*', "'", 'a:b', '日本語'])(
      'D-S10 the id %j is one as any other: not there until it is kept',
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
    it('does nothing where the id is there', async () => {
      const id = randomUUID()
      await store().insert(id, 'first', LONG)
      await store().insert(id, 'second', LONG)
      expect(await store().read(id)).toBe('first')
    })

    it('does not prolong what is there', async () => {
      const id = await inTime(async (id) => {
        await store().insert(id, 'first', SHORT)
        await store().insert(id, 'second', LONG)
      })
      await over()
      expect(await store().read(id)).toBeUndefined()
    })

    it('of many at once keeps exactly one', async () => {
      const id = randomUUID()
      await Promise.all(Array.from({ length: 20 }, (_, at) => store().insert(id, `text ${at}`, LONG)))
      const kept = await store().read(id)
      expect(kept).toMatch(/^text \d+$/)
      await store().insert(id, 'late', LONG)
      expect(await store().read(id)).toBe(kept)
    })

    it('keeps again what is over', async () => {
      const id = randomUUID()
      await store().insert(id, 'first', SHORT)
      await over()
      await store().insert(id, 'second', LONG)
      expect(await store().read(id)).toBe('second')
    })
  })

  describe.concurrent('update', () => {
    it('does nothing where nothing is', async () => {
      const id = randomUUID()
      await store().update(id, 'text', LONG)
      expect(await store().read(id)).toBeUndefined()
    })

    it('does nothing where the time is over', async () => {
      const id = randomUUID()
      await store().insert(id, 'text', SHORT)
      await over()
      await store().update(id, 'revived', LONG)
      expect(await store().read(id)).toBeUndefined()
    })

    it('prolongs', async () => {
      const id = await inTime(async (id) => {
        await store().insert(id, 'text', SHORT)
        await store().update(id, 'text', LONG)
      })
      await over()
      expect(await store().read(id)).toBe('text')
    })

    it('shortens', async () => {
      let found: string | undefined
      const id = await inTime(async (id) => {
        await store().insert(id, 'text', LONG)
        await store().update(id, 'text', SHORT)
        found = await store().read(id)
      })
      expect(found).toBe('text')
      await over()
      expect(await store().read(id)).toBeUndefined()
    })
  })

  describe.concurrent('end', () => {
    it('D-S4 leaves a tombstone that neither an update nor an insert overcomes', async () => {
      const id = randomUUID()
      await store().insert(id, 'text', LONG)
      await store().end(id, LONG)
      expect(await store().read(id)).toBeUndefined()
      await store().update(id, 'revived', LONG)
      expect(await store().read(id)).toBeUndefined()
      await store().insert(id, 'revived', LONG)
      expect(await store().read(id)).toBeUndefined()
    })

    it('D-S4 of an id that was never kept leaves one, too', async () => {
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

    it('is remembered until its own time is over, however short the session was', async () => {
      const id = randomUUID()
      await store().insert(id, 'text', SHORT)
      await store().end(id, LONG)
      await over()
      await store().insert(id, 'revived', LONG)
      expect(await store().read(id)).toBeUndefined()
    })

    it('is forgotten when its time is over; an update revives nothing then, either', async () => {
      const id = randomUUID()
      await store().insert(id, 'text', LONG)
      await store().end(id, SHORT)
      await over()
      await store().update(id, 'revived', LONG)
      expect(await store().read(id)).toBeUndefined()
      await store().insert(id, 'new', LONG)
      expect(await store().read(id)).toBe('new')
    })

    it('ends nothing else', async () => {
      const [id, other] = [randomUUID(), randomUUID()]
      await store().insert(id, 'text', LONG)
      await store().insert(other, 'other', LONG)
      await store().mark(id, 'mark', LONG)
      await store().end(id, LONG)
      expect([await store().read(other), await store().markOf(id)]).toEqual(['other', 'mark'])
    })
  })

  describe.concurrent('marks', () => {
    it('are the empty text until one is set, then the last one', async () => {
      const user = randomUUID()
      expect(await store().markOf(user)).toBe('')
      await store().mark(user, 'a', LONG)
      expect(await store().markOf(user)).toBe('a')
      await store().mark(user, 'b', LONG)
      expect(await store().markOf(user)).toBe('b')
      expect(await store().markOf(`${user} `)).toBe('')
    })

    it('are forgotten when their time is over', async () => {
      const user = randomUUID()
      await store().mark(user, 'a', SHORT)
      await over()
      expect(await store().markOf(user)).toBe('')
    })

    it('of a user are no session of that name, and the other way round', async () => {
      const name = randomUUID()
      await store().mark(name, 'mark', LONG)
      expect(await store().read(name)).toBeUndefined()
      const id = randomUUID()
      await store().insert(id, 'text', LONG)
      expect(await store().markOf(id)).toBe('')
    })
  })

  it.each([0.2, 1.5, 1000 / 3])('a lifetime of %d milliseconds is one', async (lifetime) => {
    const [id, user] = [randomUUID(), randomUUID()]
    await store().insert(id, 'text', lifetime)
    await store().update(id, 'text', lifetime)
    await store().end(id, lifetime)
    await store().mark(user, 'mark', lifetime)
  })
})
