/** Passkeys over HTTP, with the software authenticator: registration, sign-in, step-up, and every answer that is refused. */
import { randomBytes } from 'node:crypto'
import { memoryStore, type Store } from 'koa-with-auth/stores'
import { softwareAuthenticator, type WrongAssertion, type WrongRegistration } from 'koa-with-auth/testing'
import { describe, expect, it } from 'vitest'
import { jsonClient } from '../support/servers/jsonClient.js'
import { optionsFrom, origin, person, register, rpId, use, withPasskey } from '../support/sites/passkeySite.js'
import { annaAt, passwordAt, servedPasskeySite } from '../support/sites/servedPasskeySite.js'
import { noting, steppedStore } from '../support/stores/stores.js'
import { recordsOf } from '../support/runs/eventRecords.js'
import { stoppedClock } from '../support/runs/clock.js'

const unknown = { status: 400, body: expect.objectContaining({ reason: 'unknown' }) }
const signedInAs = async (who: { browser: ReturnType<typeof jsonClient> }) => {
  const { status, body } = await who.browser.get('/me')
  return status === 200 ? (body as { user: string }).user : status
}

describe('W-01 a passkey is registered and signs in', () => {
  it('registers with a fresh proof, signs in without a name, and leads to the path of the begin', async () => {
    const { store, calls, anna } = await annaAt()
    expect(await store.ofUser('anna')).toMatchObject([{ id: anna.id, rpId, transports: ['internal'], counter: 0 }])
    expect((await anna.browser.get('/passkeys')).body).toStrictEqual([{ id: anna.id }])
    await anna.browser.post('/sign-out')
    expect(await signedInAs(anna)).toBe(401)
    const before = anna.browser.cookies.get('session')
    const options = await optionsFrom(anna, '/sign-in/passkey/options', { returnTo: '/basket' })
    const reply = await anna.browser.post('/sign-in/passkey', anna.phone.get(options))
    expect(reply).toMatchObject({ status: 200, body: { returnTo: '/basket' } })
    expect(await signedInAs(anna)).toBe('anna')
    expect(anna.browser.cookies.get('session')).not.toBe(before)
    expect(calls.signedIn).toBe(1)
    expect(await store.byId(anna.id)).toHaveProperty('lastUsedAt')
  })

  it('the options are the JSON of WebAuthn, with these defaults', async () => {
    const { anna } = await annaAt()
    expect(await optionsFrom(anna, '/passkeys/options')).toStrictEqual({
      challenge: expect.stringMatching(/^[\w-]{40,}$/),
      rp: { id: rpId, name: 'Shop' },
      user: {
        id: expect.stringMatching(/^[\w-]{43,86}$/),
        name: 'anna@shop.example',
        displayName: 'anna@shop.example',
      },
      pubKeyCredParams: [-8, -7, -257].map((alg) => ({ type: 'public-key', alg })),
      timeout: 300_000,
      excludeCredentials: [{ id: anna.id, type: 'public-key', transports: ['internal'] }],
      authenticatorSelection: { residentKey: 'required', requireResidentKey: true, userVerification: 'required' },
      attestation: 'none',
    })
    expect(await optionsFrom(anna, '/sign-in/passkey/options')).toStrictEqual({
      challenge: expect.stringMatching(/^[\w-]{40,}$/),
      rpId,
      timeout: 300_000,
      userVerification: 'required',
    })
  })

  it('a user has thirty passkeys, all with one user handle', async () => {
    const { store, anna } = await passwordAt()
    const phones = Array.from({ length: 30 }, () => ({ ...anna, phone: softwareAuthenticator({ origin }) }))
    for (const one of phones) expect(await register(one)).toHaveProperty('status', 201)
    expect(new Set((await store.ofUser('anna')).map(({ userHandle }) => userHandle)).size).toBe(1)
    for (const one of phones.slice(-2)) expect(await use(one)).toHaveProperty('status', 200)
  })
})

