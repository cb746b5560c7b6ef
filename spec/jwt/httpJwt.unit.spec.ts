/** `koa-with-auth/jwt`: options that are refused, the entries of OpenAPI, and that tokens stay secret. */
import { createPublicKey, generateKeyPairSync, randomBytes } from 'node:crypto'
import Router from '@koa/router'
import * as E from 'fp-ts/lib/Either.js'
import { pipe } from 'fp-ts/lib/function.js'
import * as t from 'io-ts'
import Koa from 'koa'
import { requireScopes, withAuth, type Authenticator } from 'koa-with-auth'
import { openApi } from 'koa-with-auth/openapi'
import {
  httpIntrospection,
  httpJwt,
  protectedResource,
  scopesOf,
  type HttpJwt,
  type JwtClaims,
} from 'koa-with-auth/jwt'
import { mockRequest } from 'koa-with-auth/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { evidenceOf } from '../../src/core/Evidence.js'
import { lastToken } from '../../src/jwt/tokenKind.js'
import { API, identityProvider, processWarnings, signedWith, signingKey } from '../support/servers/identityProvider.js'
import { listen } from '../support/servers/server.js'
import { tokenSite } from '../support/sites/tokenSite.js'

const ISSUER = 'https://login.example/'
const rsa = (modulusLength: number) => generateKeyPairSync('rsa', { modulusLength })
const pem = (key: { export: (of: { type: 'spki'; format: 'pem' }) => string | Buffer }) =>
  key.export({ type: 'spki', format: 'pem' }).toString()
const good = rsa(2048)
const of = { issuer: ISSUER, audience: API }
const by = (issuer: unknown) => ({ issuer, audience: API })
/** An issuer with this source of keys. */
const keyed = (source: object) => by({ issuer: 'x', ...source })
const [publicJwk, privateJwk] = [good.publicKey, good.privateKey].map((key) => key.export({ format: 'jwk' }))
const privatePem = good.privateKey.export({ type: 'pkcs8', format: 'pem' })
const p384 = createPublicKey(pem(generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey))
const jwks = async () => ({ keys: [(await signingKey('ES256', 'k')).jwk] })
const secretly = (bytes: number, algorithms?: string[]) =>
  keyed({ secret: randomBytes(bytes), ...(algorithms && { algorithms }) })

/** Expects a TypeError with this message, whatever the types say. */
const expectRefused = (make: () => unknown, message: RegExp): void => {
  expect(make).toThrow(TypeError)
  expect(make).toThrow(message)
}

