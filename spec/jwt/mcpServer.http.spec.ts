/**
 * Servers of the Model Context Protocol, with the official SDK: what a protected one must do, `mcpScopes` in front of the SDK's handler,
 * and bodies that say something else than the fields.
 */
import Router from '@koa/router'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import Koa, { type Context } from 'koa'
import { requireScopes, withAuth } from 'koa-with-auth'
import { httpJwt, mcpAuth, mcpScopes, protectedResource } from 'koa-with-auth/jwt'
import { describe, expect, it, onTestFinished } from 'vitest'
import { application } from '../../examples/mcp/app.js'
import { rules, runMcpRules, startIssuer } from '../data/mcp.mjs'
import { reserved } from '../support/servers/server.js'

const READ = 'notes:read'
const WRITE = 'notes:write'

/** Serves what `make` makes for the address, until the test has finished. */
const served = async (make: (given: { readonly issuer: string; readonly resource: string }) => Koa) => {
  const issuer = await startIssuer()
  onTestFinished(issuer.stop)
  const { port, serve } = await reserved()
  const url = `http://127.0.0.1:${port}/mcp`
  const app = make({ issuer: issuer.issuer, resource: url })
  app.silent = true
  serve(app.callback())
  return { url, issuer }
}

/** A server whose tool `save_note` needs a scope, by its fields. `ran` counts its calls. */
const scoped = (serve: (ctx: Context, serverOf: () => McpServer) => Promise<void>) => {
  let calls = 0
  const serverOf = () => {
    const made = new McpServer({ name: 'notes', version: '1.0.0' })
    const text = (say: string) => ({ content: [{ type: 'text' as const, text: say }] })
    made.registerTool('read_note', { description: 'Reads a note' }, () => text('a note'))
    made.registerTool('save_note', { description: 'Saves a note' }, () => text(`${++calls} saved`))
    return made
  }
  const make = ({ issuer, resource: identifier }: { readonly issuer: string; readonly resource: string }): Koa => {
    const resource = protectedResource({
      resource: identifier,
      authorizationServers: [issuer],
      scopes: [READ, WRITE],
      origins: [],
    })
    const jwt = httpJwt({ issuer, protectedResource: resource })
    const tools = mcpScopes({ 'tools/call': { save_note: [WRITE], '*': [] } })
    const router = new Router()
    router.all('/mcp', withAuth(jwt, requireScopes([READ]), tools), async (ctx) => {
      ctx.respond = false
      await serve(ctx, serverOf)
    })
    const app = new Koa()
    app.use(resource.metadata).use(router.routes())
    return app
  }
  return { make, ran: () => calls }
}

const byHandler = (legacy?: 'reject') => async (ctx: Context, serverOf: () => McpServer) => {
  const auth = mcpAuth(ctx)
  const request = Object.assign(ctx.req, { method: ctx.method, url: ctx.url, ...(auth && { auth }) })
  await toNodeHandler(createMcpHandler(serverOf, legacy && { legacy }))(request, ctx.res)
}
const byTransport = async (ctx: Context, serverOf: () => McpServer) => {
  const transport = new NodeStreamableHTTPServerTransport({ sessionIdGenerator: undefined })
  await serverOf().connect(transport)
  await transport.handleRequest(ctx.req, ctx.res)
}

const failures = async (server: Parameters<typeof runMcpRules>[0]) =>
  (await runMcpRules(server)).filter(({ ok }) => ok !== true).map(({ id, what }) => `${id}: ${what}`)

const suite = { scopes: READ, tool: 'save_note', needs: WRITE }

describe('what a protected server must do', () => {
  it('holds at the example, whose message shows the tool', async () => {
    expect(await failures({ ...(await served(application)), ...suite })).toEqual([])
  })

  it('holds with mcpScopes in front of the handler of the SDK that serves 2026-07-28 alone', async () => {
    const { make, ran } = scoped(byHandler('reject'))
    expect(await failures({ ...(await served(make)), ...suite })).toEqual([])
    expect(ran()).toBe(1)
  })

  it('is seen where it does not hold: no guard, no document', async () => {
    const open = () => new Koa().use((ctx) => void (ctx.body = { jsonrpc: '2.0', id: 1, result: {} }))
    const results = await runMcpRules({ ...(await served(open)), ...suite })
    const right = ['offline-access', 'host', 'good', 'scope-granted']
    expect(results.filter(({ ok }) => ok === true).map(({ id }) => id)).toEqual(right)
    expect(results.length).toBe(rules.length)
  })

  it('without an issuer, only what needs no token is asked', async () => {
    const { url } = await served(application)
    const results = await runMcpRules({ url })
    const asked = rules.filter(({ needs }) => needs === undefined).map(({ id }) => id)
    expect(results.filter(({ ok }) => ok === true).map(({ id }) => id)).toEqual(asked)
    expect(results.every(({ ok }) => ok !== false)).toBe(true)
  })
})

