/** Programs that must not compile, each beside the nearest program that must. */
import { combinatorMistakes } from './combinatorMistakes.js'

export interface Mistake {
  readonly description: string
  /** This must be an error, in its last statement. */
  readonly wrong: string
  /** This must compile. */
  readonly right: string
}

/** The beginning of all programs. */
export const prelude = `
import Router from '@koa/router'
import type { DefaultState } from 'koa'
import { pipe } from 'fp-ts/lib/function.js'
import { either as E, option as O } from 'fp-ts'
import { anyOf, apiApp, apiKeyHeader, AuthError, authenticator, authSettings, Challenge, fromHeader, httpBasicAuth, httpBearer, sessionAuth, withAuth, type Auth, type Authenticator } from 'koa-with-auth'
import { alt, describedAs, fromFunction, flatMap, map } from 'koa-with-auth/fp'
import { allOf, also, authorize, optional, owned, perFailure, cached, requireScopes, throttled, unchecked, type Limiter } from 'koa-with-auth'
import { firstPresent, lenient, recoverUnavailable, timeout } from 'koa-with-auth/fp'
import { exactly } from './exactly.js'
interface User { readonly user: string }
declare const user: User
declare const condition: boolean
declare const limiter: Limiter
const bearer = httpBearer({ authenticate: () => user })
const key = apiKeyHeader({ authenticate: () => ({ client: 1 }) })
const router = new Router()
const guarded = withAuth(bearer)(new Router())
const own = new Router<DefaultState, Auth<User>>()
void [owned, unchecked, allOf, also, authorize, firstPresent, lenient, optional, perFailure, recoverUnavailable, cached, requireScopes, throttled, timeout, limiter]
void [E, O, alt, anyOf, apiApp, AuthError, authenticator, authSettings, Challenge, describedAs, fromFunction, fromHeader, httpBasicAuth, flatMap, map, pipe, sessionAuth, exactly, condition, key, router, guarded, own]
export type Kept = Authenticator<User>
declare const app: import('koa')
declare const sessions: typeof import('koa-with-auth/sessions').sessions
void [app, sessions]
`

