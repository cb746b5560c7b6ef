/**
 * An authenticator is an fp-ts `ReaderTaskEither<Request, AuthError, P>` that has a description.
 *
 * The combinators of this package keep the description. Those of fp-ts return a plain function without it. It works,
 * but it counts as sent by browsers, and responses have `Vary: *`. `describedAs` adds the description again.
 */
import Router from '@koa/router'
import * as E from 'fp-ts/lib/Either.js'
import * as RTE from 'fp-ts/lib/ReaderTaskEither.js'
import { pipe } from 'fp-ts/lib/function.js'
import { apiKeyHeader, AuthError, constantTimeEqual, httpBearer, withAuth } from 'koa-with-auth'
import { alt, describedAs, flatMap, map } from 'koa-with-auth/fp'

interface User {
  readonly name: string
  readonly admin: boolean
}

// Replace these with your own stores.
const users = new Map<string, User>([
  ['supersecret', { name: 'anna', admin: false }],
  ['adminsecret', { name: 'root', admin: true }],
])
const find = (_request: unknown, sent: string): User | undefined =>
  [...users].find(([known]) => constantTimeEqual(sent, known))?.[1]

const bearer = httpBearer({ authenticate: find })
const key = apiKeyHeader({ paramName: 'X-API-Key', authenticate: find })

const tokenOrKey = pipe(
  bearer,
  alt(() => key),
)
const name = pipe(
  tokenOrKey,
  map((user) => user.name),
)
// A refinement: a known caller who is not allowed gets a 403 that names the missing scope
const admin = pipe(
  bearer,
  flatMap((user) => (user.admin ? E.right(user) : E.left(AuthError.insufficient(['admin'])))),
)
const bare = pipe(
  bearer,
  RTE.map((user) => user.name),
)
const described = pipe(bare, describedAs(bearer))

export const router = new Router({ prefix: '/composing' })

router.get('/name', withAuth(name), (ctx) => {
  ctx.body = `Hello ${ctx.request.auth}`
})
router.get('/admin', withAuth(admin), (ctx) => {
  ctx.body = `Hello ${ctx.request.auth.name}`
})
router.get('/bare', withAuth(bare), (ctx) => {
  ctx.body = `Hello ${ctx.request.auth}`
})
router.get('/described', withAuth(described), (ctx) => {
  ctx.body = `Hello ${ctx.request.auth}`
})
