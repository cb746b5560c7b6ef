/**
 * Authenticators with a credential that browsers send by themselves, and others, each with a request that it accepts.
 */
import { readerTaskEither as RTE } from 'fp-ts'
import { pipe } from 'fp-ts/lib/function.js'
import type { Request } from 'koa'
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
  type Authenticator,
  type AuthenticatorLike,
} from 'koa-with-auth'
import { CookieKey, describedAs, flatMap } from 'koa-with-auth/fp'
import { basic, bearer, challenge, type Sending } from './behavior.js'

export const good = (_request: unknown, sent: string) => sent === 'good' && { sent }
export const bearerKind = httpBearer({ authenticate: good })
export const cookieKey = apiKeyCookie({ authenticate: good })
export const headerKey = apiKeyHeader({ authenticate: good })
export const session = sessionAuth()
export const shout = (principal: object) => ({ shouted: principal })
export const anna = { username: 'anna' }

const inCookie: Sending = { headers: { Cookie: 'key=good' } }
const inHeader: Sending = { headers: { key: 'good' } }

export interface AmbientRow {
  readonly what: string
  readonly auth: AuthenticatorLike
  /** `undefined` means the session's cookie, which a sign-in sets. */
  readonly sending: Sending | undefined
  readonly path: string
  readonly principal: unknown
  readonly challenges: string[]
}

const row = (
  what: string,
  auth: AuthenticatorLike,
  sending: Sending | undefined,
  principal: unknown,
  offer: string,
  path = '/x',
): AmbientRow => ({ what, auth, sending, path, principal, challenges: [offer] })

const [sent, shouted] = [{ sent: 'good' }, { shouted: { sent: 'good' } }]
const offers = { session: challenge.session, cookie: challenge.key('cookie'), header: challenge.key('header') }
const callable = (request: Request) => request.get('key') === 'good' && 'called'
const basicKind = httpBasicAuth({ authenticate: (_request, username) => username })
const ticket = (ambient: boolean) =>
  authenticator({
    challenge: Challenge.make('Ticket'),
    ambient,
    extract: fromCookie('key'),
    credentials: CookieKey,
    authenticate: good,
  })
const bare = <A extends Authenticator<object>>(a: A) => pipe(a, RTE.map(shout))

/** What browsers send by themselves, or may send. */
export const ambient: ReadonlyArray<AmbientRow> = [
  row('a session', session, undefined, anna, offers.session),
  row('a session loaded later', sessionAuth({ loadUser: async () => anna }), undefined, anna, offers.session),
  row('a cookie key', cookieKey, inCookie, sent, offers.cookie),
  row('Basic', basicKind, basic('anna:secret'), 'anna', challenge.basic),
  row('a callable', callable, inHeader, 'called', challenge.custom),
  row('an asynchronous callable', async (request) => callable(request), inHeader, 'called', challenge.custom),
  row('a bare RTE of a session', bare(session), undefined, { shouted: anna }, offers.session),
  row('a bare RTE of a cookie key', bare(cookieKey), inCookie, shouted, offers.cookie),
  row('a bare RTE of a bearer, whose origin is unknown', bare(bearerKind), bearer('good'), shouted, challenge.bearer),
  row(
    'a bare RTE described as a session',
    describedAs(session)(bare(session)),
    undefined,
    { shouted: anna },
    offers.session,
  ),
  row('any RTE described as a cookie key', describedAs(cookieKey)(bare(headerKey)), inHeader, shouted, offers.header),
  row('map of a session', pipe(session, flatMap(shout)), undefined, { shouted: anna }, offers.session),
  row('a kind of your own that says so', ticket(true), inCookie, sent, 'Ticket realm="api"'),
]

/** What only programs send. */
export const notAmbient: ReadonlyArray<AmbientRow> = [
  row('a bearer', bearerKind, bearer('good'), sent, challenge.bearer),
  row('a header key', headerKey, inHeader, sent, offers.header),
  row('a query key', apiKeyQuery({ authenticate: good }), {}, sent, challenge.key('query'), '/x?key=good'),
  row('map of a bearer', pipe(bearerKind, flatMap(shout)), bearer('good'), shouted, challenge.bearer),
  row(
    'a bare RTE described as a bearer',
    describedAs(bearerKind)(bare(bearerKind)),
    bearer('good'),
    shouted,
    challenge.bearer,
  ),
  row('a kind of your own that says so', ticket(false), inCookie, sent, 'Ticket realm="api"'),
]
