/** The list of sessions: how long entries last, when they are written again, what is shown, and what ends with them. */
import { memoryStore } from 'koa-with-auth/stores'
import { expect, it, vi } from 'vitest'
import { endGrants, grantHolder, grantIn, type GrantKeeper } from '../../src/sessions/grants.js'
import { stampFor, type SessionRecords } from '../../src/sessions/SessionRecords.js'
import { textOfDetails, type SignIn } from '../../src/sessions/SignIn.js'
import {
  endAtProvider,
  endElsewhere,
  enlist,
  forgetFinished,
  isListed,
  listedSessions,
  relist,
  type SignInList,
} from '../../src/sessions/SignInList.js'
import { entryKey } from '../../src/sessions/SessionRecords.js'
import { stoppedClock } from '../support/runs/clock.js'

const HOUR = 3_600_000

const listOf = () => {
  const clock = stoppedClock()
  const kept = memoryStore()
  const insert = vi.fn(kept.insert)
  const update = vi.fn(kept.update)
  const add = vi.fn(kept.add)
  const records: SessionRecords = {
    ...{ name: 'shop', store: { ...kept, insert, update, add } },
    ...{ idle: 24 * HOUR, absolute: 48 * HOUR, longest: 480 * HOUR },
  }
  const ended: unknown[] = []
  const list: SignInList = {
    ...records,
    ended: (user, id, session) => void ended.push([user, id, session]),
    endGrants: async (user, id) => void ended.push(['grants', user, id]),
  }
  const signInOf = async (id: string, listed: string, sid?: string, idle?: number): Promise<SignIn> => {
    const proofs = [{ method: 'oidc', at: Date.now(), issuer: 'https://op.example', ...(sid && { sid }) }]
    const details = textOfDetails({ listed, idle, proofs, label: `label of ${listed}` })
    return { id, at: Date.now(), stamp: await stampFor(records, id), ...(details !== undefined && { details }) }
  }
  const textOf = async (user: string, id: string) => (await kept.get([entryKey('shop', user, id)]))[0]
  return { clock, list, signInOf, textOf, insert, update, add, ended }
}

it.each([
  [undefined, 25 * HOUR, HOUR],
  [2 * HOUR, 3 * HOUR, HOUR],
  [HOUR, 1.5 * HOUR, HOUR / 2],
])(
  'an entry of a session that is idle after %s lasts %i ms, and is written again after %i',
  async (idle, lasts, rests) => {
    const { clock, list, signInOf, textOf, insert, update, add } = listOf()
    const signIn = await signInOf('anna', 'one', undefined, idle)
    await enlist(list, signIn, 'digest')
    // the set of the user's entries lasts longer
    expect([insert.mock.calls.at(-1)?.[2], add.mock.calls[0]?.[2]]).toEqual([lasts, lasts + HOUR])
    clock.move(rests - 1)
    const text = await textOf('anna', 'one')
    expect([await isListed(list, signIn, text, 'digest'), update.mock.calls.length]).toEqual([true, 0])
    clock.move(1)
    expect([await isListed(list, signIn, text, 'digest'), update.mock.calls.length]).toEqual([true, 1])
    expect(update.mock.calls[0]?.[2]).toBe(lasts)
    const fresh = await textOf('anna', 'one')
    expect([await isListed(list, signIn, fresh), update.mock.calls.length]).toEqual([true, 1])
    // what the session has become is written at once
    for (const changed of [
      { ...signIn, details: signIn.details?.replace('"oidc"', '"totp"') ?? '' },
      { ...signIn, details: signIn.details?.replace('"method"', '"sid":"s","method"') ?? '' },
    ]) {
      update.mockClear()
      expect([await isListed(list, changed, fresh), update.mock.calls.length]).toEqual([true, 1])
    }
    update.mockClear()
    expect([await isListed(list, signIn, fresh, 'another'), update.mock.calls.length]).toEqual([true, 1])
    expect(isListed(list, signIn, undefined)).toBe(false)
    for (const name of ['user', 'id', 'at', 'seen', 'methods', 'stamp']) {
      const without = JSON.stringify({ ...(JSON.parse(fresh ?? '') as object), [name]: undefined })
      expect([name, isListed(list, signIn, without)]).toEqual([name, false])
    }
  },
)

it('shows the sessions of a user, the newest first, and none of an older stamp', async () => {
  const { clock, list, signInOf } = listOf()
  for (const [user, id] of [
    ['anna', 'one'],
    ['anna', 'two'],
    ['bert', 'three'],
  ] as const) {
    await enlist(list, await signInOf(user, id), undefined, id === 'two' ? 'bearer' : undefined)
    clock.move(1000)
  }
  await enlist(list, { ...(await signInOf('anna', 'four')), stamp: 'older' }, undefined)
  expect(await listedSessions(list, 'anna', 'one')).toMatchObject([
    { id: 'two', current: false, kind: 'bearer', label: 'label of two', methods: ['oidc'] },
    { id: 'one', current: true, kind: 'cookie', label: 'label of one' },
  ])
})

