/**
 * Protected servers of the Model Context Protocol: this package, and the adapters of the official SDK, each set up as its README does. They
 * have the same tools, of which `save_note` needs another scope. The SDK leaves the verification of tokens to the application: here it is
 * jose, with issuer and audience, and `expectedResource` of the SDK.
 */
import { reserve } from './frameworks.mjs'

export const READ = 'notes:read'
export const WRITE = 'notes:write'

const text = (say) => ({ content: [{ type: 'text', text: say }] })

const serving = async () => {
  const { createMcpHandler, McpServer, requireScopes } = await import('@modelcontextprotocol/server')
  const { toNodeHandler } = await import('@modelcontextprotocol/node')
  const serverOf = (isChecked) => () => {
    const server = new McpServer({ name: 'notes', version: '1.0.0' })
    server.registerTool('read_note', { description: 'Reads a note' }, () => text('a note'))
    const challenge = isChecked && { scopeChallenge: requireScopes(READ, WRITE) }
    server.registerTool('save_note', { description: 'Saves a note', ...challenge }, () => text('saved'))
    return server
  }
  return { createMcpHandler, toNodeHandler, serverOf }
}

const verifying = async ({ issuer, url }) => {
  const { createRemoteJWKSet, jwtVerify } = await import('jose')
  const { OAuthError, OAuthErrorCode } = await import('@modelcontextprotocol/server')
  const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`))
  const verifyAccessToken = async (token) => {
    const verified = await jwtVerify(token, keys, { issuer, audience: url }).catch((error) => {
      throw new OAuthError(OAuthErrorCode.InvalidToken, error.message)
    })
    const { payload } = verified
    return {
      token,
      clientId: payload.client_id,
      scopes: (payload.scope ?? '').split(' '),
      expiresAt: payload.exp,
      resource: new URL([payload.aud].flat()[0]),
    }
  }
  const { getOAuthProtectedResourceMetadataUrl } = await import('@modelcontextprotocol/server')
  const oauthMetadata = {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    response_types_supported: ['code'],
  }
  return {
    gate: {
      verifier: { verifyAccessToken },
      requiredScopes: [READ],
      resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(new URL(url)),
      expectedResource: new URL(url),
    },
    metadata: { oauthMetadata, resourceServerUrl: new URL(url), scopesSupported: [READ, WRITE] },
  }
}

const ours = async ({ issuer, url }) => {
  const { default: Koa } = await import('koa')
  const { default: Router } = await import('@koa/router')
  const { requireScopes, withAuth } = await import('../../../dist/index.js')
  const { httpJwt, mcpAuth, mcpScopes, protectedResource } = await import('../../../dist/jwt.js')
  const { createMcpHandler, toNodeHandler, serverOf } = await serving()
  const about = { resource: url, authorizationServers: [issuer], scopes: [READ, WRITE], origins: [] }
  const resource = protectedResource(about)
  const jwt = httpJwt({ issuer, protectedResource: resource })
  const tools = mcpScopes({ 'tools/call': { save_note: [WRITE], '*': [] } })
  const handle = toNodeHandler(createMcpHandler(serverOf(false), { legacy: 'reject' }))
  const router = new Router()
  router.all('/mcp', withAuth(jwt, requireScopes([READ]), tools), async (ctx) => {
    ctx.respond = false
    await handle(Object.assign(ctx.req, { auth: mcpAuth(ctx) }), ctx.res)
  })
  return new Koa().use(resource.metadata).use(router.routes()).callback()
}

const express = async (given) => {
  const { createMcpExpressApp, mcpAuthMetadataRouter, requireBearerAuth } =
    await import('@modelcontextprotocol/express')
  const { createMcpHandler, toNodeHandler, serverOf } = await serving()
  const { gate, metadata } = await verifying(given)
  const app = createMcpExpressApp()
  app.use(mcpAuthMetadataRouter(metadata))
  const handle = toNodeHandler(createMcpHandler(serverOf(true)))
  app.all('/mcp', requireBearerAuth(gate), (req, res) => handle(req, res, req.body))
  return app
}

const hono = async (given) => {
  const { createMcpHonoApp } = await import('@modelcontextprotocol/hono')
  const { getRequestListener } = await import('@hono/node-server')
  const { oauthMetadataResponse, requireBearerAuth } = await import('@modelcontextprotocol/server')
  const { createMcpHandler, serverOf } = await serving()
  const { gate, metadata } = await verifying(given)
  const admit = requireBearerAuth(gate)
  const handler = createMcpHandler(serverOf(true))
  const app = createMcpHonoApp()
  app.use(async (c, next) => oauthMetadataResponse(c.req.raw, metadata) ?? (await next()))
  app.all('/mcp', async (c) => {
    const auth = await admit(c.req.raw)
    if (auth instanceof Response) return auth
    return handler.fetch(c.req.raw, { authInfo: auth, parsedBody: c.get('parsedBody') })
  })
  return getRequestListener(app.fetch)
}

const fastify = async (given) => {
  const { createMcpFastifyApp } = await import('@modelcontextprotocol/fastify')
  const { bearerAuthChallengeResponse, oauthMetadataResponse, verifyBearerToken } =
    await import('@modelcontextprotocol/server')
  const { createMcpHandler, toNodeHandler, serverOf } = await serving()
  const { gate, metadata } = await verifying(given)
  const handle = toNodeHandler(createMcpHandler(serverOf(true)))
  const app = createMcpFastifyApp()
  const answered = async (reply, response) => {
    reply.code(response.status).headers(Object.fromEntries(response.headers))
    return reply.send(await response.text())
  }
  app.get('/.well-known/*', async (request, reply) => {
    const document = oauthMetadataResponse(new Request(new URL(request.url, given.url)), metadata)
    return document === undefined ? reply.callNotFound() : answered(reply, document)
  })
  app.all('/mcp', async (request, reply) => {
    try {
      request.raw.auth = await verifyBearerToken(request.headers.authorization, gate)
    } catch (error) {
      return answered(reply, bearerAuthChallengeResponse(error, gate))
    }
    reply.hijack()
    await handle(request.raw, reply.raw, request.body)
  })
  await app.ready()
  return (req, res) => app.routing(req, res)
}

const node = async (given) => {
  const { localhostHostValidation, localhostOriginValidation } = await import('@modelcontextprotocol/node')
  const { bearerAuthChallengeResponse, oauthMetadataResponse, verifyBearerToken } =
    await import('@modelcontextprotocol/server')
  const { createMcpHandler, toNodeHandler, serverOf } = await serving()
  const { gate, metadata } = await verifying(given)
  const handle = toNodeHandler(createMcpHandler(serverOf(true)))
  const [isHost, isOrigin] = [localhostHostValidation(), localhostOriginValidation()]
  const answered = async (res, response) => {
    res.writeHead(response.status, Object.fromEntries(response.headers)).end(await response.text())
  }
  return async (req, res) => {
    if (!isHost(req, res) || !isOrigin(req, res)) return
    const document = oauthMetadataResponse(new Request(new URL(req.url, given.url), { method: req.method }), metadata)
    if (document !== undefined) return answered(res, document)
    try {
      req.auth = await verifyBearerToken(req.headers.authorization, gate)
    } catch (error) {
      return answered(res, bearerAuthChallengeResponse(error, gate))
    }
    await handle(req, res)
  }
}

export const servers = [
  { name: 'koa-with-auth', packages: [], make: ours },
  { name: 'SDK, Express', packages: ['@modelcontextprotocol/express', 'express'], make: express },
  { name: 'SDK, Hono', packages: ['@modelcontextprotocol/hono', 'hono'], make: hono },
  { name: 'SDK, Fastify', packages: ['@modelcontextprotocol/fastify', 'fastify'], make: fastify },
  { name: 'SDK, Node.js', packages: ['@modelcontextprotocol/node', '@modelcontextprotocol/server'], make: node },
]

/** Serves one until `close` is called. */
export const served = async ({ make }, issuer) => {
  const { port, serve, close } = await reserve()
  const url = `http://127.0.0.1:${port}/mcp`
  serve(await make({ issuer: issuer.issuer, url }))
  return { url, close }
}