describe('httpJwt refuses these options with a TypeError', () => {
  it.each<[string, object, RegExp]>([
    ['no issuer', { audience: API }, /httpJwt\({ issuer }\) must be the URL of an issuer.*, not undefined$/],
    ['an undefined issuer in a list', by([ISSUER, undefined]), /URL.*, not undefined$/],
    ['an empty list of issuers', by([]), /name at least one issuer/],
    ['one issuer twice', by([ISSUER, { issuer: ISSUER, jwksUri: 'https://login.example/jwks' }]), /is there twice/],
    ['an issuer without keys', by({ issuer: ISSUER }), /exactly one of jwksUri, jwks, publicKey, secret/],
    ['two sources of keys', by({ issuer: ISSUER, jwksUri: ISSUER, secret: 's' }), /exactly one of/],
    ['a PEM in one line', keyed({ publicKey: '-----BEGIN PUBLIC KEY-----\\nMC' }), /with \\n, \.replaceAll/],
    ['a document', by(`${ISSUER}.well-known/openid-configuration`), /value of its "issuer"/],
    ['a variable without a value', by('https://undefined.auth0.com/'), /variable in it is not set/],
    ['the same in an address', keyed({ jwksUri: 'https://login.example/undefined/keys' }), /variable in it is not set/],
    ['http', by('http://login.example/'), /must be an https:\/\/ URL/],
    ['keys by http', keyed({ jwksUri: 'http://login.example/jwks' }), /jwksUri }.*https/],
    ['an issuer that is not a URL', by('login.example'), /must be an https:\/\/ URL/],
    ['an issuer with a query', by('https://login.example/?a'), /no query/],
    ['an issuer with a user', by('https://u:p@login.example/'), /no user name/],
    ['a misspelt source of keys', keyed({ jwksURI: ISSUER }), /no option "jwksURI"/],
    ['an unknown option', { ...of, audiences: API }, /no option "audiences"/],
    ['a secret without its issuer', { secret: 'x', audience: API }, /no option "secret"; there are issuer/],
    ['no audience', { issuer: ISSUER }, /audience }\) is missing.*there is no "any".*httpBearer/],
    ['an empty audience', { issuer: ISSUER, audience: '' }, /none of them empty/],
    ['an empty list of audiences', { issuer: ISSUER, audience: [] }, /none of them empty/],
    ['alg none', { ...of, algorithms: ['none'] }, /"none" is not allowed/],
    ['an empty list of algorithms', { ...of, algorithms: [] }, /at least one algorithm/],
    ['an algorithm as a string', { ...of, algorithms: 'ES256' }, /at least one algorithm/],
    ['HS256 without a secret', { ...of, algorithms: ['HS256'] }, /HS256 needs { issuer, secret }/],
    ['HS256 mixed with another', { ...of, algorithms: ['RS256', 'HS256'] }, /cannot be mixed with other kinds/],
    ['HS256 with another, and a secret', secretly(32, ['HS256', 'ES256']), /ES256 needs a public key/],
    ['31 bytes for HS256', secretly(31), /secret } }\) has 31 bytes, and HS256 needs 32/],
    ['47 bytes for HS384', secretly(47, ['HS384']), /has 47 bytes, and HS384 needs 48/],
    ['63 bytes for HS512', secretly(63, ['HS256', 'HS512']), /has 63 bytes.*needs 64/],
    ['a private PEM', keyed({ publicKey: privatePem }), /is a private key/],
    ['a private key', keyed({ publicKey: good.privateKey }), /is a private key/],
    ['no key', keyed({ publicKey: 'ssh-rsa AAAA' }), /must be a PEM/],
    ['a weak key', keyed({ publicKey: pem(rsa(1024).publicKey) }), /1024 bits; RSA needs 2048/],
    ['a key for an unsupported algorithm', keyed({ publicKey: p384 }), /secp384r1, which none of/],
    ['a set of keys of another shape', keyed({ jwks: { keys: [] } }), /jwks } }\) must be { keys/],
    ['a set whose keys are no array', keyed({ jwks: { keys: 'k' } }), /jwks } }\) must be { keys/],
    ['a set with a private key, too', keyed({ jwks: { keys: [publicJwk, privateJwk] } }), /holds a private key/],
    ['a set with a private key', keyed({ jwks: { keys: [privateJwk] } }), /holds a private key/],
    ['a profile that does not exist', { ...of, profile: 'id' }, /'any' or 'rfc9068'/],
    ['claims that is not a decoder', { ...of, claims: {} }, /claims }\) must be an io-ts codec.* or a schema of zod/],
    ['a hook of three parameters', { ...of, authenticate: (_a: 1, _b: 2, _c: 3) => true }, /takes 3 parameters/],
    ['a negative tolerance', { ...of, clockTolerance: -1 }, /clockTolerance/],
    ['a tolerance in seconds', { ...of, clockTolerance: 5 }, /clockTolerance }\) .* of milliseconds, at least 1000/],
    [
      'an age in seconds',
      { ...of, maxTokenAge: 300 },
      /maxTokenAge }\) must be a number of milliseconds, at least 1000/,
    ],
    ['an age that is not a number', { ...of, maxTokenAge: '1h' }, /maxTokenAge/],
    ['an empty list of authorized parties', { ...of, authorizedParties: [] }, /authorizedParties/],
    ['a cache of size 0', { ...of, verified: { size: 0 } }, /verified: { size } }\) must be/],
    ['verified: true', { ...of, verified: true }, /verified }\) takes an object/],
    ['a lifetime of keys of 0', { ...of, keys: { timeout: 0 } }, /keys: { timeout } }\) must be/],
    ['a misspelt option of keys', { ...of, keys: { maxage: 1 } }, /no option "maxage"/],
    ['another resource', { ...of, protectedResource: { resource: API } }, /result of protectedResource\({ \.\.\. }\)/],
    ['a realm with a line break', { ...of, realm: 'a\nb' }, /realm/],
  ])('%s', (_what, options, message) => {
    expectRefused(() => httpJwt(options as never), message)
  })

  it('httpJwt accepts valid options, http on a loopback address included', async () => {
    const least = { audience: [API, 'b'], keys: { cooldown: 0, staleIfError: 0 }, clockTolerance: 0 } as const
    const hosts = ['https://login.example', 'http://localhost:3000', 'http://127.0.0.1:3000/a', 'http://[::1]:3000']
    for (const issuer of hosts) expect(() => httpJwt({ issuer, ...least })).not.toThrow()
    for (const good of [secretly(32), secretly(48, ['HS384'])]) expect(() => httpJwt(good as typeof of)).not.toThrow()
    const own = { issuer: 'x', jwks: await jwks() }
    expect(() => httpJwt({ issuer: own, audience: API, verified: false })).not.toThrow()
  })
})

