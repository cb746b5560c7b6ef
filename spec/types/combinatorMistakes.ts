/**
 * Mistakes in composing that must not compile, each beside the nearest program that must. mistakes.ts has their common
 * beginning.
 */
import type { Mistake } from './mistakes.js'

export const combinatorMistakes: ReadonlyArray<Mistake> = [
  // groups
  { description: 'an empty list to allOf', wrong: `allOf([])`, right: `allOf([bearer])` },
  {
    description: 'a list that may be empty to allOf',
    wrong: `allOf([bearer].slice(1))`,
    right: `allOf([bearer, key])`,
  },
  { description: 'an empty list to firstPresent', wrong: `firstPresent([])`, right: `firstPresent([bearer])` },
  { description: 'a list in allOf', wrong: `allOf([bearer, [key]])`, right: `allOf([bearer, allOf([key])])` },
  { description: 'null in firstPresent', wrong: `firstPresent([bearer, null])`, right: `firstPresent([bearer, key])` },
  {
    description: 'null in an object of allOf',
    wrong: `allOf({ a: bearer, b: null })`,
    right: `allOf({ a: bearer, b: key })`,
  },
  { description: 'a list to optional', wrong: `optional([bearer, key])`, right: `optional(anyOf([bearer, key]))` },
  { description: 'null to lenient', wrong: `lenient(null)`, right: `lenient(bearer)` },
  {
    description: 'a combinator that was not called',
    wrong: `allOf([bearer, timeout])`,
    right: `allOf([bearer, timeout(5)(key)])`,
  },

  {
    description: 'cached around an authenticator',
    wrong: `cached(bearer)`,
    right: `cached(async () => true, { maxAge: 1000 })`,
  },
  {
    description: 'cached without a window',
    wrong: `cached(async () => true, { size: 10 })`,
    right: `cached(async () => true, { maxAge: 1000, size: 10 })`,
  },
  {
    description: 'throttled with a limiter that cannot give back',
    wrong: `throttled({ limiter: { consume: async () => 1 } })(bearer)`,
    right: `throttled({ limiter: { consume: async () => 1, reward: async () => 1 } })(bearer)`,
  },
  {
    description: 'throttled by an account without its address',
    wrong: `throttled({ limiter: { account: limiter } })(bearer)`,
    right: `throttled({ limiter: { accountAndAddress: limiter, account: limiter } })(bearer)`,
  },

  // principals
  {
    description: 'reading a third member of a pair',
    wrong: `router.get('/', withAuth(allOf([bearer, key])), (ctx) => { ctx.body = ctx.request.auth[2] })`,
    right: `router.get('/', withAuth(allOf([bearer, key])), (ctx) => { ctx.body = ctx.request.auth[1].client })`,
  },
  {
    description: 'reading all members as one',
    wrong: `router.get('/', withAuth(allOf({ bearer, key })), (ctx) => { ctx.body = ctx.request.auth.user })`,
    right: `router.get('/', withAuth(allOf({ bearer, key })), (ctx) => { ctx.body = ctx.request.auth.bearer.user })`,
  },
  {
    description: 'reading an anonymous caller',
    wrong: `router.get('/', withAuth(optional(bearer)), (ctx) => { ctx.body = ctx.request.auth.user })`,
    right: `router.get('/', withAuth(optional(bearer)), (ctx) => { ctx.body = ctx.request.auth?.user })`,
  },
  {
    description: 'taking an anonymous caller for an Option',
    wrong: `router.get('/', withAuth(optional(bearer)), (ctx) => { ctx.body = O.isSome(ctx.request.auth) })`,
    right: `router.get('/', withAuth(optional(bearer)), (ctx) => { ctx.body = O.isSome(O.fromNullable(ctx.request.auth)) })`,
  },
  {
    description: 'reading a tagged winner without asking which',
    wrong: `router.get('/', withAuth(firstPresent({ bearer, key })), (ctx) => { ctx.body = ctx.request.auth.principal.user })`,
    right: `router.get('/', withAuth(firstPresent({ bearer, key })), (ctx) => { ctx.body = ctx.request.auth.via === 'bearer' && ctx.request.auth.principal.user })`,
  },

  // authorize and scopes
  {
    description: 'authorize with a function that does not return a boolean',
    wrong: `authorize((one: User) => one.user)(bearer)`,
    right: `authorize((one: User) => one.user !== '')(bearer)`,
  },
  {
    description: 'authorize with a function that returns an Option',
    wrong: `authorize((one: User) => O.some(one))(bearer)`,
    right: `authorize((one: User) => O.isSome(O.some(one)))(bearer)`,
  },
  {
    description: 'authorize for another principal',
    wrong: `authorize((one: { client: number }) => one.client > 0)(bearer)`,
    right: `authorize((one: { client: number }) => one.client > 0)(key)`,
  },
  {
    description: 'authorize with a third parameter',
    wrong: `authorize((one: User, request: unknown, more: unknown) => one === request && one === more)(bearer)`,
    right: `authorize((one: User, request: unknown) => one === request)(bearer)`,
  },
  {
    description: 'no scopes',
    wrong: `requireScopes([], { granted: () => 'read' })(bearer)`,
    right: `requireScopes(['read'], { granted: () => 'read' })(bearer)`,
  },
  {
    description: 'no scopes, without the function granted',
    wrong: `requireScopes([])(bearer)`,
    right: `requireScopes(['read'])(bearer)`,
  },

  // objects
  {
    description: 'an object of another principal',
    wrong: `withAuth(key, owned('note', { param: 'id', find: (id, one: User) => id + one.user }))`,
    right: `withAuth(bearer, owned('note', { param: 'id', find: (id, one: User) => id + one.user }))`,
  },
  {
    description: 'reading an object that no condition finds',
    wrong: `router.get('/:id', withAuth(bearer, owned('note', { param: 'id', find: (id) => ({ id }) })), (ctx) => { ctx.body = ctx.request.objects.other })`,
    right: `router.get('/:id', withAuth(bearer, owned('note', { param: 'id', find: (id) => ({ id }) })), (ctx) => { ctx.body = ctx.request.objects.note.id })`,
  },
  {
    description: 'reading objects without a condition',
    wrong: `router.get('/:id', withAuth(bearer), (ctx) => { ctx.body = ctx.request.objects.note })`,
    right: `router.get('/:id', withAuth(bearer), (ctx) => { ctx.body = ctx.request.auth.user })`,
  },
  {
    description: 'an object without a look-up',
    wrong: `owned('note', { param: 'id', allow: () => true })`,
    right: `owned('note', { param: 'id', find: () => 1, allow: () => true })`,
  },
  {
    description: 'a parameter without a reason',
    wrong: `unchecked('id')`,
    right: `unchecked('id', 'all members read it')`,
  },

  // outages
  { description: 'a time limit that is a string', wrong: `timeout('5')(bearer)`, right: `timeout(5)(bearer)` },
  { description: 'no time limit', wrong: `timeout(5)(null)`, right: `timeout(5)(bearer)` },
  {
    description: 'recovering with an authenticator that was not called',
    wrong: `recoverUnavailable((_request, error: { _tag: 'expired' }) => error)(bearer)`,
    right: `recoverUnavailable((request) => bearer(request))(bearer)`,
  },

  // also
  {
    description: 'also in a list',
    wrong: `withAuth([bearer, also(key)])`,
    right: `withAuth(also([bearer, key]))`,
  },
  { description: 'also in anyOf', wrong: `anyOf([bearer, also(key)])`, right: `anyOf([bearer, key])` },
  { description: 'also in an object', wrong: `allOf({ a: also(key) })`, right: `allOf({ a: key })` },
  { description: 'also of also', wrong: `also(also(key))`, right: `also(key)` },
  { description: 'optional of also', wrong: `optional(also(key))`, right: `also(optional(key))` },
  { description: 'also of null', wrong: `also(null)`, right: `also(key)` },
  { description: 'also of an empty list', wrong: `also([])`, right: `also([key])` },
  {
    description: 'also for a whole application',
    wrong: `apiApp({ auth: also(bearer) })`,
    right: `apiApp({ auth: bearer })`,
  },
  {
    description: 'reading the inherited principal as the own one',
    wrong: `guarded.get('/', withAuth(also(key)), (ctx) => { ctx.body = ctx.request.auth.own.user })`,
    right: `guarded.get('/', withAuth(also(key)), (ctx) => { ctx.body = ctx.request.auth.inherited.user })`,
  },
  {
    description: 'reading either without saying which',
    wrong: `guarded.get('/', withAuth(also(key)), (ctx) => { ctx.body = ctx.request.auth.user })`,
    right: `guarded.get('/', withAuth(also(key)), (ctx) => { ctx.body = ctx.request.auth.inherited.user })`,
  },
  {
    description: 'reading the inherited principal where it is unknown',
    wrong: `router.get('/', withAuth(also(key)), (ctx) => { ctx.body = ctx.request.auth.inherited.user })`,
    right: `router.get('/', withAuth(also(key)), (ctx) => { ctx.body = ctx.request.auth.own.client })`,
  },
  {
    description: 'the same on a router',
    wrong: `withAuth(also(key))(router).get('/', (ctx) => { ctx.body = ctx.request.auth.inherited.user })`,
    right: `withAuth(also(key))(router).get('/', (ctx) => { ctx.body = ctx.request.auth.own.client })`,
  },
  {
    description: 'adding to a router that expects only one principal',
    wrong: `withAuth(also(bearer))(own)`,
    right: `withAuth(bearer)(own)`,
  },

  // map
  ...['false', 'null', 'undefined', 'user === "x"', 'user || null', 'Promise.resolve(user)'].map((result) => ({
    description: `a map whose f returns ${result}`,
    wrong: `pipe(bearer, map(({ user }) => ${result}))`,
    right: `pipe(bearer, map(({ user }) => ({ user })))`,
  })),

  // mappers
  {
    description: 'a mapper for a failure that does not exist',
    wrong: `perFailure({ expird: () => ({ status: 401 }) })`,
    right: `perFailure({ expired: () => ({ status: 401 }) })`,
  },
  {
    description: 'reading a property of one failure from another',
    wrong: `perFailure({ expired: (error) => ({ status: 401, body: error.scope?.[0] ?? null }) })`,
    right: `perFailure({ insufficient: (error) => ({ status: 403, body: error.scope?.[0] ?? null }) })`,
  },
  {
    description: 'a mapper that returns only a status',
    wrong: `perFailure({ expired: () => 401 })`,
    right: `perFailure({ expired: () => ({ status: 401 }) })`,
  },
]
