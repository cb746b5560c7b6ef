/**
 * `authSettings`: middleware that gives all guards below it their settings. Everything has a default without it.
 */
import type { Context, Next } from 'koa'
import * as Challenge from '../core/Challenge.js'
import { trustedOrigins } from '../core/CrossOrigin.js'
import type { ErrorMapper } from '../core/ErrorMapper.js'
import { checkHook, checkOptions, checkPositive, declareFactory } from '../core/misuse.js'
import { carry, settingsOf, type Settings } from '../core/Settings.js'

/** What an application may decide. Settings below others add to them. */
export interface AuthSettings {
  /** Whether cookie-borne writes from other sites are refused. Default `true`. */
  readonly csrf?: boolean
  /** Origins, as `https://app.example`, whose cookie-borne writes are accepted, too. Default none. */
  readonly trustedOrigins?: ReadonlyArray<string>
  /** The protection space of challenges that name none. Default `api`. */
  readonly realm?: string
  /** How long asynchronous authentication may take, in milliseconds; after that 503. Default 10 000. */
  readonly timeout?: number
  /** What failures become. Default: problem details (RFC 9457). */
  readonly errorMapper?: ErrorMapper
}

const known = ['csrf', 'trustedOrigins', 'realm', 'timeout', 'errorMapper']

/**
 * Mount it above the routers: `app.use(authSettings({ realm: 'pets' }))`. TypeError for what cannot hold: an unknown
 * option, an origin that no browser sends, a realm that does not fit a header.
 *
 * @example
 * import { authSettings } from 'koa-with-auth'
 *
 * const settings = authSettings({ realm: 'pets', trustedOrigins: ['https://app.example'], timeout: 2000 })
 */
export const authSettings = (options: AuthSettings): ((ctx: Context, next: Next) => Promise<unknown>) => {
  const given = checked(options)
  return (ctx, next) => {
    carry(ctx.request, { ...settingsOf(ctx.request), ...given })
    return next()
  }
}

declareFactory('authSettings', authSettings)

/** @internal The settings that options give, checked. */
export const checked = (options: AuthSettings): Partial<Settings> => {
  checkOptions('authSettings', options, known)
  const { csrf, trustedOrigins: origins, realm, timeout, errorMapper } = options
  if (csrf !== undefined && typeof csrf !== 'boolean')
    throw new TypeError('authSettings({ csrf }) must be true or false')
  if (realm !== undefined) Challenge.make('Realm', { realm })
  if (timeout !== undefined) checkPositive('authSettings({ timeout })', timeout)
  if (errorMapper !== undefined) checkHook('authSettings({ errorMapper })', errorMapper, 2)
  if (origins !== undefined && !Array.isArray(origins)) {
    throw new TypeError('authSettings({ trustedOrigins }) must be a list of origins')
  }
  return {
    ...(csrf !== undefined && { csrf }),
    ...(origins !== undefined && { trustedOrigins: trustedOrigins(origins) }),
    ...(realm !== undefined && { realm }),
    ...(timeout !== undefined && { timeout }),
    ...(errorMapper !== undefined && { errorMapper }),
  }
}
