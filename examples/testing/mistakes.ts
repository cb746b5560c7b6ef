/** Mistakes that compile: how authenticators must not be written. The suite fails for each. */
import * as E from 'fp-ts/lib/Either.js'
import * as O from 'fp-ts/lib/Option.js'
import type { Request } from 'koa'
import { apiKeyHeader, AuthError, authenticator, Challenge, fromCookie, fromHeader, httpBearer } from 'koa-with-auth'
import { CookieKey, HeaderKey } from 'koa-with-auth/fp'
import { withBearer, withCookie, withHeader, mergeRequests } from 'koa-with-auth/testing'
import type { Subject } from './suite.js'

const users = new Map([['supersecret', 'anna']])

const tokenOf = (request: Request): string => request.get('Authorization').replace('Bearer ', '')

const bearer = [withBearer('supersecret')]
const key = [withHeader('X-API-Key', 'Partner-Key')]

const webhook = { challenge: Challenge.make('Webhook'), ambient: false, credentials: HeaderKey }
const scheme = { type: 'apiKey', in: 'header', name: 'X-API-Key' } as const

// Every string starts with the empty string
const emptyToken = (request: Request) => async () =>
  'supersecret'.startsWith(tokenOf(request)) ? E.right({ user: 'anna' }) : E.left(AuthError.invalid)

// Two missing values are equal
const keys: Record<string, string> = { shop: 'Partner-Key' }
const unsetKey = ({ headers }: Request) =>
  headers['x-api-key'] === keys[String(headers['x-client'])] && { client: 'shop' }

// '04711' == 4711
const pin: unknown = JSON.parse('4711')
const looseEquality = apiKeyHeader({
  paramName: 'X-PIN',
  authenticate: (_request, key) => key == pin && { user: 'anna' },
})

// The value that the client sent goes to the client and to logs
const leakyFailure = httpBearer({
  authenticate: (_request, token) =>
    users.get(token) ??
    E.left({
      ...AuthError.invalid,
      challenge: Challenge.make('Bearer', { error: 'invalid_token', error_description: `no user has ${token}` }),
    }),
})

// An object is truthy, whatever its promise resolves to
const findUser = async (token: string) => users.get(token)
const unawaitedPromise = (request: Request) => ({ user: findUser(tokenOf(request)) })

// ... and whatever its Option is
const noneAsTruthy = (request: Request) => async () => E.right({ user: O.fromNullable(users.get(tokenOf(request))) })

// OpenAPI and the challenge name another header than the one that is read
const otherHeader = authenticator({
  ...webhook,
  scheme: { ...scheme, name: 'X-Key' },
  extract: fromHeader('X-API-Key'),
  authenticate: (_request, key) => key === 'Partner-Key' && { client: 'Acme' },
})

// A regular expression with the flag g keeps its lastIndex
const pattern = /^supersecret$/g
const notDeterministic = httpBearer({ authenticate: (_request, token) => pattern.test(token) && { user: 'anna' } })

// An empty string is not JSON
const throwing = (request: Request) =>
  (JSON.parse(request.get('X-Ticket')) as { user?: string }).user === 'anna' && 'anna'

// No caller is refused
const neverSettles = httpBearer({
  authenticate: (_request, token) =>
    new Promise((resolve) => {
      const user = users.get(token)
      if (user !== undefined) resolve(user)
    }),
})

const prefixMatch = apiKeyHeader({
  paramName: 'X-API-Key',
  authenticate: (_request, key) => 'Partner-Key'.startsWith(key) && { client: 'Acme' },
})

const anyLetterCase = apiKeyHeader({
  paramName: 'X-API-Key',
  authenticate: (_request, key) => key.toLowerCase() === 'partner-key' && { client: 'Acme' },
})

// A proxy may have checked the other value
const firstOfTwo = authenticator({
  ...webhook,
  scheme,
  extract: (request: Request) => O.fromNullable(request.get('X-API-Key').split(', ')[0] || undefined),
  authenticate: (_request, key) => key === 'Partner-Key' && { client: 'Acme' },
})

// Browsers send cookies by themselves, whatever site asks
const notAmbient = authenticator({
  scheme: { type: 'apiKey', in: 'cookie', name: 'key' },
  challenge: Challenge.make('ApiKey', { in: 'cookie', name: 'key' }),
  ambient: false,
  extract: fromCookie('key'),
  credentials: CookieKey,
  authenticate: (_request, key) => key === 'Partner-Key' && { client: 'Acme' },
})

export const mistakes: Record<string, Subject> = {
  emptyToken: { authenticator: emptyToken, valid: bearer },
  unsetKey: {
    authenticator: unsetKey,
    valid: [mergeRequests(withHeader('X-Client', 'shop'), withHeader('X-API-Key', 'Partner-Key'))],
  },
  looseEquality: { authenticator: looseEquality, valid: ['4711'] },
  leakyFailure: { authenticator: leakyFailure, valid: bearer },
  unawaitedPromise: { authenticator: unawaitedPromise, valid: bearer },
  noneAsTruthy: { authenticator: noneAsTruthy, valid: bearer },
  otherHeader: { authenticator: otherHeader, valid: key },
  notDeterministic: { authenticator: notDeterministic, valid: bearer },
  throwing: { authenticator: throwing, valid: [withHeader('X-Ticket', '{"user":"anna"}')] },
  neverSettles: { authenticator: neverSettles, valid: bearer },
  prefixMatch: { authenticator: prefixMatch, valid: key },
  anyLetterCase: { authenticator: anyLetterCase, valid: key },
  firstOfTwo: { authenticator: firstOfTwo, valid: key },
  notAmbient: { authenticator: notAmbient, valid: [withCookie('key', 'Partner-Key')] },
}
