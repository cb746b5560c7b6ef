/**
 * Decisions, sign-ins and changes of API keys as an audit log of OCSF (https://schema.ocsf.io), which security teams
 * collect. Decisions and sign-ins are of the class Authentication (3002), changes of keys of the class Entity
 * Management (3004).
 *
 * A decision opens no session, so its activity is "Other". It names the user only if the application sets how:
 * `authSettings({ events: { subject: (user) => user.id } })`. Sign-ins name user and session by digests.
 */
import {
  on,
  type ApiKeyEvent,
  type Decision,
  type Outcome,
  type SignedInEvent,
  type SignedOutEvent,
} from 'koa-with-auth/events'

/** An event of OCSF 1.4. */
export type AuditEvent = Readonly<Record<string, unknown>> & { readonly class_uid: number }

const metadata = { version: '1.4.0', product: { name: 'koa-with-auth', vendor_name: 'koa-with-auth' } }

const SUCCESS = 1
const FAILURE = 2
const LOGON = 1
const LOGOFF = 2
const OTHER = 99

// 1: informational, 2: low, 3: medium, 4: high
const severities: Readonly<Record<Outcome, number>> = {
  accepted: 1,
  anonymous: 1,
  public: 1,
  refused: 2,
  forbidden: 3,
  throttled: 3,
  unavailable: 4,
  raised: 4,
}

/** A decision as an event of the class Authentication. */
export const auditDecision = (decision: Decision, service: string, time: number): AuditEvent => {
  const { outcome, failure = outcome, method, route, status, scheme, subject, actor, durationMs } = decision
  const isIn = failure === 'accepted' || failure === 'anonymous'
  return {
    ...authentication(OTHER, time),
    activity_name: 'Request',
    severity_id: severities[outcome],
    status_id: isIn ? SUCCESS : FAILURE,
    status_detail: failure,
    status_code: String(status),
    duration: Math.round(durationMs),
    service: { name: service },
    user: subject === undefined ? { type_id: 0, name: 'unknown' } : { type_id: 1, uid: subject },
    ...actorOf(actor),
    http_request: { http_method: method, url: { path: route } },
    ...(scheme !== undefined && { auth_protocol_id: OTHER, auth_protocol: scheme }),
  }
}

/** A sign-in as an event of the class Authentication. */
export const auditSignedIn = ({ application, user, session, actor }: SignedInEvent, time: number): AuditEvent => ({
  ...authentication(LOGON, time),
  status_detail: 'signed in',
  service: { name: application },
  user: { type_id: 1, uid: user },
  ...actorOf(actor),
  session: { uid: session },
})

// Who acts for the user, such as somebody of support
const actorOf = (actor: string | undefined) => actor !== undefined && { actor: { user: { type_id: 1, uid: actor } } }

/** The end of a session, or of all sessions of a user, as an event of the class Authentication. */
export const auditSignedOut = ({ application, user, session, reason }: SignedOutEvent, time: number): AuditEvent => ({
  ...authentication(LOGOFF, time),
  status_detail: reason,
  service: { name: application },
  user: { type_id: 1, uid: user },
  ...(session !== undefined && { session: { uid: session } }),
})

const authentication = (activity: number, time: number) => ({
  category_uid: 3,
  class_uid: 3002,
  activity_id: activity,
  type_uid: 300_200 + activity,
  time,
  severity_id: 1,
  status_id: SUCCESS,
  metadata,
})

const activities: Readonly<Record<ApiKeyEvent['event'], number>> = { issued: 1, adopted: 1, rotated: 3, revoked: 4 }

/** A change of an API key as an event of the class Entity Management: created, updated, deleted. */
export const auditApiKey = (record: ApiKeyEvent, time: number): AuditEvent => ({
  category_uid: 3,
  class_uid: 3004,
  activity_id: activities[record.event],
  type_uid: 300_400 + activities[record.event],
  time,
  severity_id: 1,
  status_id: SUCCESS,
  status_detail: record.event,
  metadata,
  entity: { type: 'API key', uid: record.id, ...('owner' in record && { name: record.owner }) },
})

/** Passes each event to `write`, except those of public operations. Returns a function that ends it. */
export const auditLog = (service: string, write: (event: AuditEvent) => void): (() => void) => {
  const ends = [
    on('decision', (decision) => {
      if (decision.outcome !== 'public') write(auditDecision(decision, service, Date.now()))
    }),
    on('signed-in', (record) => write(auditSignedIn(record, Date.now()))),
    on('signed-out', (record) => write(auditSignedOut(record, Date.now()))),
    on('api-key', (record) => write(auditApiKey(record, Date.now()))),
  ]
  return () => {
    for (const end of ends) end()
  }
}
