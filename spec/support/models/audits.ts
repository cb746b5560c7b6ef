/** Guards, functions and routers of the specs about audits, and what an audit and a policy file say of them. */
import Router, { type RouterInstance } from '@koa/router'
import { apiKeyCookie, apiKeyHeader, httpBearer, optional, withAuth } from 'koa-with-auth'
import { audit, type AnyApplication, type AnyRouter } from 'koa-with-auth/audit'
import { differencesOf } from '../../../src/audit/Difference.js'
import { linesOf, lineText } from '../../../src/audit/policy.js'
import { guardOf } from './levels.js'

export const handle = (): void => {}
export const go = (_ctx: unknown, next: () => Promise<unknown>) => next()
export const cors = (_ctx: unknown, next: () => Promise<unknown>) => next()

export const bearer = httpBearer({ authenticate: () => true })
export const key = apiKeyHeader({ paramName: 'X-Key', authenticate: () => true })
export const cookie = apiKeyCookie({ paramName: 'sid', authenticate: () => true })

// Safe, all: guards of routers with any context
export const open = guardOf(null) as never
export const guard = guardOf(bearer) as never
export const perhaps = guardOf(optional(bearer)) as never

/** A router that `bearer` guards. */
export const closed = (opts = {}) => withAuth(bearer)(new Router(opts)) as unknown as RouterInstance

type Audited = AnyRouter | AnyApplication

export const linesFor = (audited: Audited) => linesOf(audit(audited))
export const textsFor = (audited: Audited) => linesFor(audited).map(lineText)

/** The differences of two policies: `opened: GET /x: was bearer, is public`. */
export const changesOf = (before: Audited, after: Audited) =>
  differencesOf(linesFor(before), linesFor(after)).map(({ direction, text }) => `${direction}: ${text}`)
export const directionsOf = (before: Audited, after: Audited) =>
  changesOf(before, after).map((change) => change.split(':')[0])
