/** Passkeys of the shop, over HTTP: what is refused, and how. */
import { memoryStore } from 'koa-with-auth/stores'
import { softwareAuthenticator } from 'koa-with-auth/testing'
import { describe, expect, it } from 'vitest'
import type { JsonClient, JsonReply } from '../../support/servers/jsonClient.js'
import { shopSite, type ShopSite } from '../../support/sites/shopSite.js'
import { stoppedClock } from '../../support/runs/clock.js'

type Phone = ReturnType<typeof softwareAuthenticator>
type Creation = Parameters<Phone['create']>[0]
type Wrong = Parameters<Phone['get']>[1]

const optionsAt = async (visitor: JsonClient, path: string, body: unknown = {}) => {
  const reply = await visitor.post(`${path}/options`, body)
  expect(reply.status).toBe(200)
  return reply.body as never
}
const registered = async (site: ShopSite, user = 'anna', synced = true) => {
  const visitor = await site.signedIn(user)
  const phone = softwareAuthenticator({ origin: site.origin, synced })
  const created = phone.create(await optionsAt(visitor, '/passkeys'))
  expect((await visitor.post('/passkeys', created)).status).toBe(201)
  return { visitor, phone, created }
}
const reasonOf = ({ status, body }: JsonReply): readonly [number, unknown] => [
  status,
  typeof body === 'object' && body !== null ? Reflect.get(body, 'reason') : undefined,
]
const deepCbor = Buffer.concat([Buffer.alloc(10_000, 0x81), Buffer.from([0])])

