/**
 * Authenticators with a credential that browsers send by themselves, and others, each with a request that it accepts.
 */
import { readerTaskEither as RTE } from 'fp-ts'
import { pipe } from 'fp-ts/lib/function.js'
import {
  apiKeyCookie,
  apiKeyHeader,
  apiKeyQuery,
  authenticator,
  Challenge,
  fromCookie,
  httpBasicAuth,
  httpBearer,
  sessionAuth,
  type AuthenticatorLike,
} from 'koa-with-auth'
import { CookieKey, describedAs, flatMap } from 'koa-with-auth/fp'
import { basic, bearer, challenge, type Sending } from './behavior.js'

const good = (_request: unknown, sent: string) => sent === 'good' && { sent }
const bearerKind = httpBearer({ authenticate: good })
const cookieKey = apiKeyCookie({ authenticate: good })
const headerKey = apiKeyHeader({ authenticate: good })
const session = sessionAuth()
const shout = (principal: object) => ({ shouted: principal })
export const anna = { username: 'anna' }

const inCookie: Sending = { headers: { Cookie: 'key=good' } }
const inHeader: Sending = { headers: { key: 'good' } }

export interface AmbientRow {
  readonly what: string
  readonly auth: AuthenticatorLike
  /** `undefined` means the session's cookie, which a sign-in sets. */
  readonly sending?: Sending
  readonly path?: string
  readonly principal: unknown
  readonly challenges: string[]
}

/** What browsers send by themselves, or may send. */
export const ambient: ReadonlyArray<AmbientRow> = [
  { what: 'a session', auth: session, principal: anna, challenges: [challenge.session] },
  {
    what: 'a session loaded later',
    auth: sessionAuth({ loadUser: async () => anna }),
    principal: anna,
    challenges: [challenge.session],
  },
  {
    what: 'a cookie key',
    auth: cookieKey,
    sending: inCookie,
    principal: { sent: 'good' },
    challenges: [challenge.key('cookie')],
  },
  {
    what: 'Basic',
    auth: httpBasicAuth({ authenticate: (_request, username) => username }),
    sending: basic('anna:secret'),
    principal: 'anna',
    challenges: [challenge.basic],
  },
  {
    what: 'a callable',
    auth: (request) => request.get('key') === 'good' && 'called',
    sending: inHeader,
    principal: 'called',
    challenges: [challenge.custom],
  },
  {
    what: 'an asynchronous callable',
    auth: async (request) => request.get('key') === 'good' && 'called',
    sending: inHeader,
    principal: 'called',
    challenges: [challenge.custom],
  },
  {
    what: 'a bare RTE of a session',
    auth: pipe(session, RTE.map(shout)),
    principal: { shouted: anna },
    challenges: [challenge.session],
  },
  {
    what: 'a bare RTE of a cookie key',
    auth: pipe(cookieKey, RTE.map(shout)),
    sending: inCookie,
    principal: { shouted: { sent: 'good' } },
    challenges: [challenge.key('cookie')],
  },
  {
    what: 'a bare RTE of a bearer, whose origin is unknown',
    auth: pipe(bearerKind, RTE.map(shout)),
    sending: bearer('good'),
    principal: { shouted: { sent: 'good' } },
    challenges: [challenge.bearer],
  },
  {
    what: 'a bare RTE described as a session',
    auth: pipe(session, RTE.map(shout), describedAs(session)),
    principal: { shouted: anna },
    challenges: [challenge.session],
  },
  {
    what: 'any RTE described as a cookie key',
    auth: pipe(headerKey, RTE.map(shout), describedAs(cookieKey)),
    sending: inHeader,
    principal: { shouted: { sent: 'good' } },
    challenges: [challenge.key('header')],
  },
  {
    what: 'map of a session',
    auth: pipe(session, flatMap(shout)),
    principal: { shouted: anna },
    challenges: [challenge.session],
  },
  {
    what: 'a kind of your own that says so',
    auth: authenticator({
      challenge: Challenge.make('Ticket'),
      ambient: true,
      extract: fromCookie('key'),
      credentials: CookieKey,
      authenticate: good,
    }),
    sending: inCookie,
    principal: { sent: 'good' },
    challenges: ['Ticket realm="api"'],
  },
]

/** What only programs send. */
export const notAmbient: ReadonlyArray<AmbientRow> = [
  {
    what: 'a bearer',
    auth: bearerKind,
    sending: bearer('good'),
    principal: { sent: 'good' },
    challenges: [challenge.bearer],
  },
  {
    what: 'a header key',
    auth: headerKey,
    sending: inHeader,
    principal: { sent: 'good' },
    challenges: [challenge.key('header')],
  },
  {
    what: 'a query key',
    auth: apiKeyQuery({ authenticate: good }),
    path: '/x?key=good',
    sending: {},
    principal: { sent: 'good' },
    challenges: [challenge.key('query')],
  },
  {
    what: 'map of a bearer',
    auth: pipe(bearerKind, flatMap(shout)),
    sending: bearer('good'),
    principal: { shouted: { sent: 'good' } },
    challenges: [challenge.bearer],
  },
  {
    what: 'a bare RTE described as a bearer',
    auth: pipe(bearerKind, RTE.map(shout), describedAs(bearerKind)),
    sending: bearer('good'),
    principal: { shouted: { sent: 'good' } },
    challenges: [challenge.bearer],
  },
  {
    what: 'a kind of your own that says so',
    auth: authenticator({
      challenge: Challenge.make('Ticket'),
      ambient: false,
      extract: fromCookie('key'),
      credentials: CookieKey,
      authenticate: good,
    }),
    sending: inCookie,
    principal: { sent: 'good' },
    challenges: ['Ticket realm="api"'],
  },
]
