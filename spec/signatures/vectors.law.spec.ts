/** The examples of RFC 9421 (§2, appendix B) and of draft-ietf-webbotauth-httpsig-protocol (appendix E). G-01, G-02, G-08. */
import { createPublicKey, createSecretKey, type KeyObject } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { parseDictionary, isInnerList } from 'structured-headers'
import { isRight } from 'fp-ts/lib/Either.js'
import { httpSignature, type HttpSignatureOptions } from 'koa-with-auth/signatures'
import { mockRequest } from 'koa-with-auth/testing'
import { describe, expect, it } from 'vitest'
import { coveredBy, readingsOf, signatureBase } from '../../src/signatures/components.js'
import { stoppedClock } from '../support/runs/clock.js'

const pem = (body: string) => createPublicKey(`-----BEGIN PUBLIC KEY-----\n${body}\n-----END PUBLIC KEY-----`)

// Appendix B.1
const keys: Readonly<Record<string, KeyObject>> = {
  'test-key-rsa-pss': pem(`MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAr4tmm3r20Wd/PbqvP1s2
+QEtvpuRaV8Yq40gjUR8y2Rjxa6dpG2GXHbPfvMs8ct+Lh1GH45x28Rw3Ry53mm+
oAXjyQ86OnDkZ5N8lYbggD4O3w6M6pAvLkhk95AndTrifbIFPNU8PPMO7OyrFAHq
gDsznjPFmTOtCEcN2Z1FpWgchwuYLPL+Wokqltd11nqqzi+bJ9cvSKADYdUAAN5W
Utzdpiy6LbTgSxP7ociU4Tn0g5I6aDZJ7A8Lzo0KSyZYoA485mqcO0GVAdVw9lq4
aOT9v6d+nb4bnNkQVklLQ3fVAvJm+xdDOp9LCNCN48V2pnDOkFV6+U9nV5oyc6XI
2wIDAQAB`),
  'test-key-ecc-p256': pem(`MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEqIVYZVLCrPZHGHjP17CTW0/+D9Lf
w0EkjqF7xB4FivAxzic30tMM4GF+hR6Dxh71Z50VGGdldkkDXZCnTNnoXQ==`),
  'test-key-ed25519': pem('MCowBQYDK2VwAyEAJrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs='),
  'test-shared-secret': createSecretKey(
    Buffer.from('uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ==', 'base64'),
  ),
}

const BODY = '{"hello": "world"}'
const DIGEST = 'sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:'

// Appendix B.2
const testRequest: ReadonlyArray<readonly [string, string]> = [
  ['Host', 'example.com'],
  ['Date', 'Tue, 20 Apr 2021 02:07:55 GMT'],
  ['Content-Type', 'application/json'],
  ['Content-Digest', DIGEST],
  ['Content-Length', '18'],
]

const clientCert =
  ':MIIBqDCCAU6gAwIBAgIBBzAKBggqhkjOPQQDAjA6MRswGQYDVQQKDBJMZXQncyBBdXRoZW50aWNhdGUxGzAZBgNVBAMMEkxBIEludGVybWVkaWF0ZSBDQTAeFw0yMDAxMTQyMjU1MzNaFw0yMTAxMjMyMjU1MzNaMA0xCzAJBgNVBAMMAkJDMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE8YnXXfaUgmnMtOXU/IncWalRhebrXmckC8vdgJ1p5Be5F/3YC8OthxM4+k1M6aEAEFcGzkJiNy6J84y7uzo9M6NyMHAwCQYDVR0TBAIwADAfBgNVHSMEGDAWgBRm3WjLa38lbEYCuiCPct0ZaSED2DAOBgNVHQ8BAf8EBAMCBsAwEwYDVR0lBAwwCgYIKwYBBQUHAwIwHQYDVR0RAQH/BBMwEYEPYmRjQGV4YW1wbGUuY29tMAoGCCqGSM49BAMCA0gAMEUCIBHda/r1vaL6G3VliL4/Di6YK0Q6bMjeSkC3dFCOOB8TAiEAx/kHSB4urmiZ0NX5r5XarmPk0wmuydBVoU4hBVZ1yhk=:'