describe('httpIntrospection and protectedResource refuse these options with a TypeError', () => {
  const client = { id: 'api', secret: 's' }
  it.each<[string, object, RegExp]>([
    ['neither endpoint nor issuer', { client, audience: API }, /exactly one of endpoint and issuer/],
    ['both', { client, audience: API, endpoint: ISSUER, issuer: ISSUER }, /exactly one of endpoint and issuer/],
    ['http', { client, audience: API, endpoint: 'http://login.example/' }, /https/],
    ['no client', { audience: API, endpoint: ISSUER }, /client }\) takes an object/],
    ['an empty secret', { client: { id: 'a', secret: '' }, audience: API, endpoint: ISSUER }, /not empty/],
    ['no audience', { client, endpoint: ISSUER }, /audience }\) is missing/],
    ['a time limit of 0', { client, audience: API, endpoint: ISSUER, timeout: 0 }, /timeout/],
  ])('introspection: %s', (_what, options, message) => {
    expectRefused(() => httpIntrospection(options as never), message)
  })

  const resource = { resource: API, authorizationServers: [ISSUER], scopes: ['read'] }
  it.each<[string, object, RegExp]>([
    ['http', { ...resource, resource: 'http://api.example' }, /resource }\) must be an https/],
    ['a URL with a fragment', { ...resource, resource: `${API}#a` }, /no fragment/],
    ['no authorization server', { ...resource, authorizationServers: [] }, /authorizationServers/],
    [
      'a server by http',
      { ...resource, authorizationServers: ['http://login.example'] },
      /authorizationServers.*https/,
    ],
    ['scopes as a string', { ...resource, scopes: 'read' }, /array of strings/],
    ['an origin with a path', { ...resource, origins: ['https://app.example/'] }, /not an origin/],
    ['the origin null', { ...resource, origins: ['null'] }, /not an origin/],
    ['origins as a string', { ...resource, origins: 'https://app.example' }, /array of origins, or 'any'/],
    ['an unknown option', { ...resource, scope: 'read' }, /no option "scope"/],
  ])('resource: %s', (_what, options, message) => {
    expectRefused(() => protectedResource(options as never), message)
  })
})

describe('a token', () => {
  it('is for the audience of its issuer, which replaces the general one, and for its exp', async () => {
    const key = await signingKey('ES256', 'k')
    const own = { issuer: 'x', jwks: { keys: [key.jwk] }, audience: 'own' }
    const jwt = httpJwt({ issuer: [own, { ...own, issuer: 'y', audience: undefined }], audience: API })
    const result = async (claims: object) => {
      const token = await signedWith(key, { iss: 'x', exp: 4e9, ...claims })
      const found = await jwt.evaluate(mockRequest({ fields: [['Authorization', `Bearer ${token}`]] }))
      return E.isLeft(found) ? found.left.why : lastToken(evidenceOf(found).accepted)?.endFor()?.at
    }
    expect([await result({ aud: 'own' }), await result({ aud: API })]).toEqual([4e12, 'audience'])
    expect([await result({ iss: 'y', aud: 'own' }), await result({ iss: 'y', aud: API })]).toEqual(['audience', 4e12])
  })

  it.each([
    ['bearer ', true],
    ['Bearer    ', true],
    ['Bearer\t', false],
    ['Bearer \t', false],
  ])('B-02 B-03 has blanks before it, and a scheme in any case: %j', async (scheme, isRead) => {
    const key = await signingKey('ES256', 'k')
    const jwt = httpJwt({ issuer: { issuer: 'x', jwks: { keys: [key.jwk] } }, audience: API })
    const token = await signedWith(key, { iss: 'x', aud: API, exp: 4e9 })
    const found = await jwt.evaluate(mockRequest({ fields: [['Authorization', scheme + token]] }))
    expect(E.isRight(found) || found.left._tag).toBe(isRead || 'malformed')
  })

  it('without a signature, whose header says so, is refused for its algorithm, and any other text for its syntax', async () => {
    const header = Buffer.from('{"alg":"none"}').toString('base64url')
    const why = async (token: string) => {
      const fields = [['Authorization', `Bearer ${token}`]] as const
      const found = await httpJwt(of).evaluate(mockRequest({ fields }))
      return E.isLeft(found) && found.left.why
    }
    expect([await why(`${header}.${header}.`), await why(`${header}.${header}`)]).toEqual(['algorithm', 'syntax'])
  })

  it('is the last one of those that were accepted', () => {
    expect(lastToken([{ token: 'a' }, { token: 'b' }, {}] as never)).toEqual({ token: 'b' })
  })
})

