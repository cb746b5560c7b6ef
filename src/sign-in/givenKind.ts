/**
 * A kind as `begin`, `secondly` and `finish` are given it.
 */
import type { Context } from 'koa'
import { isGiven } from '../core/options.js'
import { callbackOf } from '../koa/callbacks.js'

/** Throws a TypeError for what is no kind. */
export const checkKind = (where: string, kind: unknown): void => {
  const isKind = typeof kind === 'object' && kind !== null && 'check' in kind && 'read' in kind && 'name' in kind
  if (!isKind) throw new TypeError(`${where}: the first argument must be a kind, such as mailed({ ... })`)
}

const placed = new WeakMap<object, WeakMap<object, unknown>>()

/**
 * The kind for the application of a request: one that was given no path of its callback has the path that the application
 * has for it.
 */
export const placedIn = <K extends { readonly name: string; readonly at?: ((callback: string) => K) | undefined }>(
  { app }: Context,
  given: K,
): K => {
  const kind = withoutInherited(given)
  if (kind.at === undefined) return kind
  const ofApplication = placed.get(app) ?? new WeakMap<object, unknown>()
  placed.set(app, ofApplication)
  // Safe: it holds what `at` of this kind returned
  const here = (ofApplication.get(given) as K | undefined) ?? kind.at(callbackOf(app, given))
  ofApplication.set(given, here)
  return withoutInherited(here)
}

const optional = ['tries', 'bound', 'intents', 'posted', 'at', 'leadsAgain', 'needsHook']

// What all objects of a process inherit, after a merge has polluted their prototype, is not said by the kind
const withoutInherited = <K extends object>(kind: K): K => {
  const inherited = optional.filter((name) => name in kind && !isGiven(kind, name))
  if (inherited.length === 0) return kind
  // Safe: the same kind, whose optional members are left out
  return Object.assign(Object.create(kind) as K, Object.fromEntries(inherited.map((name) => [name, undefined])))
}
