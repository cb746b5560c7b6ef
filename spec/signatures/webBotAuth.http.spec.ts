/** Agents that sign their requests, and the directories of their keys. G-07, G-08. */
import { generateKeyPairSync, type JsonWebKey } from 'node:crypto'
import { isRight } from 'fp-ts/lib/Either.js'
import type { WebBotAuthOptions } from 'koa-with-auth/signatures'
import { memoryStore, oneTimeIds } from 'koa-with-auth/stores'
import { mockRequest, signedRequest, type RequestSpec, type SigningOptions } from 'koa-with-auth/testing'
import { beforeEach, describe, expect, it } from 'vitest'
import { thumbprintOf } from '../../src/jwt/signature.js'
import { webBotAuthOver } from '../../src/signatures/webBotAuth.js'
import { stoppedClock } from '../support/runs/clock.js'

// No test can serve a public address, so what is behind the check of the address is exchanged. The fetch itself is tested in
// directory.http.spec.ts
const network = {
  fetched: [] as string[],
  policy: {},
  answer: (_url: string): Promise<Buffer> => Promise.reject(new Error('down')),
}
const webBotAuth = (options: WebBotAuthOptions) =>
  webBotAuthOver(options, (url, policy) => {
    network.fetched.push(url.href)
    network.policy = policy
    return network.answer(url.href)
  })

const ORIGIN = 'https://shop.example'
const AGENT = 'https://agent.example'
const WELL_KNOWN = `${AGENT}/.well-known/http-message-signatures-directory`

const newKey = () => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const jwk = publicKey.export({ format: 'jwk' })
  return { privateKey, jwk, keyid: thumbprintOf({ ...jwk }) ?? '' }
}
const own = newKey()
const serving = (...jwks: ReadonlyArray<JsonWebKey | object>) => {
  network.answer = () => Promise.resolve(Buffer.from(JSON.stringify({ keys: jwks })))
}

beforeEach(() => {
  network.fetched.length = 0
  serving(own.jwk)
})

const usual: SigningOptions = { key: own.privateKey, keyid: own.keyid, origin: ORIGIN, agent: AGENT }

const kind = (options: Partial<WebBotAuthOptions> = {}) => webBotAuth({ origin: ORIGIN, agents: [AGENT], ...options })

const ask = async (authenticator: ReturnType<typeof kind>, spec: RequestSpec) => {
  const result = await authenticator.evaluate(mockRequest(spec))
  if (isRight(result)) return result.right
  const { _tag, why } = result.left
  return why === undefined ? _tag : `${_tag} ${why}`
}
const send = (authenticator: ReturnType<typeof kind>, signing: Partial<SigningOptions> = {}) =>
  ask(authenticator, signedRequest({ url: '/x' }, { ...usual, ...signing }))

