/**
 * A server of the Model Context Protocol behind `httpJwt`: the 401 leads clients to the authorization server.
 *
 * - `protectedResource` publishes who issues tokens for this server (RFC 9728), and the 401 of the guard names this
 *   document.
 * - A token must be for exactly this server: its `aud` is the resource.
 * - The tool `save_note` needs more scopes than the others, and `insufficientScope` asks for them. The message shows the tool, also to
 *   clients of 2025, which send no `Mcp-Name`. A server for clients of 2026-07-28 alone writes `mcpScopes` instead.
 * - `createMcpHandler` of the SDK refuses a message that says something else than its fields.
 */
import Router from '@koa/router'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { json } from 'co-body'
import * as t from 'io-ts'
import Koa from 'koa'
import { requireScopes, withAuth } from 'koa-with-auth'
import { httpJwt, insufficientScope, mcpAuth, protectedResource, scopesOf } from 'koa-with-auth/jwt'

export interface McpOptions {
  /** Who issues the tokens. */
  readonly issuer: string
  /** The URL of this server, including the path: `https://notes.example/mcp`. */
  readonly resource: string
  /** The origins whose pages may call. */
  readonly origins?: ReadonlyArray<string>
}

const SaveNote = t.type({ method: t.literal('tools/call'), params: t.type({ name: t.literal('save_note') }) })

/** The application. */
export const application = ({ issuer, resource: identifier, origins = [] }: McpOptions): Koa => {
  const resource = protectedResource({
    resource: identifier,
    authorizationServers: [issuer],
    scopes: ['notes:read', 'notes:write'],
    name: 'Notes',
    origins,
  })
  const jwt = httpJwt({ issuer, protectedResource: resource })
  const notes: string[] = []
  const handle = toNodeHandler(createMcpHandler(() => serverOf(notes)))

  const router = new Router()
  router.all(new URL(identifier).pathname, withAuth(jwt, requireScopes(['notes:read'])), async (ctx) => {
    const message: unknown = ctx.method === 'POST' ? await json(ctx.req) : undefined
    // clients of 2025 may send several messages at once
    if ([message].flat().some(SaveNote.is) && !scopesOf(ctx.request.auth).includes('notes:write')) {
      return insufficientScope(ctx, ['notes:write'])
    }
    // The protocol writes the response itself, event streams included
    ctx.respond = false
    const auth = mcpAuth(ctx)
    await handle(Object.assign(ctx.req, { method: ctx.method, url: ctx.url, ...(auth && { auth }) }), ctx.res, message)
  })
  const app = new Koa()
  app.use(resource.metadata)
  app.use(router.routes())
  return app
}

// Replace this with tools of your own
const serverOf = (notes: string[]): McpServer => {
  const server = new McpServer({ name: 'notes', version: '1.0.0' })
  server.registerTool('whoami', { description: 'Says who calls' }, (context) => {
    const auth = context.http?.authInfo
    return { content: [{ type: 'text', text: `${String(auth?.extra?.['sub'])} by ${auth?.clientId}` }] }
  })
  server.registerTool('save_note', { description: 'Saves a note' }, () => {
    notes.push('a note')
    return { content: [{ type: 'text', text: `${notes.length} saved` }] }
  })
  return server
}
