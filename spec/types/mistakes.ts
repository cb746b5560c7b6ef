/** Programs that must not compile, each beside the nearest program that must. */
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

// A mistake; a program whose last statement must be an error; one that must compile. A line with # is a heading.
const programs = `
these tests: a wider type is not exactly the type
- exactly<string | number>()(user.user)
+ exactly<string>()(user.user)
these tests: any is not exactly a type
- exactly<string>()(JSON.parse('1'))
+ exactly<any>()(JSON.parse('1'))
# users of sessions
sessions: a user without a username
- sessions(app, { loadUser: (id) => ({ id, email: 'a@example.com' }) })
+ sessions(app, { loadUser: (id) => ({ id, email: 'a@example.com' }), identify: (u) => u.id })
sessions: a user whose isActive is a number
- sessions(app, { loadUser: async (username) => ({ username, isActive: 1 }) })
+ sessions(app, { loadUser: async (username) => ({ username, isActive: 1 }), isActive: (u) => u.isActive === 1 })
sessions: a user, or one without a username
- sessions(app, { loadUser: (username) => condition ? { username } : { id: username } })
+ sessions(app, { loadUser: (username) => condition ? { username } : undefined })
sessionAuth: a user without a username
- sessionAuth({ loadUser: (session) => ({ id: session['id'] }) })
+ sessionAuth({ loadUser: (session) => ({ id: session['id'], username: 'anna' }) })
sessionAuth: a user whose isSuperuser is a string
- sessionAuth({ loadUser: () => O.some({ username: 'anna', isSuperuser: 'yes' }) })
+ sessionAuth({ loadUser: () => O.some({ username: 'anna', isSuperuser: null }) })
# hooks
a hook of httpBearer with a third parameter
- httpBearer({ authenticate: (request, user, password) => request && user && password })
+ httpBasicAuth({ authenticate: (request, user, password) => request && user && password })
a hook of httpBasicAuth with a fourth parameter
- httpBasicAuth({ authenticate: (_r: unknown, _u: string, _p: string, more: string) => more })
+ httpBasicAuth({ authenticate: (_r: unknown, _u: string, _p: string) => true })
a hook of apiKeyHeader with a third parameter
- apiKeyHeader({ authenticate: (_r: unknown, _k: string, more: string) => more })
+ apiKeyHeader({ authenticate: (_r: unknown, k: string) => k })
a hook that takes the credential as another type
- httpBearer({ authenticate: (_request, token: number) => token })
+ httpBearer({ authenticate: (_request, token: string) => token })
a plain function with a second parameter
- withAuth((request: unknown, more: unknown) => request && more)
+ withAuth((request: unknown) => request)
no hook
- httpBearer({ realm: 'pets' })
+ httpBearer({ realm: 'pets', authenticate: () => user })
an option that does not exist
- apiKeyHeader({ parmName: 'X-Key', authenticate: () => user })
+ apiKeyHeader({ paramName: 'X-Key', authenticate: () => user })
a hook that returns only a function: there is no principal
- const made = httpBearer({ authenticate: () => () => user }); exactly<Authenticator<User>>()(made)
+ const made = httpBearer({ authenticate: () => () => E.right(user) }); exactly<Authenticator<User>>()(made)
reading the principal of a hook that returns only a function
- const asking = withAuth(() => () => user); router.get('/', asking, (ctx) => { ctx.body = ctx.request.auth.user })
+ const asking = withAuth(() => async () => E.right(user)); router.get('/', asking, (ctx) => { ctx.body = ctx.request.auth.user })
# lists
an empty list
- withAuth([])
+ withAuth([bearer])
an empty list to anyOf
- anyOf([])
+ anyOf([bearer])
a list that may be empty
- withAuth([bearer].slice(1))
+ withAuth([bearer, key])
a string in a list
- withAuth([bearer, 'supersecret'])
+ withAuth([bearer, key])
null in a list
- withAuth([bearer, null])
+ withAuth([bearer, () => null])
a list in a list
- withAuth([bearer, [key]])
+ withAuth([bearer, anyOf([key])])
an object in an object
- anyOf({ a: bearer, b: {} })
+ anyOf({ a: bearer, b: key })
alt of different principals
- alt(() => key)(bearer)
+ alt(() => bearer)(bearer)
# values that are not authenticators
a factory that was not called
- withAuth(httpBearer)
+ withAuth(httpBearer({ authenticate: () => user }))
a class
- withAuth(class {})
+ withAuth(() => ({}))
undefined
- withAuth(undefined)
+ withAuth(null)
nothing
- withAuth()
+ withAuth(null)
a guard
- withAuth(withAuth(bearer))
+ withAuth(bearer)
an authenticator or null
- withAuth(condition ? bearer : null)
+ condition ? withAuth(bearer) : withAuth(null)
a plain function that is typed as an authenticator
- describedAs(() => user)
+ describedAs(bearer)
# principals
reading auth as another type
- router.get('/', withAuth(bearer), (ctx) => { const other: number = ctx.request.auth.user; void other })
+ router.get('/', withAuth(bearer), (ctx) => { const name: string = ctx.request.auth.user; void name })
reading a property that the principal does not have
- guarded.get('/', (ctx) => { ctx.body = ctx.request.auth.client })
+ guarded.get('/', (ctx) => { ctx.body = ctx.request.auth.user })
reading auth on an unguarded route
- router.get('/', (ctx) => { ctx.body = ctx.request.auth })
+ router.get('/', (ctx) => { ctx.body = ctx.request.ip })
reading a principal on a public operation
- guarded.get('/', withAuth(null), (ctx) => { ctx.body = ctx.request.auth.user })
+ guarded.get('/', withAuth(null), (ctx) => { ctx.body = ctx.request.auth })
reading the overridden principal
- guarded.get('/', withAuth(key), (ctx) => { ctx.body = ctx.request.auth.user })
+ guarded.get('/', withAuth(key), (ctx) => { ctx.body = ctx.request.auth.client })
reading one of several without asking which
- guarded.get('/', withAuth([bearer, key]), (ctx) => { ctx.body = ctx.request.auth.user })
+ guarded.get('/', withAuth([bearer, key]), (ctx) => { ctx.body = 'user' in ctx.request.auth && ctx.request.auth.user })
writing auth
- guarded.get('/', (ctx) => { ctx.request.auth = user })
+ guarded.get('/', (ctx) => { ctx.state['user'] = ctx.request.auth })
a handler that expects another principal
- guarded.get('/', (ctx: Auth<{ client: number }>) => { void ctx.request.auth.client })
+ guarded.get('/', (ctx: Auth<User>) => { void ctx.request.auth.user })
# routers in their own file
wrapping a router that expects another principal
- withAuth(key)(own)
+ withAuth(bearer)(own)
making public a router that expects a principal
- withAuth(null)(own)
+ withAuth(null)(new Router())
mounting a router that expects another principal
- withAuth(key)(new Router()).use('/own', own.routes())
+ withAuth(bearer)(new Router()).use('/own', own.routes())
mounting such a router without a path
- withAuth(key)(new Router()).use(own.routes())
+ withAuth(bearer)(new Router()).use(own.routes())
# a guard where it could not protect
a guard after the handler, in a guarded router
- guarded.get('/x', (ctx) => { ctx.body = ctx.request.auth.user }, withAuth(key))
+ guarded.get('/x', withAuth(key), (ctx) => { ctx.body = ctx.request.auth.client })
a guard after the handler, in an application
- apiApp({ auth: bearer }).post('/x', (ctx) => { ctx.body = 'x' }, withAuth(null))
+ apiApp({ auth: bearer }).post('/x', withAuth(null), (ctx) => { ctx.body = 'x' })
a guard without a handler
- guarded.get('/x', withAuth(key))
+ guarded.get('/x', withAuth(key), (ctx) => { ctx.body = 'x' })
two guards of one operation
- guarded.get('/x', withAuth(key), withAuth(bearer), (ctx) => { ctx.body = 'x' })
+ guarded.get('/x', withAuth([key, bearer]), (ctx) => { ctx.body = 'x' })
a guard in router.use of a guarded router
- guarded.use(withAuth(key))
+ guarded.use((_ctx, next) => next())
a guard in router.use of an application, with a path
- apiApp({ auth: bearer }).use('/x', withAuth(key))
+ apiApp({ auth: bearer }).use('/x', (_ctx, next) => next())
# settings and the application
an unknown setting
- authSettings({ relm: 'pets' })
+ authSettings({ realm: 'pets' })
an application whose auth may be null
- apiApp({ auth: condition ? bearer : null })
+ apiApp({ auth: bearer })
an application whose options may have a null auth
- const options = { title: 'Pets', auth: condition ? bearer : null }; apiApp(options)
+ const options = { title: 'Pets', auth: bearer }; apiApp(options)
# groups
an empty list to allOf
- allOf([])
+ allOf([bearer])
a list that may be empty to allOf
- allOf([bearer].slice(1))
+ allOf([bearer, key])
an empty list to firstPresent
- firstPresent([])
+ firstPresent([bearer])
a list in allOf
- allOf([bearer, [key]])
+ allOf([bearer, allOf([key])])
null in firstPresent
- firstPresent([bearer, null])
+ firstPresent([bearer, key])
null in an object of allOf
- allOf({ a: bearer, b: null })
+ allOf({ a: bearer, b: key })
a list to optional
- optional([bearer, key])
+ optional(anyOf([bearer, key]))
null to lenient
- lenient(null)
+ lenient(bearer)
a combinator that was not called
- allOf([bearer, timeout])
+ allOf([bearer, timeout(5)(key)])
cached around an authenticator
- cached(bearer)
+ cached(async () => true, { maxAge: 1000 })
cached without a window
- cached(async () => true, { size: 10 })
+ cached(async () => true, { maxAge: 1000, size: 10 })
throttled with a limiter that cannot give back
- throttled({ limiter: { consume: async () => 1 } })(bearer)
+ throttled({ limiter: { consume: async () => 1, reward: async () => 1 } })(bearer)
throttled by an account without its address
- throttled({ limiter: { account: limiter } })(bearer)
+ throttled({ limiter: { accountAndAddress: limiter, account: limiter } })(bearer)
# principals
reading a third member of a pair
- router.get('/', withAuth(allOf([bearer, key])), (ctx) => { ctx.body = ctx.request.auth[2] })
+ router.get('/', withAuth(allOf([bearer, key])), (ctx) => { ctx.body = ctx.request.auth[1].client })
reading all members as one
- router.get('/', withAuth(allOf({ bearer, key })), (ctx) => { ctx.body = ctx.request.auth.user })
+ router.get('/', withAuth(allOf({ bearer, key })), (ctx) => { ctx.body = ctx.request.auth.bearer.user })
reading an anonymous caller
- router.get('/', withAuth(optional(bearer)), (ctx) => { ctx.body = ctx.request.auth.user })
+ router.get('/', withAuth(optional(bearer)), (ctx) => { ctx.body = ctx.request.auth?.user })
taking an anonymous caller for an Option
- router.get('/', withAuth(optional(bearer)), (ctx) => { ctx.body = O.isSome(ctx.request.auth) })
+ router.get('/', withAuth(optional(bearer)), (ctx) => { ctx.body = O.isSome(O.fromNullable(ctx.request.auth)) })
reading a tagged winner without asking which
- router.get('/', withAuth(firstPresent({ bearer, key })), (ctx) => { ctx.body = ctx.request.auth.principal.user })
+ router.get('/', withAuth(firstPresent({ bearer, key })), (ctx) => { ctx.body = ctx.request.auth.via === 'bearer' && ctx.request.auth.principal.user })
# authorize and scopes
authorize with a function that does not return a boolean
- authorize((one: User) => one.user)(bearer)
+ authorize((one: User) => one.user !== '')(bearer)
authorize for another principal
- authorize((one: { client: number }) => one.client > 0)(bearer)
+ authorize((one: { client: number }) => one.client > 0)(key)
authorize with a third parameter
- authorize((one: User, request: unknown, more: unknown) => one === request && one === more)(bearer)
+ authorize((one: User, request: unknown) => one === request)(bearer)
no scopes
- requireScopes([], { granted: () => 'read' })(bearer)
+ requireScopes(['read'], { granted: () => 'read' })(bearer)
no scopes, without the function granted
- requireScopes([])(bearer)
+ requireScopes(['read'])(bearer)
# objects
an object of another principal
- withAuth(key, owned('note', { param: 'id', find: (id, one: User) => id + one.user }))
+ withAuth(bearer, owned('note', { param: 'id', find: (id, one: User) => id + one.user }))
reading an object that no condition finds
- router.get('/:id', withAuth(bearer, owned('note', { param: 'id', find: (id) => ({ id }) })), (ctx) => { ctx.body = ctx.request.objects.other })
+ router.get('/:id', withAuth(bearer, owned('note', { param: 'id', find: (id) => ({ id }) })), (ctx) => { ctx.body = ctx.request.objects.note.id })
reading objects without a condition
- router.get('/:id', withAuth(bearer), (ctx) => { ctx.body = ctx.request.objects.note })
+ router.get('/:id', withAuth(bearer), (ctx) => { ctx.body = ctx.request.auth.user })
an object without a look-up
- owned('note', { param: 'id', allow: () => true })
+ owned('note', { param: 'id', find: () => 1, allow: () => true })
a parameter without a reason
- unchecked('id')
+ unchecked('id', 'all members read it')
# outages
a time limit that is a string
- timeout('5')(bearer)
+ timeout(5)(bearer)
no time limit
- timeout(5)(null)
+ timeout(5)(bearer)
recovering with an authenticator that was not called
- recoverUnavailable((_request, error: { _tag: 'expired' }) => error)(bearer)
+ recoverUnavailable((request) => bearer(request))(bearer)
# also
also in a list
- withAuth([bearer, also(key)])
+ withAuth(also([bearer, key]))
also in anyOf
- anyOf([bearer, also(key)])
+ anyOf([bearer, key])
also in an object
- allOf({ a: also(key) })
+ allOf({ a: key })
also of also
- also(also(key))
+ also(key)
optional of also
- optional(also(key))
+ also(optional(key))
also of null
- also(null)
+ also(key)
also of an empty list
- also([])
+ also([key])
also for a whole application
- apiApp({ auth: also(bearer) })
+ apiApp({ auth: bearer })
reading the inherited principal as the own one
- guarded.get('/', withAuth(also(key)), (ctx) => { ctx.body = ctx.request.auth.own.user })
+ guarded.get('/', withAuth(also(key)), (ctx) => { ctx.body = ctx.request.auth.inherited.user })
reading either without saying which
- guarded.get('/', withAuth(also(key)), (ctx) => { ctx.body = ctx.request.auth.user })
+ guarded.get('/', withAuth(also(key)), (ctx) => { ctx.body = ctx.request.auth.inherited.user })
reading the inherited principal where it is unknown
- router.get('/', withAuth(also(key)), (ctx) => { ctx.body = ctx.request.auth.inherited.user })
+ router.get('/', withAuth(also(key)), (ctx) => { ctx.body = ctx.request.auth.own.client })
the same on a router
- withAuth(also(key))(router).get('/', (ctx) => { ctx.body = ctx.request.auth.inherited.user })
+ withAuth(also(key))(router).get('/', (ctx) => { ctx.body = ctx.request.auth.own.client })
adding to a router that expects only one principal
- withAuth(also(bearer))(own)
+ withAuth(bearer)(own)
a map whose f returns false
- pipe(bearer, map(({ user }) => false))
+ pipe(bearer, map(({ user }) => ({ user })))
a map whose f returns null
- pipe(bearer, map(({ user }) => null))
+ pipe(bearer, map(({ user }) => ({ user })))
a map whose f returns undefined
- pipe(bearer, map(({ user }) => undefined))
+ pipe(bearer, map(({ user }) => ({ user })))
a map whose f returns user === "x"
- pipe(bearer, map(({ user }) => user === "x"))
+ pipe(bearer, map(({ user }) => ({ user })))
a map whose f returns user || null
- pipe(bearer, map(({ user }) => user || null))
+ pipe(bearer, map(({ user }) => ({ user })))
a map whose f returns Promise.resolve(user)
- pipe(bearer, map(({ user }) => Promise.resolve(user)))
+ pipe(bearer, map(({ user }) => ({ user })))
# mappers
a mapper for a failure that does not exist
- perFailure({ expird: () => ({ status: 401 }) })
+ perFailure({ expired: () => ({ status: 401 }) })
reading a property of one failure from another
- perFailure({ expired: (error) => ({ status: 401, body: error.scope?.[0] ?? null }) })
+ perFailure({ insufficient: (error) => ({ status: 403, body: error.scope?.[0] ?? null }) })
a mapper that returns only a status
- perFailure({ expired: () => 401 })
+ perFailure({ expired: () => ({ status: 401 }) })
`

export const mistakes = [...programs.matchAll(/^([^#+\-\n].*)\n- (.+)\n\+ (.+)$/gm)].map(
  ([, description = '', wrong = '', right = '']) => ({ description, wrong, right }),
)
