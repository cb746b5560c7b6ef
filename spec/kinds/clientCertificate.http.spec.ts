/** Client certificates, on real TLS servers and in the headers of proxies. */
import { X509Certificate } from 'node:crypto'
import Router from '@koa/router'
import type { Context } from 'koa'
import {
  apiKeyHeader,
  clientCertificate,
  optional,
  withAuth,
  type Authenticator,
  type ClientCertificateOptions,
} from 'koa-with-auth'
import { audit } from 'koa-with-auth/audit'
import { openApi } from 'koa-with-auth/openapi'
import { mockRequest } from 'koa-with-auth/testing'
import { describe, expect, it } from 'vitest'
import { recordsOf } from '../support/runs/eventRecords.js'
import { certificates, listenByTls, type Pair } from '../support/servers/certificates.js'
import { stoppedClock } from '../support/runs/clock.js'
import { authOf, guardedApp, sendCounted } from '../support/sites/guardedApp.js'
import { listen } from '../support/servers/server.js'
import { invalidIn } from '../support/papers/openapiTools.js'

const CHALLENGE = 'ClientCertificate realm="api"'

const { authority, client, forAnyUse, forServers, stranger, impostor, selfSigned, otherAuthority, renamed, brief } =
  certificates()
const ofAuthority = { authorities: [authority.cert], from: 'socket' } as const

const show = (ctx: Context) => {
  ctx.body = authOf(ctx)
}
const byTls = async (auth: unknown, options = {}) => {
  const { app, calls } = guardedApp({ '/me': auth }, { handler: show })
  const { send } = await listenByTls(app, options)
  return {
    calls,
    send,
    sendWith: async (pair: Pair | undefined, more = {}) => {
      const answer = await send({ ...(pair && { key: pair.key, cert: pair.cert }), ...more })
      return { ...answer, challenge: answer.headers['www-authenticate'] }
    },
  }
}

const escaped = ({ cert }: Pair): string => encodeURIComponent(cert)
const byteSequence = ({ x509 }: Pair): string => `:${x509.raw.toString('base64')}:`

const byHeader = async (auth: unknown) => {
  const guarded = guardedApp({ '/me': auth }, { handler: show })
  const { port } = await listen(guarded.app)
  const send = (...lines: ReadonlyArray<string>) => sendCounted(guarded, port, 'GET /me', lines)
  return { send }
}

