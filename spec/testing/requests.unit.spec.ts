/** Requests as data, the places of their credentials, and attacks. `mockRequest` refuses what a request does not have. */
import { option as O } from 'fp-ts'
import { authenticator, Challenge } from 'koa-with-auth'
import { mergeRequests, mockRequest, withBearer } from 'koa-with-auth/testing'
import { describe, expect, it } from 'vitest'
import { asServersRead, blindAttacks, leaked, secretsAmong } from '../../src/testing/attacks.js'
import {
  addCredential,
  describedLocations,
  distinctLocations,
  locationsIn,
  valuesAt,
  withoutCredential,
} from '../../src/testing/CredentialLocation.js'
import { fromOtherSite, printed } from '../../src/testing/requests.js'

// A call that TypeScript refuses, but JavaScript can write
const untyped = mockRequest as (spec: unknown) => unknown

describe('mockRequest', () => {
  const lines = /fields \}\) must be an array of header lines/
  const known = /^mockRequest: no option "headers"; there are method, url, fields/
  it.each<[name: string, spec: unknown, message: RegExp]>([
    ['headers', { headers: { Authorization: 'Bearer x' } }, known],
    ['header', { method: 'POST', header: [['Authorization', 'Bearer x']] }, /no option "header"/],
    ['path', { path: '/x' }, /no option "path"/],
    ['Method', { Method: 'POST' }, /no option "Method"/],
    ['ip', { ...withBearer('x'), ip: '::1' }, /no option "ip"/],
    ['fields that are an object', { fields: { Authorization: 'Bearer x' } }, lines],
    ['a line that is a string', { fields: ['Authorization: Bearer x'] }, lines],
    ['a line with one string', { fields: [['Authorization']] }, lines],
    ['a line with three strings', { fields: [['Authorization', 'Bearer x', 'y']] }, lines],
    ['a value that is undefined', { fields: [['Authorization', undefined]] }, lines],
    ['a url that is not a string', { url: new URL('http://x/') }, /url \}\) must be a string/],
    ['a string', 'GET /', /takes an object of options, not a string/],
    ['null', null, /takes an object/],
  ])('refuses %s', (_name, spec, message) => {
    if (spec !== null) expect(() => untyped(spec)).toThrow(message)
    expect(() => untyped(spec)).toThrow(TypeError)
  })

  it('refuses a misspelt property in a variable, too, when it is compiled', () => {
    const misspelt = { method: 'POST', header: [] }
    // @ts-expect-error: no property of a spec
    expect(() => mockRequest(misspelt)).toThrow(TypeError)
    // @ts-expect-error: no property of a spec
    expect(() => mockRequest({ url: '/', feilds: [] })).toThrow(TypeError)
    expect(mockRequest({ method: 'POST', url: '/x?a=b' }).url).toBe('/x?a=b')
    expect(mockRequest(undefined).method).toBe('GET')
    expect(mockRequest({ remoteAddress: '::1' }).socket.remoteAddress).toBe('::1')
    // as Koa begins
    expect(mockRequest().ctx.status).toBe(404)
  })
})

const at = (place: string) => {
  const [where, name = ''] = place.split(' ')
  // Safe: each place begins with one of these
  return { in: where as 'header' | 'query' | 'cookie' | 'authorization', name }
}

