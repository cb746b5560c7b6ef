/**
 * Warns if the result of `withAuth(a)(router)` is thrown away, and the router itself is served without that guard.
 *
 * The sign of that: `routes()` was called on the router, and a second later still not on the copy. Requests are not
 * slower. In production nothing is watched.
 */
import { copiesMark, usedMark } from '../core/marks.js'
import type { RouterInstance } from './routerTypes.js'

// Long enough for a start that waits for a database between two mounts
const WAIT = 1000

interface Watched {
  [copiesMark]?: object[]
  [usedMark]?: boolean
}

/** Watches whether the copy is used if the router is. Returns the copy. */
export const watchCopy = <R extends object>(router: RouterInstance<never, never>, copy: R): R => {
  if (process.env['NODE_ENV'] === 'production' || !Object.isExtensible(router)) return copy
  const original: Watched & RouterInstance<never, never> = router
  // a router of which a copy is made counts as used
  markUsed(original)
  onRoutes(copy, () => markUsed(copy))
  const copies = original[copiesMark]
  if (copies !== undefined) {
    copies.push(copy)
    return copy
  }
  hide(original, copiesMark, [copy])
  onRoutes(original, () => setTimeout(() => warnAbout(original), WAIT).unref())
  return copy
}

const hide = (target: object, key: PropertyKey, value: unknown): void => {
  Object.defineProperty(target, key, { value, writable: true, configurable: true, enumerable: false })
}

const markUsed = (router: object): void => hide(router, usedMark, true)

const isUsed = (copy: object): boolean => Reflect.get(copy, usedMark) === true

/**
 * Calls `notice` when `routes()` of a router is called. It is not enumerable, so a copy of the router is not watched by
 * it.
 */
export const onRoutes = (router: object, notice: () => void): void => {
  for (const name of ['routes', 'middleware'] as const) {
    const original: unknown = Reflect.get(router, name)
    if (typeof original !== 'function') continue
    hide(router, name, function (this: unknown, ...args: unknown[]): unknown {
      notice()
      return Reflect.apply(original, this, args)
    })
  }
}

const warnAbout = (router: Watched & RouterInstance<never, never>): void => {
  const copies = router[copiesMark] ?? []
  // one warning for each router
  router[copiesMark] = []
  if (copies.length === 0 || copies.every(isUsed)) return
  const [first] = router.stack
  const which = router.opts.prefix ?? (first === undefined ? '' : String(first.path))
  process.emitWarning(
    `withAuth(a)(router)${which === '' ? '' : ` of ${which}`}: the guarded copy that it returned is not mounted, but the router itself is, without that guard; mount withAuth(a)(router).routes()`,
    'UnusedGuardWarning',
  )
}
