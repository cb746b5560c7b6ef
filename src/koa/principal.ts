/**
 * `ctx.request.auth` is set while an operation runs. Two layers of a router can match one URL. So the principal of an
 * outer guard is restored when the request comes back to it.
 *
 * With the setting `state` the principal is in `ctx.state` too, where older handlers read it.
 */
import type { Context } from 'koa'
import { settingsOf } from '../core/Settings.js'

type Guarded = Context['request'] & { auth?: unknown }

/** Runs with this principal. `isNested`: whether a guard around this one has set another. */
export const runAs = <A>(ctx: Context, principal: unknown, isNested: boolean, run: () => Promise<A>): Promise<A> => {
  // `auth` is a property that this package adds to the request
  const request: Guarded = ctx.request
  const { state } = settingsOf(request)
  if (isNested) return runInside(ctx, request, state, principal, run)
  request.auth = principal
  // a public operation does not change what others put there
  if (state !== undefined && principal !== undefined) ctx.state[state] = principal
  return run()
}

const runInside = async <A>(
  ctx: Context,
  request: Guarded,
  state: string | undefined,
  principal: unknown,
  run: () => Promise<A>,
): Promise<A> => {
  const outer = request.auth
  const outerState: unknown = state === undefined ? undefined : ctx.state[state]
  const set = (auth: unknown, inState: unknown): void => {
    request.auth = auth
    if (state === undefined) return
    if (inState === undefined) delete ctx.state[state]
    else ctx.state[state] = inState
  }
  set(principal, principal)
  try {
    return await run()
  } finally {
    set(outer, outerState)
  }
}