export const mistakes: ReadonlyArray<Mistake> = [
  {
    description: 'these tests: a wider type is not exactly the type',
    wrong: `exactly<string | number>()(user.user)`,
    right: `exactly<string>()(user.user)`,
  },
  {
    description: 'these tests: any is not exactly a type',
    wrong: `exactly<string>()(JSON.parse('1'))`,
    right: `exactly<any>()(JSON.parse('1'))`,
  },

  // users of sessions
  {
    description: 'sessions: a user without a username',
    wrong: `sessions(app, { loadUser: (id) => ({ id, email: 'a@example.com' }) })`,
    right: `sessions(app, { loadUser: (id) => ({ id, email: 'a@example.com' }), identify: (u) => u.id })`,
  },
  {
    description: 'sessions: a user whose isActive is a number',
    wrong: `sessions(app, { loadUser: async (username) => ({ username, isActive: 1 }) })`,
    right: `sessions(app, { loadUser: async (username) => ({ username, isActive: 1 }), isActive: (u) => u.isActive === 1 })`,
  },
  {
    description: 'sessions: a user, or one without a username',
    wrong: `sessions(app, { loadUser: (username) => condition ? { username } : { id: username } })`,
    right: `sessions(app, { loadUser: (username) => condition ? { username } : undefined })`,
  },
  {
    description: 'sessionAuth: a user without a username',
    wrong: `sessionAuth({ loadUser: (session) => ({ id: session['id'] }) })`,
    right: `sessionAuth({ loadUser: (session) => ({ id: session['id'], username: 'anna' }) })`,
  },
  {
    description: 'sessionAuth: a user whose isSuperuser is a string',
    wrong: `sessionAuth({ loadUser: () => O.some({ username: 'anna', isSuperuser: 'yes' }) })`,
    right: `sessionAuth({ loadUser: () => O.some({ username: 'anna', isSuperuser: null }) })`,
  },

  // hooks
  {
    description: 'a hook of httpBearer with a third parameter',
    wrong: `httpBearer({ authenticate: (request, user, password) => request && user && password })`,
    right: `httpBasicAuth({ authenticate: (request, user, password) => request && user && password })`,
  },
  {
    description: 'a hook of httpBasicAuth with a fourth parameter',
    wrong: `httpBasicAuth({ authenticate: (_r: unknown, _u: string, _p: string, more: string) => more })`,
    right: `httpBasicAuth({ authenticate: (_r: unknown, _u: string, _p: string) => true })`,
  },
  {
    description: 'a hook of apiKeyHeader with a third parameter',
    wrong: `apiKeyHeader({ authenticate: (_r: unknown, _k: string, more: string) => more })`,
    right: `apiKeyHeader({ authenticate: (_r: unknown, k: string) => k })`,
  },
  {
    description: 'a hook that takes the credential as another type',
    wrong: `httpBearer({ authenticate: (_request, token: number) => token })`,
    right: `httpBearer({ authenticate: (_request, token: string) => token })`,
  },
  {
    description: 'a plain function with a second parameter',
    wrong: `withAuth((request: unknown, more: unknown) => request && more)`,
    right: `withAuth((request: unknown) => request)`,
  },
  {
    description: 'no hook',
    wrong: `httpBearer({ realm: 'pets' })`,
    right: `httpBearer({ realm: 'pets', authenticate: () => user })`,
  },
  {
    description: 'an option that does not exist',
    wrong: `apiKeyHeader({ parmName: 'X-Key', authenticate: () => user })`,
    right: `apiKeyHeader({ paramName: 'X-Key', authenticate: () => user })`,
  },
  {
    description: 'a hook that returns only a function: there is no principal',
    wrong: `const made = httpBearer({ authenticate: () => () => user }); exactly<Authenticator<User>>()(made)`,
    right: `const made = httpBearer({ authenticate: () => () => E.right(user) }); exactly<Authenticator<User>>()(made)`,
  },
  {
    description: 'reading the principal of a hook that returns only a function',
    wrong: `const asking = withAuth(() => () => user); router.get('/', asking, (ctx) => { ctx.body = ctx.request.auth.user })`,
    right: `const asking = withAuth(() => async () => E.right(user)); router.get('/', asking, (ctx) => { ctx.body = ctx.request.auth.user })`,
  },

  // lists
  { description: 'an empty list', wrong: `withAuth([])`, right: `withAuth([bearer])` },
  { description: 'an empty list to anyOf', wrong: `anyOf([])`, right: `anyOf([bearer])` },
  { description: 'a list that may be empty', wrong: `withAuth([bearer].slice(1))`, right: `withAuth([bearer, key])` },
  { description: 'a string in a list', wrong: `withAuth([bearer, 'supersecret'])`, right: `withAuth([bearer, key])` },
  { description: 'null in a list', wrong: `withAuth([bearer, null])`, right: `withAuth([bearer, () => null])` },
  { description: 'undefined in a list', wrong: `withAuth([bearer, undefined])`, right: `withAuth([bearer])` },
  { description: 'a list in a list', wrong: `withAuth([bearer, [key]])`, right: `withAuth([bearer, anyOf([key])])` },
  {
    description: 'an object in an object',
    wrong: `anyOf({ a: bearer, b: {} })`,
    right: `anyOf({ a: bearer, b: key })`,
  },
  { description: 'alt of different principals', wrong: `alt(() => key)(bearer)`, right: `alt(() => bearer)(bearer)` },

  // values that are not authenticators
  {
    description: 'a factory that was not called',
    wrong: `withAuth(httpBearer)`,
    right: `withAuth(httpBearer({ authenticate: () => user }))`,
  },
  {
    description: 'a factory in a list that was not called',
    wrong: `withAuth([bearer, apiKeyHeader])`,
    right: `withAuth([bearer, key])`,
  },
  {
    description: 'a session factory that was not called',
    wrong: `withAuth(sessionAuth)`,
    right: `withAuth(sessionAuth())`,
  },
  { description: 'a class', wrong: `withAuth(class {})`, right: `withAuth(() => ({}))` },
  { description: 'undefined', wrong: `withAuth(undefined)`, right: `withAuth(null)` },
  { description: 'nothing', wrong: `withAuth()`, right: `withAuth(null)` },
  { description: 'text', wrong: `withAuth('bearer')`, right: `withAuth(bearer)` },
  { description: 'an object of options', wrong: `withAuth({ auth: bearer })`, right: `withAuth(bearer)` },
  { description: 'a guard', wrong: `withAuth(withAuth(bearer))`, right: `withAuth(bearer)` },
  {
    description: 'an authenticator or null',
    wrong: `withAuth(condition ? bearer : null)`,
    right: `condition ? withAuth(bearer) : withAuth(null)`,
  },
  {
    description: 'an authenticator or undefined',
    wrong: `withAuth(condition ? bearer : undefined)`,
    right: `withAuth(condition ? bearer : key)`,
  },
  {
    description: 'a plain function that is typed as an authenticator',
    wrong: `describedAs(() => user)`,
    right: `describedAs(bearer)`,
  },

  // principals
  {
    description: 'reading auth as another type',
    wrong: `router.get('/', withAuth(bearer), (ctx) => { const other: number = ctx.request.auth.user; void other })`,
    right: `router.get('/', withAuth(bearer), (ctx) => { const name: string = ctx.request.auth.user; void name })`,
  },
  {
    description: 'reading a property that the principal does not have',
    wrong: `guarded.get('/', (ctx) => { ctx.body = ctx.request.auth.client })`,
    right: `guarded.get('/', (ctx) => { ctx.body = ctx.request.auth.user })`,
  },
  {
    description: 'reading auth on an unguarded route',
    wrong: `router.get('/', (ctx) => { ctx.body = ctx.request.auth })`,
    right: `router.get('/', (ctx) => { ctx.body = ctx.request.ip })`,
  },
  {
    description: 'reading a principal on a public operation',
    wrong: `guarded.get('/', withAuth(null), (ctx) => { ctx.body = ctx.request.auth.user })`,
    right: `guarded.get('/', withAuth(null), (ctx) => { ctx.body = ctx.request.auth })`,
  },
  {
    description: 'reading the overridden principal',
    wrong: `guarded.get('/', withAuth(key), (ctx) => { ctx.body = ctx.request.auth.user })`,
    right: `guarded.get('/', withAuth(key), (ctx) => { ctx.body = ctx.request.auth.client })`,
  },
  {
    description: 'reading one of several without asking which',
    wrong: `guarded.get('/', withAuth([bearer, key]), (ctx) => { ctx.body = ctx.request.auth.user })`,
    right: `guarded.get('/', withAuth([bearer, key]), (ctx) => { ctx.body = 'user' in ctx.request.auth && ctx.request.auth.user })`,
  },
  {
    description: 'writing auth',
    wrong: `guarded.get('/', (ctx) => { ctx.request.auth = user })`,
    right: `guarded.get('/', (ctx) => { ctx.state['user'] = ctx.request.auth })`,
  },
  {
    description: 'a handler that expects another principal',
    wrong: `guarded.get('/', (ctx: Auth<{ client: number }>) => { void ctx.request.auth.client })`,
    right: `guarded.get('/', (ctx: Auth<User>) => { void ctx.request.auth.user })`,
  },

  // routers in their own file
  {
    description: 'wrapping a router that expects another principal',
    wrong: `withAuth(key)(own)`,
    right: `withAuth(bearer)(own)`,
  },
  {
    description: 'making public a router that expects a principal',
    wrong: `withAuth(null)(own)`,
    right: `withAuth(null)(new Router())`,
  },
  {
    description: 'mounting a router that expects another principal',
    wrong: `withAuth(key)(new Router()).use('/own', own.routes())`,
    right: `withAuth(bearer)(new Router()).use('/own', own.routes())`,
  },
  {
    description: 'mounting such a router without a path',
    wrong: `withAuth(key)(new Router()).use(own.routes())`,
    right: `withAuth(bearer)(new Router()).use(own.routes())`,
  },

  // a guard where it could not protect
  {
    description: 'a guard after the handler, in a guarded router',
    wrong: `guarded.get('/x', (ctx) => { ctx.body = ctx.request.auth.user }, withAuth(key))`,
    right: `guarded.get('/x', withAuth(key), (ctx) => { ctx.body = ctx.request.auth.client })`,
  },
  {
    description: 'a guard after the handler, in an application',
    wrong: `apiApp({ auth: bearer }).post('/x', (ctx) => { ctx.body = 'x' }, withAuth(null))`,
    right: `apiApp({ auth: bearer }).post('/x', withAuth(null), (ctx) => { ctx.body = 'x' })`,
  },
  {
    description: 'a guard without a handler',
    wrong: `guarded.get('/x', withAuth(key))`,
    right: `guarded.get('/x', withAuth(key), (ctx) => { ctx.body = 'x' })`,
  },
  {
    description: 'two guards of one operation',
    wrong: `guarded.get('/x', withAuth(key), withAuth(bearer), (ctx) => { ctx.body = 'x' })`,
    right: `guarded.get('/x', withAuth([key, bearer]), (ctx) => { ctx.body = 'x' })`,
  },
  {
    description: 'a guard in router.use of a guarded router',
    wrong: `guarded.use(withAuth(key))`,
    right: `guarded.use((_ctx, next) => next())`,
  },
  {
    description: 'a guard in router.use of an application, with a path',
    wrong: `apiApp({ auth: bearer }).use('/x', withAuth(key))`,
    right: `apiApp({ auth: bearer }).use('/x', (_ctx, next) => next())`,
  },

  // settings and the application
  {
    description: 'an unknown setting',
    wrong: `authSettings({ relm: 'pets' })`,
    right: `authSettings({ realm: 'pets' })`,
  },
  {
    description: 'an application whose auth may be null',
    wrong: `apiApp({ auth: condition ? bearer : null })`,
    right: `apiApp({ auth: bearer })`,
  },
  {
    description: 'an application whose options may have a null auth',
    wrong: `const options = { title: 'Pets', auth: condition ? bearer : null }; apiApp(options)`,
    right: `const options = { title: 'Pets', auth: bearer }; apiApp(options)`,
  },

  // composing
  ...combinatorMistakes,
]