interface Vector {
  readonly name: string
  readonly input: string
  readonly signature: string
  readonly components?: HttpSignatureOptions<string>['components']
  readonly tag?: string
  readonly request?: { readonly method: string; readonly url: string; readonly fields: typeof testRequest }
  readonly origin?: string
}

const vectors: ReadonlyArray<Vector> = [
  {
    name: 'B.2.2 selective covered components (rsa-pss-sha512)',
    input:
      'sig-b22=("@authority" "content-digest" "@query-param";name="Pet");created=1618884473;keyid="test-key-rsa-pss";tag="header-example"',
    signature:
      'LjbtqUbfmvjj5C5kr1Ugj4PmLYvx9wVjZvD9GsTT4F7GrcQEdJzgI9qHxICagShLRiLMlAJjtq6N4CDfKtjvuJyE5qH7KT8UCMkSowOB4+ECxCmT8rtAmj/0PIXxi0A0nxKyB09RNrCQibbUjsLS/2YyFYXEu4TRJQzRw1rLEuEfY17SARYhpTlaqwZVtR8NV7+4UKkjqpcAoFqWFQh62s7Cl+H2fjBSpqfZUJcsIk4N6wiKYd4je2U/lankenQ99PZfB4jY3I5rSV2DSBVkSFsURIjYErOs0tFTQosMTAoxk//0RoKUqiYY8Bh0aaUEb0rQl3/XaVe4bXTugEjHSw==',
    components: ['@authority', 'content-digest', '"@query-param";name="Pet"'],
    tag: 'header-example',
  },
  {
    name: 'B.2.3 full coverage (rsa-pss-sha512)',
    input:
      'sig-b23=("date" "@method" "@path" "@query" "@authority" "content-type" "content-digest" "content-length");created=1618884473;keyid="test-key-rsa-pss"',
    signature:
      'bbN8oArOxYoyylQQUU6QYwrTuaxLwjAC9fbY2F6SVWvh0yBiMIRGOnMYwZ/5MR6fb0Kh1rIRASVxFkeGt683+qRpRRU5p2voTp768ZrCUb38K0fUxN0O0iC59DzYx8DFll5GmydPxSmme9v6ULbMFkl+V5B1TP/yPViV7KsLNmvKiLJH1pFkh/aYA2HXXZzNBXmIkoQoLd7YfW91kE9o/CCoC1xMy7JA1ipwvKvfrs65ldmlu9bpG6A9BmzhuzF8Eim5f8ui9eH8LZH896+QIF61ka39VBrohr9iyMUJpvRX2Zbhl5ZJzSRxpJyoEZAFL2FUo5fTIztsDZKEgM4cUA==',
    components: ['@method', '@path', '@query', '@authority', 'content-digest'],
  },
  {
    name: 'B.2.5 hmac-sha256',
    input: 'sig-b25=("date" "@authority" "content-type");created=1618884473;keyid="test-shared-secret"',
    signature: 'pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8=',
    components: ['@authority'],
  },
  {
    name: 'B.2.6 ed25519',
    input:
      'sig-b26=("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"',
    signature: 'wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==',
    components: ['@method', '@path', '@authority'],
  },
  {
    name: 'B.3 a proxy that ends TLS (ecdsa-p256-sha256)',
    input: 'ttrp=("@path" "@query" "@method" "@authority" "client-cert");created=1618884473;keyid="test-key-ecc-p256"',
    signature: 'xVMHVpawaAC/0SbHrKRs9i8I3eOs5RtTMGCWXm/9nvZzoHsIg6Mce9315T6xoklyy0yzhD9ah4JHRwMLOgmizw==',
    components: ['client-cert'],
    origin: 'https://service.internal.example',
    request: { method: 'POST', url: '/foo?param=Value&Pet=dog', fields: [['Client-Cert', clientCert]] },
  },
  {
    name: 'B.4 a request that was transformed (ed25519)',
    input: 'transform=("@method" "@path" "@authority" "accept");created=1618884473;keyid="test-key-ed25519"',
    signature: 'ZT1kooQsEHpZ0I1IjCqtQppOmIqlJPeo7DHR3SoMn0s5JZ1eRGS0A+vyYP9t/LXlh5QMFFQ6cpLt2m0pmj3NDA==',
    components: ['accept'],
    origin: 'https://example.org',
    request: {
      method: 'GET',
      url: '/demo?name1=Value1&Name2=value2&param=added',
      fields: [
        ['Accept', 'application/json'],
        ['Accept-Language', 'en-US,en;q=0.5'],
        ['Accept', '*/*'],
      ],
    },
  },
]

