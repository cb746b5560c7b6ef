/** The routes of passkeys in their shortest form: no type of a user, no hook of a registration, one kind for both intents. Their documents, and bodies that cannot be read. */
import Router from '@koa/router'
import Koa from 'koa'
import { withAuth, operation } from 'koa-with-auth'
import { sessions } from 'koa-with-auth/sessions'
import { begin, finish, askSecondFactor, type FinishHook } from 'koa-with-auth/sign-in'
import { passkeys, type PasskeyProof, passkeyOperations } from 'koa-with-auth/sign-in/passkeys'
import { sqliteStore } from 'koa-with-auth/stores'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { openApi } from 'koa-with-auth/openapi'
import { softwareAuthenticator, type RegistrationJson } from 'koa-with-auth/testing'
import {
  optionsFrom,
  origin,
  person,
  register,
  use,
  type Person,
  passkeySite,
  withPasskey,
} from '../support/sites/passkeySite.js'
import { listen } from '../support/servers/server.js'
import { invalidIn } from '../support/papers/openapiTools.js'
import { annaAt, servedPasskeySite } from '../support/sites/servedPasskeySite.js'

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

const schemaIn = (content: unknown): object =>
  // Safe: the bodies are described like this, and a compiled schema would fail otherwise
  (content as { readonly content: { readonly 'application/json': { readonly schema: object } } }).content[
    'application/json'
  ].schema
const errorsOf = (content: unknown, value: unknown) => {
  const validate = new Ajv2020().compile(schemaIn(content))
  return validate(value) ? [] : validate.errors
}

describe('the operations of passkeys', () => {
  it('make a valid document', async () => {
    const router = new Router()
    for (const [name, described] of Object.entries(passkeyOperations)) {
      router.post(`/${name}`, operation({ summary: name, ...described }), withAuth(null), () => {})
    }
    const document = openApi(router, { title: 'Shop', version: '1' })
    expect(await invalidIn(document)).toBeUndefined()
    expect(document.paths?.['/finish']?.post?.requestBody).toMatchObject({ required: true })
  })

  it('describe what is sent and answered', async () => {
    const { url, close } = await listen(passkeySite().app)
    try {
      const anna = await withPasskey(() => url, 'anna')
      const { begin, finish, beginRegistration, finishRegistration } = passkeyOperations
      const creation = await optionsFrom(anna, '/passkeys/options')
      expect(errorsOf(beginRegistration.responses?.['200'], creation)).toStrictEqual([])
      const { excludeCredentials: _, ...open } = creation
      expect(errorsOf(finishRegistration.requestBody, anna.phone.create(open))).toStrictEqual([])
      const again = await withPasskey(() => url, 'anna')
      const request = await optionsFrom(again, '/sign-in/passkey/options')
      expect(errorsOf(begin.responses?.['200'], request)).toStrictEqual([])
      const assertion = again.phone.get(request)
      expect(errorsOf(finish.requestBody, assertion)).toStrictEqual([])
      const { body } = await again.browser.post('/sign-in/passkey', assertion)
      expect(errorsOf(finish.responses?.['200'], body)).toStrictEqual([])
      expect(errorsOf(finish.requestBody, { ...assertion, response: {} })).not.toStrictEqual([])
    } finally {
      await close()
    }
  })
})

const unknown = { status: 400, body: expect.objectContaining({ reason: 'unknown' }) }