describe('a request as data', () => {
  it('has its credentials in places: not in fields that each client sends, nor in cookies without a name', () => {
    const fields = [
      ['Host', 'api.example'],
      ['Accept-Language', 'de'],
      ['Authorization', 'Bearer t'],
      ['authorization', 'alone'],
      ['Cookie', '=x; flag; a=1; b=2'],
    ] as const
    const places = ['authorization Bearer', 'header authorization', 'cookie a', 'cookie b', 'query q']
    expect(locationsIn({ url: '/?q=1&q=2', fields })).toEqual(places.map(at))
    expect(valuesAt(at('authorization Bearer'), { fields: [['Authorization', 'bearer  t']] })).toEqual(['t'])
  })

  it.each([
    [{ type: 'apiKey', in: 'query', name: 'key' }, 'query key'],
    [{ type: 'http', scheme: 'Digest' }, 'authorization Digest'],
    [{ type: 'oauth2', flows: {} }, 'authorization Bearer'],
    [{ type: 'openIdConnect', openIdConnectUrl: 'https://login.example' }, 'authorization Bearer'],
    [{ type: 'mutualTLS' }, undefined],
  ] as const)('has the credential of %j in %s', (scheme, place) => {
    const { description } = authenticator({
      scheme,
      challenge: Challenge.make('Own'),
      ambient: false,
      extract: () => O.none,
      authenticate: () => true,
    })
    expect(describedLocations(description)).toEqual(place === undefined ? [] : [at(place)])
  })

  it('has names of fields and schemes in any letter case, but not of cookies and parameters', () => {
    const all = ['header X', 'header x', 'authorization Bearer', 'authorization bearer', 'cookie a', 'cookie A', 'query q', 'query Q'] // prettier-ignore
    const distinct = ['header x', 'authorization bearer', 'cookie a', 'cookie A', 'query q', 'query Q']
    expect(distinctLocations(all.map(at))).toEqual(distinct.map(at))
  })

  it('is merged: the last path counts, and the queries of all', () => {
    expect(mergeRequests({ url: '/a?x=1' }, { url: '/b?y=1?z' }, { url: '/' }).url).toBe('/b?x=1&y=1?z')
    expect(withoutCredential(at('query key'), { url: '/?keys=1&key=2' }).url).toBe('/?keys=1')
    expect(addCredential(at('query key'), '\ud800', {}).url).toBe('/?key=%EF%BF%BD')
  })

  it('is a write of another site with the same credentials', () => {
    const fields = { Authorization: 'Bearer t', Host: 'api.example', 'Sec-Fetch-Site': 'cross-site', Origin: 'https://other.example' } // prettier-ignore
    expect(fromOtherSite(withBearer('t'))).toEqual({ method: 'POST', fields: Object.entries(fields) })
  })

  it('is printed with long values cut', () => {
    expect(printed(withBearer('t'.repeat(193)))).toContain('t'.repeat(193))
    expect(printed(withBearer('t'.repeat(194)))).toMatch(/t{53}\.\.\. \(201 characters\)$/)
  })
})

describe('attacks', () => {
  it('of Basic have each hostile text as user name and password, as password of admin, and as user name', () => {
    const sent = blindAttacks([at('authorization Basic')]).flatMap(({ spec }) =>
      valuesAt(at('authorization basic'), spec),
    )
    const pairs = sent.map((one) => Buffer.from(one, 'base64').toString())
    expect(pairs).toEqual(expect.arrayContaining(['root:root', 'admin:root', 'root:', ':', 'admin:']))
  })

  const secret = 'a b+c/d:e?'
  it.each([
    ['as it is', secret],
    ['in base64', Buffer.from(secret).toString('base64url')],
    ['as user name and password', Buffer.from(`${secret}:${secret}`).toString('base64')],
    ['in a URL', encodeURIComponent(secret)],
  ])('find a secret %s', (_how, form) => {
    expect(leaked(`<${form}>`, ['other', secret])).toBe(secret)
    expect(leaked(`<${form.slice(1)}>`, [secret])).toBeUndefined()
  })

  it('look only for credentials that are too long to be there by chance', () => {
    expect(secretsAmong(['1234567', '12345678'])).toEqual(['12345678'])
  })

  it.each([
    ['header X', '\t a b ', 'a b'],
    ['header X', '"a"', '"a"'],
    ['cookie a', ' "a" ', 'a'],
    ['query q', ' a ', ' a '],
  ])('in %s, servers read %j as %j', (place, sent, read) => expect(asServersRead(at(place), sent)).toBe(read))
})
