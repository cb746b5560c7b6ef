/**
 * The session kinds of one application. They let in the users that its `loadUser` loads, and no user of another
 * application.
 */
import type { Authenticator } from '../core/Authenticator.js'
import { declareFactory } from '../core/hooks.js'
import { checkOptions } from '../core/options.js'
import {
  anyUser,
  sessionKind,
  staff,
  superuser,
  type Demanded,
  type RefuseOptions,
  type SessionKindOptions,
  type Users,
} from '../core/session/sessionKind.js'

/** The same factories as those of `koa-with-auth`, with the application's own users as principals. */
export interface SessionKinds<U> {
  /** Passes for a user who is signed in and active. Throws a TypeError for options that cannot work. */
  readonly sessionAuth: (options?: SessionKindOptions) => Authenticator<U>
  /** Passes for a superuser or a staff member. Others get 401, or 403 if `refuse` says so. */
  readonly sessionAuthIsStaff: (options?: SessionKindOptions & RefuseOptions) => Authenticator<U>
  /** Passes for a superuser. Others get 401, or 403 if `refuse` says so. */
  readonly sessionAuthSuperUser: (options?: SessionKindOptions & RefuseOptions) => Authenticator<U>
}

/** Makes the kinds of one application. */
export const typedKinds = <U>(users: Users): SessionKinds<U> => {
  const factory = (demanded: Demanded) =>
    declareFactory(demanded.name, (options?: SessionKindOptions & RefuseOptions): Authenticator<U> => {
      const given = checkOptions<SessionKindOptions>(
        demanded.name,
        options === undefined ? {} : options,
        demanded.checks,
      )
      // Safe: it lets in what `loadUser` loads
      return sessionKind(demanded, users, given) as Authenticator<U>
    })
  return {
    sessionAuth: factory(anyUser),
    sessionAuthIsStaff: factory(staff),
    sessionAuthSuperUser: factory(superuser),
  }
}
