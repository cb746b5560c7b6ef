/**
 * Requests without a credential that are always tried: some that claim to be a user, and a write from another site.
 */
import type { HeaderLine, RequestSpec } from './RequestSpec.js'

/** The host that requests name. */
export const HOST = 'api.example'

/**
 * Fields that must not decide anything: code that trusts one of them admits everyone (CVE-2025-29927 and similar ones).
 */
export const decidingNothing: ReadonlyArray<HeaderLine> = [
  ['X-User', 'admin'],
  ['X-Forwarded-User', 'admin'],
  ['X-Remote-User', 'admin'],
  ['X-Authenticated', 'true'],
  ['X-Middleware-Subrequest', 'middleware'],
  ['X-Original-URL', '/public'],
  ['X-HTTP-Method-Override', 'OPTIONS'],
  ['X-Forwarded-For', '127.0.0.1'],
  ['__proto__', 'x'],
]

/** Requests that claim to be a user, without any credential. */
export const impostors: ReadonlyArray<RequestSpec> = [
  ...decidingNothing.map((line): RequestSpec => ({ fields: [line] })),
  { url: '/?user=admin&userId=1&role=admin&isSuperuser=true' },
  { url: '/?__proto__=x&constructor=x' },
  { method: 'OPTIONS' },
  { method: 'HEAD' },
]

/** A write that a page of another site makes a browser send. */
export const crossSite: RequestSpec = {
  method: 'POST',
  fields: [
    ['Host', HOST],
    ['Sec-Fetch-Site', 'cross-site'],
    ['Origin', 'https://other.example'],
  ],
}
