/**
 * What providers have granted to users, as sign-ins and sign-outs of an application see it: they keep a grant and end it, and do not know
 * what is in it. `sign-in/oidc/upstream.ts` adds a keeper for each provider.
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
  /** What the session calls its grants. It stays the same when the session gets another id. */
  readonly grant: string | undefined
  /** How long the session can last, in milliseconds. */
  readonly lifetime: number
}

/** Keeps what one provider granted. Each function rejects in an outage. */
export interface GrantKeeper extends Upstreams {
  readonly kind: string
  /** Keeps what came with a proof of this kind. `isPending`: a second factor must come first. */
  readonly keep: (holder: GrantHolder, proof: object, isPending: boolean) => Promise<void>
  /** Keeps what is pending for a proof, because the second factor has come. */
  readonly adopt: (holder: GrantHolder, proof: object) => Promise<void>
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

/** What a session calls its grants: with a list, the id of its entry, so ending the entry ends them. */
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
