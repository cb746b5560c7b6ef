/** R12, R16: a sign-in is valid in the session and the application where it was made, and nowhere else. */
import { memoryStore, type Store } from 'koa-with-auth/stores'
import { describe, expect, it } from 'vitest'
import { sessionKey, textAt } from '../../src/sessions/SessionRecords.js'
import { programName } from '../../src/sessions/programName.js'
import {
  expectAnonymous,
  expectSignedIn,
  sessionsApp,
  signedInApp,
  idIn,
  strongKey,
  type SessionsAppOptions,
  type Visitor,
} from '../support/sites/sessionsApp.js'
import { describeLastingStores } from '../support/stores/sessionStores.js'

const root = { username: 'root', isSuperuser: true }
const keyOf = ({ cookies }: Visitor, name = 'session'): string => sessionKey(idIn(cookies.get(name)))

type Data = Record<string, unknown>
const sessionAt = (ctx: object): Data => (ctx as { readonly session: Data }).session

// Writes what a client sends into the session
const wizard: SessionsAppOptions = {
  acts: {
    '/wizard': (ctx) =>
      Object.assign(sessionAt(ctx), JSON.parse(new URLSearchParams(ctx.querystring).get('data') ?? '{}')),
  },
}
const ask = (one: Visitor, data: object) => one.post(`/wizard?data=${encodeURIComponent(JSON.stringify(data))}`)

describeLastingStores((store) => {
  describe('R12 a client that can write keys of the session', () => {
    const mac = 'A'.repeat(43)
    it.each([
      ['as it was earlier', { id: 'root', at: Date.now(), stamp: '' }],
      ['with a MAC', { id: 'root', at: Date.now(), stamp: '', mac }],
      ['with an empty MAC', { id: 'root', at: Date.now(), stamp: '', mac: '' }],
      ['with a MAC that is an array', { id: 'root', at: Date.now(), stamp: '', mac: [mac] }],
      ['with a time far in the future', { id: 'root', at: 9e15, stamp: '', mac }],
    ])('is not signed in by a record %s', async (_what, auth) => {
      const { visitor, loaded } = await sessionsApp(store, wizard)
      const one = visitor()
      expect((await ask(one, { step: 1, auth })).status).toBe(200)
      await expectAnonymous(one)
      expect((await one.ask('/super')).status).toBe(401)
      expect(loaded()).toBe(0)
      // Keys that are not a forgery are kept
      expect((await one.ask('/read')).body).toEqual({ step: 1 })
    })

    it('cannot use the record of another session', async () => {
      const { visitor } = await sessionsApp(store, wizard)
      const admin = visitor()
      await admin.post('/login?user=root')
      const { auth } = (await admin.ask('/read')).body as Data
      const one = visitor()
      await ask(one, { auth: auth as object })
      await expectAnonymous(one)
      await one.post('/login')
      await ask(one, { auth: auth as object })
      await expectAnonymous(one)
      await expectSignedIn(admin, root)
    })

    it('is not signed in within the same request either', async () => {
      const { visitor, loaded } = await sessionsApp(store, {
        below: (app) =>
          app.use(async (ctx, next) => {
            sessionAt(ctx)['auth'] = { id: 'root', at: Date.now(), stamp: '', mac }
            await next()
          }),
      })
      await expectAnonymous(visitor())
      expect(loaded()).toBe(0)
    })
  })

  describe('R12 an attacker who can write to the store', () => {
    it('cannot sign in, neither by their own data nor by those of another session', async () => {
      const { visitor } = await sessionsApp(store)
      const [one, admin] = [visitor(), visitor()]
      await one.post('/login')
      await admin.post('/login?user=root')
      const text = (await textAt({ store: store() }, keyOf(admin))) ?? ''
      expect(text).toContain('"root"')
      await store().update(keyOf(one), text, 60_000)
      await expectAnonymous(one)
      await store().update(keyOf(one), text.replace('"root"', '"anna"'), 60_000)
      await expectAnonymous(one)
      await expectSignedIn(admin, root)
    })
  })

  describe('R16 two services with the same keys and the same store', () => {
    const visit = async (first: object, second: object) => {
      const [shop, admin] = [await sessionsApp(store, first), await sessionsApp(store, second)]
      const one = shop.visitor()
      await one.post('/login?user=root')
      return { shop, admin, one, there: admin.visitor(one.cookies) }
    }

    it('with different names do not accept each other’s sessions', async () => {
      const { one, there, admin } = await visit({ name: 'shop' }, { name: 'admin' })
      expect((await there.ask('/super')).status).toBe(401)
      await expectAnonymous(there)
      expect(admin.loaded()).toBe(0)
      await expectSignedIn(one, root)
    })

    it('of different packages do not accept each other’s sessions, because the default name is that of the package', async () => {
      const { there } = await visit({}, { name: 'another-package' })
      await expectAnonymous(there)
      const same = await visit({}, { name: programName(true) })
      await expectSignedIn(same.there, root)
    })
  })

  describe('a new id in the same request', () => {
    it('after a sign-out does not take a record that the operation kept', async () => {
      const { one } = await signedInApp(store, {
        acts: {
          '/held': async (ctx, { logOut }) => {
            const { auth } = sessionAt(ctx)
            await logOut(ctx)
            ctx['session'] = { auth }
          },
        },
      })
      await one.post('/held')
      await expectAnonymous(one)
    })
  })
})

describe('R12 a record that a store returns', () => {
  it('with inherited fields signs no user in', async () => {
    const kept: Store = memoryStore()
    const { one } = await signedInApp(() => kept, { keys: [strongKey] })
    const text = (await textAt({ store: kept }, keyOf(one))) ?? ''
    const { auth, ...rest } = JSON.parse(text) as Data
    await kept.update(keyOf(one), `{"__proto__":{"auth":${JSON.stringify(auth)}},"a":1}`, 60_000)
    await expectAnonymous(one)
    const inherited = `{"auth":{"__proto__":${JSON.stringify(auth)}},"_expire":${String(rest['_expire'])}}`
    await kept.update(keyOf(one), inherited, 60_000)
    await expectAnonymous(one)
  })
})
