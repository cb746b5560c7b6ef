/** Cookies as the application itself would seal them, for attacks by somebody who knows a part of what is needed. */
import type { Context } from 'koa'
import { SealedCookie } from '../../../src/sessions/SessionCookie.js'

/** The cookie of an id, sealed by a signing key for an application. */
export const sealedBy = (key: string, application: string, id: string, user?: string): string => {
  let given = ''
  const cookies = { set: (_name: string, value: string) => void (given = value) }
  // Safe: nothing else is used of a context
  const ctx = { req: { headers: {} }, cookies } as unknown as Context
  new SealedCookie('session', application, () => [key]).give(
    ctx,
    id,
    user === undefined ? undefined : { user, listed: undefined },
    {},
  )
  return given
}
