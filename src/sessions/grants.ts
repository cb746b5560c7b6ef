/**
 * The grants of providers to users, for the sign-ins and sign-outs of an application: they keep a grant and end it, and do not know
 * its content. `sign-in/oidc/upstream.ts` adds a keeper for each provider.
 */
import { providersOf, type Upstreams } from '../koa/upstreams.js'
import type { Store } from '../stores/Store.js'
import type { SessionRecords } from './SessionRecords.js'

/** The session, or the user, that a grant belongs to. */
export interface GrantHolder {
  readonly application: string
  readonly keys: () => unknown
  readonly store: Store
  readonly user: string
  /** The name of the grants in the session. It stays the same when the session rotates its id. */
  readonly grant: string | undefined
  /** How long the session can last, in milliseconds. */
  readonly lifetime: number
}

/** Keeps the grants of a provider. Each function rejects in an outage. */
export interface GrantKeeper extends Upstreams {
  readonly kind: string
  /** Keeps the grant that came with a proof of this kind. `isPending`: a second factor must come first. */
  readonly keep: (holder: GrantHolder, proof: object, isPending: boolean) => Promise<void>
  /** Keeps the pending grant of a proof, because the second factor has come. */
  readonly adopt: (holder: GrantHolder, proof: object) => Promise<void>
  /** Ends the pending grants of a session at the provider: those of the user of `holder`, or of any user if that is `''`. */
  readonly endPending: (holder: GrantHolder, issuer: string, sid: string) => Promise<void>
  /** Ends the grants of a session, or all grants of its user. */
  readonly end: (holder: GrantHolder, isEverywhere: boolean) => Promise<void>
}

export type GrantKeepers = Map<object, GrantKeeper>

export const grantKeepersOf = (app: object): GrantKeepers =>
  // Safe: only `upstream` adds keepers
  providersOf(app) as GrantKeepers

type GrantsHost = SessionRecords & Pick<GrantHolder, 'keys'> & { readonly grants: GrantKeepers }

interface GrantDetails {
  readonly grant?: string | undefined
  readonly listed?: string | undefined
  readonly absolute?: number | undefined
}

/** The name of the grants in a session: with a list, the id of its entry, so ending the entry ends them. */
export const grantIn = ({ grant, listed }: GrantDetails): string | undefined => grant ?? listed

export const grantHolder = (host: GrantsHost, user: string, details: GrantDetails): GrantHolder => ({
  application: host.name,
  keys: host.keys,
  store: host.store,
  user,
  grant: grantIn(details),
  lifetime: details.absolute ?? host.absolute,
})

/** Ends the grants of a session, or all of its user. Rejects in an outage. */
export const endGrants = async (
  host: GrantsHost,
  user: string,
  details: GrantDetails,
  isEverywhere = false,
): Promise<void> => {
  const holder = grantHolder(host, user, details)
  for (const keeper of host.grants.values()) await keeper.end(holder, isEverywhere)
}

/** Ends the pending grants of a session at a provider: those of a user, or, if the user is unknown, of any. Rejects in an outage. */
export const endPendingGrants = async (
  host: GrantsHost,
  user: string | undefined,
  issuer: string,
  sid: string,
): Promise<void> => {
  const holder = grantHolder(host, user ?? '', {})
  for (const keeper of host.grants.values()) await keeper.endPending(holder, issuer, sid)
}
