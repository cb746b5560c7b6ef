/** For every operation of the examples: requests that it accepts, requests that it refuses, and its responses. */

interface Case {
  readonly file: string
  /** The path, and what the client sends: header fields or a query. */
  readonly path: string
  readonly right: Sent
  readonly wrong: Sent
  readonly body: string
  /** `WWW-Authenticate` if nothing was sent. */
  readonly challenge: string
  /** `WWW-Authenticate` if a wrong credential was sent, if it differs. */
  readonly refused?: string
}

export interface Sent {
  readonly headers?: Readonly<Record<string, string>>
  readonly query?: string
}

const bearer = (token: string): Sent => ({ headers: { Authorization: `Bearer ${token}` } })
const basic = (pair: string): Sent => ({ headers: { Authorization: `Basic ${Buffer.from(pair).toString('base64')}` } })
const key = (value: string): Sent => ({ headers: { 'X-API-Key': value } })
const bearerBare = 'Bearer realm="api"'
const bearerInvalid = 'Bearer realm="api", error="invalid_token"'
const headerKey = 'ApiKey realm="api", in="header", name="X-API-Key"'
const until = '4102444800'
const mac = '08c556e544eb6ac7d941708a392542243e803b224415afbca281cc70ff79a188'

/** Operations that need a bearer token. */
const withBearer = (file: string, path: string, body: string, token = 'supersecret'): Case => ({
  file,
  path,
  right: bearer(token),
  wrong: bearer('wrong'),
  body,
  challenge: bearerBare,
  refused: bearerInvalid,
})

/** Operations that need a key in X-API-Key. `wrong` is valid for another operation. */
const withKey = (file: string, path: string, body: string, value: string, wrong: Sent): Case => ({
  file,
  path,
  right: key(value),
  wrong,
  body,
  challenge: headerKey,
})

export const cases: ReadonlyArray<Case> = [
  withBearer('bearer.ts', '/examples/bearer', '{"token":"supersecret"}'),
  {
    file: 'basic.ts',
    path: '/examples/basic',
    right: basic('admin:secret'),
    wrong: basic('__proto__:secret'),
    body: '{"httpuser":"admin"}',
    challenge: 'Basic realm="back office", charset="UTF-8"',
  },
  {
    file: 'apiKey.ts',
    path: '/examples/apikey',
    right: { query: '?api_key=supersecret' },
    wrong: { query: '?api_key=wrong' },
    body: 'Hello Acme',
    challenge: 'ApiKey realm="api", in="query", name="api_key"',
  },
  withKey('apiKey.ts', '/examples/headerkey', 'Token = supersecret', 'supersecret', key('wrong')),
  {
    file: 'apiKey.ts',
    path: '/examples/cookiekey',
    right: { headers: { Cookie: 'X-API-KEY=supersecret' } },
    wrong: { headers: { Cookie: 'X-API-KEY=wrong' } },
    body: 'Token = supersecret',
    challenge: 'ApiKey realm="api", in="cookie", name="X-API-KEY"',
  },
  {
    file: 'multiple.ts',
    path: '/examples/multiple',
    right: { query: '?key=wrong', ...key('supersecret') },
    wrong: { query: '?key=wrong', ...key('wrong') },
    body: 'Token = supersecret',
    challenge: `ApiKey realm="api", in="query", name="key", ${headerKey}`,
  },
  {
    ...withBearer('levels.ts', '/examples/levels/staff', 'Hello anna'),
    wrong: key('partnerkey'),
    refused: bearerBare,
  },
  withKey('levels.ts', '/examples/levels/partner', 'Hello Acme', 'partnerkey', bearer('supersecret')),
  {
    ...withBearer('levels.ts', '/examples/levels/inside/reports', 'Reports for anna'),
    wrong: key('partnerkey'),
    refused: bearerBare,
  },
  withKey('levels.ts', '/examples/levels/outside/reports', 'Reports for Acme', 'partnerkey', bearer('supersecret')),
  {
    file: 'asynchronous.ts',
    path: '/examples/asynchronous/promise',
    right: basic('admin:secret'),
    wrong: basic('admin:wrong'),
    body: '{"user":"admin"}',
    challenge: 'Basic realm="api", charset="UTF-8"',
  },
  ...['option', 'either', 'taskEither'].flatMap((name): Case[] => {
    const good = withBearer('asynchronous.ts', `/examples/asynchronous/${name}`, '{"user":"anna"}')
    // An unknown token, and an expired one
    return [good, { ...good, wrong: bearer('oldsecret') }]
  }),
  {
    ...withBearer('composing.ts', '/examples/composing/name', 'Hello anna'),
    right: key('supersecret'),
    challenge: `${bearerBare}, ${headerKey}`,
    refused: `${bearerInvalid}, ${headerKey}`,
  },
  withBearer('composing.ts', '/examples/composing/admin', 'Hello root', 'adminsecret'),
  // A bare ReaderTaskEither: the challenge of the authenticator in it is passed on
  withBearer('composing.ts', '/examples/composing/bare', 'Hello anna'),
  withBearer('composing.ts', '/examples/composing/described', 'Hello anna'),
  {
    file: 'ownKind.ts',
    path: '/examples/signed',
    right: { headers: { 'X-Signature': `${until}.${mac}` } },
    wrong: { headers: { 'X-Signature': `${Number(until) + 1}.${mac}` } },
    body: 'Signed by shop',
    challenge: 'Signature realm="api", name="X-Signature", algorithm="hmac-sha256"',
  },
  {
    ...withBearer('stream.ts', '/examples/stream', 'Hello anna'),
    right: { ...bearer('supersecret'), query: '?lines=1' },
  },
]