describe('an agent', () => {
  it('is known by the keys in the directory of its origin, which is fetched once', async () => {
    const agents = kind()
    const created = new Date(Math.floor(Date.now() / 1000) * 1000)
    const principal = { agent: AGENT, keyid: own.keyid, created }
    expect(await send(agents, { created })).toStrictEqual(principal)
    expect(await send(agents, { created })).toStrictEqual(principal)
    expect(network.fetched).toStrictEqual([WELL_KNOWN])
    expect(network.policy).toStrictEqual({ timeout: 5000, maxAge: 600_000, maxLength: 65_536 })
  })

  it('has an address of at most 2000 characters', async () => {
    const agents = kind({ agents: () => true })
    const long = `${AGENT}/`.padEnd(2000, 'a')
    expect(await send(agents, { agent: long })).toMatchObject({ agent: long })
    expect(await send(agents, { agent: `${long}a` })).toBe('invalid components')
  })

  it('is refused before anything is fetched: by a list, by a function, by an address', async () => {
    expect(await send(kind({ agents: ['https://other.example'] }))).toBe('invalid party')
    const asked: unknown[] = []
    const by = (result: unknown) => kind({ agents: (agent) => (asked.push(agent), result as boolean) })
    expect(await send(by(false))).toBe('invalid party')
    expect(await send(by(Promise.resolve(false)))).toBe('invalid party')
    expect(await send(by('yes'))).toBe('invalid party')
    expect(asked).toStrictEqual([AGENT, AGENT, AGENT])
    for (const host of ['127.0.0.1', '10.0.0.1:8443', '[::1]', '[::ffff:10.0.0.1]', '169.254.169.254', '0x7f000001'])
      expect(await send(by(true), { agent: `https://${host}` })).toBe('invalid party')
    expect(network.fetched).toStrictEqual([])
    for (const agent of [AGENT, 'https://8.8.8.8']) expect(await send(by(true), { agent })).toMatchObject({ agent })
  })

  it.each([
    'http://agent.example',
    'agent.example',
    'https://user@agent.example',
    'https://agent.example#a',
    'https://agent.example#',
    'file:///etc/passwd',
    'https://',
  ])('is no URL of https: %s', async (agent) => {
    expect(await send(kind({ agents: () => true }), { agent })).toBe('invalid components')
    expect(network.fetched).toStrictEqual([])
  })

  it('with keys at another path is another agent, because a path says nothing about the owner of the host', async () => {
    const agent = `${AGENT}/users/mallory/keys.json`
    expect(await send(kind(), { agent })).toBe('invalid party')
    expect(await send(kind(), { agent: WELL_KNOWN })).toMatchObject({ agent: AGENT })
    expect(network.fetched).toStrictEqual([WELL_KNOWN])
    expect(await send(kind({ agents: [agent] }), { agent })).toMatchObject({ agent })
  })

  const at = (query: string) => `${AGENT}/directory${query}`
  it.each([
    [at('?tenant=acme'), at('?tenant=mallory')],
    [at('?tenant=acme'), at('')],
    [at('?tenant=acme'), at('?tenant=acme&tenant=mallory')],
    [at(''), at('?tenant=mallory')],
    [AGENT, `${AGENT}/?tenant=mallory`],
    [AGENT, `${WELL_KNOWN}?tenant=mallory`],
    [`${AGENT}/?tenant=acme`, AGENT],
    [`${AGENT}/?tenant=acme`, WELL_KNOWN],
  ])('R23 is the address that is fetched, with its query: of %s, %s is refused', async (listed, agent) => {
    expect(await send(kind({ agents: [listed] }), { agent })).toBe('invalid party')
    expect(network.fetched).toStrictEqual([])
    expect(await send(kind({ agents: [listed] }), { agent: listed })).toMatchObject({ agent: listed })
    expect(network.fetched).toStrictEqual([listed === AGENT ? WELL_KNOWN : listed])
    const seen: string[] = []
    await send(kind({ agents: (one) => seen.push(one) < 0 }), { agent })
    expect(seen).toStrictEqual([agent === WELL_KNOWN ? AGENT : agent])
  })

  it('R23 is the same one with an empty query', async () => {
    expect(await send(kind(), { agent: `${AGENT}?` })).toMatchObject({ agent: AGENT })
    expect(await send(kind({ agents: [at('')] }), { agent: at('?') })).toMatchObject({ agent: at('') })
  })

  it('R23 of a function costs its origin a few fetches in a minute, whatever strangers name; a known one stays', async () => {
    const clock = stoppedClock()
    const agents = kind({ agents: () => true })
    expect(await send(agents)).toMatchObject({ agent: AGENT })
    clock.move(30_000)
    const results: unknown[] = []
    for (let n = 0; n < 20; n++) results.push(await send(agents, { agent: at(`?n=${n}`) }))
    expect(network.fetched).toHaveLength(5)
    expect(results.at(-1)).toBe('unavailable')
    expect(await send(agents)).toMatchObject({ agent: AGENT })
    expect(await send(agents, { agent: 'https://other.example' })).toMatchObject({ agent: 'https://other.example' })
    clock.move(30_000)
    expect(await send(agents, { agent: at('?n=20') })).toMatchObject({ agent: at('?n=20') })
    // nor do many origins cost more, such as the subdomains that a function admits
    clock.move(60_000)
    network.fetched.length = 0
    for (let n = 0; n < 70; n++) results.push(await send(agents, { agent: `https://n${n}.example` }))
    expect(results.slice(-11)).toEqual([expect.anything(), ...Array(10).fill('unavailable')])
    expect([network.fetched.length, await send(agents)]).toMatchObject([60, { agent: AGENT }])
  })

  it('cannot use the key of another one', async () => {
    const other = newKey()
    const agents = kind({ agents: [AGENT, 'https://other.example'] })
    network.answer = (url) =>
      Promise.resolve(Buffer.from(JSON.stringify({ keys: [url.startsWith(AGENT) ? own.jwk : other.jwk] })))
    const theirs = { key: other.privateKey, keyid: other.keyid }
    expect(await send(agents, { ...theirs, agent: 'https://other.example' })).toMatchObject({
      agent: 'https://other.example',
    })
    expect(await send(agents, theirs)).toMatch(/^(?:invalid key|unavailable)/)
    // the name of a key is its thumbprint, whatever the directory calls it
    serving({ ...other.jwk, kid: own.keyid })
    expect(await send(kind(), { key: other.privateKey })).toBe('invalid key')
  })
})

