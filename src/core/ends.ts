/**
 * The end of a credential, for work that is still running: `AuthEndedError`, and the ends that a process waits for.
 *
 * The evidence of a decision has the credential that let a request in (`Evidence.accepted`). Nothing is made of it until somebody asks
 * (`koa/authSignal.ts`). Then an `End` waits in `ends/ends.ts`, by time and under a name.
 */
import { types } from 'node:util'
import type { Request } from './Request.js'
import { isInstance, type ErrorCode } from './data.js'

/** Why a credential has ended. */
export type EndCause = 'expired' | 'signed out' | 'revoked' | 'idle' | 'shutting down'

/**
 * The `reason` of the signal that `authSignal` returns, when the credential of a request has ended. Its `cause` is `expired`,
 * `signed out`, `revoked` or `idle`; or `shutting down`, because the process ends (`shutDown`).
 */
export class AuthEndedError extends Error {
  override readonly name = 'AuthEndedError'
  readonly code = 'ERR_AUTH_ENDED' satisfies ErrorCode
  override readonly cause: EndCause
  /** @internal Also an error of another copy of this package, such as that of `require` beside that of `import`. */
  static override [Symbol.hasInstance](u: unknown): boolean {
    return isInstance(this, AuthEndedError, u, 'ERR_AUTH_ENDED')
  }
  constructor(cause: EndCause) {
    super(`the credential of the request has ended: ${cause}`)
    this.cause = cause
  }
}

/** @internal A credential that let a request in, and that can end. */
export interface EndSource {
  /** Its end, for one signal; `undefined` if it has none. */
  readonly endFor: (request: Request) => End | undefined
  /** The actor that acts for its subject, if it names one (RFC 8693 §4.1). */
  readonly act?: unknown
  /** The scopes that it says were granted, whatever a hook made its principal. */
  readonly scopes?: ReadonlyArray<string>
}

/** @internal The end of a principal that says when it expires, in milliseconds since 1970 or as a date. */
export class PrincipalSource implements EndSource {
  readonly #principal: unknown
  constructor(principal: unknown) {
    this.#principal = principal
  }
  endFor(): End | undefined {
    const principal = this.#principal
    if (typeof principal !== 'object' || principal === null || !('expiresAt' in principal)) return undefined
    const { expiresAt } = principal
    const at = types.isDate(expiresAt) ? expiresAt.getTime() : expiresAt
    return typeof at === 'number' && !Number.isNaN(at) ? new End(at) : undefined
  }
}

/** @internal The target of an end: an AbortController, or the like. */
export interface Ending {
  abort(reason: AuthEndedError): void
}

/** @internal One end of one credential, for one signal. It is small: a process can have a hundred thousand of them. */
export class End {
  /** When it comes, in milliseconds since 1970; `Infinity`: not by itself. */
  at: number
  target: Ending | undefined
  /** @internal The same by the other clock, as the clocks are now and at the latest, and its place in the heap, see `ends/ends.ts`. */
  due = Infinity
  latest = Infinity
  index = -1
  /** @internal Its list, see `ends/ends.ts`. */
  list: { readonly name: string; first: End | undefined } | undefined
  next: End | undefined
  previous: End | undefined
  /** @internal Whether it is looked up, see `ends/LookUps.ts`. */
  asking: 'no' | 'hinted' | 'due' | 'now' | 'again' = 'no'

  constructor(at: number) {
    this.at = at
  }

  /** Under which name it can come before its time: a digest, see `core/events.ts`. It is asked for once. */
  named(): string | undefined {
    return undefined
  }

  /** Why it comes at its time. */
  get cause(): EndCause {
    return 'expired'
  }

  /** Why it has come already, as far as this process knows. */
  get before(): EndCause | undefined {
    return undefined
  }

  /** Looks the credential up: when it ends now, or why it has ended. Rejects in an outage. `isHint`: not at its time. */
  ask?(isHint: boolean): Promise<EndCause | number>
}

/** @internal An end that keeps its name, and how to find out whether it has come already. */
export class NamedEnd extends End {
  readonly #name: string
  readonly #isRevoked: (() => boolean) | undefined
  constructor(at: number, name: string, isRevoked?: () => boolean) {
    super(at)
    this.#name = name
    this.#isRevoked = isRevoked
  }
  override get before(): EndCause | undefined {
    return this.#isRevoked?.() === true ? 'revoked' : undefined
  }
  override named(): string {
    return this.#name
  }
}
