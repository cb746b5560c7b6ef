/**
 * The settings of an application, for all its guards. They are on the Koa context, so a guard works in any application.
 *
 * Pure data; `koa/authSettings.ts` checks the settings and puts them there.
 */
import type { Request } from 'koa'
import type { CrossOriginPolicy } from './CrossOrigin.js'
import type { ErrorMapper } from './ErrorMapper.js'
import type { ExceptionHandlers } from './ExceptionHandler.js'

/** The settings in force for a request. */
export interface Settings extends CrossOriginPolicy {
  /** The protection space of challenges that name none (RFC 9110 §11.5). */
  readonly realm: string
  /** How long asynchronous authentication may take, in milliseconds. */
  readonly timeout: number
  /** What a failure becomes. */
  readonly errorMapper: ErrorMapper | undefined
  /** Whether the body of a failure says what was tried, and why each branch failed. */
  readonly explain: boolean
  /** The name in `ctx.state` under which handlers find the principal too. */
  readonly state: string | undefined
  /** What records of decisions contain beside the decision. */
  readonly events?: { readonly subject?: (principal: unknown) => unknown } | undefined
  /** What exceptions become. */
  readonly exceptionHandlers: ExceptionHandlers
  /** Which application set them, and the settings outside of it; left out if none did. */
  readonly within?: { readonly application: symbol; readonly outer: Settings } | undefined
}

/** The settings if nothing was set. */
export const defaults: Settings = Object.freeze<Settings>({
  csrf: true,
  trustedOrigins: new Set(),
  realm: 'api',
  timeout: 10_000,
  errorMapper: undefined,
  // Never by default: without NODE_ENV, nothing is explained
  explain: process.env['NODE_ENV'] === 'development',
  state: undefined,
  exceptionHandlers: new Map(),
  // written out, so that they are never read from a prototype
  events: undefined,
  within: undefined,
})

const key = Symbol.for('koa-with-auth/settings')

/** The settings that a request carries. */
export const settingsOf = (request: Request): Settings => {
  const carried: Settings | undefined = request.ctx[key]
  return carried ?? defaults
}

/** Lets a request carry settings. */
export const carry = (request: Request, settings: Settings): void => {
  request.ctx[key] = settings
}