describe('a signature of an agent', () => {
  it('covers the authority and the name of the agent, and has an end', async () => {
    const member = '"signature-agent";key="sig"'
    expect(await send(kind(), { components: ['@authority', member] })).toMatchObject({ agent: AGENT })
    expect(await send(kind(), { components: ['@authority'] })).toBe('invalid components')
    expect(await send(kind(), { components: ['@method', member] })).toBe('invalid components')
    const spec = signedRequest({ url: '/x' }, { ...usual, tag: 'another' })
    expect(await ask(kind(), spec)).toBe('invalid type')
    const { fields = [] } = signedRequest({ url: '/x' }, usual)
    const changed = (change: (value: string, name: string) => string) => ({
      url: '/x',
      fields: fields.map(([name, value]) => [name, change(value, name)] as const),
    })
    const endless = changed((value) => value.replace(/;expires=\d+/, ''))
    expect(await ask(kind(), endless)).toBe('invalid components')
    const renamed = changed((value) => value.replace(AGENT, 'https://other.example'))
    expect(await ask(kind({ agents: () => true }), renamed)).toBe('invalid signature')
    const others = ['other="https://agent.example"', 'sig=("https://agent.example")', 'sig=1', '']
    for (const named of [`sig="${AGENT}";type=x`, ...others]) {
      const another = changed((value, name) => (name === 'Signature-Agent' ? named : value))
      expect(await ask(kind(), another)).toBe('invalid components')
    }
  })

  it('is never by a shared secret', async () => {
    serving({ kty: 'oct', k: 'c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0', kid: own.keyid }, own.jwk)
    expect(await send(kind(), { alg: 'hmac-sha256' })).toBe('invalid algorithm')
  })

  it('counts once with spent', async () => {
    const agents = kind({ spent: oneTimeIds(memoryStore()) })
    expect(await send(agents)).toBe('invalid replay')
    expect(await send(agents, { nonce: 'n' })).toMatchObject({ agent: AGENT })
    expect(await send(agents, { nonce: 'n' })).toBe('invalid replay')
  })
})

const keys = (count: number) => Array<string>(count).fill(JSON.stringify(own.jwk)).join()

