/**
 * What was decided about a request, as a record for logs, metrics and alarms. Its type has no place for a credential:
 * its strings are names that the application's author wrote, methods, and patterns of routes.
 */
import type { AuthError } from '../AuthError.js'

/**
 * What became of a request.
 *
 * | outcome       | failure                                  |
 * |---------------|------------------------------------------|
 * | `accepted`    |                                          |
 * | `anonymous`   | none: the caller sent no credential, and needs none |
 * | `public`      | none: the operation asks for nothing     |
 * | `refused`     | absent, malformed, invalid, expired      |
 * | `forbidden`   | forged, insufficient                     |
 * | `throttled`   | throttled                                |
 * | `unavailable` | unavailable                              |
 * | `raised`      | raised                                   |
 */
export type Outcome =
  'accepted' | 'anonymous' | 'public' | 'refused' | 'forbidden' | 'throttled' | 'unavailable' | 'raised'

/** One alternative that did not let in. */
export interface DecisionBranch {
  /** What OpenAPI calls its scheme; `custom` for a plain function. */
  readonly scheme: string
  /** Why. */
  readonly failure: AuthError['_tag']
  /** It was not asked, because another had decided. */
  readonly skipped?: true
}

/** One decision; frozen. */
export interface Decision {
  readonly outcome: Outcome
  /** Why it was not let in. */
  readonly failure?: AuthError['_tag']
  /** Each alternative that did not let in, in the order tried; left out if there is only one. */
  readonly branches?: ReadonlyArray<DecisionBranch>
  /**
   * What OpenAPI calls the scheme that let in, or the only one that was tried. ` + ` joins schemes that are sent
   * together.
   */
  readonly scheme?: string
  /** Which member of an object let in. */
  readonly via?: string
  /**
   * Which level decided: `operation`, `application`, `upgrade`, or which router. ` + ` joins levels that add to one
   * another.
   */
  readonly level: string
  readonly method: string
  /** The pattern of the route, never the path. */
  readonly route: string
  /** The status of the response; 499 if the client had gone before there was one. */
  readonly status: number
  /** How long the decision took, in milliseconds, without the handler. */
  readonly durationMs: number
  /** How long the client should wait after a throttle or an outage, in seconds. */
  readonly retryAfter?: number
  /** Whether `remembered` answered. */
  readonly cached?: true
  /** Who it is, if `authSettings({ events: { subject } })` says so. */
  readonly subject?: string
}