describe('B-39: a client certificate of the TLS socket', () => {
  it('lets its owner in, if its authority is the right one', async () => {
    const { sendWith, calls } = await byTls(clientCertificate(ofAuthority))
    const passed = await sendWith(client)
    expect([passed.status, calls()]).toEqual([200, 1])
    const { x509 } = client
    expect(JSON.parse(passed.text)).toEqual({
      subject: 'O=Acme\nCN=billing',
      subjectAltName: 'DNS:billing.example',
      issuer: 'O=Acme\nCN=Acme CA',
      serialNumber: x509.serialNumber,
      fingerprint: x509.fingerprint256,
    })
    expect((await sendWith(client)).status).toBe(200)
  })

  it.each([
    ['none', undefined, ofAuthority],
    ['of another authority', stranger, ofAuthority],
    ['of an authority with the same name', impostor, ofAuthority],
    ['signed by itself', selfSigned, ofAuthority],
    ['for servers', forServers, ofAuthority],
    ['of an authority that TLS does not trust', stranger, { authorities: [otherAuthority.cert], from: 'socket' }],
    ['of an authority with the same key and another name', client, { authorities: [renamed], from: 'socket' }],
    // `authorized` is false, although Node hands it on
    [
      'with the right fingerprint that TLS does not trust',
      selfSigned,
      { fingerprints: [selfSigned.x509.fingerprint256], from: 'socket' },
    ],
    ['with another fingerprint', client, { fingerprints: [stranger.x509.fingerprint256], from: 'socket' }],
  ] as ReadonlyArray<[string, Pair | undefined, ClientCertificateOptions<unknown>]>)(
    '%s is refused: 401, and no hook is called',
    async (_what, pair, options) => {
      let asked = 0
      const auth = clientCertificate({ ...options, authenticate: () => (asked++, { user: 'anna' }) })
      const { sendWith, calls } = await byTls(auth)
      const refused = await sendWith(pair)
      expect([refused.status, refused.challenge, calls(), asked]).toEqual([401, CHALLENGE, 0, 0])
    },
  )

  it('with one of the fingerprints lets in, with and without colons, in any letter case', async () => {
    const { fingerprint256 } = client.x509
    for (const fingerprint of [fingerprint256, fingerprint256.replaceAll(':', '').toLowerCase()]) {
      const { sendWith } = await byTls(clientCertificate({ from: 'socket', fingerprints: [fingerprint] }))
      expect((await sendWith(client)).status).toBe(200)
    }
  })

  it('that is no longer valid, or not yet, is refused: from its first moment on it is valid, and at its end no more', async () => {
    const clock = stoppedClock()
    const { sendWith } = await byTls(clientCertificate(ofAuthority))
    const [begins, ends] = [Date.parse(client.x509.validFrom), Date.parse(client.x509.validTo)]
    for (const [moment, status] of [
      [begins - 1, 401],
      [begins, 200],
      [ends - 1, 200],
      [ends, 401],
    ] as const) {
      clock.set(moment - Date.now())
      expect([moment, (await sendWith(client)).status]).toEqual([moment, status])
    }
  })

  it('that is refused says why in the record of the decision', async () => {
    const clock = stoppedClock()
    const records = recordsOf('decision', ({ route }) => route === '/why')
    const { app } = guardedApp({
      '/why': clientCertificate({ fingerprints: [client.x509.fingerprint256], from: 'socket' }),
    })
    const { send } = await listenByTls(app)
    for (const [days, pair, failure, why] of [
      [0, stranger, 'invalid', 'certificate'],
      [4, client, 'expired', 'expired'],
      [-8, client, 'invalid', 'not yet'],
    ] as const) {
      const before = records.length
      clock.set(days * 86_400_000)
      expect((await send({ key: pair.key, cert: pair.cert, path: '/why' })).status).toBe(401)
      await expect.poll(() => records.length).toBe(before + 1)
      expect(records.at(-1)).toMatchObject({ failure, why })
    }
  })

  it('offers its realm', async () => {
    const { sendWith } = await byTls(clientCertificate({ ...ofAuthority, realm: 'partners' }))
    expect((await sendWith(undefined)).challenge).toBe('ClientCertificate realm="partners"')
  })

  it('of an authority that is no longer valid is refused', async () => {
    const clock = stoppedClock()
    const [short, long] = [brief, authority.cert].map((cert) =>
      clientCertificate({ from: 'socket', authorities: [cert] }),
    )
    const [shorter, longer] = [await byTls(short), await byTls(long)]
    expect((await shorter.sendWith(client)).status).toBe(200)
    clock.set(2 * 86_400_000)
    expect((await shorter.sendWith(client)).status).toBe(401)
    expect((await longer.sendWith(client)).status).toBe(200)
  })

  it('is still known when a TLS session is continued', async () => {
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const { sendWith } = await byTls(clientCertificate(ofAuthority))
      const versions = { minVersion: version, maxVersion: version }
      const { session } = await sendWith(client, versions)
      const continued = await sendWith(client, { ...versions, session })
      expect([version, continued.isReused, continued.status]).toEqual([version, true, 200])
      const theirs = await sendWith(stranger, versions)
      const refused = await sendWith(stranger, { ...versions, session: theirs.session })
      expect([version, refused.status]).toEqual([version, 401])
    }
  })

  it('is absent over plain http, so the next of a list is asked', async () => {
    const key = apiKeyHeader({ authenticate: (_request, key) => key === 'k1' && { client: 'Acme' } })
    const { send } = await byHeader([clientCertificate(ofAuthority), key])
    expect((await send('key: k1')).status).toBe(200)
    expect((await send()).status).toBe(401)
    const anonymous = await byHeader(optional(clientCertificate(ofAuthority)))
    expect((await anonymous.send()).status).toBe(204)
  })

  it('is given to the hook', async () => {
    const auth = clientCertificate({
      ...ofAuthority,
      authenticate: (_request, certificate) =>
        certificate instanceof X509Certificate && certificate.subject.endsWith('CN=billing') && { service: 'billing' },
    })
    const typed: Authenticator<{ service: string }> = auth
    const { sendWith } = await byTls(typed)
    expect(JSON.parse((await sendWith(client)).text)).toEqual({ service: 'billing' })
  })

  it('is sent by browsers themselves, so a write of another site is refused', async () => {
    const { sendWith, calls } = await byTls(clientCertificate(ofAuthority))
    const fields = { 'Sec-Fetch-Site': 'cross-site', Origin: 'https://evil.example' }
    const refused = await sendWith(client, { method: 'POST', headers: fields })
    expect([refused.status, calls()]).toEqual([403, 0])
    expect((await sendWith(client, { method: 'POST' })).status).toBe(200)
  })
})

