/** A table of all kinds with a hook: where the credential is, and what the hook gets. */
import type { Request } from 'koa'
import { apiKeyCookie, apiKeyHeader, apiKeyQuery, httpBasicAuth, httpBearer, type Authenticator } from 'koa-with-auth'
import { basic, bearer, challenge, type Sending } from './behavior.js'

/** A hook of any kind: the request, then the credentials. */
export type Hook = (request: Request, ...credentials: string[]) => unknown

interface KindRow {
  readonly kind: string
  readonly make: (hook: Hook) => Authenticator<unknown>
  /** The path and the request with the credential `s3cret`. */
  readonly carrying: readonly [path: string, sending: Sending]
  /** What the hook gets after the request. */
  readonly credentials: ReadonlyArray<string>
  /** The challenge if nothing was sent. */
  readonly absent: string
  /** The challenge if the hook refused. */
  readonly refused: string
}

const key = 's3cret'

const keyKind = (
  kind: string,
  make: typeof apiKeyHeader,
  paramName: string,
  carrying: KindRow['carrying'],
  place: Parameters<typeof challenge.key>[0],
): KindRow => ({
  kind,
  make: (hook) => make({ paramName, authenticate: (request, sent) => hook(request, sent) }),
  carrying,
  credentials: [key],
  absent: challenge.key(place, paramName),
  refused: challenge.key(place, paramName),
})

export const kinds: ReadonlyArray<KindRow> = [
  keyKind('APIKeyQuery', apiKeyQuery, 'api_key', [`/x?api_key=${key}`, {}], 'query'),
  keyKind('APIKeyHeader', apiKeyHeader, 'X-API-Key', ['/x', { headers: { 'X-API-Key': key } }], 'header'),
  keyKind('APIKeyCookie', apiKeyCookie, 'X-API-KEY', ['/x', { headers: { Cookie: `X-API-KEY=${key}` } }], 'cookie'),
  {
    kind: 'HttpBearer',
    make: (hook) => httpBearer({ authenticate: (request, token) => hook(request, token) }),
    carrying: ['/x', bearer(key)],
    credentials: [key],
    absent: challenge.bearer,
    refused: challenge.refusedBearer,
  },
  {
    kind: 'HttpBasicAuth',
    make: (hook) => httpBasicAuth({ authenticate: (request, username, password) => hook(request, username, password) }),
    carrying: ['/x', basic(`anna:${key}`)],
    credentials: ['anna', key],
    absent: challenge.basic,
    refused: challenge.basic,
  },
]
