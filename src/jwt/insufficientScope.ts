/**
 * Answers a 403 that asks for more scopes, for a handler that reads from the request which scopes it needs (step-up).
 */
import type { Context } from 'koa'
import { branchesOf, insufficient } from '../core/AuthError.js'
import { explained } from '../core/Description.js'
import { settingsOf } from '../core/Settings.js'
import { policyOf } from '../koa/responseHeaders.js'
import { respondFailure } from '../koa/respond.js'
import { severalOf } from './Issuer.js'

/**
 * Answers 403 `error="insufficient_scope"` with these scopes and those of the operation, as the guard would (RFC 6750 §3.1). Return
 * from the handler after it. Throws a TypeError outside of a guarded operation.
 *
 * @example
 * import type { Context } from 'koa'
 * import { insufficientScope, mcpAuth } from 'koa-with-auth/jwt'
 *
 * const save = (ctx: Context) => {
 *   if (!mcpAuth(ctx)?.scopes.includes('files:write')) return insufficientScope(ctx, ['files:write'])
 *   ctx.body = 'saved'
 * }
 */
export const insufficientScope = (ctx: Context, scopes: readonly [string, ...string[]]): void => {
  const operation = policyOf(ctx.res)
  if (operation === undefined) {
    throw new TypeError('insufficientScope(ctx, scopes) must be called by the handler of a guarded operation')
  }
  const wanted = severalOf('insufficientScope(ctx, scopes)', scopes)
  const error = explained(operation.description, insufficient(wanted))
  const bearers = branchesOf(error).filter(({ challenge }) => challenge?.scheme === 'Bearer')
  respondFailure(
    ctx,
    bearers.length === 0 ? error : { ...error, branches: bearers },
    settingsOf(ctx.request),
    operation,
  )
}
