/**
 * Checks hooks that decide about a credential, also for a mistake that no type shows. The first argument is the
 * request. So `(token) => ...` looks at the request, and `() => ({ user })` lets everybody in.
 *
 * In development such a hook causes one warning. The source of the hook shows the mistake; `length` is not enough,
 * because it counts no default and no rest parameter, and wrappers read `arguments`. `checkAuthenticator` finds the
 * mistake by calling the hook.
 */
import { checkHook } from './hooks.js'
import { unreadMark } from './marks.js'
import type { Check } from './options.js'

/** A hook that is called with the request, and with what a client sent: `arity` arguments in all. */
export const credentialHook =
  (arity: number): Check =>
  (place, value) => {
    checkHook(place, value, arity)
    if (process.env['NODE_ENV'] === 'development' && typeof value === 'function') warnUnread(place, value)
  }

const warnUnread = (place: string, hook: Function): void => {
  if (hook.length > 1 || readsMore(hook) || Reflect.get(hook, unreadMark) === true) return
  if (Object.isExtensible(hook)) Object.defineProperty(hook, unreadMark, { value: true })
  process.emitWarning(
    `${place} never reads the credential: it has ${hook.length === 0 ? 'no parameter' : 'one parameter'}, and is called with the request first, then with what the client sent; write (request, credential) => ...`,
    'UnreadCredentialWarning',
  )
}

// Whether it can read more than `length` says: a default, a rest parameter, `arguments`; or its source is not known
const readsMore = (hook: Function): boolean => {
  const source = Function.prototype.toString.call(hook)
  const [parameters] = /^[^)]*?(?:\)|=>)/.exec(source) ?? ['=']
  return /\.\.\.|=(?!>)|\/[*/]|^\[/.test(parameters) || /\barguments\b|\[native code\]/.test(source)
}