describe('B-39: a client certificate in a header', () => {
  const from = (proxies: readonly [string, ...string[]], header = 'Client-Cert') => ({ header, proxies })

  it.each([
    ['Client-Cert', byteSequence(client)],
    // Node's TLS refuses it, and other proxies do not
    ['Client-Cert', byteSequence(forAnyUse)],
    ['X-SSL-Client-Cert', escaped(client)],
    ['X-Amzn-Mtls-Clientcert', encodeURI(client.cert)],
  ])('%s counts from a named proxy', async (header, value) => {
    for (const proxy of ['127.0.0.1', '127.0.0.0/8']) {
      const { send } = await byHeader(clientCertificate({ authorities: [authority.cert], from: from([proxy], header) }))
      const passed = await send(`${header}: ${value}`)
      expect([passed.status, passed.ran]).toEqual([200, 1])
      expect(passed.body).toContain('CN=billing')
    }
  })

  it('counts from a proxy of the same link, whose address has a zone', () => {
    const auth = clientCertificate({ authorities: [authority.cert], from: from(['fe80::/64']) })
    const of = (remoteAddress: string, value = byteSequence(client)) =>
      auth.evaluate(mockRequest({ remoteAddress, fields: [['Client-Cert', value]] }))
    expect(of('fe80::1%eth0')).toMatchObject({ _tag: 'Right' })
    for (const other of ['fd00::1%eth0', 'unknown']) expect(of(other)).toMatchObject({ left: { _tag: 'absent' } })
    // longer than any header that Node reads by default
    const long = escaped(client).replace('-----END', `${'%0A'.repeat(6000)}-----END`)
    expect(of('fe80::1', long)).toMatchObject({ left: { _tag: 'malformed' } })
  })

  it('from anybody else is ignored', async () => {
    for (const proxy of ['127.0.0.2', '10.0.0.0/8', '::1'] as const) {
      const auth = clientCertificate({ authorities: [authority.cert], from: from([proxy]) })
      const { send } = await byHeader([auth, apiKeyHeader({ authenticate: (_request, key) => key === 'k1' })])
      const forwarded = `X-Forwarded-For: ${proxy}`
      const refused = await send(`Client-Cert: ${byteSequence(client)}`, forwarded)
      expect([refused.status, refused.ran]).toEqual([401, 0])
      expect((await send(`Client-Cert: ${byteSequence(client)}`, 'key: k1')).status).toBe(200)
    }
  })

  it.each<[string, ReadonlyArray<string>]>([
    ['is there twice', [byteSequence(client), byteSequence(client)]],
    ['has two values', [`${byteSequence(client)}, ${byteSequence(client)}`]],
    ['is rubbish', ['rubbish']],
    ['is an empty byte sequence', ['::']],
    ['has no colons', [client.x509.raw.toString('base64')]],
    ['has padding inside', [byteSequence(client).replace('M', '=')]],
    ['has bytes after the certificate', [`:${Buffer.concat([client.x509.raw, Buffer.from('x')]).toString('base64')}:`]],
    ['has two certificates', [escaped(client) + escaped(client)]],
    ['has a private key', [encodeURIComponent(client.key)]],
    ['has a wrong escape', ['%zz']],
    ['is of another authority', [byteSequence(stranger)]],
  ])('that %s is refused: 401', async (_what, values) => {
    const { send } = await byHeader(clientCertificate({ authorities: [authority.cert], from: from(['127.0.0.1']) }))
    const refused = await send(...values.map((value) => `Client-Cert: ${value}`))
    expect([refused.status, refused.ran]).toEqual([401, 0])
  })

  it('that is empty is absent', async () => {
    const auth = clientCertificate({ authorities: [authority.cert], from: from(['127.0.0.1']) })
    const { send } = await byHeader(optional(auth))
    expect((await send('Client-Cert: ')).status).toBe(204)
    expect((await send('Client-Cert: x')).status).toBe(401)
  })

  it('is not read from the socket, nor the socket instead of it', async () => {
    const { sendWith } = await byTls(clientCertificate({ authorities: [authority.cert], from: from(['127.0.0.1']) }))
    expect((await sendWith(client)).status).toBe(401)
    const bySocket = await byTls(clientCertificate(ofAuthority))
    expect((await bySocket.sendWith(undefined, { headers: { 'Client-Cert': byteSequence(client) } })).status).toBe(401)
  })
})

