/**
 * Whether guards work in a router. While they run, they must know which layer runs.
 *
 * koa-router 7 and @koa/router 8 do not say so on the context. Version numbers do not help, because forks and copies
 * have others. So a test route is tried, once for each class.
 */
import type { RouterInstance } from './routerTypes.js'

/** The message about a router that does not say which layer runs. */
export const tooOld = 'this router is too old to be guarded; install @koa/router 12 or later (or koa-router 12)'

// Only a cache of the answers
const known = new WeakMap<object, boolean>()

/**
 * Whether the routers of this class say which layer runs. `true` for one that cannot be tried; its guards check again.
 */
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
    // Safe: the constructor of a router needs no argument, and any exception is caught
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