describe('W-02 an answer is good once, for its own ceremony, in its own browser', () => {
  it.each([true, false])('a replay is refused (synced: %s)', async (synced) => {
    const { store, calls, anna } = await passwordAt({}, { synced })
    const registration = anna.phone.create(await optionsFrom(anna, '/passkeys/options'))
    expect(await anna.browser.post('/passkeys', registration)).toHaveProperty('status', 201)
    const kept = await store.byId(registration.id)
    expect(await anna.browser.post('/passkeys', registration)).toMatchObject(unknown)
    expect(await store.byId(registration.id)).toStrictEqual(kept)
    const assertion = anna.phone.get(await optionsFrom(anna, '/sign-in/passkey/options'))
    expect(await anna.browser.post('/sign-in/passkey', assertion)).toHaveProperty('status', 200)
    const used = await store.byId(registration.id)
    expect(await anna.browser.post('/sign-in/passkey', assertion)).toMatchObject(unknown)
    expect(await store.byId(registration.id)).toStrictEqual(used)
    expect(calls.signedIn).toBe(1)
  })

  it('of twenty at the same time one is in', async () => {
    const { calls, anna } = await annaAt()
    const assertion = anna.phone.get(await optionsFrom(anna, '/sign-in/passkey/options'))
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => anna.browser.post('/sign-in/passkey', assertion)),
    )
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(replies.filter(({ status }) => status === 400)).toHaveLength(19)
    expect(calls.signedIn).toBe(1)
  })

  it('registration, sign-in and step-up never take each other’s answer', async () => {
    const { store, anna } = await annaAt()
    const signIn = () => optionsFrom(anna, '/sign-in/passkey/options')
    const prove = () => optionsFrom(anna, '/prove/passkey/options')
    const create = () => optionsFrom(anna, '/passkeys/options')
    expect(await anna.browser.post('/passkeys', anna.phone.get(await signIn()))).toHaveProperty('status', 400)
    expect(await anna.browser.post('/prove/passkey', anna.phone.get(await signIn()))).toHaveProperty('status', 400)
    expect(await anna.browser.post('/sign-in/passkey', anna.phone.get(await prove()))).toHaveProperty('status', 400)
    // an assertion over the challenge of a registration, and the reverse
    const crossed = anna.phone.get({ ...(await signIn()), challenge: (await create()).challenge })
    expect(await anna.browser.post('/sign-in/passkey', crossed)).toMatchObject(unknown)
    const other = softwareAuthenticator({ origin })
    const registration = other.create({ ...(await create()), challenge: (await signIn()).challenge })
    expect(await anna.browser.post('/passkeys', registration)).toMatchObject(unknown)
    expect(await store.ofUser('anna')).toHaveLength(1)
  })

  it('the challenge of another browser is unknown, and is still good in its own', async () => {
    const { url, anna } = await annaAt()
    const assertion = anna.phone.get(await optionsFrom(anna, '/sign-in/passkey/options'))
    const thief = person(url)
    expect(await thief.browser.post('/sign-in/passkey', assertion)).toMatchObject(unknown)
    await optionsFrom(thief, '/sign-in/passkey/options')
    expect(await thief.browser.post('/sign-in/passkey', assertion)).toMatchObject(unknown)
    expect(await signedInAs(thief)).toBe(401)
    expect(await anna.browser.post('/sign-in/passkey', assertion)).toHaveProperty('status', 200)
  })

  it('after its time it is late; the page asks again, and is in', async () => {
    const clock = stoppedClock()
    const { anna } = await annaAt({ passkeys: { lifetime: 1500 } })
    await anna.browser.post('/sign-out')
    const assertion = anna.phone.get(await optionsFrom(anna, '/sign-in/passkey/options'))
    clock.move(1600)
    expect(await anna.browser.post('/sign-in/passkey', assertion)).toMatchObject({
      status: 400,
      body: { reason: 'late' },
    })
    expect(await signedInAs(anna)).toBe(401)
    expect(await use(anna)).toHaveProperty('status', 200)
  })
})

