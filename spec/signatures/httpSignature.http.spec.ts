/** Which signed requests pass, and what the others are answered. G-01 to G-06. */
import { createHash, createSecretKey, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto'
import { bodyParser } from '@koa/bodyparser'
import Router from '@koa/router'
import Koa from 'koa'
import { allOf, authSettings, httpBearer, UnavailableError, withAuth } from 'koa-with-auth'
import { memoryStore, oneTimeIds } from 'koa-with-auth/stores'
import { httpSignature, type HttpSignatureOptions } from 'koa-with-auth/signatures'
import { signedRequest, type RequestSpec, type SigningOptions } from 'koa-with-auth/testing'
import { describe, expect, it } from 'vitest'
import { sendRaw } from '../support/servers/rawSocket.js'
import { listen } from '../support/servers/server.js'

const ORIGIN = 'https://api.example'
const pairs = {
  ed25519: generateKeyPairSync('ed25519'),
  'ecdsa-p256-sha256': generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  'ecdsa-p384-sha384': generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  'rsa-pss-sha512': generateKeyPairSync('rsa', { modulusLength: 2048 }),
  'rsa-v1_5-sha256': generateKeyPairSync('rsa', { modulusLength: 2048 }),
}
const secret = createSecretKey(randomBytes(32))
const { publicKey, privateKey } = pairs.ed25519
const usual = { key: privateKey, keyid: 'k1', origin: ORIGIN }

type Options = Partial<HttpSignatureOptions<string>>

/** A request to /x that k1 has signed, unless it says otherwise. */
const signed = (signing: Partial<SigningOptions> = {}, spec: RequestSpec = {}) =>
  signedRequest({ url: '/x', ...spec }, { ...usual, ...signing })

const site = async (options: Options = {}, lookup: (keyid: string) => unknown = () => publicKey) => {
  const seen: unknown[] = []
  const router = new Router()
  const auth = httpSignature<string>({
    origin: ORIGIN,
    keyOf: (keyid) => {
      const key = lookup(keyid)
      return key === undefined ? undefined : { key: key as KeyObject, owner: `owner of ${keyid}` }
    },
    ...options,
  })
  router.all('/x', withAuth(auth), bodyParser(), (ctx) => {
    seen.push({ ...ctx.request.auth, body: ctx.request.rawBody })
    ctx.status = 204
  })
  const served = await listen(new Koa().use(authSettings({ explain: true })).use(router.routes()))
  const sendSpec = async ({ method = 'GET', url = '/x', fields = [] }: RequestSpec, body = '') => {
    const head = [
      `${method} ${url} HTTP/1.1`,
      'Connection: close',
      ...(fields.some(([name]) => name === 'Host') ? [] : ['Host: inside.local']),
      ...(body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]),
      ...fields.map(([name, value]) => `${name}: ${value}`),
    ]
    const answer = await sendRaw(served.port, `${head.join('\r\n')}\r\n\r\n${body}`)
    const { tried: [first] = [] } = (answer.body.startsWith('{') ? JSON.parse(answer.body) : {}) as {
      tried?: [{ failure?: string; why?: string }]
    }
    return [answer.status, first?.failure, first?.why].filter((one) => one !== undefined).join(' ')
  }
  const send = (signing: Partial<SigningOptions> = {}, spec: RequestSpec = {}) =>
    sendSpec(signed(signing, spec), String(signing.body ?? ''))
  return { ...served, seen, send, sendSpec }
}

const json: RequestSpec = { method: 'POST', fields: [['Content-Type', 'application/json']] }

