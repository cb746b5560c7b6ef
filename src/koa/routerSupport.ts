/**
 * Whether a router is one that guards understand: they have to know, while they run, which layer runs.
 *
 * koa-router 7 and @koa/router 8 do not say so on the context. No version number is read, because forks and copies have others: the
 * router is tried with a test route, once for each class.
 */
import type { RouterInstance } from './routerTypes.js'

/** What a message says of a router that does not say which layer runs. */
export const tooOld = 'this router is too old to be guarded; install @koa/router 12 or later (or koa-router 12)'

// Only a cache of the answers
const known = new WeakMap<object, boolean>()

/** Whether the routers of this class say which layer runs. One that cannot be tried is taken to; its guards look again. */
export const saysWhatRuns = (router: RouterInstance<never, never>): boolean => {
  const type: unknown = router.constructor
  if (typeof type !== 'function') return true
  const before = known.get(type)
  if (before !== undefined) return before
  const answer = tried(type)
  known.set(type, answer)
  return answer
}

const PATH = '/koa-with-auth'

const tried = (type: Function): boolean => {
  let path: unknown = PATH
  try {
    // Safe: what a router of @koa/router is made by takes no argument, and anything else is caught
    const router = Reflect.construct(type, []) as RouterInstance
    router.register(PATH, ['GET'], (ctx) => {
      path = ctx.routerPath
    })
    const context = { path: PATH, method: 'GET', request: {}, state: {} }
    // A router calls its first function before it returns
    void Promise.resolve(Reflect.apply(router.routes(), undefined, [context, () => undefined])).catch(() => undefined)
  } catch {
    return true
  }
  return path === PATH
}
