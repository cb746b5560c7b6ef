/**
 * Sessions of koa-session: signing in by a form, who is signed in, and who may do more.
 *
 * Signing in is an authenticator of a form, too. Forms of other sites are refused, so no other site can sign a visitor in.
 * Wrong passwords are counted: see the guide on throttling. At the sign-in the session must get a new id and lose its
 * old data. With plain koa-session you do both yourself, because it keeps the id when data are assigned, and the data
 * on `regenerate()`.
 */
import { randomUUID } from 'node:crypto'
import { bodyParser } from '@koa/bodyparser'
import Router from '@koa/router'
import type Koa from 'koa'
import session from 'koa-session'
import {
  constantTimeEqual,
  formAuth,
  sessionAuth,
  sessionAuthIsStaff,
  sessionAuthSuperUser,
  sessionLoginAuth,
  throttled,
  withAuth,
  type SessionData,
} from 'koa-with-auth'
import { SessionUser } from 'koa-with-auth/sessions'
import { RateLimiterMemory } from 'rate-limiter-flexible'

// Replace these with your own user database, and the comparison with a check of a password hash: see asynchronous.ts.
export const users = new Map<string, SessionUser>([
  ['anna', { username: 'anna' }],
  ['sam', { username: 'sam', isStaff: true }],
  ['root', { username: 'root', isSuperuser: true }],
])
const passwords = new Map([
  ['anna', 'annasecret'],
  ['sam', 'samsecret'],
  ['root', 'rootsecret'],
])

// Replace this with a store that other processes share and that deletes what has expired. Without a store the whole
// session is in the cookie, and signing out cannot end it.
const kept = new Map<string, string>()
const ended = new Set<string>()
const store = {
  get: async (id: string): Promise<unknown> => JSON.parse(kept.get(id) ?? 'null'),
  // A slow request must not restore a session that has ended meanwhile
  set: async (id: string, data: unknown) => void (ended.has(id) || kept.set(id, JSON.stringify(data))),
  destroy: async (id: string) => void (kept.delete(id), ended.add(id)),
}

/** Mount it above the router, on an application with signing keys. */
export const sessions = (app: Koa) => session({ store, sameSite: 'lax' }, app)

const form = formAuth({
  fields: ['username', 'password'],
  authenticate: (_request, { username, password }) =>
    constantTimeEqual(password, passwords.get(username) ?? randomUUID()) && { username },
})

// For one account and one address in 15 minutes
const guesses = new RateLimiterMemory({ points: 20, duration: 15 * 60 })

// Loaded again for every request: a right that is removed is gone immediately
const loadUser = ({ user }: SessionData) => SessionUser.is(user) && users.get(user.username)

export const router = new Router()

router.use('/sign-in', bodyParser({ enableTypes: ['form'], onError: (_error, ctx) => ctx.throw(400) }))

router.post('/sign-in', withAuth(throttled({ limiter: guesses })(form)), async (ctx) => {
  ctx.session = { user: { username: ctx.request.auth.username } }
  // koa-session declares no types for the context
  await (ctx.session as { regenerate: () => Promise<void> }).regenerate()
  ctx.body = `Welcome ${ctx.request.auth.username}`
})

router.post('/sign-out', withAuth(sessionLoginAuth), (ctx) => {
  ctx.session = null
  ctx.body = 'Bye'
})

router.get('/pets', withAuth(sessionLoginAuth), (ctx) => {
  ctx.body = `Authenticated user ${ctx.request.auth.username}`
})

router.get('/protected', withAuth(sessionAuth({ loadUser })), (ctx) => {
  ctx.body = { user: ctx.request.auth.username }
})

router.get('/admin-only', withAuth(sessionAuthSuperUser({ loadUser })), (ctx) => {
  ctx.body = { message: `Welcome, superuser ${ctx.request.auth.username}` }
})

router.get('/staff-area', withAuth(sessionAuthIsStaff({ loadUser })), (ctx) => {
  ctx.body = { message: `Welcome, staff member ${ctx.request.auth.username}` }
})
