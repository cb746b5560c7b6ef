/** The error for a request whose grant at a provider has ended. Guards answer it; see `koa/gone.ts`. */
import { isInstance, type ErrorCode } from '../../core/data.js'
import { goneMark, type Gone } from '../../koa/gone.js'
import type { Middleware } from 'koa'

/**
 * The provider has ended the grant of this user, or there is none: `token(ctx)` and `fetch(ctx, ...)` of `upstream` reject with it. The
 * session goes on. A guard answers it as 401 with `why: 'upstream'`, or by `onGone`, unless the handler catches it.
 *
 * @example
 * import { UpstreamGone, type Upstream } from 'koa-with-auth/sign-in/oidc'
 * import type { Context } from 'koa'
 *
 * declare const github: Upstream
 * const repositories = async (ctx: Context) => {
 *   try {
 *     ctx.body = await (await github.fetch(ctx, '/repos')).json()
 *   } catch (error) {
 *     if (!(error instanceof UpstreamGone)) throw error
 *     ctx.body = [] // the user has taken the permission back
 *   }
 * }
 */
export class UpstreamGone extends Error implements Gone {
  override readonly name = 'UpstreamGone'
  readonly code = 'ERR_UPSTREAM_GONE' satisfies ErrorCode
  readonly [goneMark]: Gone[typeof goneMark]

  /** @internal Also an error of another copy of this package, such as that of `require` beside that of `import`. */
  static override [Symbol.hasInstance](u: unknown): boolean {
    return isInstance(this, UpstreamGone, u, 'ERR_UPSTREAM_GONE')
  }

  constructor(message: string, onGone?: Middleware) {
    super(message)
    this[goneMark] = { onGone }
    // a log of the error shows no function
    Object.defineProperty(this, goneMark, { enumerable: false })
  }
}
