/**
 * Closes a router: what was checked is what is served. Its routes can be read, mounted and copied, but not changed.
 *
 * Copies (`withAuth(a)(router)`, a router that it is mounted into) are routers of their own and stay open.
 */
import { pathInWords, type AnyRouter, type RouterLayer } from './Route.js'

const isLayer = (u: unknown): u is RouterLayer => typeof u === 'object' && u !== null && 'methods' in u && 'path' in u

const named = (u: unknown): string => {
  if (!isLayer(u)) return 'the router'
  const method = u.methods.filter((each) => each !== 'HEAD' || u.methods.length === 1)
  return `${u.methods.length === 0 ? 'use' : method.length > 1 ? 'ALL' : method[0]} ${pathInWords(u)}`
}

const refuse =
  (what: string) =>
  (...args: ReadonlyArray<unknown>): never => {
    const changed = what === 'stack' ? named(args.find(isLayer)) : `router.${what}(...)`
    throw new TypeError(`${changed} comes behind seal(router), so nobody has checked it: write it before`)
  }

/** Closes a router. */
export const close = (router: AnyRouter): void => {
  for (const layer of router.stack) {
    Object.freeze(layer.stack)
    Object.freeze(layer.methods)
    Object.freeze(layer)
  }
  const change = { value: refuse('stack') }
  const stack = Object.freeze(
    Object.defineProperties([...router.stack], {
      push: change,
      unshift: change,
      splice: change,
      pop: change,
      shift: change,
    }),
  )
  Object.defineProperties(router, {
    // the router reads it anew for each request
    stack: { value: stack, enumerable: true, writable: false },
    // not enumerable: a router that this one is mounted into has its own
    param: { value: refuse('param'), enumerable: false, configurable: true },
    prefix: { value: refuse('prefix'), enumerable: false, configurable: true },
  })
}
