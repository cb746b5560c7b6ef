/** Authenticators as they should be written: every kind, lists, one of your own, a plain function. The suite passes. */
import { createHash } from 'node:crypto'
import * as E from 'fp-ts/lib/Either.js'
import * as O from 'fp-ts/lib/Option.js'
import * as RTE from 'fp-ts/lib/ReaderTaskEither.js'
import { pipe } from 'fp-ts/lib/function.js'
import type { Request } from 'koa'
import {
  allOf,
  anyOf,
  apiKeyCookie,
  apiKeyHeader,
  apiKeyQuery,
  AuthError,
  authenticator,
  fromAuthorization,
  Challenge,
  constantTimeEqual,
  fromHeader,
  httpBasicAuth,
  httpBearer,
  optional,
} from 'koa-with-auth'
import { HeaderKey, lenient } from 'koa-with-auth/fp'
import { withBearer, withHeader, withQuery, mergeRequests } from 'koa-with-auth/testing'
import type { Subject } from './suite.js'

// A store has digests, and is async
const digest = (text: string) => createHash('sha256').update(text).digest('hex')
const users = new Map([[digest('supersecret'), 'anna']])
const findUser = async (token: string) => O.fromNullable(users.get(digest(token)))

const bearer = httpBearer({ authenticate: (_request, token) => findUser(token) })
const basic = httpBasicAuth({
  authenticate: (_request, username, password) =>
    constantTimeEqual(username, 'admin') && constantTimeEqual(password, 'secret') && { username },
})
const byKey = (_request: Request, key: string) => constantTimeEqual(key, 'Partner-Key') && { client: 'Acme' }
const headerKey = apiKeyHeader({ paramName: 'X-API-Key', authenticate: byKey })
const queryKey = apiKeyQuery({ paramName: 'key', authenticate: byKey })
const cookieKey = apiKeyCookie({ paramName: 'key', authenticate: byKey })

const webhook = authenticator({
  scheme: { type: 'apiKey', in: 'header', name: 'X-Hook-Secret' },
  challenge: Challenge.make('Webhook'),
  ambient: false,
  extract: fromHeader('X-Hook-Secret'),
  credentials: HeaderKey,
  authenticate: (_request, secret) => constantTimeEqual(secret, 's3cret') && { sender: 'shop' },
})

const local = (request: Request) => request.socket.remoteAddress === '127.0.0.1' && { from: 'here' }

const bareTaskEither = (request: Request) => async () => {
  const sent = fromAuthorization('Bearer')(request)
  if (O.isNone(sent)) return E.left(AuthError.absent)
  return sent.value === 'Bearer supersecret' ? E.right({ user: 'anna' }) : E.left(AuthError.invalid)
}

const mapped = pipe(
  bearer,
  RTE.map((user) => ({ user })),
)

export const right: Record<string, Subject> = {
  bearer: { authenticator: bearer, valid: ['supersecret'] },
  basic: { authenticator: basic, valid: [{ username: 'admin', password: 'secret' }] },
  headerKey: { authenticator: headerKey, valid: ['Partner-Key'] },
  queryKey: { authenticator: queryKey, valid: ['Partner-Key'] },
  cookieKey: { authenticator: cookieKey, valid: ['Partner-Key'] },
  webhook: { authenticator: webhook, valid: ['s3cret'] },
  local: { authenticator: local, valid: [{ remoteAddress: '127.0.0.1' }] },
  bareTaskEither: { authenticator: bareTaskEither, valid: [withBearer('supersecret')] },
  mapped: { authenticator: mapped, valid: [withBearer('supersecret')] },
  either: {
    authenticator: anyOf({ user: bearer, key: queryKey }),
    valid: [withBearer('supersecret'), withQuery('key', 'Partner-Key')],
  },
  both: {
    authenticator: allOf([headerKey, bearer]),
    valid: [mergeRequests(withHeader('X-API-Key', 'Partner-Key'), withBearer('supersecret'))],
  },
  perhaps: { authenticator: optional(bearer), valid: ['supersecret'] },
  lenient: { authenticator: lenient(headerKey), valid: ['Partner-Key'] },
}
