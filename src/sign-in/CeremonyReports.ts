/**
 * Reports what becomes of the ceremonies of one application (`onCeremony` of `koa-with-auth/events`).
 */
import { unfinished, type AuthError } from '../core/AuthError.js'
import { ceremonyDigest, ceremonyEvents, report, userDigest, type CeremonyEvent } from '../core/events.js'

/** What is known of a ceremony. */
interface Known {
  /** Left out if its handle was never sent. */
  readonly id?: string
  readonly intent: Extract<CeremonyEvent, { readonly event: 'begun' }>['intent']
  /** The identifier of the user. */
  readonly subject: string | undefined
}

/** Reports ceremonies; the first argument is the name of the kind. */
export interface CeremonyReports {
  readonly begun: (kind: string, about: Known & { readonly id: string }) => void
  readonly finished: (kind: string, about: Known & { readonly id: string }) => void
  readonly refused: (kind: string, step: 'begin' | 'finish', failure: AuthError, about?: Known) => void
}

/** The failure of an answer that came again: `unknown` for the client, and `spent` in the record. Compared by identity. */
export const spentBefore: AuthError = unfinished('unknown')

/** Makes the reports of an application. */
export const ceremonyReports = (application: string): CeremonyReports => {
  const aboutUser = ({ intent, subject }: Known) => ({
    intent,
    ...(subject !== undefined && { user: userDigest(application, subject) }),
  })
  const made =
    (event: 'begun' | 'finished') =>
    (kind: string, about: Known & { readonly id: string }): void =>
      report(ceremonyEvents)(() => ({
        event,
        application,
        kind,
        ceremony: ceremonyDigest(about.id),
        ...aboutUser(about),
      }))
  return {
    begun: made('begun'),
    finished: made('finished'),
    refused: (kind, step, failure, about) =>
      report(ceremonyEvents)((): CeremonyEvent => {
        const reason = failure === spentBefore ? 'spent' : failure.reason
        return {
          event: 'refused',
          application,
          kind,
          step,
          failure: failure._tag,
          ...(reason !== undefined && { reason }),
          ...(about?.id !== undefined && { ceremony: ceremonyDigest(about.id) }),
          ...(about !== undefined && aboutUser(about)),
        }
      }),
  }
}
