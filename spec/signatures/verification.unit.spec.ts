/** Signed requests, without a server: where each limit ends, and what a signature must not be. */
import { generateKeyPairSync } from 'node:crypto'
import * as E from 'fp-ts/lib/Either.js'
import { httpSignature, type HttpSignatureOptions } from 'koa-with-auth/signatures'
import { memoryStore, oneTimeIds } from 'koa-with-auth/stores'
import { mockRequest, signedRequest, type RequestSpec, type SigningOptions } from 'koa-with-auth/testing'
import { expect, it } from 'vitest'
import { stoppedClock } from '../support/runs/clock.js'
import { stepsOf } from '../support/runs/steps.js'

const origin = 'https://api.example'
const { publicKey, privateKey } = generateKeyPairSync('ed25519')

const signed = (signing: Partial<SigningOptions> = {}, spec: RequestSpec = {}) =>
  signedRequest({ url: '/x', ...spec }, { key: privateKey, keyid: 'k', origin, ...signing })

const result = async (spec: RequestSpec, options: Partial<HttpSignatureOptions<string>> = {}) => {
  const auth = httpSignature({ origin, keyOf: () => ({ key: publicKey, owner: 'anna' }), ...options })
  const found = await auth.evaluate(mockRequest(spec))
  return E.isRight(found) ? 'good' : `${found.left._tag} ${found.left.why}`
}

it('a nonce is kept as long as the request could come again, with a key that is found 9 s after its age was checked', async () => {
  const clock = stoppedClock()
  clock.set(-(Date.now() % 1000))
  const spec = signed({ nonce: 'n', created: new Date(Date.now() + 6000) })
  const spent = oneTimeIds(memoryStore())
  expect(await result(spec, { maxAge: 60_000, spent })).toBe('good')
  clock.move(66_000)
  const keyOf = () => (clock.move(9000), { key: publicKey, owner: 'anna' })
  expect(await result(spec, { maxAge: 60_000, spent, keyOf })).toBe('invalid replay')
  expect(await result(spec, { maxAge: 60_000, spent, keyOf })).toBe('expired expired')
})

it.each<[string, Partial<Record<'created' | 'expires', number>>, maxAge?: number]>([
  ['good', { created: -300_000 }, 300_000],
  ['good', { created: -60_000 }],
  ['expired expired', { created: -61_000 }],
  ['good', { created: 6000 }],
  ['invalid not yet', { created: 7000 }],
  ['good', { expires: 1000 }],
  ['expired expired', { expires: 0 }],
])('a signature is %s at these times from now: %j', async (expected, times, maxAge) => {
  stoppedClock().set(-(Date.now() % 1000))
  const dates = Object.fromEntries(Object.entries(times).map(([name, ms]) => [name, new Date(Date.now() + ms)]))
  expect(await result(signed(dates), { maxAge })).toBe(expected)
})

it('at most eight signatures of a request cost a look-up of their key', async () => {
  const { privateKey: other } = generateKeyPairSync('ed25519')
  const keyids: string[] = []
  const fields = Array.from({ length: 9 }, (_, n) => signed({ key: other, keyid: `k${n}`, label: `s${n}` }).fields)
  const keyOf = (keyid: string) => void keyids.push(keyid)
  expect(await result({ url: '/x', fields: fields.flatMap((one) => one ?? []) }, { keyOf })).toBe('invalid key')
  expect(keyids).toHaveLength(8)
})

it('A-43 a component is read and written once, however many signatures cover it', async () => {
  const priority = ['Priority', 'a=("x";q=1.5 "y";q=1.5), '.repeat(300)] as const
  const stepsWith = (signatures: number) => {
    const { fields } = signed({}, { fields: [priority] })
    const labels = Array.from({ length: signatures }, (_, n) => `s${n}=`)
    const all = fields.flatMap(([name, value]) => {
      const own = value.replace('"@target-uri"', '"@target-uri" "priority";bs')
      return name === 'Priority' ? [priority] : labels.map((label) => [name, own.replace('sig=', label)] as const)
    })
    return stepsOf(async () => expect(await result({ url: '/x', fields: all })).toBe('invalid signature'))
  }
  expect(await stepsWith(8)).toBeLessThan(5 * (await stepsWith(1)))
})

/** The result for a signature that covers another component than it signed: `invalid signature` if the component can be covered. */
const covering = (
  component: string,
  field: string,
  components: HttpSignatureOptions<string>['components'],
  value = 'sig=1',
) => {
  const { fields } = signed({}, { fields: [[field, value]] })
  const lines = fields.map(([name, sent]) => [name, sent.replace('"@target-uri"', component)] as const)
  return result({ url: '/x', fields: lines }, { components })
}

it('a field counts as covered as its lines, as bytes and as parsed, and not by a member', async () => {
  for (const [flag, expected] of [
    ['', 'invalid signature'],
    [';bs', 'invalid signature'],
    [';sf', 'invalid signature'],
    [';key="sig"', 'invalid components'],
    [';key', 'invalid components'],
  ] as const)
    expect([flag, await covering(`"priority"${flag}`, 'Priority', ['@method', 'priority'])]).toEqual([flag, expected])
})

it('an outage ends the decision: no other signature is asked', async () => {
  const { privateKey: key } = generateKeyPairSync('ed25519')
  const spent = { use: () => Promise.reject(new Error('down')) }
  const both = [signed({ nonce: 'n' }), signed({ nonce: 'm', key, label: 'other' })]
  expect(await result({ fields: both.flatMap(({ fields }) => fields), url: '/x' }, { spent })).toMatch(/^unavailable/)
})

it.each([
  ['good', 8000],
  ['malformed syntax', 8200],
])('a signature is %s if its fields have twice as many characters as this: %i', async (expected, length) => {
  expect(await result(signed({ label: 'a'.repeat(length) }))).toBe(expected)
})

it('a line that was folded is one line', async () => {
  expect(await covering('"x-a"', 'X-A', ['@method'], 'a\r\n  b')).toBe('invalid signature')
})

it.each([
  ...['accept-signature', 'cache-status', 'content-digest', 'priority', 'repr-digest', 'signature', 'signature-agent'],
  ...['signature-input', 'want-content-digest', 'want-repr-digest'],
])('a member of the dictionary %s can be covered', async (name) => {
  const field = name === 'signature' || name === 'signature-input' ? 'X-Other' : name
  expect(await covering(`"${name}";key="sig"`, field, ['@method'])).toBe('invalid signature')
  expect(await covering(`"${name}";key="other"`, field, ['@method'])).toBe('invalid components')
})

it('the bytes of a signature have no parameters', async () => {
  const { fields } = signed()
  const flagged = fields.map(([name, value]) => [name, name === 'Signature' ? `${value};a=1` : value] as const)
  expect(await result({ url: '/x', fields: flagged })).toBe('malformed syntax')
})

it.each([
  ['a part of the digest of a body', '"content-digest"', '"content-digest";key="sha-256"', '/x'],
  ['a parameter of the query with a flag', '"@target-uri"', '"@target-uri" "@query-param";name="id";x', '/x?id=1'],
  ['a parameter of the query that is no UTF-8', '"@target-uri"', '"@target-uri" "@query-param";name="id"', '/x?id=%ff'],
])('%s is not covered', async (_what, component, changed, url) => {
  const { fields } = signed({ body: 'a' }, { method: 'POST', url, fields: [['Content-Length', '1']] })
  const lines = fields.map(
    ([name, value]) => [name, name === 'Signature-Input' ? value.replace(component, changed) : value] as const,
  )
  expect(await result({ method: 'POST', url, fields: lines })).toBe('invalid components')
})