describe('a directory', () => {
  it.each([
    ['is down', () => Promise.reject(new Error('down'))],
    ['is no JSON', () => Promise.resolve(Buffer.from('<html>'))],
    ['has no keys', () => Promise.resolve(Buffer.from('{"keys":[]}'))],
    ['has too many keys', () => Promise.resolve(Buffer.from(`{"keys":[${keys(101)}]}`))],
  ])('that %s is an outage', async (_name, answer) => {
    network.answer = answer
    expect(await send(kind())).toBe('unavailable')
  })

  it('that never comes is an outage in its time, and the next request after a pause asks again', async () => {
    const clock = stoppedClock()
    const agents = kind({ directory: { timeout: 50 } })
    network.answer = () => new Promise(() => {})
    expect(await send(agents)).toBe('unavailable')
    serving(own.jwk)
    clock.move(10_000)
    expect(await send(agents)).toMatchObject({ agent: AGENT })
    expect(network.fetched).toHaveLength(2)
  })

  it('that is down after a while lets its last keys work for an hour', async () => {
    const clock = stoppedClock()
    const agents = kind({ directory: { maxAge: 60_000 } })
    expect(await send(agents)).toMatchObject({ agent: AGENT })
    network.answer = () => Promise.reject(new Error('down'))
    clock.move(1_000_000)
    await send(agents)
    expect(await send(agents)).toMatchObject({ agent: AGENT })
    clock.move(4_000_000)
    expect(await send(agents)).toBe('unavailable')
  })

  it('may change its keys: a new one is found at once, and a key has its times', async () => {
    const next = newKey()
    const agents = kind()
    expect(await send(agents)).toMatchObject({ agent: AGENT })
    serving(own.jwk, next.jwk)
    expect(await send(agents, { key: next.privateKey, keyid: next.keyid })).toMatchObject({ keyid: next.keyid })
    expect(network.fetched).toHaveLength(2)
    const now = Math.floor(Date.now() / 1000)
    for (const times of [{ nbf: now + 60 }, { exp: now - 1 }, { exp: (now - 1) * 1000 }]) {
      serving({ ...own.jwk, ...times })
      expect(await send(kind())).toBe('invalid key')
    }
    serving({ ...own.jwk, nbf: now - 60, exp: now + 60 })
    expect(await send(kind())).toMatchObject({ agent: AGENT })
  })
})

describe('the vectors of the draft, appendix E', () => {
  const ed25519 = { kty: 'OKP', crv: 'Ed25519', x: 'JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs' }
  const vectors = [
    {
      name: 'a dictionary',
      agent: 'agent2="https://signature-agent.test"',
      input:
        'sig2=("@authority" "signature-agent";key="agent2");created=1735689600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";alg="ed25519";expires=4889289600;nonce="n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==";tag="web-bot-auth"',
      signature: 'RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg==',
    },
    {
      name: 'a string, as in earlier drafts',
      agent: '"https://signature-agent.test"',
      input:
        'sig2=("@authority" "signature-agent");created=1735689600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";alg="ed25519";expires=1735693200;nonce="e8N7S2MFd/qrd6T2R3tdfAuuANngKI7LFtKYI/vowzk4lAZYadIX6wW25MwG7DCT9RUKAJ0qVkU0mEeLElW1qg==";tag="web-bot-auth"',
      signature: 'jdq0SqOwHdyHr9+r5jw3iYZH6aNGKijYp/EstF4RQTQdi5N5YYKrD+mCT1HA1nZDsi6nJKuHxUi/5Syp3rLWBA==',
    },
  ]

  it.each(vectors)('$name', async ({ agent, input, signature }) => {
    stoppedClock().set(1_735_689_610_000 - Date.now())
    serving({ ...ed25519, use: 'sig' })
    const agents = webBotAuth({ origin: 'https://example.com', agents: ['https://signature-agent.test'] })
    const fields = [
      ['Signature-Agent', agent],
      ['Signature-Input', input],
      ['Signature', `sig2=:${signature}:`],
    ] as const
    expect(await ask(agents, { fields })).toMatchObject({ agent: 'https://signature-agent.test' })
    expect(network.fetched).toStrictEqual([
      'https://signature-agent.test/.well-known/http-message-signatures-directory',
    ])
    const elsewhere = webBotAuth({ origin: 'https://example.org', agents: ['https://signature-agent.test'] })
    expect(await ask(elsewhere, { fields })).toBe('invalid signature')
  })
})

it.each([
  [[]],
  [['http://agent.example']],
  [['https://agent.example/']],
  [['agent.example']],
  ['https://agent.example'],
  [undefined],
])('agents are an array of https origins, or a function: %j', (agents) => {
  expect(() => webBotAuth({ origin: ORIGIN, agents: agents as never })).toThrow('webBotAuth({ agents }) must be')
})