describe('W-03 what is wrong is refused, with one answer for all', () => {
  const common: Readonly<Record<string, WrongAssertion & WrongRegistration>> = {
    'the type of the other ceremony': { type: 'webauthn.other' },
    'another port': { origin: 'http://localhost:4001' },
    'a frame of another origin': { crossOrigin: true },
    'the hash of another RP': { rpId: 'evil.example' },
    'no user verification': { userVerified: false },
    'no user presence': { userPresent: false },
    'another id': { id: 'AAAAAAAAAAAAAAAAAAAAAA' },
  }
  it.each(Object.entries(common))('%s', async (_name, wrong) => {
    const { store, calls, anna } = await annaAt()
    const kept = await store.byId(anna.id)
    const other = { ...anna, phone: softwareAuthenticator({ origin }) }
    expect(await register(other, wrong)).toMatchObject(unknown)
    expect(await store.ofUser('anna')).toStrictEqual([kept])
    await anna.browser.post('/sign-out')
    const refused = await use(anna, wrong)
    expect(refused).toMatchObject(unknown)
    expect(refused.body).toStrictEqual((await use(anna, { challenge: 'AAAA' })).body)
    expect(await store.byId(anna.id)).toStrictEqual(kept)
    expect([calls.signedIn, await signedInAs(anna)]).toEqual([0, 401])
  })

  const registrations: Readonly<Record<string, WrongRegistration>> = {
    'an unknown format': { attestation: 'unknown' },
    'CBOR nested 10,000 deep': { attestation: Buffer.alloc(10_000, 0x81) },
    'CBOR of 1 MB': { attestation: Buffer.alloc(2 ** 20, 0x81) },
  }
  it.each(Object.entries(registrations))('a registration with %s', async (_name, wrong) => {
    const { store, anna } = await passwordAt()
    const { status } = await register(anna, wrong)
    expect([400, 413]).toContain(status)
    expect(await store.ofUser('anna')).toStrictEqual([])
  })
})

describe('W-04 the counter', () => {
  it.each([
    { before: 5, after: 6, status: 200 },
    { before: 5, after: 5, status: 400 },
    { before: 5, after: 4, status: 400 },
    { before: 5, after: 0, status: 400 },
    { before: 0, after: 0, status: 200 },
  ])('$after after $before is $status', async ({ before, after, status }) => {
    const { store, calls, anna } = await annaAt(undefined, { synced: before === 0 })
    expect(await use(anna, { counter: before })).toHaveProperty('status', 200)
    const reply = await use(anna, { counter: after })
    expect(reply.status).toBe(status)
    if (status === 400) expect(reply).toMatchObject(unknown)
    expect((await store.byId(anna.id))?.counter).toBe(status === 200 ? after : before)
    expect(calls.signedIn).toBe(status === 200 ? 2 : 1)
  })
})

describe('W-04 events', () => {
  it('a registration and a counter that does not grow are reported, a wrong signature is not', async () => {
    const records = recordsOf('passkey')
    const { anna } = await annaAt(undefined, { synced: false })
    await use(anna, { counter: 7 })
    await use(anna, { counter: 3 })
    await use(anna, { counter: 2, signature: 'wrong' })
    expect(records).toStrictEqual([
      { event: 'registered', id: anna.id, rpId },
      { event: 'copied', id: anna.id, rpId, stored: 7, received: 3 },
    ])
  })

  it('of several answers with one counter at the same time, one is in, and all others are reported', async () => {
    const { calls, anna } = await annaAt(undefined, { synced: false })
    const records = recordsOf('passkey')
    const answers = []
    for (let at = 0; at < 4; at += 1) {
      answers.push(anna.phone.get(await optionsFrom(anna, '/sign-in/passkey/options'), { counter: 9 }))
    }
    const replies = await Promise.all(answers.map((answer) => anna.browser.post('/sign-in/passkey', answer)))
    expect([replies.map(({ status }) => status).sort(), calls.signedIn]).toEqual([[200, 400, 400, 400], 1])
    expect(records).toStrictEqual(Array(3).fill({ event: 'copied', id: anna.id, rpId, stored: 9, received: 9 }))
  })
})

describe('W-05 flags of a backup', () => {
  it('that change after the registration are accepted and stored', async () => {
    const { store, anna } = await annaAt(undefined, { synced: false })
    expect(await store.byId(anna.id)).toMatchObject({ backupEligible: false, backedUp: false })
    expect(await use(anna, { backupEligible: true, backedUp: true })).toHaveProperty('status', 200)
    expect(await store.byId(anna.id)).toMatchObject({ backupEligible: true, backedUp: true })
    expect(await use(anna, { backupEligible: false, backedUp: false })).toHaveProperty('status', 200)
    expect(await store.byId(anna.id)).toMatchObject({ backupEligible: false, backedUp: false })
  })
})

