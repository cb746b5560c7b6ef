/** Passkeys over every engine: one is stored once, used in order, and removed for good; what interrupts a change; texts that nobody wrote. */
import { UnavailableError } from 'koa-with-auth'
import { passkeys, type PasskeyRecord } from 'koa-with-auth/sign-in/passkeys'
import { memoryStore, type Store } from 'koa-with-auth/stores'
import { describe, expect, it, vi } from 'vitest'
import { passkeysIn } from '../support/sites/passkeySite.js'
import { dyingAt, noting, overEveryStore } from '../support/stores/stores.js'

const recordOf = (id: string, more: Partial<PasskeyRecord> = {}): PasskeyRecord => ({
  id,
  user: 'anna',
  userHandle: 'BBBB',
  rpId: 'localhost',
  publicKey: 'CCCC',
  aaguid: '00000000-0000-0000-0000-000000000000',
  transports: ['internal'],
  createdAt: 1,
  counter: 0,
  backupEligible: true,
  backedUp: true,
  ...more,
})
const use = (counter: number) => ({ counter, backupEligible: true, backedUp: false })
const faceOf = (store: Store) =>
  passkeys({ rp: { id: 'localhost', name: 'Shop' }, origins: ['http://localhost'], store, nameOf: () => 'anna' })

overEveryStore((store, name) => {
  let runs = 0
  const newUser = () => `${name} ${runs++} ü`

  it('W-13 a passkey is added once, found, and listed with all that it has; the face lists and removes the same', async () => {
    const [user, kept] = [newUser(), passkeysIn(store())]
    const [first, second] = [recordOf(`${user} 1`, { user, createdAt: 2 }), recordOf(`${user} 2`, { user })]
    expect([await kept.add(first), await kept.add(second), await kept.add({ ...first, user: 'bert' })]).toEqual([
      true,
      true,
      false,
    ])
    expect(await kept.byId(first.id)).toStrictEqual(first)
    const face = faceOf(store())
    expect(await face.list(user)).toStrictEqual([second, first])
    expect(await face.list(`${user}x`)).toEqual([])
    expect([
      await face.remove(first.id, 'bert'),
      await face.remove('none', user),
      await face.remove(undefined as never, user),
    ]).toEqual([false, false, false])
    expect([await face.remove(first.id, user), await face.remove(first.id, user)]).toEqual([true, false])
    expect([await kept.byId(first.id), await face.list(user)]).toStrictEqual([undefined, [second]])
    expect(await kept.update(first.id, use(7), 5)).toBe(false)
    expect(await kept.add(first)).toBe(false)
  })

  it('W-13 of many uses at once, each counter is stored once, and the last use never moves back', async () => {
    const [user, kept] = [newUser(), passkeysIn(store())]
    const { id } = recordOf(user)
    await kept.add(recordOf(id, { user, counter: 5 }))
    expect([await kept.update(id, use(5), 9), await kept.update(id, use(4), 9)]).toEqual([false, false])
    const same = await Promise.all(Array.from({ length: 8 }, () => kept.update(id, use(6), 20)))
    expect(same.filter(Boolean)).toHaveLength(1)
    expect(await kept.update(id, use(8), 10)).toBe(true)
    expect(await kept.byId(id)).toMatchObject({ counter: 8, backedUp: false, lastUsedAt: 20 })
    const synced = recordOf(`${user} synced`, { user })
    await kept.add(synced)
    expect((await Promise.all([1, 2, 3].map((at) => kept.update(synced.id, use(0), at)))).filter(Boolean)).toHaveLength(
      3,
    )
  })

  it.each([
    ['before', false],
    ['after', true],
  ])(
    'W-13 the database dies %s each write: what works is listed, and a repetition does the rest',
    async (_when, after) => {
      for (let write = 1; write <= 2; write++) {
        const [user, kept] = [newUser(), passkeysIn(store())]
        const { store: dying, died } = dyingAt(store(), write, after)
        const adding = passkeysIn(dying).add(recordOf(user, { user }))
        await expect(adding).rejects.toThrow('ECONNRESET')
        expect(died()).toBe(true)
        const isThere = (await kept.byId(user)) !== undefined
        expect([isThere, (await kept.ofUser(user)).length]).toEqual(after && write === 2 ? [true, 1] : [false, 0])
        expect(await kept.add(recordOf(user, { user }))).toBe(!isThere)
        await expect(faceOf(dyingAt(store(), 1, after).store).remove(user, user)).rejects.toBeInstanceOf(
          UnavailableError,
        )
        expect(await faceOf(store()).remove(user, user)).toBe(!after)
        expect(await kept.ofUser(user)).toEqual([])
      }
    },
  )
})

describe('W-13 what is in a store', () => {
  it('has a name that is a digest, and begins with its purpose; each RP id has passkeys of its own', async () => {
    const kept = memoryStore()
    const { store, given } = noting(kept)
    await passkeysIn(store).add(recordOf('AAAA'))
    await passkeysIn(store).byId('AAAA')
    for (const one of given.map(([first]) => String([first].flat()[0]))) {
      expect(one).toMatch(/^koa-with-auth\/(?:passkey|passkeys-of)\/[\w-]{43}$/)
    }
    const other = passkeys({
      rp: { id: 'app.localhost', name: 'App' },
      origins: ['http://app.localhost'],
      store,
      nameOf: () => 'x',
    })
    expect([await other.list('anna'), await other.remove('AAAA', 'anna')]).toEqual([[], false])
    await expect(other.list(undefined as never)).rejects.toThrow(TypeError)
  })

  it.each<readonly [string, unknown]>([
    ['rubbish', undefined],
    ['null', null],
    ['an array', []],
    ['another passkey', recordOf('XXXX')],
    ...[
      ...[{ counter: '0' }, { counter: -1 }, { counter: 0.5 }, { counter: 2 ** 32 }, { transports: 'usb' }],
      ...[{ transports: ['usb', 7] }, { user: 7 }, { userHandle: 7 }, { rpId: null }, { publicKey: undefined }],
      ...[{ aaguid: {} }, { backupEligible: 1 }, { backedUp: 'true' }, { createdAt: '1' }, { lastUsedAt: null }],
    ].map((wrong) => [`one with ${Object.keys(wrong).join()} wrong`, { ...recordOf('AAAA'), ...wrong }] as const),
  ])('that is %s lets nobody in, and is an outage', async (_what, text) => {
    const kept = memoryStore()
    const { store, given } = noting(kept)
    await passkeysIn(store).add(recordOf('AAAA'))
    await kept.update(String(given[1]?.[0]), text === undefined ? '{' : JSON.stringify(text), 60_000)
    await expect(passkeysIn(store).byId('AAAA')).rejects.toBeInstanceOf(UnavailableError)
  })
  it('that others change again and again is an outage after twenty tries', async () => {
    const [kept, update] = [memoryStore(), vi.fn(async () => false)]
    await passkeysIn(kept).add(recordOf('AAAA'))
    const used = passkeysIn({ ...kept, update }).update('AAAA', use(1), 1)
    await expect(used).rejects.toBeInstanceOf(UnavailableError)
    expect(update).toHaveBeenCalledTimes(20)
  })
  it('that is silent is an outage after two seconds', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout'] })
    const asked = faceOf({ ...memoryStore(), members: () => new Promise(() => {}) }).list('anna')
    const failure = asked.catch((error: unknown) => error)
    await vi.advanceTimersByTimeAsync(2000)
    vi.useRealTimers()
    expect(await failure).toBeInstanceOf(UnavailableError)
  })
})