describe('a good signature', () => {
  it('lets its owner in, and says what it covers', async () => {
    const { send, seen } = await site()
    const created = new Date(Math.floor(Date.now() / 1000) * 1000)
    expect(await send({ created })).toBe('204')
    expect(seen).toStrictEqual([
      { owner: 'owner of k1', keyid: 'k1', created, covered: ['@method', '@target-uri'], body: undefined },
    ])
  })

  it('of a body lets a parser behind the guard read the same bytes', async () => {
    const { send, seen } = await site()
    const body = '{"a":  1}'
    expect(await send({ body }, json)).toBe('204')
    expect(seen).toMatchObject([{ covered: ['@method', '@target-uri', 'content-digest'], body }])
  })

  it.each(Object.entries(pairs))('may be by %s: a KeyObject or a JWK, with alg or without', async (alg, pair) => {
    const jwk = pair.publicKey.export({ format: 'jwk' })
    for (const key of [pair.publicKey, jwk, { ...jwk, alg, kid: 'other' }]) {
      const { send } = await site({}, () => key)
      // without a parameter, an RSA key signs by rsa-pss-sha512
      if (alg !== 'rsa-v1_5-sha256') expect(await send({ key: pair.privateKey })).toBe('204')
      expect(await send({ key: pair.privateKey, alg })).toBe('204')
      const { send: sendOther } = await site(
        { algorithms: [alg === 'ed25519' ? 'rsa-pss-sha512' : 'ed25519'] },
        () => key,
      )
      expect(await sendOther({ key: pair.privateKey })).toBe('401 invalid algorithm')
    }
  })

  it('may be by hmac-sha256', async () => {
    for (const key of [secret, secret.export({ format: 'jwk' })]) {
      const { send } = await site({}, () => key)
      expect(await send({ key: secret })).toBe('204')
      expect(await send({ key: createSecretKey(randomBytes(32)) })).toBe('401 invalid signature')
    }
  })

  it('passes beside foreign ones, before and after it', async () => {
    const { sendSpec } = await site({ tag: 'ours' })
    const good = signed({ tag: 'ours', label: 'good' })
    const theirs = signed({ key: pairs['ecdsa-p256-sha256'].privateKey, tag: 'theirs', label: 'a' })
    const wrong = signed({ key: generateKeyPairSync('ed25519').privateKey, tag: 'ours', label: 'z' })
    const unreadable = { fields: wrong.fields.map(([name, value]) => [name, value.replace('"k1"', 'k1')] as const) }
    const alone = { fields: theirs.fields.slice(0, 1) }
    for (const specs of [
      [good, theirs, wrong],
      [wrong, theirs, good],
      [unreadable, good],
      [alone, good],
    ]) {
      expect(await sendSpec({ fields: specs.flatMap(({ fields }) => fields) })).toBe('204')
    }
    expect(await sendSpec({ fields: [...theirs.fields, ...wrong.fields] })).toBe('401 invalid signature')
    expect(await sendSpec(theirs)).toBe('401 invalid type')
    expect(await sendSpec({ fields: [...unreadable.fields, ...theirs.fields] })).toBe('401 malformed syntax')
  })

  it('may cover 30 components, and not one more', async () => {
    const { send } = await site()
    const fields = Array.from({ length: 29 }, (_, n) => [`X-${n}`, 'a'] as const)
    const covering = (count: number) =>
      ['@method', '@target-uri', ...fields.map(([name]) => name.toLowerCase())].slice(0, count)
    expect(await send({ components: covering(30) }, { fields })).toBe('204')
    expect(await send({ components: covering(31) }, { fields })).toBe('401 invalid components')
  })

  it('is checked with a key that is read once, while keyOf returns the same object', async () => {
    let reads = 0
    const { kty, crv, x } = publicKey.export({ format: 'jwk' })
    const key = {
      ...{ kty, crv },
      get x() {
        reads++
        return x
      },
    }
    const { send } = await site({}, () => key)
    for (let n = 0; n < 3; n++) expect(await send()).toBe('204')
    expect(reads).toBe(1)
  })

  it('is about the public origin, whatever Host says', async () => {
    const { send } = await site({ components: ['@authority', '@method'] })
    const components = ['@authority', '@method']
    expect(await send({ components })).toBe('204')
    expect(await send({ components }, { fields: [['Host', 'api.example']] })).toBe('204')
    const fields = ['Host', 'X-Forwarded-Host'].map((name) => [name, 'evil.example'] as const)
    expect(await send({ components, origin: 'https://evil.example' }, { fields })).toBe('401 invalid signature')
  })
})