describe('a body that says something else than the fields', () => {
  const post = async (url: string, token: string, body: object, fields: Record<string, string>) => {
    const headers = {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...fields,
    }
    const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
    return { status: answer.status, text: await answer.text() }
  }
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'x', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const call = (name: string, _meta?: object) => ({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name, arguments: {}, ...(_meta && { _meta }) },
  })
  const harmless = { 'mcp-method': 'tools/call', 'mcp-name': 'read_note' }

  it('is refused by the SDK (-32020), and the tool does not run', async () => {
    const { make, ran } = scoped(byHandler('reject'))
    const { url, issuer } = await served(make)
    const token = issuer.signed({ aud: url, scope: READ })
    const version = { 'mcp-protocol-version': '2026-07-28' }
    for (const fields of [
      harmless,
      { 'mcp-method': 'tools/list' },
      { ...harmless, 'mcp-name': '=?base64?cmVhZF9ub3Rl?=' },
    ]) {
      const answer = await post(url, token, call('save_note', meta), { ...version, ...fields })
      expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('-32020') as string])
    }
    for (const body of [call('save_note'), [call('save_note')]]) {
      for (const fields of [
        harmless,
        { ...harmless, ...version },
        { ...harmless, 'mcp-protocol-version': '2025-11-25' },
      ]) {
        expect((await post(url, token, body, fields)).status).toBe(400)
      }
    }
    expect(ran()).toBe(0)
    expect((await post(url, token, call('read_note', meta), { ...version, ...harmless })).status).toBe(200)
  })

  it.each([
    ['the handler that also serves clients of 2025', byHandler()],
    ['a transport', byTransport],
  ])('is not seen by %s of the SDK, so that mcpScopes alone is no guard there', async (_case, serve) => {
    const { make, ran } = scoped(serve)
    const { url, issuer } = await served(make)
    await post(url, issuer.signed({ aud: url, scope: READ }), call('save_note'), harmless)
    expect(ran()).toBe(1)
  })
})

describe('the official client', () => {
  const connected = async (url: string, token: string, mode: 'auto' | 'legacy') => {
    const client = new Client({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode } })
    const requestInit = { headers: { Authorization: `Bearer ${token}` } }
    onTestFinished(() => client.close())
    await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }))
    return client
  }

  it('of 2026-07-28 calls a tool by its fields, and learns that a tool needs another scope', async () => {
    const { make } = scoped(byHandler('reject'))
    const { url, issuer } = await served(make)
    const reading = await connected(url, issuer.signed({ aud: url, scope: READ }), 'auto')
    expect((await reading.listTools()).tools.map(({ name }) => name)).toEqual(['read_note', 'save_note'])
    expect(await reading.callTool({ name: 'read_note' })).toMatchObject({ content: [{ text: 'a note' }] })
    await expect(reading.callTool({ name: 'save_note' })).rejects.toThrow(/scope|403|forbidden/i)
    const writing = await connected(url, issuer.signed({ aud: url, scope: `${READ} ${WRITE}` }), 'auto')
    expect(await writing.callTool({ name: 'save_note' })).toMatchObject({ content: [{ text: '1 saved' }] })
  })

  it.each(['auto', 'legacy'] as const)('of both revisions (%s) calls the tools of the example', async (mode) => {
    const { url, issuer } = await served(application)
    const reading = await connected(url, issuer.signed({ aud: url, scope: READ }), mode)
    expect(await reading.callTool({ name: 'whoami' })).toMatchObject({ content: [{ text: 'anna by suite' }] })
    await expect(reading.callTool({ name: 'save_note' })).rejects.toThrow(/scope|403|forbidden/i)
    const writing = await connected(url, issuer.signed({ aud: url, scope: `${READ} ${WRITE}` }), mode)
    expect(await writing.callTool({ name: 'save_note' })).toMatchObject({ content: [{ text: '1 saved' }] })
  })
})