describe('an answer at sign-in', () => {
  const wrongs: ReadonlyArray<readonly [string, Wrong]> = [
    ['a wrong signature', { signature: 'wrong' }],
    ['no user present', { userPresent: false }],
    ['no user verified', { userVerified: false }],
    ['another origin', { origin: 'https://evil.example' }],
    ['another port', { origin: 'http://localhost:1' }],
    ['another RP id', { rpId: 'evil.example' }],
    ['another type', { type: 'webauthn.create' }],
    ['no user handle', { userHandle: null }],
    ['the handle of another user', { userHandle: 'YmVydA' }],
    ['an unknown id', { id: 'AAAAAAAAAAAAAAAAAAAAAA' }],
    ['another challenge', { challenge: 'AAAAAAAAAAAAAAAAAAAAAA' }],
    ['a frame', { crossOrigin: true }],
    ['a frame of a page', { crossOrigin: true, topOrigin: 'https://evil.example' }],
    ['trailing bytes', { trailing: Buffer.from([1]) }],
  ]
  it('that is wrong is 400 unknown, with one body for all, and no user is signed in', async () => {
    const site = await shopSite()
    const { phone } = await registered(site)
    const bodies = new Set<string>()
    for (const [name, wrong] of wrongs) {
      const visitor = site.client()
      const reply = await visitor.post(
        '/sign-in/passkey',
        phone.get(await optionsAt(visitor, '/sign-in/passkey'), wrong),
      )
      expect(reasonOf(reply), name).toEqual([400, 'unknown'])
      expect((await visitor.get('/me')).status, name).toBe(401)
      bodies.add(JSON.stringify(reply.body))
    }
    expect(bodies.size).toBe(1)
  })

  it('that is rubbish is 4xx', async () => {
    const site = await shopSite()
    const { phone } = await registered(site)
    const visitor = site.client()
    const good = phone.get(await optionsAt(visitor, '/sign-in/passkey'))
    const expectStatus = async (body: unknown, statuses: ReadonlyArray<number>, name: string) => {
      const { status } = await visitor.post('/sign-in/passkey', body)
      expect(statuses, name).toContain(status)
    }
    for (const body of [
      {},
      [],
      null,
      7,
      '"x"',
      '',
      '{',
      '{"__proto__":{"id":"x"}}',
      '{"constructor":{"prototype":{}}}',
    ]) {
      await expectStatus(body, [400, 415, 422], JSON.stringify(body))
    }
    const { response } = good
    const changed: ReadonlyArray<readonly [string, object]> = [
      ['id is no string', { ...good, id: 7 }],
      ['rawId differs', { ...good, rawId: 'AAAA' }],
      ['another type', { ...good, type: 'password' }],
      ['padding', { ...good, id: `${good.id}=`, rawId: `${good.id}=` }],
      [
        'prototype keys',
        { ...good, response: { ...response, constructor: 1 }, ['__proto__']: { id: good.id }, id: undefined },
      ],
      ['no response', { ...good, response: undefined }],
      ['client data that is no JSON', { ...good, response: { ...response, clientDataJSON: 'AAAA' } }],
      [
        'client data null',
        { ...good, response: { ...response, clientDataJSON: Buffer.from('null').toString('base64url') } },
      ],
      ['short data', { ...good, response: { ...response, authenticatorData: 'AAAA' } }],
      ['deep CBOR', { ...good, response: { ...response, authenticatorData: deepCbor.toString('base64url') } }],
    ]
    for (const [name, body] of changed) await expectStatus(body, [400], name)
    await expectStatus({ ...good, more: 'a'.repeat(1_000_000) }, [400, 413], '1 MB')
  })

  it('that comes twice, or in another browser, is unknown', async () => {
    const site = await shopSite()
    const { phone } = await registered(site)
    const visitor = site.client()
    const answer = phone.get(await optionsAt(visitor, '/sign-in/passkey'))
    expect((await site.client().post('/sign-in/passkey', answer)).status).toBe(400)
    expect((await visitor.post('/sign-in/passkey', answer)).status).toBe(200)
    expect(reasonOf(await visitor.post('/sign-in/passkey', answer))).toEqual([400, 'unknown'])
  })

  it('after its time is late', async () => {
    const clock = stoppedClock()
    const site = await shopSite({ env: { LIFETIME_MS: '1500' } })
    const visitor = site.client()
    const options = await optionsAt(visitor, '/sign-in/passkey')
    const phone = softwareAuthenticator({ origin: site.origin })
    const handle = Buffer.from('anna').toString('base64url')
    phone.create({ challenge: 'AAAA', rp: { id: 'localhost' }, user: { id: handle }, pubKeyCredParams: [{ alg: -7 }] })
    clock.move(1600)
    expect(reasonOf(await visitor.post('/sign-in/passkey', phone.get(options)))).toEqual([400, 'late'])
  })

  it('with a counter that goes back is refused; of several with one counter one is in', async () => {
    const site = await shopSite()
    const { phone } = await registered(site, 'anna', false)
    const answer = async (counter: number) => {
      const visitor = site.client()
      const sent = phone.get(await optionsAt(visitor, '/sign-in/passkey'), { counter })
      return () => visitor.post('/sign-in/passkey', sent)
    }
    const together = await Promise.all([1, 2, 3, 4, 5].map(() => answer(10)))
    const replies = await Promise.all(together.map((send) => send()))
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 400, 400, 400, 400])
    expect(reasonOf(await (await answer(9))())).toEqual([400, 'unknown'])
    expect((await (await answer(11))()).status).toBe(200)
  })

  it('by a passkey that was removed is unknown', async () => {
    const site = await shopSite()
    const { visitor, phone, created } = await registered(site)
    expect((await visitor.send('DELETE', `/passkeys/${created.id}`)).status).toBe(204)
    const stranger = site.client()
    const answer = phone.get(await optionsAt(stranger, '/sign-in/passkey'))
    expect(reasonOf(await stranger.post('/sign-in/passkey', answer))).toEqual([400, 'unknown'])
    expect((await visitor.send('DELETE', `/passkeys/${created.id}`)).status).toBe(404)
  })

  it('leads to the path of the options, and not to one of its own', async () => {
    const site = await shopSite()
    const { phone } = await registered(site)
    for (const [given, expected] of [
      ['/basket', '/basket'],
      ['//evil.example', '/'],
      ['/a%2fb', '/'],
    ] as const) {
      const visitor = site.client()
      const answer = phone.get(await optionsAt(visitor, '/sign-in/passkey', { returnTo: given }))
      const { body } = await visitor.post('/sign-in/passkey', { ...answer, returnTo: '/evil' })
      expect(body).toEqual({ returnTo: expected })
    }
  })
})