describe('W-03 a body that cannot be read is as wrong as any other', () => {
  const large = JSON.stringify({ id: 'A'.repeat(2 ** 20) })
  const bodies: Readonly<Record<string, string>> = {
    'no JSON': '{',
    'members of a prototype': '{"__proto__":{"id":"AAAA","rawId":"AAAA","type":"public-key"}}',
    'no client data': '{"id":"AAAA","rawId":"AAAA","type":"public-key","response":{}}',
    'nested 30,000 deep': `${'['.repeat(30_000)}${']'.repeat(30_000)}`,
    '1 MB of JSON': large,
  }
  it.each(Object.entries(bodies))('%s', async (_name, body) => {
    const { store, errors, anna } = await annaAt()
    const wrong = await use(anna, { signature: 'wrong' })
    expect(wrong).toMatchObject(unknown)
    for (const path of ['/passkeys', '/sign-in/passkey', '/prove/passkey']) {
      const { status, body: answer } = await anna.browser.send('POST', path, body)
      expect([path, status, answer]).toStrictEqual([path, 400, wrong.body])
    }
    expect(await store.ofUser('anna')).toHaveLength(1)
    expect(errors).toStrictEqual([])
  })

  it('1 MB without a length is read no further than needed, and the connection is not cut off', async () => {
    const { url } = await servedPasskeySite()
    const chunks = new ReadableStream<Uint8Array>({
      start: (controller) => {
        for (let at = 0; at < 1024; at += 1) controller.enqueue(new Uint8Array(1024))
        controller.close()
      },
    })
    const headers = { 'content-type': 'application/json' }
    const sent: RequestInit = { method: 'POST', headers, body: chunks, duplex: 'half' }
    const reply = await fetch(`${url()}/sign-in/passkey`, sent)
    expect([reply.status, await reply.json()]).toMatchObject([400, { reason: 'unknown' }])
  })
})

// An attestation of the format `none` is not signed, so it can be made for any id
const ofId = (made: RegistrationJson, id: string): RegistrationJson => {
  const bytes = Buffer.from(made.response.attestationObject, 'base64url')
  Buffer.from(id, 'base64url').copy(bytes, bytes.indexOf(Buffer.from(made.id, 'base64url')))
  return { ...made, id, rawId: id, response: { ...made.response, attestationObject: bytes.toString('base64url') } }
}
const created = async (who: Person) =>
  softwareAuthenticator({ origin }).create({
    ...(await optionsFrom(who, '/passkeys/options')),
    excludeCredentials: [],
  })

describe('W-06 a credential has one record', () => {
  it('one that belongs to another user is not registered, and stays theirs', async () => {
    const { url, store } = await servedPasskeySite()
    const bert = await withPasskey(url, 'bert')
    const kept = await store.byId(bert.id)
    const anna = person(url)
    await anna.browser.post('/sign-in/password/anna')
    expect(await anna.browser.post('/passkeys', ofId(await created(anna), bert.id))).toMatchObject(unknown)
    expect([await store.byId(bert.id), await store.ofUser('anna')]).toStrictEqual([kept, []])
    expect(await use(bert)).toHaveProperty('status', 200)
  })

  it('one that comes with five challenges at the same time is registered once', async () => {
    const { url, store, calls } = await servedPasskeySite()
    const anna = person(url)
    await anna.browser.post('/sign-in/password/anna')
    const first = await created(anna)
    const answers = [first]
    for (const _ of [1, 2, 3, 4]) answers.push(ofId(await created(anna), first.id))
    const replies = await Promise.all(answers.map((answer) => anna.browser.post('/passkeys', answer)))
    expect(replies.map(({ status }) => status).sort()).toEqual([201, 400, 400, 400, 400])
    expect([await store.ofUser('anna'), calls.registered]).toMatchObject([[{ id: first.id }], 1])
  })
})

it('W-03 a passkey that was removed is refused as one that never was', async () => {
  const { errors, store, anna } = await annaAt()
  expect(await use(anna, { id: 'AAAAAAAAAAAAAAAAAAAAAA' })).toMatchObject(unknown)
  expect(await store.remove(anna.id, 'bert')).toBe(false)
  expect(await store.remove(anna.id, 'anna')).toBe(true)
  expect(await store.remove(anna.id, 'anna')).toBe(false)
  expect(await use(anna)).toMatchObject(unknown)
  expect(errors).toStrictEqual([])
})

it('a passkey of a user who is gone is a 403, and signs no user in', async () => {
  const { store, calls, anna } = await annaAt()
  const kept = await store.byId(anna.id)
  const other = await servedPasskeySite()
  await other.store.add({ ...kept!, user: 'gone' })
  const again = { ...person(other.url), phone: anna.phone }
  expect(await use(again)).toMatchObject({ status: 403, body: { reason: 'noAccount' } })
  expect([calls.signedIn, other.calls.signedIn, (await again.browser.get('/me')).status]).toEqual([0, 1, 401])
})
