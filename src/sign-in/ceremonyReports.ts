/** What becomes of the ceremonies of an application, as records (`on('ceremony')` of `koa-with-auth/events`). */
import * as AuthErrors from '../core/AuthError.js'
import { ceremonyDigest, report, userDigest, type CeremonyEvent } from '../core/events.js'
import type { Intent } from './Kind.js'

export interface KnownCeremony {
  /** Left out if its handle was never sent. */
  readonly id?: string
  readonly intent: Intent
  readonly subject: string | undefined
}

// The failure of an answer that came again: `unknown` for the client, and `used` in the record. Compared by identity
export const usedBefore: AuthErrors.AuthError = AuthErrors.unfinished('unknown')

export const ceremonyReports = (application: string) => {
  const aboutUser = ({ intent, subject }: KnownCeremony) => ({
    intent,
    ...(subject !== undefined && { user: userDigest(application, subject) }),
  })
  const made =
    (event: 'begun' | 'finished') =>
    (kind: string, about: KnownCeremony & { readonly id: string }): void =>
      report('ceremony')(() => ({
        event,
        application,
        kind,
        ceremony: ceremonyDigest(about.id),
        ...aboutUser(about),
      }))
  return {
    begun: made('begun'),
    finished: made('finished'),
    refused: (kind: string, step: 'begin' | 'finish', failure: AuthErrors.AuthError, about?: KnownCeremony): void =>
      report('ceremony')((): CeremonyEvent => {
        const reason = failure === usedBefore ? 'used' : failure.reason
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
