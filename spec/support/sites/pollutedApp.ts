/**
 * An application whose process has a merge that pollutes prototypes. It is a separate program, so that other tests are
 * not affected. It prints its port.
 */
import Router from '@koa/router'
import Koa from 'koa'
import koaSession from 'koa-session'
import { sessionAuth, sessionAuthIsStaff, sessionAuthSuperUser, withAuth } from 'koa-with-auth'
import { sessions } from 'koa-with-auth/sessions'
import { serveProgram } from './program.js'

// Like earlier versions of lodash.merge
const merge = (to: Record<string, unknown>, from: Record<string, unknown>): void => {
  for (const key of Object.keys(from)) {
    const value = from[key]
    if (typeof value === 'object' && value !== null) {
      // Safe: such a merge does this
      merge((to[key] ??= {}) as Record<string, unknown>, value as Record<string, unknown>)
    } else to[key] = value
  }
}

// A class with getters, as some database mappers make it
class Row {
  readonly #row: { readonly username: string; readonly isSuperuser: boolean }
  constructor(row: { readonly username: string; readonly isSuperuser: boolean }) {
    this.#row = row
  }
  get username(): string {
    return this.#row.username
  }
  get isSuperuser(): boolean {
    return this.#row.isSuperuser
  }
}

const app = new Koa({ keys: ['k'.repeat(40)] })
app.silent = true
const users = new Map<string, object>([
  ['anna', { username: 'anna' }],
  ['sue', { username: 'sue', isSuperuser: true }],
  ['row', new Row({ username: 'row', isSuperuser: false })],
  ['boss', new Row({ username: 'boss', isSuperuser: true })],
])
const { PLAIN } = process.env
// Safe: these are the users of this program
type User = { readonly username: string }
const loadUser = (id: string) => users.get(id) as User | undefined
const logIn = PLAIN === undefined ? sessions(app, { loadUser }).logIn : undefined
if (PLAIN !== undefined) app.use(koaSession({ key: 'session' }, app))

const router = new Router()
router.post('/merge', withAuth(null), async (ctx) => {
  let text = ''
  for await (const chunk of ctx.req) text += String(chunk)
  const target = new URLSearchParams(ctx.querystring).get('into')
  // Safe: what is merged into
  merge((target === null ? {} : users.get(target)) as Record<string, unknown>, JSON.parse(text) as never)
  ctx.status = 204
})
// So that one process can be polluted several times
const unpolluted = Reflect.ownKeys(Object.prototype)
router.post('/unmerge', withAuth(null), (ctx) => {
  const added = Reflect.ownKeys(Object.prototype).filter((key) => !unpolluted.includes(key))
  for (const key of added) Reflect.deleteProperty(Object.prototype, key)
  ctx.status = 204
})
router.post('/login/:id', withAuth(null), async (ctx) => {
  const id = String(ctx.params['id'])
  if (logIn === undefined) ctx['session'] = { user: users.get(id) }
  else await logIn(ctx, loadUser(id)!)
  ctx.status = 204
})
router.post('/basket', withAuth(null), (ctx) => {
  Object.assign(ctx['session'] as object, { basket: 'pear' })
  ctx.status = 204
})
const answer = (ctx: { readonly request: { readonly auth: { readonly username: string } }; body: unknown }): void => {
  ctx.body = ctx.request.auth.username
}
router.get('/open', withAuth(null), (ctx) => {
  ctx.body = 'open'
})
router.get('/me', withAuth(sessionAuth()), answer)
router.get('/root', withAuth(sessionAuthSuperUser()), answer)
router.get('/staff', withAuth(sessionAuthIsStaff()), answer)
router.get('/fresh', withAuth(sessionAuth({ proof: { methods: ['passkey'], maxAge: 60_000 } })), answer)
router.get('/by-key', withAuth(sessionAuth({ loadUser: (session) => loadUser(String(session['userId'])) })), answer)
serveProgram(app.use(router.routes()))