describe('W-06 registration', () => {
  it('is refused without a session, and without a fresh proof', async () => {
    const clock = stoppedClock()
    const { url, store } = await servedPasskeySite({ fresh: 1500 })
    const anna = person(url)
    expect(await anna.browser.post('/passkeys/options')).toHaveProperty('status', 401)
    await anna.browser.post('/sign-in/password/anna')
    const early = anna.phone.create(await optionsFrom(anna, '/passkeys/options'))
    clock.move(1600)
    expect(await anna.browser.post('/passkeys/options')).toMatchObject({
      status: 403,
      body: { proof: expect.anything() },
    })
    const stranger = person(url)
    expect(await stranger.browser.post('/passkeys', early)).toHaveProperty('status', 401)
    expect(await store.ofUser('anna')).toStrictEqual([])
    expect(await anna.browser.post('/passkeys', early)).toHaveProperty('status', 201)
  })

  it('begun by one user cannot be finished by another', async () => {
    const { store, anna } = await passwordAt()
    const registration = anna.phone.create(await optionsFrom(anna, '/passkeys/options'))
    await anna.browser.post('/sign-in/password/bert')
    expect(await anna.browser.post('/passkeys', registration)).toMatchObject({
      status: 403,
      body: { reason: 'anotherUser' },
    })
    expect([await store.ofUser('anna'), await store.ofUser('bert')]).toStrictEqual([[], []])
  })

  it('removing asks for a fresh proof, and finds only passkeys of the user', async () => {
    const clock = stoppedClock()
    const { url, store, anna } = await annaAt({ fresh: 1500 })
    const bert = person(url)
    await bert.browser.post('/sign-in/password/bert')
    expect(await bert.browser.send('DELETE', `/passkeys/${anna.id}`)).toHaveProperty('status', 404)
    clock.move(1600)
    expect(await anna.browser.send('DELETE', `/passkeys/${anna.id}`)).toHaveProperty('status', 403)
    expect(await store.ofUser('anna')).toHaveLength(1)
    expect(await use(anna)).toHaveProperty('status', 200)
    expect(await anna.browser.send('DELETE', `/passkeys/${anna.id}`)).toHaveProperty('status', 204)
    expect(await store.ofUser('anna')).toStrictEqual([])
  })
})

describe('W-07 a passkey belongs to its RP', () => {
  it('each RP id has its own passkeys', async () => {
    const store = memoryStore()
    const [sessionStore, keys] = [memoryStore(), [randomBytes(32).toString('hex')]]
    const shared = { store, sessionStore, keys }
    const first = await servedPasskeySite(shared)
    const second = await servedPasskeySite({
      ...shared,
      passkeys: { rp: { id: 'app.localhost', name: 'App' }, origins: ['http://app.localhost:4000'] },
    })
    const anna = await withPasskey(first.url, 'anna')
    const options = await optionsFrom({ ...anna, browser: jsonClient(second.url, anna.browser) }, '/passkeys/options')
    expect(options.excludeCredentials).toStrictEqual([])
    const at = { ...person(second.url), phone: softwareAuthenticator({ origin: 'http://app.localhost:4000' }) }
    await at.browser.post('/sign-in/password/anna')
    expect(await register(at)).toHaveProperty('status', 201)
    expect(await use(at)).toHaveProperty('status', 200)
    expect(await use(anna)).toHaveProperty('status', 200)
    // the passkey of the first, signed for the second
    const foreign = { ...person(second.url), phone: anna.phone }
    const asked = await optionsFrom(foreign, '/sign-in/passkey/options')
    const answer = anna.phone.get({ ...asked, rpId }, { rpId: 'app.localhost', origin: 'http://app.localhost:4000' })
    expect(await foreign.browser.post('/sign-in/passkey', answer)).toMatchObject(unknown)
  })

  it('related origins are listed, and their answers are accepted', async () => {
    const { url } = await servedPasskeySite({ passkeys: { origins: [origin, 'https://shop.de'] } })
    const document = await jsonClient(url).get('/.well-known/webauthn')
    expect(document).toMatchObject({ status: 200, body: { origins: ['https://shop.de'] } })
    expect(document.headers.get('content-type')).toMatch(/^application\/json/)
    expect(document.headers.get('access-control-allow-origin')).toBeNull()
    const anna = await withPasskey(url, 'anna')
    expect(await use(anna, { origin: 'https://shop.de' })).toHaveProperty('status', 200)
    expect(await use(anna, { origin: 'https://shop.fr' })).toMatchObject(unknown)
    expect(await jsonClient(url).post('/.well-known/webauthn')).toHaveProperty('status', 404)
  })
})