const label = (input: string): string => input.slice(0, input.indexOf('='))

const verify = async ({ input, signature, components, tag, request, origin }: Vector) => {
  const { method, url, fields } = request ?? { method: 'POST', url: '/foo?param=Value&Pet=dog', fields: testRequest }
  const made = mockRequest({
    method,
    url,
    fields: [...fields, ['Signature-Input', input], ['Signature', `${label(input)}=:${signature}:`]],
  })
  if (request === undefined) {
    made.req.push(Buffer.from(BODY))
    made.req.push(null)
  }
  const kind = httpSignature({
    origin: origin ?? 'https://example.com',
    components,
    tag,
    keyOf: (keyid) => keys[keyid] && { key: keys[keyid], owner: keyid },
  })
  return kind.evaluate(made)
}

const atThatTime = (): void => stoppedClock().set(1_618_884_480_000 - Date.now())

describe('RFC 9421, appendix B', () => {
  it.each(vectors)('$name: passes', async (vector) => {
    atThatTime()
    const result = await verify(vector)
    expect(result).toMatchObject({ _tag: 'Right', right: { owner: /keyid="([^"]*)"/.exec(vector.input)?.[1] } })
  })

  it.each(vectors)('$name: fails if the signature, a parameter or a component is another one', async (vector) => {
    atThatTime()
    const { input, signature } = vector
    const others: ReadonlyArray<Vector> = [
      { ...vector, signature: signature.replace(/^./, signature.startsWith('A') ? 'B' : 'A') },
      { ...vector, input: input.replace('1618884473', '1618884474') },
      { ...vector, input: input.replace('("', '("@scheme" "') },
      { ...vector, input: input.replace(/\(("[^ )]*) /, '(') },
      {
        ...vector,
        request: { ...(vector.request ?? { url: '/foo?param=Value&Pet=dog', fields: testRequest }), method: 'PUT' },
      },
      { ...vector, origin: 'https://other.example' },
    ]
    const results = await Promise.all(others.map(verify))
    const covers = (name: string) => input.includes(`"${name}"`)
    expect(results.map(isRight)).toStrictEqual([
      false,
      false,
      false,
      false,
      !covers('@method') && !covers('content-digest'),
      !covers('@authority'),
    ])
  })

  it('B.2.1, a signature that covers nothing, is refused: components cannot be emptied', async () => {
    atThatTime()
    const input = 'sig-b21=();created=1618884473;keyid="test-key-rsa-pss";nonce="b3k2pp5k7z-50gnwp.yemd"'
    const signature =
      'd2pmTvmbncD3xQm8E9ZV2828BjQWGgiwAaw5bAkgibUopemLJcWDy/lkbbHAve4cRAtx31Iq786U7it++wgGxbtRxf8Udx7zFZsckzXaJMkA7ChG52eSkFxykJeNqsrWH5S+oxNFlD4dzVuwe8DhTSja8xxbR/Z2cOGdCbzR72rgFWhzx2VjBqJzsPLMIQKhO4DGezXehhWwE56YCE+O6c0mKZsfxVrogUvA4HELjVKWmAvtl6UnCh8jYzuVG5WSb/QEVPnP5TmcAnLH1g+s++v6d4s8m0gCw1fV5/SITLq9mhho8K3+7EPYTU8IU1bLhdxO5Nyt8C8ssinQ98Xw9Q=='
    for (const components of [undefined, ['@authority'] as const]) {
      const result = await verify({ name: '', input, signature, components })
      expect(result).toMatchObject({ _tag: 'Left', left: { _tag: 'invalid', why: 'components' } })
    }
    await expect(verify({ name: '', input, signature, components: [] as never })).rejects.toThrow(
      'must name at least one component',
    )
  })
})

describe('RFC 9421 §2: the signature base', () => {
  const baseOf = (input: string, fields: ReadonlyArray<readonly [string, string]>, url = '/', method = 'GET') => {
    const [, list] = [...parseDictionary(`s=${input}`)][0] ?? []
    const request = mockRequest({ method, url, fields })
    if (list === undefined || !isInnerList(list) || coveredBy(list) === undefined) return undefined
    return signatureBase(readingsOf(request, 'https://www.example.com'), list)?.split('\n').slice(0, -1)
  }

  it.each([
    [
      '§2.1 fields',
      '("host" "cache-control" "x-obs-fold-header" "x-ows-header" "x-empty-header")',
      [
        ['Host', 'www.example.com'],
        ['X-OWS-Header', '  Leading and trailing whitespace.   '],
        ['X-Obs-Fold-Header', 'Obsolete line folding.'],
        ['Cache-Control', 'max-age=60'],
        ['Cache-Control', '   must-revalidate'],
        ['X-Empty-Header', ''],
      ],
      [
        '"host": www.example.com',
        '"cache-control": max-age=60, must-revalidate',
        '"x-obs-fold-header": Obsolete line folding.',
        '"x-ows-header": Leading and trailing whitespace.',
        '"x-empty-header": ',
      ],
    ],
    [
      '§2.1.2 members of a dictionary',
      '("signature-agent";key="a" "signature-agent";key="d" "signature-agent";key="b")',
      [['Signature-Agent', '  a=1, b=2;x=1;y=2, c=(a b c), d']],
      ['"signature-agent";key="a": 1', '"signature-agent";key="d": ?1', '"signature-agent";key="b": 2;x=1;y=2'],
    ],
    ['§2.1.1 sf', '("priority";sf)', [['Priority', 'u=1,   i']], ['"priority";sf: u=1, i']],
    [
      '§2.1.3 bs',
      '("example-header";bs)',
      [
        ['Example-Header', 'value, with, lots'],
        ['Example-Header', 'of, commas'],
      ],
      ['"example-header";bs: :dmFsdWUsIHdpdGgsIGxvdHM=:, :b2YsIGNvbW1hcw==:'],
    ],
  ] as const)('%s', (_name, input, fields, lines) => {
    expect(baseOf(input, fields)).toStrictEqual(lines)
  })

  it('§2.2 derived components', () => {
    const url = '/path?param=value&foo=bar&baz=bat%2Dman&qux='
    expect(
      baseOf('("@method" "@target-uri" "@authority" "@scheme" "@request-target" "@path" "@query")', [], url, 'POST'),
    ).toStrictEqual([
      '"@method": POST',
      '"@target-uri": https://www.example.com/path?param=value&foo=bar&baz=bat%2Dman&qux=',
      '"@authority": www.example.com',
      '"@scheme": https',
      '"@request-target": /path?param=value&foo=bar&baz=bat%2Dman&qux=',
      '"@path": /path',
      '"@query": ?param=value&foo=bar&baz=bat%2Dman&qux=',
    ])
    expect(baseOf('("@query")', [], '/path')).toStrictEqual(['"@query": ?'])
    expect(
      baseOf('("@query-param";name="baz" "@query-param";name="qux" "@query-param";name="param")', [], url),
    ).toStrictEqual([
      '"@query-param";name="baz": batman'.replace('batman', 'bat-man'),
      '"@query-param";name="qux": ',
      '"@query-param";name="param": value',
    ])
  })

  it('§2.2.8 query parameters are encoded in one way', () => {
    const url =
      '/parameters?var=this%20is%20a%20big%0Amultiline%20value&bar=with+plus+whitespace&fa%C3%A7ade%22%3A%20=something'
    expect(
      baseOf(
        '("@query-param";name="var" "@query-param";name="bar" "@query-param";name="fa%C3%A7ade%22%3A%20")',
        [],
        url,
      ),
    ).toStrictEqual([
      '"@query-param";name="var": this%20is%20a%20big%0Amultiline%20value',
      '"@query-param";name="bar": with%20plus%20whitespace',
      '"@query-param";name="fa%C3%A7ade%22%3A%20": something',
    ])
  })

  it.each([
    ['a field that is not there', '("x-none")'],
    ['an unknown component', '("@unknown")'],
    ['@status', '("@status")'],
    ['@signature-params', '("@signature-params")'],
    ['a component of the request, in a request', '("@method";req)'],
    ['a trailer', '("x-a";tr)'],
    ['an unknown flag', '("x-a";x)'],
    ['a flag with a value that it has not', '("x-a";bs=1)'],
    ['two flags', '("x-a";bs;sf)'],
    ['sf of a field whose type is not known', '("x-a";sf)'],
    ['a member that is not there', '("priority";key="z")'],
    ['a key of a field whose type is not known', '("x-a";key="a")'],
    ['a component twice', '("x-a" "x-a")'],
    ['a name in upper case', '("X-A")'],
    ['a token instead of a string', '(x-a)'],
    ['a query parameter that is there twice', '("@query-param";name="a")'],
    ['a query parameter that is not there', '("@query-param";name="b")'],
    ['a query parameter without a name', '("@query-param")'],
    ['a value that is not ASCII', '("x-latin")'],
  ])('refuses %s', (_name, input) => {
    const fields = [
      ['X-A', '1'],
      ['Priority', 'u=1'],
      ['X-Latin', 'caf\u00e9'],
    ] as const
    expect(baseOf('("x-a")', fields)).toStrictEqual(['"x-a": 1'])
    expect(baseOf(input, fields, '/?a=1&a=2')).toBeUndefined()
  })

  it('refuses a query that Koa reads in another way, and a target with a fragment', () => {
    expect(baseOf('("@query-param";name="a")', [], '/?a=1')).toStrictEqual(['"@query-param";name="a": 1'])
    expect(baseOf('("@query-param";name="a")', [], '/??b=2&a=1')).toBeUndefined()
    for (const component of ['"@path"', '"@query"', '"@target-uri"', '"@query-param";name="a"']) {
      expect(baseOf(`(${component})`, [], '/?a=1#')).toBeUndefined()
    }
  })

  it('takes the method and the target from the request, not from what middleware made of them', () => {
    const request = mockRequest({ method: 'POST', url: '/a/b?c' })
    const ctx = request.ctx as { url: string; req: IncomingMessage }
    ctx.url = '/b?d'
    const [, list] = [...parseDictionary('s=("@target-uri")')][0] ?? []
    expect(list && isInnerList(list) && signatureBase(readingsOf(request, 'https://a.example:8443'), list)).toContain(
      '"@target-uri": https://a.example:8443/a/b?c\n',
    )
  })
})

it('RFC 9421 §2.2.8: a parameter of the query is encoded again, whichever way it was written', () => {
  const [[, input] = []] = parseDictionary('s=("@query-param";name="a%21");created=1')
  if (input === undefined || !isInnerList(input)) throw new Error('it is a list')
  for (const url of ["/x?a!=!'()~*+b", '/x?a%21=%21%27%28%29%7e%2a%20b']) {
    const readings = readingsOf(mockRequest({ url }), 'https://example.com')
    expect(signatureBase(readings, input)?.split('\n')[0]).toBe('"@query-param";name="a%21": %21%27%28%29%7E*%20b')
  }
})
