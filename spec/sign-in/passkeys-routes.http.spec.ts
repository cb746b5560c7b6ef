/** The routes of passkeys in their shortest form: no type of a user, no hook of a registration, one kind for both intents. */
import Router from '@koa/router'
import Koa from 'koa'
import { withAuth } from 'koa-with-auth'
import { sessions } from 'koa-with-auth/sessions'
import { begin, finish, askSecondFactor, type FinishHook } from 'koa-with-auth/sign-in'
import { passkeys, type PasskeyProof } from 'koa-with-auth/sign-in/passkeys'
import { sqliteStore } from 'koa-with-auth/stores'
import { describe, expect, it, onTestFinished } from 'vitest'
import { optionsFrom, origin, person, register, use, type Person } from '../support/sites/passkeySite.js'
import { listen } from '../support/servers/server.js'

const users = new Map(
  ['anna', 'bert'].map((username) => [username, { username, email: `${username}@shop.example`, isActive: true }]),
)

const started = async () => {
  const app = new Koa({ keys: ['a secret of 32 characters or more'] })
  const { sessionAuth, logIn } = sessions(app, { loadUser: (id) => users.get(id), origin })
  const url = 'file::memory:'
  const file = sqliteStore({ url })
  const passkey = passkeys({
    rp: { id: 'localhost', name: 'Shop' },
    origins: [origin],
    store: file,
    nameOf: (user) => user.email,
  })
  const router = new Router()
  router.post('/sign-in/password/:user', withAuth(null), async (ctx) => {
    const user = users.get(ctx.params['user'] ?? '')
    if (user === undefined) return ctx.throw(403)
    await logIn(ctx, user, { proof: { method: 'password' } })
    ctx.status = 204
  })
  router.get('/me', withAuth(sessionAuth()), (ctx) => {
    ctx.body = ctx.request.auth.username
  })
  router.post('/passkeys/options', withAuth(sessionAuth({ proof: { maxAge: 300_000 } })), begin(passkey.register))
  router.post('/passkeys', withAuth(sessionAuth()), finish(passkey.register))
  router.post('/sign-in/passkey/options', withAuth(null), begin(passkey))
  const hook: FinishHook<PasskeyProof> = (_ctx, { proof }) => users.get(proof.subject)
  router.post('/sign-in/passkey', withAuth(null), finish(passkey, hook))
  router.post('/prove/options', withAuth(sessionAuth()), begin(passkey, { intent: 'stepUp' }))
  router.post('/prove', withAuth(sessionAuth()), finish(passkey, hook))
  router.post('/first/:user', withAuth(null), async (ctx) => {
    const user = users.get(ctx.params['user'] ?? '')
    if (user !== undefined) ctx.body = await askSecondFactor(ctx, passkey, { user, proof: { method: 'password' } })
  })
  // it takes the word of the library for whom it is about
  const trusting: FinishHook<PasskeyProof> = (_ctx, { subject }) => users.get(subject ?? '')
  router.post('/second', withAuth(null), finish(passkey, trusting))
  router.get('/vault', withAuth(sessionAuth({ proof: { methods: ['passkey'] } })), (ctx) => {
    ctx.body = 'gold'
  })
  app.use(passkey.related)
  app.use(router.routes())
  const { url: at, close } = await listen(app)
  onTestFinished(async () => {
    await close()
    file.close()
  })
  const signedIn = async (user: string): Promise<Person> => {
    const who = person(() => at)
    await who.browser.post(`/sign-in/password/${user}`)
    return who
  }
  return { store: { ofUser: passkey.list }, signedIn, stranger: () => person(() => at), kinds: passkey }
}

describe('W-01 a registration without a hook', () => {
  it('stores the passkey, which signs in', async () => {
    const { store, signedIn, stranger } = await started()
    const anna = await signedIn('anna')
    expect(await register(anna)).toMatchObject({ status: 200, body: { returnTo: '/' } })
    expect(await store.ofUser('anna')).toHaveLength(1)
    const again = { ...stranger(), phone: anna.phone }
    expect(await use(again)).toHaveProperty('status', 200)
    expect((await again.browser.get('/me')).body).toBe('anna')
  })

  it('is a TypeError for every other kind', async () => {
    const { kinds } = await started()
    for (const kind of [kinds, kinds.stepUp]) {
      // @ts-expect-error a sign-in needs to know the user
      expect(() => finish(kind)).toThrow(/finish\(kind, hook\): hook must be a function/)
    }
  })
})

describe('W-12 a passkey after a first factor', () => {
  it('is of the user who gave that one: it signs in, and that of another user is a 403 and stays as it was', async () => {
    const { signedIn, stranger, store } = await started()
    const [anna, bert] = [await signedIn('anna'), await signedIn('bert')]
    await register(anna)
    await register(bert)
    const kept = await store.ofUser('bert')
    const thief = { ...stranger(), phone: bert.phone }
    const answer = thief.phone.get(await optionsFrom(thief, '/first/anna'))
    expect(await thief.browser.post('/second', answer)).toMatchObject({ status: 403, body: { reason: 'anotherUser' } })
    expect([(await thief.browser.get('/me')).status, await store.ofUser('bert')]).toStrictEqual([401, kept])
    const own = { ...stranger(), phone: anna.phone }
    const right = own.phone.get(await optionsFrom(own, '/first/anna'))
    expect(await own.browser.post('/second', right)).toHaveProperty('status', 200)
    expect((await own.browser.get('/me')).body).toBe('anna')
  })
})

describe('W-10 a step-up that the kind of the sign-in begins', () => {
  const proving = async () => {
    const site = await started()
    const anna = await site.signedIn('anna')
    await register(anna)
    return { ...site, anna }
  }

  it('adds the proof for the same user, under another session id', async () => {
    const { anna } = await proving()
    expect(await anna.browser.get('/vault')).toMatchObject({
      status: 403,
      body: { reason: 'insufficient', proof: { methods: ['passkey'] } },
    })
    const before = anna.browser.cookies.get('session')
    expect(await use(anna, {}, '/prove')).toHaveProperty('status', 200)
    expect(anna.browser.cookies.get('session')).not.toBe(before)
    expect((await anna.browser.get('/me')).body).toBe('anna')
    expect(await anna.browser.get('/vault')).toHaveProperty('status', 200)
  })

  it('stays one, wherever it is finished: it signs in no stranger, and no other user', async () => {
    const { anna, stranger } = await proving()
    const answer = anna.phone.get(await optionsFrom(anna, '/prove/options'))
    const thief = { ...stranger(), phone: anna.phone }
    expect(await thief.browser.post('/sign-in/passkey', answer)).toMatchObject({ status: 400 })
    await anna.browser.post('/sign-in/password/bert')
    expect(await anna.browser.post('/sign-in/passkey', answer)).toMatchObject({
      status: 403,
      body: { reason: 'anotherUser' },
    })
    expect((await anna.browser.get('/me')).body).toBe('bert')
  })

  it('takes no challenge of passkey.stepUp, and the reverse', async () => {
    const { kinds } = await started()
    expect(kinds.name).not.toBe(kinds.stepUp.name)
    expect(() => begin(kinds.stepUp, { intent: 'signIn' })).toThrow(TypeError)
    expect(() => begin(kinds, { intent: 'link' })).toThrow(TypeError)
  })
})