describe('what is refused', () => {
  it('no signature is absent, and half of one is not readable', async () => {
    const { sendSpec, seen } = await site()
    const { fields } = signed()
    expect(await sendSpec({})).toBe('401 absent')
    for (const name of ['Signature', 'Signature-Input']) {
      const others = fields.filter(([one]) => one !== name)
      expect(await sendSpec({ fields: others })).toBe('401 malformed syntax')
      for (const garbage of [
        '',
        '=',
        'sig=1',
        'sig=()',
        'sig="',
        '\u00e9',
        'sig=?1',
        'sig="a"',
        `sig=(${'"a" '.repeat(1000)})`,
      ])
        expect(await sendSpec({ fields: [...others, [name, garbage]] })).toMatch(
          /^401 (?:malformed syntax|invalid components)$/,
        )
    }
    expect(seen).toStrictEqual([])
  })

  it.each([
    ['another method', { method: 'PUT' }],
    ['another path', { url: '/x/' }],
    ['another query', { url: '/x?a=2' }],
    ['no query', { url: '/x' }],
  ])('%s', async (_name, changed: RequestSpec) => {
    const { sendSpec, seen } = await site()
    const spec = signed({}, { url: '/x?a=1' })
    expect(await sendSpec({ ...spec, ...changed })).toMatch(/^(?:401 invalid signature|404)$/)
    expect(await sendSpec(spec)).toBe('204')
    expect(seen).toHaveLength(1)
  })

  it('a query in which a handler finds another parameter than the one that is signed', async () => {
    const signedParameter = '"@query-param";name="id"'
    const auth = httpSignature({
      origin: ORIGIN,
      components: ['@method', signedParameter],
      keyOf: () => ({ key: publicKey, owner: 'k1' }),
    })
    const seen: unknown[] = []
    const router = new Router().get('/x', withAuth(auth), (ctx) => {
      seen.push(ctx.query['id'])
      ctx.status = 204
    })
    const { port } = await listen(new Koa().use(router.routes()))
    const input = `("@method" ${signedParameter});created=${Math.floor(Date.now() / 1000)};keyid="k1"`
    const base = ['"@method": GET', `${signedParameter}: 5`, `"@signature-params": ${input}`].join('\n')
    const fields = `Signature-Input: s=${input}\r\nSignature: s=:${sign(null, Buffer.from(base), privateKey).toString('base64')}:`
    const send = async (target: string) =>
      (await sendRaw(port, `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${fields}\r\n\r\n`)).status
    expect(await send('/x?a=1&id=5')).toBe(204)
    for (const target of ['/x??id=6&id=5', '/x?a=1#?&id=5', '/x?id=5&%69d=6', '/x?id=6&id=5']) {
      expect([target, await send(target)]).toEqual([target, 401])
    }
    expect(seen).toEqual(['5'])
  })

  it('another body, one without a digest, and one whose digest is not covered', async () => {
    const { sendSpec, send, seen } = await site()
    const spec = signed({ body: '{"a":1}' }, json)
    expect(await sendSpec(spec, '{"a":2}')).toBe('401 invalid body')
    expect(await sendSpec(spec, '')).toBe('401 invalid body')
    expect(await send({ body: '{"a":1}', components: ['@method', '@target-uri'] }, json)).toBe('401 invalid components')
    expect(await sendSpec(signed({}, json), '{"a":1}')).toBe('401 invalid components')
    expect(seen).toStrictEqual([])
    expect(await sendSpec(spec, '{"a":1}')).toBe('204')
  })

  it('a digest that is not good: another one beside it is wrong, or none has a known algorithm', async () => {
    const { sendSpec } = await site()
    const body = 'abc'
    const digest = (name: string, algorithm: string, text = body) =>
      `${name}=:${createHash(algorithm).update(text).digest('base64')}:`
    const components = ['@method', '@target-uri', 'content-digest']
    const [sha256, sha512, md5] = [digest('sha-256', 'sha256'), digest('sha-512', 'sha512'), digest('md5', 'md5')]
    for (const [value, expected] of [
      [`${sha256}, ${sha512}`, '204'],
      [`${md5}, ${sha512}`, '204'],
      [`${sha256}, ${digest('sha-512', 'sha512', 'x')}`, '401 invalid body'],
      [md5, '401 invalid body'],
      ['sha-256="x"', '401 invalid body'],
    ] as const) {
      const spec = signed({ components }, { method: 'POST', fields: [['Content-Digest', value]] })
      expect(await sendSpec(spec, body)).toBe(expected)
    }
  })

  it('what is too old is a 401, and no handler runs', async () => {
    const { send, seen } = await site()
    expect([await send({ created: new Date(Date.now() - 62_000) }), seen]).toEqual(['401 expired expired', []])
  })

  it.each<[string, RegExp, string, expected?: string]>([
    ['no created', /created=\d+;/, ''],
    ['no keyid', /;keyid="k1"/, ''],
    ['a created that is no integer', /created=(\d+)/, 'created=$1.5'],
    ['a created that is a string', /created=(\d+)/, 'created="$1"'],
    ['a date', /created=(\d+)/, 'created=@$1'],
    ['a parameter that is not understood', /;keyid/, ';x=1;keyid'],
    ['a tag of another application', /;keyid/, ';tag="x";keyid', 'invalid type'],
    ['an algorithm that the key has not', /;keyid/, ';alg="hmac-sha256";keyid', 'invalid algorithm'],
    ['an unknown algorithm', /;keyid/, ';alg="none";keyid', 'invalid algorithm'],
    ['a keyid that is a token', /keyid="k1"/, 'keyid=k1'],
  ])('a parameter: %s', async (_name, wanted, replacement, expected = 'malformed syntax') => {
    const { sendSpec, seen } = await site()
    const changed = signed().fields.map(
      ([name, value]) => [name, name === 'Signature-Input' ? value.replace(wanted, replacement) : value] as const,
    )
    expect(await sendSpec({ fields: changed })).toBe(`401 ${expected}`)
    expect(seen).toStrictEqual([])
  })

  it('a key: unknown, private, short, or none', async () => {
    const { send } = await site({}, () => undefined)
    expect(await send()).toBe('401 invalid key')
    const small = generateKeyPairSync('rsa', { modulusLength: 1024 })
    const { send: sendSmall } = await site({}, () => small.publicKey)
    expect(await sendSmall({ key: small.privateKey, alg: 'rsa-v1_5-sha256' })).toBe('401 invalid signature')
    const short = createSecretKey(Buffer.from('short'))
    for (const wrong of [
      privateKey,
      privateKey.export({ format: 'jwk' }),
      short,
      'pem',
      {},
      { kty: 'EC', k: 'a'.repeat(43) },
    ]) {
      const { send: sendWrong, seen, errors } = await site({}, () => wrong)
      expect(await sendWrong()).toBe('500')
      if (wrong === 'pem') expect(String(errors[0])).toContain('must be a JWK or a KeyObject; createPublicKey(pem)')
      expect(seen).toStrictEqual([])
    }
  })
})

