/**
 * The session kinds of one application: they let in whom its `loadUser` loads, and no user of another one.
 */
import type { Authenticator } from '../core/Authenticator.js'
import { declareFactory } from '../core/hooks.js'
import { checkOptions, type Checks } from '../core/options.js'
import {
  anyUser,
  kindChecks,
  refuseChecks,
  sessionKind,
  staff,
  superuser,
  type Demanded,
  type RefuseOptions,
  type SessionKindOptions,
  type Users,
} from '../core/session/sessionKind.js'

/** Factories as those of `koa-with-auth`, whose principal is what `loadUser` of the application loads. */
export interface SessionKinds<U> {
  /** Passes for a user who is signed in and active. TypeError for options that cannot work. */
  readonly sessionAuth: (options?: SessionKindOptions) => Authenticator<U>
  /** Passes for a superuser or a staff member; for others 401, or 403 where `refuse` says so. */
  readonly sessionAuthIsStaff: (options?: SessionKindOptions & RefuseOptions) => Authenticator<U>
  /** Passes for a superuser; for others 401, or 403 where `refuse` says so. */
  readonly sessionAuthSuperUser: (options?: SessionKindOptions & RefuseOptions) => Authenticator<U>
}

/** Makes them for the users of one application. */
export const typedKinds = <U>(users: Users): SessionKinds<U> => {
  const factory = <O extends SessionKindOptions & RefuseOptions>(demanded: Demanded, checks: Checks<O>) =>
    declareFactory(
      demanded.name,
      (options?: O): Authenticator<U> =>
        // Safe: it lets in what `loadUser` loads
        sessionKind(
          demanded,
          users,
          checkOptions(demanded.name, options === undefined ? ({} as O) : options, checks),
        ) as Authenticator<U>,
    )
  const checks: Checks<SessionKindOptions> = kindChecks
  const withRefuse: Checks<SessionKindOptions & RefuseOptions> = { ...kindChecks, ...refuseChecks }
  return {
    sessionAuth: factory(anyUser, checks),
    sessionAuthIsStaff: factory(staff, withRefuse),
    sessionAuthSuperUser: factory(superuser, withRefuse),
  }
}
