/** Passkeys over HTTP: bodies that cannot be read, and credentials that are there already. */
import { softwareAuthenticator, type RegistrationJson } from 'koa-with-auth/testing'
import { describe, expect, it } from 'vitest'
import { optionsFrom, origin, person, use, withPasskey, type Person } from '../support/sites/passkeySite.js'
import { annaAt, servedPasskeySite } from '../support/sites/servedPasskeySite.js'

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