describe('W-08 keys', () => {
  it('a passkey outlives app.keys, and its user handle stays the same', async () => {
    const store = memoryStore()
    const sessionStore = memoryStore()
    const before = await servedPasskeySite({ store, sessionStore })
    const anna = await withPasskey(before.url, 'anna')
    const { user } = await optionsFrom(anna, '/passkeys/options')
    const after = await servedPasskeySite({ store, sessionStore })
    const again = { ...person(after.url), phone: anna.phone }
    expect(await use(again)).toHaveProperty('status', 200)
    expect((await optionsFrom(again, '/passkeys/options')).user).toStrictEqual(user)
  })

  it('user handles are random: they contain nothing of the user', async () => {
    const { url } = await servedPasskeySite()
    const handles = []
    for (const name of ['anna', 'anna', 'bert']) {
      const who = person(url)
      await who.browser.post(`/sign-in/password/${name}`)
      const { user } = await optionsFrom(who, '/passkeys/options')
      expect(Buffer.from(user.id, 'base64url').length).toBeGreaterThanOrEqual(16)
      expect(Buffer.from(user.id, 'base64url').toString('latin1')).not.toContain(name)
      handles.push(user.id)
    }
    expect(new Set(handles).size).toBe(3)
  })
})

describe('W-09 outages', () => {
  const down = (): Promise<never> => Promise.reject(new Error('ECONNREFUSED'))
  const methods = ['insert', 'get', 'members', 'update'] as const

  it.each(methods)('the store of passkeys fails at %s: 503, and no user is signed in', async (method) => {
    const store = memoryStore()
    const healthy = await servedPasskeySite({ store })
    const anna = await withPasskey(healthy.url, 'anna')
    const { url } = await servedPasskeySite({ store: { ...store, [method]: down } })
    const again = { ...person(url), phone: anna.phone }
    const signIn = await use(again)
    const isAsked = method === 'get' || method === 'update'
    expect(signIn.status).toBe(isAsked ? 503 : 200)
    expect(await signedInAs(again)).toBe(isAsked ? 401 : 'anna')
    await again.browser.post('/sign-in/password/anna')
    const options = await again.browser.post('/passkeys/options')
    expect(options.status).toBe(method === 'members' || method === 'get' ? 503 : 200)
    if (options.status !== 200) return
    const other = softwareAuthenticator({ origin })
    const reply = await again.browser.post('/passkeys', other.create(options.body as never))
    expect(reply.status).toBe(method === 'insert' ? 503 : 201)
    expect(await healthy.store.ofUser('anna')).toHaveLength(method === 'insert' ? 1 : 2)
  })

  it('a store that is silent is unavailable after the time limit', async () => {
    const store: Store = { ...memoryStore(), update: () => new Promise(() => {}) }
    const { anna } = await annaAt({ store, passkeys: { timeout: 100 } })
    expect(await use(anna)).toHaveProperty('status', 503)
  })

  it('the options of a sign-in need no store; the answer is 503 while sessions are down', async () => {
    let isDown = false
    const sessionStore = steppedStore(memoryStore(), async (_name, run) => (isDown ? down() : run()))
    const { store, calls: asked } = noting(memoryStore())
    const { calls, anna } = await annaAt({ store, sessionStore })
    await anna.browser.post('/sign-out')
    isDown = true
    const options = await optionsFrom(anna, '/sign-in/passkey/options')
    expect(await anna.browser.post('/sign-in/passkey', anna.phone.get(options))).toHaveProperty('status', 503)
    expect([calls.signedIn, asked.includes('update')]).toEqual([0, false])
  })
})

describe('W-10 step-up', () => {
  it('with the passkey of another user is refused, and the session stays as it was', async () => {
    const { url, store, calls, anna } = await annaAt()
    const bert = await withPasskey(url, 'bert')
    const kept = await store.byId(bert.id)
    const answer = bert.phone.get(await optionsFrom(anna, '/prove/passkey/options'))
    const reply = await anna.browser.post('/prove/passkey', answer)
    expect(reply).toMatchObject({ status: 403, body: { reason: 'anotherUser' } })
    expect(await signedInAs(anna)).toBe('anna')
    expect(await store.byId(bert.id)).toStrictEqual(kept)
    expect(calls.steppedUp).toBe(0)
  })
})

describe('W-11 no enumeration', () => {
  it('the options of a sign-in are the same for every name, and name no passkey', async () => {
    const { url } = await servedPasskeySite()
    await withPasskey(url, 'anna')
    for (const body of [{}, { username: 'anna' }, { username: 'stranger' }]) {
      const options = await optionsFrom(person(url), '/sign-in/passkey/options', body)
      expect(Object.keys(options).sort()).toStrictEqual(['challenge', 'rpId', 'timeout', 'userVerification'])
    }
  })
})
