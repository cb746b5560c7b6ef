/** Kinds of credentials that can be sent together, each written by its codec, with their authenticators. */
import fc, { type Arbitrary } from 'fast-check'
import {
  apiKeyCookie,
  apiKeyHeader,
  apiKeyQuery,
  httpBasicAuth,
  httpBearer,
  type Authenticator,
  type SecurityScheme,
} from 'koa-with-auth'
import { BasicCredentials, BearerToken, CookieKey, HeaderKey, QueryKey } from 'koa-with-auth/fp'
import { basicCredentials, secret } from './arbitraries.js'

/** Their principal. */
export interface Principal {
  readonly scopes: ReadonlyArray<string>
}

/** One kind of credential: its authenticator, and what a client sends who has all scopes, or none. */
export interface Kind {
  /** The place of the credential, in the form of a security scheme. */
  readonly at: string
  readonly authenticator: Authenticator<Principal>
  readonly strong: string
  readonly weak: string
}

/** The place of a credential, from its security scheme. */
export const placeOf = (scheme: SecurityScheme): string =>
  scheme.type === 'apiKey' ? `${scheme.in} ${scheme.name}` : scheme.type === 'http' ? scheme.scheme : scheme.type

const hook = <C>(strong: C, weak: C, same: (a: C, b: C) => boolean) => ({
  decide: (sent: C) => (same(sent, strong) ? { scopes: ['read', 'write'] } : same(sent, weak) && { scopes: [] }),
})
const equal = (a: string, b: string) => a === b

const keyKinds = {
  query: [apiKeyQuery, QueryKey],
  header: [apiKeyHeader, HeaderKey],
  cookie: [apiKeyCookie, CookieKey],
} as const

const keyKind =
  (place: keyof typeof keyKinds, name: string) =>
  (key: string): Kind => {
    const [make, codec] = keyKinds[place]
    const [strong, weak] = [key, `weak-${key}`]
    const { decide } = hook(strong, weak, equal)
    const authenticator = make({ paramName: name, authenticate: (_request, sent) => decide(sent) })
    return { at: `${place} ${name}`, authenticator, strong: codec.encode(strong), weak: codec.encode(weak) }
  }

const bearerKind = (token: string): Kind => {
  const { decide } = hook(token, `weak-${token}`, equal)
  return {
    at: 'bearer',
    authenticator: httpBearer({ authenticate: (_request, sent) => decide(sent) }),
    strong: BearerToken.encode(token),
    weak: BearerToken.encode(`weak-${token}`),
  }
}

const basicKind = (strong: BasicCredentials): Kind => {
  const weak = { ...strong, username: `weak-${strong.username}` }
  const { decide } = hook(strong, weak, (a, b) => a.username === b.username && a.password === b.password)
  return {
    at: 'basic',
    authenticator: httpBasicAuth({ authenticate: (_request, username, password) => decide({ username, password }) }),
    strong: BasicCredentials.encode(strong),
    weak: BasicCredentials.encode(weak),
  }
}

const text = fc.string({ unit: 'binary', minLength: 1 }).filter((key) => QueryKey.is(key))

/** Five of them that can be sent together, because at most one is in `Authorization`. */
export const kinds: Arbitrary<ReadonlyArray<Kind>> = fc
  .tuple(
    fc.oneof(secret.map(bearerKind), basicCredentials.map(basicKind)),
    text.map(keyKind('query', 'key')),
    text.map(keyKind('query', 'api_key')),
    secret.map(keyKind('header', 'key')),
    secret.map(keyKind('header', 'X-API-Key')),
    secret.map(keyKind('cookie', 'key')),
    secret.map((key) => `"${key}"`).map(keyKind('cookie', '__Host-key')),
  )
  .chain((all) => fc.shuffledSubarray(all, { minLength: 5, maxLength: 5 }))
