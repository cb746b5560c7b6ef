/** Tokens that are bound to a certificate (RFC 8705), on real TLS servers and behind proxies. */
import { createHash, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { TLSSocket } from 'node:tls'
import { connect } from 'node:tls'
import { once } from 'node:events'
import { httpJwt, type BoundOptions } from 'koa-with-auth/jwt'
import { memoryStore, oneTimeIds } from 'koa-with-auth/stores'
import { describe, expect, it } from 'vitest'
import { certificates, listenByTls, type Pair } from '../support/servers/certificates.js'
import { dpopClient, ORIGIN, withProof } from '../support/servers/dpopClient.js'
import { guardedApp } from '../support/sites/guardedApp.js'
import { API, identityProvider } from '../support/servers/identityProvider.js'
import { repository } from '../support/projects/typecheck.js'
import { INVALID, expectRefused, tokenSite } from '../support/sites/tokenSite.js'

const { client, stranger, selfSigned } = certificates()
const boundTo = ({ thumbprint }: Pair) => ({ cnf: { 'x5t#S256': thumbprint } })
const certificate = { from: 'socket' } as const
const byHeader = { from: { header: 'Client-Cert', proxies: ['127.0.0.1'] } } as const

const site = async (bound: BoundOptions) => {
  const provider = await identityProvider()
  const hook: unknown[] = []
  const authenticate = (_request: unknown, claims: { readonly sub?: string }) => (hook.push(claims), claims)
  const jwt = httpJwt({ issuer: provider.issuer, audience: API, bound, authenticate })
  return { provider, jwt, hook }
}

const byTls = async (bound: BoundOptions = { certificate }) => {
  const { provider, jwt, hook } = await site(bound)
  const { app, calls } = guardedApp({ '/me': jwt })
  const { send, url } = await listenByTls(app)
  const sendAs = async (pair: Pair | undefined, token: string, more = {}) => {
    const headers = { Authorization: `Bearer ${token}` }
    const answer = await send({ headers, ...(pair && { key: pair.key, cert: pair.cert }), ...more })
    return { ...answer, challenge: answer.headers['www-authenticate'] }
  }
  return { provider, hook, calls, send, sendAs, url }
}

describe('B-38: a token that is bound to a certificate', () => {
  it('RFC 8705, Appendix A: the thumbprint of the example', () => {
    // Safe: it is a file of this repository
    const { certificate: example } = JSON.parse(readFileSync(`${repository}spec/data/bound-tokens.json`, 'utf8')) as {
      readonly certificate: { readonly pem: string; readonly thumbprint: string }
    }
    const { raw } = new X509Certificate(example.pem)
    expect(createHash('sha256').update(raw).digest('base64url')).toBe(example.thumbprint)
  })

  it.each([
    ['of an authority', client],
    ['signed by itself', selfSigned],
  ])('passes on a connection with this certificate, %s, as often as it is sent', async (_what, pair) => {
    const { provider, sendAs, calls } = await byTls()
    const token = await provider.token(boundTo(pair))
    expect((await sendAs(pair, token)).status).toBe(200)
    expect((await sendAs(pair, token)).status).toBe(200)
    expect(calls()).toBe(2)
  })

  it.each([
    ['no certificate', undefined],
    ['another one of the same authority', certificates().forServers],
    ['one of another authority', stranger],
    ['one that is signed by itself', selfSigned],
  ])('is refused with %s', async (_what, pair) => {
    const { provider, sendAs, calls, hook } = await byTls()
    const token = await provider.token(boundTo(client))
    // it is remembered as verified, but not for this connection
    expect((await sendAs(client, token)).status).toBe(200)
    const refused = await sendAs(pair, token)
    expect([refused.status, refused.challenge, calls(), hook.length]).toEqual([401, INVALID, 1, 1])
  })

  it('is refused over plain http, and with a header that is not named', async () => {
    const { provider, jwt } = await site({ certificate })
    const { get } = await tokenSite(jwt)
    const header = { 'Client-Cert': `:${client.x509.raw.toString('base64')}:` }
    expect((await get(await provider.token(boundTo(client)), header)).status).toBe(401)
    expect((await get(await provider.token())).status).toBe(200)
  })

  it.each([
    ['the fingerprint in hexadecimal digits', client.x509.fingerprint256.replaceAll(':', '')],
    ['a shorter thumbprint', client.thumbprint.slice(0, 42)],
    ['padding', `${client.thumbprint}=`],
    ['an empty string', ''],
    ['a number', 7],
  ])('is refused if it has %s', async (_what, value) => {
    const { provider, sendAs } = await byTls()
    expect((await sendAs(client, await provider.token({ cnf: { 'x5t#S256': value } }))).status).toBe(401)
  })

  it('passes on a continued TLS session of its client, and no other', async () => {
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const { provider, sendAs } = await byTls()
      const versions = { minVersion: version, maxVersion: version }
      const token = await provider.token(boundTo(client))
      const { session } = await sendAs(client, token, versions)
      const continued = await sendAs(client, token, { ...versions, session })
      expect([version, continued.isReused, continued.status]).toEqual([version, true, 200])
      const theirs = await provider.token(boundTo(stranger))
      expect((await sendAs(client, theirs, { ...versions, session })).status).toBe(401)
      const other = await sendAs(stranger, theirs, versions)
      expect((await sendAs(client, token, { ...versions, session: other.session })).status).toBe(401)
    }
  })

  it('cannot be used by a connection that renegotiates without the certificate', async () => {
    const { provider, url, calls } = await byTls()
    const token = await provider.token(boundTo(client))
    const socket: TLSSocket = connect({
      host: '127.0.0.1',
      port: Number(new URL(url).port),
      maxVersion: 'TLSv1.2',
      ca: certificates().authority.cert,
    })
    await once(socket, 'secureConnect')
    socket.on('error', () => {})
    socket.renegotiate({}, () => {})
    const answer: Buffer[] = []
    socket.on('data', (chunk: Buffer) => answer.push(chunk))
    socket.write(`GET /me HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n\r\n`)
    await once(socket, 'close')
    expect(Buffer.concat(answer).toString()).not.toMatch(/^HTTP\/1.1 200/)
    expect(calls()).toBe(0)
  })

  it('behind a proxy: passes with the header of a named proxy, and not with that of anybody else', async () => {
    const header = { 'Client-Cert': `:${client.x509.raw.toString('base64')}:` }
    const { provider, jwt } = await site({ certificate: byHeader })
    const { get } = await tokenSite(jwt)
    const token = await provider.token(boundTo(client))
    expect((await get(token, header)).status).toBe(200)
    for (const other of [{}, { 'Client-Cert': `:${stranger.x509.raw.toString('base64')}:` }, { 'Client-Cert': 'x' }]) {
      expectRefused(await get(token, other), INVALID)
    }
    const elsewhere = await site({ certificate: { from: { header: 'Client-Cert', proxies: ['10.0.0.1'] } } })
    const foreign = await tokenSite(elsewhere.jwt)
    const theirs = await elsewhere.provider.token(boundTo(client))
    expect((await foreign.get(theirs, { ...header, 'X-Forwarded-For': '10.0.0.1' })).status).toBe(401)
  })

  it('is demanded by `required`; a token that is bound to nothing is refused', async () => {
    const { provider, sendAs } = await byTls({ certificate, required: true })
    expect((await sendAs(client, await provider.token())).status).toBe(401)
    expect((await sendAs(client, await provider.token(boundTo(client)))).status).toBe(200)
  })

  it('and to a key passes if both hold', async () => {
    const dpop = { spent: oneTimeIds(memoryStore()), origin: ORIGIN }
    const owner = await dpopClient()
    const { provider, send, calls } = await byTls({ dpop, certificate, required: true })
    const both = await provider.token({ cnf: { jkt: owner.thumbprint, 'x5t#S256': client.thumbprint } })
    const proof = () => owner.proof(both)
    const as = async (pair: Pair, headers: Readonly<Record<string, string>>) =>
      (await send({ key: pair.key, cert: pair.cert, headers })).status
    expect(await as(client, withProof(both, await proof()))).toBe(200)
    expect(await as(stranger, withProof(both, await proof()))).toBe(401)
    expect(await as(client, withProof(both, await (await dpopClient()).proof(both)))).toBe(401)
    expect(await as(client, { Authorization: `Bearer ${both}` })).toBe(401)
    const key = await owner.token(provider)
    expect(await as(stranger, withProof(key, await owner.proof(key)))).toBe(200)
    const certificateOnly = await provider.token(boundTo(client))
    expect(await as(client, { Authorization: `Bearer ${certificateOnly}` })).toBe(200)
    expect(await as(client, withProof(certificateOnly, await owner.proof(certificateOnly)))).toBe(401)
    const plain = await provider.token()
    expect(await as(client, { Authorization: `Bearer ${plain}` })).toBe(401)
    expect(calls()).toBe(3)
  })

  it('the certificate is compared before the proof is spent', async () => {
    const spent = { use: () => Promise.reject(new Error('must not be asked')) }
    const owner = await dpopClient()
    const { provider, send } = await byTls({ dpop: { spent, origin: ORIGIN }, certificate })
    const both = await provider.token({ cnf: { jkt: owner.thumbprint, 'x5t#S256': client.thumbprint } })
    const headers = withProof(both, await owner.proof(both))
    expect((await send({ key: stranger.key, cert: stranger.cert, headers })).status).toBe(401)
  })

  it.each<[string, unknown, RegExp]>([
    ['no source', {}, /\({ from }\) must be 'socket', or { header, proxies }/],
    ['another source', { from: 'header' }, /must be 'socket'/],
    ['no proxies', { from: { header: 'Client-Cert', proxies: [] } }, /must list the proxies/],
    ['a string', 'socket', /takes an object of options, not a string/],
    ['an unknown option', { from: 'socket', ca: 1 }, /no option "ca"/],
  ])('with %s is a TypeError', (_what, given, message) => {
    const bound = { certificate: given } as BoundOptions
    const make = () => httpJwt({ issuer: 'https://login.example/', audience: API, bound })
    expect(make).toThrow(TypeError)
    expect(make).toThrow(message)
  })
})
