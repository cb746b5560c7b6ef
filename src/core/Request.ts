/**
 * The request as this package reads it. Only `koa` and the folders that mount on Koa import types of Koa, so another host can bring its own types.
 *
 * Hooks of an application see all of its host's request: the host registers the type of its requests (`koa/withAuth.ts`).
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** The members of a request that are read. Koa's `ctx.request` has them. */
interface HostRequest {
  readonly method: string
  readonly host: string
  readonly protocol: string
  readonly originalUrl: string
  readonly querystring: string
  readonly headers: IncomingHttpHeaders
  readonly ips: ReadonlyArray<string>
  readonly socket: Socket
  readonly req: IncomingMessage
  readonly app: HostApplication
  readonly ctx: HostContext
}

/** The members of the context that are read. Koa's `ctx` has them. Others (`params`, `session`) are read by name. */
interface HostContext {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly app: HostApplication
  readonly request: HostRequest
  readonly [name: string | symbol]: unknown
}

/** The members of the application that are read. */
export interface HostApplication {
  readonly env: string
  readonly keys?: unknown
  readonly maxIpsCount: number
  /** Whether it is behind a proxy whose fields count. */
  readonly proxy: boolean
}

declare global {
  /** The host of this program: `request` is the type of its requests. */
  // empty: the host adds to it
  interface KoaWithAuthHost {}
}

/** A request of the host; without a host, the part that this package reads. */
export type Request = KoaWithAuthHost extends { readonly request: infer R extends HostRequest } ? R : HostRequest

/** The context of a request. */
export type Context = Request['ctx']
