/**
 * Mistakes that compile: authenticators as they must not be written. The suite goes red for each.
 */
import * as E from 'fp-ts/lib/Either.js'
import * as O from 'fp-ts/lib/Option.js'
import type { Request } from 'koa'
import {
  apiKeyHeader,
  AuthError,
  authenticator,
  Challenge,
  fromCookie,
  CookieKey,
  fromHeader,
  HeaderKey,
  httpBearer,
} from 'koa-with-auth'
import { withBearer, withCookie, withHeader, mergeRequests } from 'koa-with-auth/testing'
import type { Subject } from './suite.js'

const users = new Map([['supersecret', 'anna']])

const tokenOf = (request: Request): string => request.get('Authorization').replace('Bearer ', '')

const bearer = [withBearer('supersecret')]
const key = [withHeader('X-API-Key', 'Partner-Key')]

const webhook = { challenge: Challenge.make('Webhook'), ambient: false, credentials: HeaderKey }
const scheme = { type: 'apiKey', in: 'header', name: 'X-API-Key' } as const

// every text starts with the empty one
const emptyToken = (request: Request) => async () =>
  'supersecret'.startsWith(tokenOf(request)) ? E.right({ user: 'anna' }) : E.left(AuthError.invalid)

// two things that are not there are equal
const keys: Record<string, string> = { shop: 'Partner-Key' }
const unsetKey = ({ headers }: Request) =>
  headers['x-api-key'] === keys[String(headers['x-client'])] && { client: 'shop' }

// '04711' == 4711
const pin: unknown = JSON.parse('4711')
const looseEquality = apiKeyHeader({
  paramName: 'X-PIN',
  authenticate: (_request, key) => key == pin && { user: 'anna' },
})

// what the client sent goes to the client and to logs
const leakyFailure = httpBearer({
  authenticate: (_request, token) =>
    users.get(token) ??
    E.left({
      ...AuthError.invalid,
      challenge: Challenge.make('Bearer', { error: 'invalid_token', error_description: `no user has ${token}` }),
    }),
})

// an object is truthy, whatever the promise in it comes to
const findUser = async (token: string) => users.get(token)
const unawaitedPromise = (request: Request) => ({ user: findUser(tokenOf(request)) })

// ... and whatever the Option in it is
const noneAsTruthy = (request: Request) => async () => E.right({ user: O.fromNullable(users.get(tokenOf(request))) })

// OpenAPI and the challenge tell clients to send another header than is read
const otherHeader = authenticator({
  ...webhook,
  scheme: { ...scheme, name: 'X-Key' },
  extract: fromHeader('X-API-Key'),
  authenticate: (_request, key) => key === 'Partner-Key' && { client: 'Acme' },
})

// a regular expression with the flag g remembers where it stopped
const pattern = /^supersecret$/g
const notDeterministic = httpBearer({ authenticate: (_request, token) => pattern.test(token) && { user: 'anna' } })

// nothing is no JSON
const throwing = (request: Request) =>
  (JSON.parse(request.get('X-Ticket')) as { user?: string }).user === 'anna' && 'anna'

// no caller is ever refused
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

// a proxy may have looked at the other one
const firstOfTwo = authenticator({
  ...webhook,
  scheme,
  extract: (request: Request) => O.fromNullable(request.get('X-API-Key').split(', ')[0] || undefined),
  authenticate: (_request, key) => key === 'Partner-Key' && { client: 'Acme' },
})

// browsers send cookies by themselves, whoever asked
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