describe('OpenAPI', () => {
  const documented = (auth: Authenticator<JwtClaims>) => {
    const router = new Router()
    router.get('/me', withAuth(auth), () => {})
    const { components, paths } = openApi(router, { title: 't', version: '1' })
    return { schemes: components?.securitySchemes, security: paths?.['/me']?.get?.security }
  }
  const reading = (auth: HttpJwt<JwtClaims>) => pipe(auth, requireScopes(['read'], { granted: scopesOf }))

  it('has a scheme http bearer JWT, with its scopes', async () => {
    const jwt = httpJwt({
      issuer: { issuer: 'x', jwks: await jwks() },
      audience: API,
      description: 'From login.example',
    })
    expect(documented(reading(jwt))).toEqual({
      schemes: {
        bearer_JWT: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: 'From login.example' },
      },
      security: [{ bearer_JWT: ['read'] }],
    })
  })

  it('has a scheme openIdConnect, too, if discovery is used', () => {
    const bearer = { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' }
    const openIdConnect = {
      type: 'openIdConnect',
      openIdConnectUrl: 'https://login.example/realm/.well-known/openid-configuration',
    }
    const discovered = { issuer: 'https://login.example/realm', audience: API }
    expect(documented(reading(httpJwt(discovered)))).toEqual({
      schemes: { bearer_JWT: bearer, openIdConnect },
      security: [{ bearer_JWT: ['read'] }, { openIdConnect: ['read'] }],
    })
    expect(documented(httpJwt({ ...discovered, schemeName: 'login' }))).toEqual({
      schemes: { login: bearer, login_openIdConnect: openIdConnect },
      security: [{ login: [] }, { login_openIdConnect: [] }],
    })
    const several = httpJwt({ issuer: [ISSUER, 'https://other.example'], audience: API })
    expect(documented(several).security).toEqual([{ bearer_JWT: [] }])
  })
})

describe('secrecy of tokens', () => {
  it('no part of a token is in a response, a log line, a warning or an error', async () => {
    const warnings = processWarnings()
    const provider = await identityProvider()
    const { issuer, jwksUri } = provider
    const seen: string[] = []
    const write = process.stderr.write.bind(process.stderr)
    process.stderr.write = (text: string) => seen.push(String(text)) > 0
    onTestFinished(() => void (process.stderr.write = write))
    const jwt = httpJwt({
      issuer: { issuer, jwksUri },
      audience: API,
      keys: { cooldown: 0 },
      claims: t.type({ sub: t.string, org: t.string }),
      authenticate: (_request, { org }) => {
        if (org === 'raised') throw new Error('in the hook')
        return org === 'good' && { user: 'anna' }
      },
    })
    const { get, errors, url } = await tokenSite(jwt)
    const stranger = await signingKey('ES256', 'k1')
    const tokens = [
      await provider.token({ org: 'good' }),
      await provider.token({ org: 'bad' }),
      await provider.token({ org: 'raised' }),
      await provider.token(),
      await provider.token({ exp: 1 }),
      await provider.token({ aud: 'other' }),
      await signedWith(stranger, provider.claims()),
      await signedWith({ ...stranger, kid: 'unknown' }, provider.claims()),
      `${(await provider.token()).slice(0, -9)}~~`,
    ]
    const answers: string[] = []
    const send = async () => {
      for (const token of tokens) {
        for (let time = 0; time < 2; time++) {
          const { status, text, headers } = await get(token)
          answers.push(`${status} ${text} ${JSON.stringify([...headers])}`)
        }
        const asked = await fetch(`${url}/me?access_token=${token}`)
        answers.push(`${asked.status} ${await asked.text()} ${JSON.stringify([...asked.headers])}`)
      }
    }
    await send()
    provider.mood = 'rubbish'
    await send()
    const all = [
      ...answers,
      ...seen,
      ...warnings(),
      ...errors.map((error) => `${String(error)} ${JSON.stringify(error)}`),
    ]
    expect(new Set(answers.map((answer) => answer.slice(0, 3)))).toEqual(new Set(['200', '401', '500', '503']))
    for (const token of tokens) {
      // Any sixteen characters of each part, except those that all tokens share
      for (const part of token.split('.').slice(1)) {
        for (let from = 0; from + 16 <= part.length; from += 8) {
          const piece = part.slice(from, from + 16)
          for (const text of all) expect(text.includes(piece), text).toBe(false)
        }
      }
    }
  })

  it('no part of a token is in an authenticator or a failure that is printed', async () => {
    const provider = await identityProvider()
    const { issuer, jwksUri } = provider
    const jwt = httpJwt({ issuer: { issuer, jwksUri }, audience: API })
    const app = new Koa()
    const results: unknown[] = []
    app.use(async (ctx) => {
      results.push(await jwt.evaluate(ctx.request))
      ctx.status = 204
    })
    const { url } = await listen(app)
    const token = await provider.token({ aud: 'other' })
    await fetch(url, { headers: { Authorization: `Bearer ${token}` } })
    expect(results).toHaveLength(1)
    expect(JSON.stringify([results, jwt])).not.toContain(token.split('.')[1])
  })
})
