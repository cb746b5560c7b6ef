/**
 * A server of the Model Context Protocol behind `httpJwt`: the 401 leads clients to the authorization server.
 *
 * - `protectedResource` publishes who issues tokens for this server (RFC 9728), and the 401 of the guard names this
 *   document.
 * - A token must be for exactly this server: its `aud` is the resource.
 * - The tool `save_note` needs more scopes than the others, which only the message shows: `insufficientScope` asks for
 *   them.
 */
import Router from '@koa/router'
import { McpServer } from '@modelcontextprotocol/server'
import { NodeStreamableHTTPServerTransport } from '@modelcontextprotocol/node'
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

  const router = new Router()
  router.all(new URL(identifier).pathname, withAuth(jwt, requireScopes(['notes:read'])), async (ctx) => {
    const message: unknown = ctx.method === 'POST' ? await json(ctx.req) : undefined
    if (SaveNote.is(message) && !scopesOf(ctx.request.auth).includes('notes:write')) {
      return insufficientScope(ctx, ['notes:write'])
    }
    // The protocol writes the response itself, event streams included
    const server = serverOf(notes)
    const transport = new NodeStreamableHTTPServerTransport({ sessionIdGenerator: undefined })
    ctx.res.on('close', () => void server.close())
    await server.connect(transport)
    ctx.respond = false
    const auth = mcpAuth(ctx)
    await transport.handleRequest(Object.assign(ctx.req, auth && { auth }), ctx.res, message)
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
