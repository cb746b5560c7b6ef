/**
 * The name of the session cookie, for documents and audits that are made without a request.
 *
 * Routers do not know the application that will mount them, so the process remembers what the last `sessions(app)` called
 * its cookie. With a request the application's own name counts instead.
 */

/** koa-session's own default. */
export const DEFAULT_COOKIE = 'koa.sess'

const key = Symbol.for('koa-with-auth/sessionCookie')

/** Remembers the name. */
export const declareSessionCookie = (name: string): void => {
  Reflect.set(globalThis, key, name)
}

/** The remembered name. Default: koa-session's. */
export const declaredSessionCookie = (): string => {
  const name: unknown = Reflect.get(globalThis, key)
  return typeof name === 'string' ? name : DEFAULT_COOKIE
}