describe('with spent', () => {
  it('a nonce counts once, and must be there', async () => {
    const { sendSpec, send, seen } = await site({ spent: oneTimeIds(memoryStore()) })
    const spec = signed({ nonce: 'n1' })
    expect(await send()).toBe('401 invalid replay')
    expect(await sendSpec(spec)).toBe('204')
    expect(await sendSpec(spec)).toBe('401 invalid replay')
    expect(await send({ nonce: 'n1', created: new Date(Date.now() - 2000) })).toBe('401 invalid replay')
    expect(await send({ nonce: 'n1', keyid: 'k2' })).toBe('204')
    const wrong = { nonce: 'n2', key: generateKeyPairSync('ed25519').privateKey }
    expect(await send(wrong)).toBe('401 invalid signature')
    // a stranger has spent nothing
    expect(await send({ nonce: 'n2' })).toBe('204')
    expect(seen).toHaveLength(3)
  })

  it('a store that is down is a 503, and so is a key that cannot be had', async () => {
    const { send } = await site({ spent: { use: () => Promise.reject(new Error('down')) } })
    expect(await send({ nonce: 'n' })).toMatch(/^503/)
    const { send: sendNext } = await site({}, () => {
      throw new UnavailableError('the database of keys is down')
    })
    expect(await sendNext()).toMatch(/^503/)
  })
})

it('combines with a token: who runs the client, and for whom it acts', async () => {
  const partner = httpSignature({ origin: ORIGIN, keyOf: () => ({ key: publicKey, owner: 'acme' }) })
  const user = httpBearer({ authenticate: (_request, token) => token === 't' && { user: 'anna' } })
  const router = new Router()
  router.get('/x', withAuth(allOf({ partner, user })), (ctx) => {
    ctx.body = `${ctx.request.auth.partner.owner} for ${ctx.request.auth.user.user}`
  })
  const served = await listen(new Koa().use(router.routes()))
  const spec = signedRequest({ url: '/x', fields: [['Authorization', 'Bearer t']] }, usual)
  const response = await fetch(`${served.url}/x`, { headers: spec.fields as [string, string][] })
  expect(await response.text()).toBe('acme for anna')
  expect((await fetch(`${served.url}/x`, { headers: { Authorization: 'Bearer t' } })).status).toBe(401)
})
