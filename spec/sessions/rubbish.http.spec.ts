/**
 * D-S5, D-S6, D-S9, D-S10: invalid data in a store sign no user in, and a change of an operation that fails is not
 * kept.
 */
import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { sessionKey, textAt } from '../../src/sessions/SessionRecords.js'
import { anna, expectAnonymous, expectSignedIn, signedInApp, idIn, type Visitor } from '../support/sites/sessionsApp.js'
import { describeLastingStores } from '../support/stores/sessionStores.js'

const keyOf = ({ cookies }: Visitor): string => sessionKey(idIn(cookies.get('session')))

const now = Date.now()
const good = { id: 'root', at: now, stamp: '' }

// What is stored under the id of an otherwise valid session
const rubbish: ReadonlyArray<readonly [string, string]> = [
  ['nothing', ''],
  ['invalid JSON', 'anna'],
  ['half of the JSON', JSON.stringify({ auth: good }).slice(0, -1)],
  ['null', 'null'],
  ['an empty object', '{}'],
  ['a Left', '{"_tag":"Left","left":"ECONNREFUSED"}'],
  ['auth that is a string', '{"auth":"root"}'],
  ['a prototype', `{"__proto__":${JSON.stringify({ auth: good })}}`],
]

describeLastingStores((store) => {
  describe('D-S5 a session with invalid data', () => {
    it.each(rubbish)('%s: signs no user in, and nothing breaks', async (_what, text) => {
      const { one } = await signedInApp(store)
      await store().update(keyOf(one), text, 60_000)
      const other = one.copy()
      await expectAnonymous(one)
      expect((await one.ask('/super')).status).toBe(401)
      expect((await one.ask('/open')).status).toBe(200)
      expect((await one.post('/set?basket=pear')).status).toBe(200)
      await other.post('/login')
      await expectSignedIn(other, anna)
    })

    // The prototype of koa-session's session, and what it keeps beside the data (D-S9)
    it.each(['__proto__', 'toJSON', 'constructor', 'save', 'regenerate', 'commit', 'isNew', 'populated', 'length'])(
      'D-S9 the key %s beside the sign-in changes nothing',
      async (key) => {
        const { one } = await signedInApp(store)
        const { auth } = JSON.parse((await textAt({ store: store() }, keyOf(one))) ?? '') as { readonly auth: object }
        const text = `{"${key}":{"populated":false},"auth":${JSON.stringify(auth)},"basket":"pear"}`
        await store().update(keyOf(one), text, 60_000)
        await expectSignedIn(one, anna)
        expect((await one.post('/set?basket=plum')).status).toBe(200)
        expect((await one.ask('/read')).body).toEqual({ auth, basket: 'plum' })
        expect((await one.post('/logout')).status).toBe(200)
        await expectAnonymous(one)
      },
    )
  })

  describe('D-S5 a store that returns an invalid value', () => {
    const strange: ReadonlyArray<unknown> = [
      null,
      0,
      {},
      [],
      { auth: good },
      Symbol('text'),
      () => JSON.stringify({ auth: good }),
      { _tag: 'Right', right: JSON.stringify({ auth: good }) },
    ]
    type Get = (keys: ReadonlyArray<string>) => unknown
    it.each<[string, Get]>([
      ...strange.map((one): [string, Get] => [inspect(one), (keys) => keys.map(() => one)]),
      ...[null, undefined, 0, {}, ['']].map((one): [string, Get] => [`${inspect(one)} for all texts`, () => one]),
    ])('get: %s', async (_what, answer) => {
      const { store: watched, one } = await signedInApp(store)
      // Safe: a store in plain JavaScript could do this
      Object.assign(watched.instead, { get: async (keys: ReadonlyArray<string>) => answer(keys) })
      for (const path of ['/super', '/me']) expect(await one.ask(path)).toMatchObject({ status: 503, seen: [] })
      expect((await one.post('/login')).status).toBe(503)
    })
  })

  describe('D-S6 an operation that throws after it changed the session', () => {
    it('D-S10 keeps no change of nested data', async () => {
      const { one: user } = await signedInApp(store, {
        acts: {
          '/deep': (ctx) => {
            const { auth } = ctx['session'] as unknown as { auth: { id: string } }
            auth.id = 'root'
            throw new Error('after a change')
          },
        },
      })
      expect((await user.post('/deep')).status).toBe(500)
      await expectSignedIn(user, anna)
    })
  })

  it('D-S13 no log line contains an id, a signature or the content of a session', async () => {
    const { store: watched, errors, one: user } = await signedInApp(store, { maxLength: 300 })
    const secrets = [...user.cookies.values(), 'pear-pear']
    await user.post('/throw?basket=pear-pear')
    await user.post(`/set?basket=pear-pear${'x'.repeat(300)}`)
    Object.assign(watched.instead, { get: async () => 7 })
    expect((await user.post('/login')).status).toBe(503)
    expect(errors).toHaveLength(2)
    for (const secret of secrets) expect(inspect(errors, { depth: 9 })).not.toContain(secret)
  })
})
