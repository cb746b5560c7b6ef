/**
 * Related origins: pages of other domains that may use the passkeys of an RP id (WebAuthn §5.11).
 *
 * A browser on `https://shop.de` that is asked for a passkey of `shop.example` fetches
 * `https://shop.example/.well-known/webauthn`, and looks for its own origin there.
 */
import type { Middleware } from 'koa'

/** The path of the document, at the root of the RP id's host. */
const path = '/.well-known/webauthn'

/**
 * Middleware that serves the document of one RP id, and no other path. If an application has several ids, the host of the request
 * decides; a host that is none of them gets the first document.
 */
export const relatedOrigins =
  (rpId: string, origins: ReadonlyArray<string>): Middleware =>
  async (ctx, next) => {
    const isAsked = ctx.path === path && (ctx.method === 'GET' || ctx.method === 'HEAD')
    if (!isAsked || ctx.hostname !== rpId) await next()
    // what another one has written counts
    if (!isAsked || ctx.status !== 404 || ctx.body !== undefined) return
    ctx.type = 'application/json'
    ctx.body = JSON.stringify({ origins })
  }