describe('a challenge', () => {
  it('is good for its intent only', async () => {
    const site = await shopSite()
    const { visitor, phone } = await registered(site)
    const of = async (path: string) => phone.get(await optionsAt(visitor, path))
    expect((await visitor.post('/prove/passkey', await of('/sign-in/passkey'))).status).toBe(400)
    expect((await visitor.post('/sign-in/passkey', await of('/prove/passkey'))).status).toBe(400)
    expect((await visitor.post('/passkeys', await of('/sign-in/passkey'))).status).toBe(400)
    const creation: Creation = await optionsAt(visitor, '/passkeys')
    const other = softwareAuthenticator({ origin: site.origin }).create({ ...creation, excludeCredentials: [] })
    expect((await visitor.post('/sign-in/passkey', other)).status).toBe(400)
  })

  it('of a step-up is for its user; the passkey of another user is refused', async () => {
    const site = await shopSite()
    const { visitor } = await registered(site)
    const bert = await registered(site, 'bert')
    const foreign = bert.phone.get({
      ...((await optionsAt(visitor, '/prove/passkey')) as object),
      allowCredentials: [],
    } as never)
    expect([400, 403]).toContain((await visitor.post('/prove/passkey', foreign)).status)
    expect((await site.client().post('/prove/passkey/options')).status).toBe(401)
    expect((await visitor.get('/vault')).status).toBe(403)
  })

  it('of a registration is for the user who began', async () => {
    const site = await shopSite()
    const visitor = await site.signedIn()
    const phone = softwareAuthenticator({ origin: site.origin })
    const created = phone.create(await optionsAt(visitor, '/passkeys'))
    await visitor.post('/sign-out')
    expect((await visitor.post('/passkeys', created)).status).toBe(401)
    await visitor.post('/sign-in/password', { username: 'bert', password: 'bert-secret' })
    expect(reasonOf(await visitor.post('/passkeys', created))).toEqual([403, 'anotherUser'])
    expect((await visitor.get('/passkeys')).body).toEqual([])
  })
})

describe('a registration', () => {
  it('with anything wrong is 400 unknown, and registers nothing', async () => {
    const site = await shopSite()
    const visitor = await site.signedIn()
    const wrongs: ReadonlyArray<NonNullable<Parameters<Phone['create']>[1]>> = [
      { origin: 'https://evil.example' },
      { rpId: 'evil.example' },
      { userVerified: false },
      { userPresent: false },
      { crossOrigin: true },
      { crossOrigin: true, topOrigin: 'https://evil.example' },
      { type: 'webauthn.get' },
      { attestation: 'statement' },
      { attestation: 'unknown' },
      { attestation: deepCbor },
      { publicKey: Buffer.from([0xa0]) },
      { algorithm: 'RS256', modulusLength: 1024 },
    ]
    for (const wrong of wrongs) {
      const phone = softwareAuthenticator({ origin: site.origin })
      const reply = await visitor.post('/passkeys', phone.create(await optionsAt(visitor, '/passkeys'), wrong))
      expect(reasonOf(reply), JSON.stringify(wrong).slice(0, 80)).toEqual([400, 'unknown'])
    }
    expect((await visitor.get('/passkeys')).body).toEqual([])
  })

  it('of one credential at several times at once is one record', async () => {
    const site = await shopSite()
    const visitor = await site.signedIn()
    const phone = softwareAuthenticator({ origin: site.origin })
    const created = phone.create(await optionsAt(visitor, '/passkeys'))
    const replies = await Promise.all([1, 2, 3, 4].map(() => visitor.post('/passkeys', created)))
    expect(replies.filter(({ status }) => status === 201)).toHaveLength(1)
    for (const { status } of replies) expect([201, 400, 409]).toContain(status)
    expect((await visitor.get('/passkeys')).body).toHaveLength(1)
  })

  it('needs a fresh proof', async () => {
    const clock = stoppedClock()
    const site = await shopSite({ env: { FRESH_MS: '1500' } })
    const { visitor, phone, created } = await registered(site)
    clock.move(1600)
    const refused = await visitor.post('/passkeys/options')
    expect([refused.status, refused.body]).toMatchObject([403, { reason: 'insufficient', proof: { maxAge: 1.5 } }])
    expect((await visitor.send('DELETE', `/passkeys/${created.id}`)).status).toBe(403)
    const proven = await visitor.post('/prove/passkey', phone.get(await optionsAt(visitor, '/prove/passkey')))
    expect(proven.status).toBe(204)
    expect((await visitor.post('/passkeys/options')).status).toBe(200)
  })

  it('works thirty times for one user', async () => {
    const site = await shopSite()
    const visitor = await site.signedIn()
    const handles = new Set<string>()
    for (let at = 0; at < 30; at++) {
      const creation: Creation = await optionsAt(visitor, '/passkeys')
      handles.add(creation.user.id)
      expect(creation.excludeCredentials ?? []).toHaveLength(at)
      const phone = softwareAuthenticator({ origin: site.origin })
      expect((await visitor.post('/passkeys', phone.create(creation))).status).toBe(201)
    }
    expect([handles.size, ((await visitor.get('/passkeys')).body as unknown[]).length]).toEqual([1, 30])
    expect([...handles][0]).not.toContain(Buffer.from('anna').toString('base64url'))
  })
})