describe('clientCertificate', () => {
  it('is in OpenAPI as mutualTLS, and in the audit with its authority and its source', async () => {
    const router = new Router()
    const auths = [
      clientCertificate(ofAuthority),
      clientCertificate({ authorities: [otherAuthority.cert], from: 'socket' }),
      clientCertificate({ authorities: [authority.cert], from: { header: 'Client-Cert', proxies: ['10.0.0.1'] } }),
      clientCertificate({ fingerprints: [client.x509.fingerprint256], from: 'socket', schemeName: 'pinned' }),
    ]
    for (const [at, auth] of auths.slice(0, 1).entries()) router.get(`/${at}`, withAuth(auth), () => {})
    const document = openApi(router, { title: 't', version: '1' })
    expect(document.components?.securitySchemes).toEqual({ mutualTLS: { type: 'mutualTLS' } })
    expect(document.paths?.['/0']?.get?.security).toEqual([{ mutualTLS: [] }])
    expect(await invalidIn(document)).toBeUndefined()
    const words = auths.map((auth) => {
      const one = new Router()
      one.get('/x', withAuth(auth), () => {})
      return audit(one).operations[0]?.ways[0]?.demands[0]?.credential
    })
    expect(new Set(words).size).toBe(auths.length)
    expect(words[0]).toMatch(/^client certificate issued by [0-9a-f]{16} from socket$/)
    expect(words[2]).toMatch(/ from header Client-Cert of 10\.0\.0\.1$/)
  })

  it.each<[string, unknown, RegExp]>([
    ['nothing', {}, /exactly one of authorities and fingerprints/],
    ['both', { ...ofAuthority, fingerprints: [client.x509.fingerprint256] }, /exactly one of/],
    ['no source', { authorities: [authority.cert] }, /\({ from }\) must be 'socket', or { header, proxies }/],
    ['no authority', { from: 'socket', authorities: [] }, /must be an array of PEMs/],
    ['a certificate of no authority', { from: 'socket', authorities: [client.cert] }, /does not belong to a/],
    ['two in one string', { from: 'socket', authorities: [authority.cert + otherAuthority.cert] }, /each with the/],
    ['a private key', { from: 'socket', authorities: [authority.key] }, /array of PEMs/],
    ['no fingerprint', { from: 'socket', fingerprints: [] }, /64 hexadecimal digits/],
    ['a fingerprint of SHA-1', { from: 'socket', fingerprints: [client.x509.fingerprint] }, /64 hexadecimal digits/],
    ['no proxies', { ...ofAuthority, from: { header: 'Client-Cert', proxies: [] } }, /must list the proxies/],
    ['a name', { ...ofAuthority, from: { header: 'Client-Cert', proxies: ['proxy'] } }, /"proxy" is not an address/],
    ['a wrong network', { ...ofAuthority, from: { header: 'X', proxies: ['10.0.0.0/33'] } }, /is not an address/],
    ['a wrong network of IPv6', { ...ofAuthority, from: { header: 'X', proxies: ['::/129'] } }, /is not an address/],
    ['a path', { ...ofAuthority, from: { header: 'Client-Cert', proxies: ['10.0.0.0/8/8'] } }, /is not an address/],
    ['a blank', { ...ofAuthority, from: { header: 'Client-Cert', proxies: ['10.0.0.0/8 '] } }, /is not an address/],
    ['all proxies', { ...ofAuthority, from: { header: 'Client-Cert' } }, /must list the proxies/],
    ['a wrong header', { ...ofAuthority, from: { header: 'a b', proxies: ['::1'] } }, /header } }\) must be a name/],
    ['an unknown option', { ...ofAuthority, ca: 1 }, /no option "ca"/],
    ['a hook of three', { ...ofAuthority, authenticate: (_a: 1, _b: 2, _c: 3) => true }, /takes 3 parameters/],
  ])('refuses %s with a TypeError', (_what, options, message) => {
    const make = () => clientCertificate(options as ClientCertificateOptions<unknown>)
    expect(make).toThrow(TypeError)
    expect(make).toThrow(message)
  })
})
