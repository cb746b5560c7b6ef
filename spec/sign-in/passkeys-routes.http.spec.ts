/** The routes of passkeys in their shortest form: no hook of a registration, one kind for both intents. Their documents, and bodies that cannot be read. */
import Router from '@koa/router'
import { sessionAuth, withAuth, operation } from 'koa-with-auth'
import { begin, finish, askSecondFactor, type FinishHook } from 'koa-with-auth/sign-in'
import { type PasskeyProof, type Passkeys, passkeyOperations } from 'koa-with-auth/sign-in/passkeys'
import { describe, expect, it } from 'vitest'
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
import { annaAt, passwordAt, servedPasskeySite } from '../support/sites/servedPasskeySite.js'

const userOf = (username: string) => ({ username, isActive: true })

/** A site whose passkeys are the second of two factors, too, and a step-up by the kind of the sign-in. */
const started = async () => {
  let kinds: Passkeys | undefined
  const proofs: PasskeyProof[] = []
  const site = await servedPasskeySite({
    routes: (router, passkey) => {
      const signedIn = withAuth(sessionAuth())
      kinds = passkey
      router.post('/own', signedIn, finish(passkey.register))
      const hook: FinishHook<PasskeyProof> = (_ctx, { proof }) => {
        proofs.push(proof)
        return userOf(proof.subject)
      }
      router.post('/prove/options', signedIn, begin(passkey, { intent: 'stepUp' }))
      router.post('/prove', signedIn, finish(passkey, hook))
      router.post('/first/options', withAuth(null), async (ctx) => {
        ctx.body = await askSecondFactor(ctx, passkey, { user: userOf('anna'), proof: { method: 'password' } })
      })
      // it takes the word of the library for whom it is about
      const trusting: FinishHook<PasskeyProof> = (_ctx, { subject }) => userOf(subject ?? '')
      router.post('/first', withAuth(null), finish(passkey, trusting))
      router.get('/vault', withAuth(sessionAuth({ proof: { methods: ['passkey'] } })), (ctx) => {
        ctx.body = 'gold'
      })
    },
  })
  const signedIn = async (user: string): Promise<Person> => {
    const who = person(site.url)
    await who.browser.post(`/sign-in/password/${user}`)
    return who
  }
  const nameAt = async ({ browser }: Person) => (await browser.get('/me')).body
  // Safe: the routes were made
  return { ...site, proofs, signedIn, nameAt, stranger: () => person(site.url), kinds: kinds! }
}

describe('W-01 a registration without a hook', () => {
  it('stores the passkey, which signs in', async () => {
    const { store, signedIn, stranger, nameAt } = await started()
    const anna = await signedIn('anna')
    const answer = anna.phone.create(await optionsFrom(anna, '/passkeys/options'))
    expect(await anna.browser.post('/own', answer)).toMatchObject({ status: 200, body: { returnTo: '/' } })
    expect(await store.ofUser('anna')).toHaveLength(1)
    const again = { ...stranger(), phone: anna.phone }
    expect(await use(again)).toHaveProperty('status', 200)
    expect(await nameAt(again)).toEqual({ user: 'anna' })
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
    const { signedIn, stranger, store, nameAt } = await started()
    const [anna, bert] = [await signedIn('anna'), await signedIn('bert')]
    await register(anna)
    await register(bert)
    const kept = await store.ofUser('bert')
    const thief = { ...stranger(), phone: bert.phone }
    expect(await use(thief, {}, '/first')).toMatchObject({ status: 403, body: { reason: 'anotherUser' } })
    expect([(await thief.browser.get('/me')).status, await store.ofUser('bert')]).toStrictEqual([401, kept])
    const own = { ...stranger(), phone: anna.phone }
    expect(await use(own, {}, '/first')).toHaveProperty('status', 200)
    expect(await nameAt(own)).toEqual({ user: 'anna' })
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
    const { anna, nameAt, proofs, store } = await proving()
    expect(await anna.browser.get('/vault')).toMatchObject({
      status: 403,
      body: { reason: 'insufficient', proof: { methods: ['passkey'] } },
    })
    const before = anna.browser.cookies.get('session')
    expect(await use(anna, {}, '/prove')).toHaveProperty('status', 200)
    const [kept] = await store.ofUser('anna')
    const about = { subject: 'anna', credential: kept?.id, userVerified: true, backedUp: true }
    expect(proofs).toMatchObject([{ method: 'passkey', ...about }])
    expect(anna.browser.cookies.get('session')).not.toBe(before)
    expect(await nameAt(anna)).toEqual({ user: 'anna' })
    expect(await anna.browser.get('/vault')).toHaveProperty('status', 200)
  })

  it('stays one, wherever it is finished: it signs in no stranger, and no other user', async () => {
    const { anna, stranger, nameAt } = await proving()
    const answer = anna.phone.get(await optionsFrom(anna, '/prove/options'))
    const thief = { ...stranger(), phone: anna.phone }
    expect(await thief.browser.post('/sign-in/passkey', answer)).toMatchObject({ status: 400 })
    await anna.browser.post('/sign-in/password/bert')
    expect(await anna.browser.post('/sign-in/passkey', answer)).toMatchObject({
      status: 403,
      body: { reason: 'anotherUser' },
    })
    expect(await nameAt(anna)).toEqual({ user: 'bert' })
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
    const { url, store, anna } = await passwordAt()
    const bert = await withPasskey(url, 'bert')
    const kept = await store.byId(bert.id)
    expect(await anna.browser.post('/passkeys', ofId(await created(anna), bert.id))).toMatchObject(unknown)
    expect([await store.byId(bert.id), await store.ofUser('anna')]).toStrictEqual([kept, []])
    expect(await use(bert)).toHaveProperty('status', 200)
  })

  it('one that comes with five challenges at the same time is registered once', async () => {
    const { store, calls, anna } = await passwordAt()
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
