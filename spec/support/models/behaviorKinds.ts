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

export const kinds: ReadonlyArray<KindRow> = [
  {
    kind: 'APIKeyQuery',
    make: (hook) => apiKeyQuery({ paramName: 'api_key', authenticate: (request, sent) => hook(request, sent) }),
    carrying: [`/x?api_key=${key}`, {}],
    credentials: [key],
    absent: challenge.key('query', 'api_key'),
    refused: challenge.key('query', 'api_key'),
  },
  {
    kind: 'APIKeyHeader',
    make: (hook) => apiKeyHeader({ paramName: 'X-API-Key', authenticate: (request, sent) => hook(request, sent) }),
    carrying: ['/x', { headers: { 'X-API-Key': key } }],
    credentials: [key],
    absent: challenge.key('header', 'X-API-Key'),
    refused: challenge.key('header', 'X-API-Key'),
  },
  {
    kind: 'APIKeyCookie',
    make: (hook) => apiKeyCookie({ paramName: 'X-API-KEY', authenticate: (request, sent) => hook(request, sent) }),
    carrying: ['/x', { headers: { Cookie: `X-API-KEY=${key}` } }],
    credentials: [key],
    absent: challenge.key('cookie', 'X-API-KEY'),
    refused: challenge.key('cookie', 'X-API-KEY'),
  },
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
