/**
 * D-S5, D-S6, D-S9, D-S10: invalid data in a store sign no user in, and a change of an operation that fails is not
 * kept.
 */
import { inspect } from 'node:util'
import type { Store } from 'koa-with-auth/stores'
import { describe, expect, it } from 'vitest'
import { sessionKey, textAt } from '../../src/sessions/SessionRecords.js'
import { at, expectAnonymous, expectSignedIn, sessionsApp, idIn, type Visitor } from '../support/sites/sessionsApp.js'
import { describeLastingStores } from '../support/stores/sessionStores.js'

const anna = { username: 'anna', isActive: true }
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
  ['an id that is empty', JSON.stringify({ auth: { ...good, id: '' } })],
  ['an id that is a number', JSON.stringify({ auth: { ...good, id: 7 } })],
  ['no id', JSON.stringify({ auth: { at: now, mark: '' } })],
  ['no time', JSON.stringify({ auth: { id: 'root', mark: '' } })],
  ['a time that is a string', JSON.stringify({ auth: { ...good, at: String(now) } })],
  ['an unknown user', JSON.stringify({ auth: { ...good, id: '__proto__' } })],
  ['a prototype', `{"__proto__":${JSON.stringify({ auth: good })}}`],
]

describeLastingStores((store) => {
  describe('D-S5 a session with invalid data', () => {
    it.each(rubbish)('%s: signs no user in, and nothing breaks', async (_what, text) => {
      const { visitor } = await sessionsApp(store)
      const one = visitor()
      await one.post('/login')
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
        const { visitor } = await sessionsApp(store)
        const one = visitor()
        await one.post('/login')
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
    it.each(strange.map((answer) => [inspect(answer), answer] as const))('get: %s', async (_what, answer) => {
      const { visitor, store: watched } = await sessionsApp(store)
      const one = visitor()
      await one.post('/login')
      // Safe: a store in plain JavaScript could do this
      Object.assign(watched.instead, { get: async (keys: ReadonlyArray<string>) => keys.map(() => answer) })
      const { status, seen } = await one.ask('/super')
      expect([status, seen]).toEqual([503, []])
      expect((await one.ask('/me')).status).toBe(503)
    })

    it.each([null, undefined, 0, {}, ['']])('instead of all texts: %j', async (answer) => {
      const { visitor, store: watched } = await sessionsApp(store)
      const one = visitor()
      await one.post('/login')
      const instead: Store['get'] = async () => answer as never
      Object.assign(watched.instead, { get: instead })
      expect((await one.ask('/me')).status).toBe(503)
      expect((await one.post('/login')).status).toBe(503)
    })
  })

  describe('D-S6 an operation that throws after it changed the session', () => {
    it('D-S10 keeps no change of nested data', async () => {
      const { visitor } = await sessionsApp(store, {
        below: (app) =>
          app.use(
            at('/deep', (ctx) => {
              const { auth } = ctx['session'] as unknown as { auth: { id: string } }
              auth.id = 'root'
              throw new Error('after a change')
            }),
          ),
      })
      const user = visitor()
      await user.post('/login')
      expect((await user.post('/deep')).status).toBe(500)
      await expectSignedIn(user, anna)
    })
  })

  it('D-S13 no log line contains an id, a signature or the content of a session', async () => {
    const { visitor, store: watched, errors } = await sessionsApp(store, { maxLength: 300 })
    const user = visitor()
    await user.post('/login')
    const secrets = [...user.cookies.values(), 'pear-pear']
    await user.post('/throw?basket=pear-pear')
    await user.post(`/set?basket=pear-pear${'x'.repeat(300)}`)
    Object.assign(watched.instead, { get: async () => 7 })
    expect((await user.post('/login')).status).toBe(503)
    expect(errors).toHaveLength(2)
    for (const secret of secrets) expect(inspect(errors, { depth: 9 })).not.toContain(secret)
  })
})