it('while the store of sessions is down, options are 200 and answers 503', async () => {
  const memory = memoryStore()
  let isDown = false
  const store = new Proxy(memory, {
    get: (target, name) => {
      const own: unknown = Reflect.get(target, name)
      if (typeof own !== 'function') return own
      return (...args: unknown[]): unknown =>
        isDown ? Promise.reject(new Error('down')) : Reflect.apply(own, target, args)
    },
  })
  const site = await shopSite({ store })
  const { phone, visitor } = await registered(site)
  const creation: Creation = await optionsAt(visitor, '/passkeys')
  isDown = true
  const stranger = site.client()
  const answer = phone.get(await optionsAt(stranger, '/sign-in/passkey'))
  expect((await stranger.post('/sign-in/passkey', answer)).status).toBe(503)
  const another = softwareAuthenticator({ origin: site.origin }).create({ ...creation, excludeCredentials: [] })
  expect((await visitor.post('/passkeys', another)).status).toBe(503)
  isDown = false
  expect((await visitor.get('/passkeys')).body).toHaveLength(1)
  expect((await stranger.post('/sign-in/passkey', answer)).status).toBe(200)
})

it('another site begins and finishes nothing', async () => {
  const site = await shopSite()
  const { visitor, phone } = await registered(site)
  const answer = phone.get(await optionsAt(visitor, '/sign-in/passkey'))
  for (const headers of [{ 'Sec-Fetch-Site': 'cross-site' }, { Origin: 'https://evil.example' }]) {
    for (const path of ['/passkeys/options', '/prove/passkey/options', '/sign-in/passkey/options']) {
      const reply = await visitor.send('POST', path, {}, headers)
      expect([path, reply.status, reply.headers.getSetCookie()]).toEqual([path, 403, []])
    }
    expect((await visitor.send('POST', '/sign-in/passkey', answer, headers)).status).toBe(403)
  }
  expect((await visitor.post('/sign-in/passkey', answer)).status).toBe(200)
})

it('an answer that cannot be read has the body of every wrong one', async () => {
  const site = await shopSite()
  const { visitor, phone } = await registered(site)
  const wrong = phone.get(await optionsAt(visitor, '/sign-in/passkey'), { signature: 'wrong' })
  const { body: expected } = await visitor.post('/sign-in/passkey', wrong)
  for (const path of ['/sign-in/passkey', '/prove/passkey', '/passkeys']) {
    for (const body of ['{', 'null', '"x"', '7', '', '[]', `{"id":"${'A'.repeat(2 ** 20)}"}`]) {
      const { status, body: answer } = await visitor.send('POST', path, body)
      expect([path, body.slice(0, 10), status, answer]).toEqual([path, body.slice(0, 10), 400, expected])
    }
  }
  expect(site.exceptions).toEqual([])
})

it('the OpenAPI document has the bodies of every route of passkeys', async () => {
  const site = await shopSite()
  const { body } = await site.client().get('/openapi.json')
  // Safe: the specs of the document check its shape
  const { paths } = body as { paths: Record<string, Record<string, { requestBody?: unknown; responses: object }>> }
  const described = Object.entries(paths).flatMap(([path, methods]) =>
    /passkey|webauthn/.test(path)
      ? Object.entries(methods).map(([method, one]) => [`${method} ${path}`, one] as const)
      : [],
  )
  expect(described).toHaveLength(9)
  for (const [name, { requestBody, responses }] of described) {
    expect([name, requestBody !== undefined]).toEqual([name, name.startsWith('post')])
    const success = Object.entries(responses).find(([status]) => status.startsWith('2'))
    expect(name, JSON.stringify(success)).toSatisfy(() => success?.[0] === '204' || 'content' in (success?.[1] ?? {}))
  }
})