it('ends an entry with its grants, and the session of a provider with the entries that came of it alone', async () => {
  const { clock, list, signInOf, textOf, ended } = listOf()
  for (const [id, sid] of [
    ['one', 'a'],
    ['two', 'b'],
    ['three', undefined],
  ] as const) {
    await enlist(list, await signInOf('anna', id, sid), `digest of ${id}`)
  }
  await endAtProvider(list, undefined, 'https://evil.example', 'a')
  await endAtProvider(list, 'bert', 'https://op.example', 'a')
  expect(ended).toEqual([])
  await endAtProvider(list, undefined, 'https://op.example', 'a')
  await endAtProvider(list, 'anna', 'https://op.example', 'b')
  const down = { ...list, endGrants: () => Promise.reject(new Error('down')) }
  await expect(endElsewhere(down, 'anna', 'three')).rejects.toThrow('down')
  expect(await endElsewhere(list, 'bert', 'three')).toBe(false)
  expect(await endElsewhere(list, 'anna', 'three')).toBe(true)
  expect(await endElsewhere(list, 'anna', 'three')).toBe(false)
  expect(ended).toEqual(
    ['one', 'two', 'three'].flatMap((id) => [
      ['grants', 'anna', id],
      ['anna', id, `digest of ${id}`],
    ]),
  )
  // and those that come of it afterwards
  for (const [user, sid] of [
    ['anna', 'a'],
    ['bert', 'a'],
    ['anna', 'b'],
    ['bert', 'b'],
  ] as const)
    await enlist(list, await signInOf(user, sid, sid), undefined)
  const texts = [await textOf('anna', 'a'), await textOf('bert', 'a'), await textOf('anna', 'b')]
  expect([texts, typeof (await textOf('bert', 'b'))]).toEqual([[undefined, undefined, undefined], 'string'])
  const before = await signInOf('anna', 'four')
  await enlist(list, before, undefined)
  const proven = { ...before, details: before.details?.replace('"method"', '"sid":"a","method"') ?? '' }
  expect([await relist(list, proven), await textOf('anna', 'four')]).toEqual([false, undefined])
  // a later sign-in at the same session of the provider is another one; clocks differ a little
  for (const ms of [5000, 1]) {
    clock.move(ms)
    await enlist(list, await signInOf('anna', `later ${ms}`, 'a'), undefined)
  }
  expect([await textOf('anna', 'later 5000'), typeof (await textOf('anna', 'later 1'))]).toEqual([undefined, 'string'])
})

it('forgets what was finished a moment ago: of one user, or of all', () => {
  const finished = new Map(['anna', 'bert', undefined].map((user, at) => [String(at), { until: 1, user }]))
  forgetFinished({ finished }, 'anna')
  expect([...finished.keys()]).toEqual(['1', '2'])
  forgetFinished({ finished })
  expect(finished.size).toBe(0)
})

it('grants are those of the session, as long as it lasts: by their own name, else by that of its entry', () => {
  expect([grantIn({ grant: 'a', listed: 'b' }), grantIn({ listed: 'b' }), grantIn({})]).toEqual(['a', 'b', undefined])
  const host = { ...listOf().list, keys: () => [], grants: new Map() }
  const lifetimes = [{ absolute: 1000 }, {}].map((details) => grantHolder(host, 'anna', details).lifetime)
  expect(lifetimes).toEqual([1000, 48 * HOUR])
})

it('grants end one provider after another, and none of them is left out if it cannot be ended', async () => {
  const ended: string[] = []
  const keeper = (kind: string, end: () => Promise<void> = async () => undefined) => {
    // Safe: nothing else of a keeper is used
    return { kind, end: () => end().then(() => void ended.push(kind)) } as unknown as GrantKeeper
  }
  const host = { ...listOf().list, keys: () => [] }
  const grants = (...all: GrantKeeper[]) => ({ ...host, grants: new Map(all.map((one) => [{}, one])) })
  await endGrants(grants(keeper('one'), keeper('two')), 'anna', {})
  expect(ended).toEqual(['one', 'two'])
  const down = keeper('three', () => Promise.reject(new Error('down')))
  await expect(endGrants(grants(down, keeper('four')), 'anna', {})).rejects.toThrow('down')
  expect(ended).toEqual(['one', 'two'])
})
