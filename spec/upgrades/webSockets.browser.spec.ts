/**
 * WebSockets of pages in Chromium, with the real `ws`: the session's cookie admits pages of its own site, and no
 * others.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import Koa from 'koa'
import { authenticator, Challenge, constantTimeEqual } from 'koa-with-auth'
import { fromWebSocketProtocol, guardUpgrade } from 'koa-with-auth/upgrades'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { WebSocketServer } from 'ws'
import { live } from '../../examples/live/app.js'
import { browsing, missingBrowser } from '../support/servers/browser.js'
import { describeUnless } from '../support/projects/programs.js'

const missing = missingBrowser()
const open = missing === undefined ? browsing() : undefined!

/** Sites on a port of the loopback address, which has two names for browsers. */
const served = (server: () => Server) => {
  let port = 0
  let running: Server | undefined
  beforeAll(async () => {
    running = server()
    running.listen(0, '127.0.0.1')
    await once(running, 'listening')
    port = (running.address() as AddressInfo).port
  })
  afterAll(() => {
    running?.closeAllConnections()
    running?.close()
  })
  return { origin: (host = '127.0.0.1') => `http://${host}:${port}`, live: () => `ws://127.0.0.1:${port}/live` }
}

let handshakes: IncomingMessage[] = []
beforeEach(() => {
  handshakes = []
})

// What a page gets from a WebSocket: its first message and its protocol, or that it was closed; and how it ends
const connect = (page: Page, url: string, protocols: ReadonlyArray<string> = []): Promise<string> =>
  page.evaluate(
    ([target, offered]) =>
      new Promise<string>((resolve) => {
        // Safe: a page has one
        const { WebSocket: Socket } = globalThis as unknown as {
          WebSocket: new (url: string, protocols: ReadonlyArray<string>) => EventTarget & { protocol: string }
        }
        const socket = new Socket(target, offered)
        Object.assign(globalThis, { ended: new Promise((end) => socket.addEventListener('close', end)) })
        socket.addEventListener('message', (event) => resolve(`${Reflect.get(event, 'data')} [${socket.protocol}]`))
        socket.addEventListener('close', () => resolve('closed'))
      }),
    [url, protocols] as const,
  )

const endOf = (page: Page): Promise<string> =>
  page.evaluate(async () => {
    const event = await (Reflect.get(globalThis, 'ended') as Promise<{ code: number; reason: string }>)
    return `${event.code} ${event.reason}`
  })

const ask = (page: Page, path: string, headers: Readonly<Record<string, string>> = {}): Promise<number> =>
  page.evaluate(async ([target, fields]) => (await fetch(target, { method: 'POST', headers: fields })).status, [
    path,
    headers,
  ] as const)

describeUnless(missing, 'WebSockets in a browser', () => {
  const site = served(() => {
    const { server } = live([randomBytes(32).toString('hex')])
    server.prependListener('upgrade', (request: IncomingMessage) => handshakes.push(request))
    return server
  })
  const foreign = served(() => createServer((_request, response) => response.end('another site')))

  const signedIn = async (): Promise<Page> => {
    const { page } = await open()
    await page.goto(site.origin())
    expect(await ask(page, '/login', { Authorization: `Basic ${btoa('anna:annasecret')}` })).toBe(204)
    return page
  }
  const cookieSent = () => handshakes.at(-1)?.headers.cookie !== undefined

  it('a page of the same origin is accepted by the cookie', async () => {
    const page = await signedIn()
    expect(await connect(page, site.live())).toBe('Hello anna []')
    expect(cookieSent()).toBe(true)
  })

  it('a page without a session is refused', async () => {
    const { page } = await open()
    await page.goto(site.origin())
    expect(await connect(page, site.live())).toBe('closed')
    expect(handshakes.length).toBe(1)
  })

  // Ports are not part of a site, so SameSite does not stop the cookie
  it('a page of another port is refused, although the browser sends the cookie', async () => {
    const page = await signedIn()
    await page.goto(foreign.origin())
    expect(await connect(page, site.live())).toBe('closed')
    expect(cookieSent()).toBe(true)
  })

  it('a page of another site is refused, and the browser sends no cookie', async () => {
    const page = await signedIn()
    await page.goto(foreign.origin('localhost'))
    expect(await connect(page, site.live())).toBe('closed')
    expect(cookieSent()).toBe(false)
  })

  it('a sign-out in another tab closes the socket', async () => {
    const page = await signedIn()
    expect(await connect(page, site.live())).toBe('Hello anna []')
    const tab = await page.context().newPage()
    await tab.goto(site.origin())
    expect(await ask(tab, '/logout')).toBe(204)
    expect(await endOf(page)).toBe('4401 signed out')
    expect(await connect(page, site.live())).toBe('closed')
  })
})

describeUnless(missing, 'tokens among subprotocols', () => {
  let asked: string[] = []
  beforeEach(() => {
    asked = []
  })
  const site = served(() => {
    const app = new Koa()
    const ticket = authenticator({
      challenge: Challenge.make('Bearer'),
      ambient: false,
      extract: fromWebSocketProtocol({ prefix: 'bearer.' }),
      authenticate: (_request, token: string) => {
        asked.push(token)
        return constantTimeEqual(token, 'supersecret') && { user: 'anna' }
      },
    })
    const guard = guardUpgrade(app, ticket)
    const sockets = new WebSocketServer({
      noServer: true,
      handleProtocols: (offered) => offered.has('chat') && 'chat',
    })
    const upgrade = async (request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> => {
      const admitted = await guard(request, socket, head)
      if (admitted === undefined) return
      sockets.handleUpgrade(request, socket, head, (one) => one.send(`Hello ${admitted.principal.user}`))
    }
    const handle = app.callback()
    const server = createServer((request, response) => void handle(request, response))
    return server.on('upgrade', (request, socket, head) => void upgrade(request, socket, head))
  })

  it.each([
    { offered: ['chat', 'bearer.supersecret'], result: 'Hello anna [chat]', tokens: ['supersecret'] },
    { offered: ['chat', 'bearer.wrong'], result: 'closed', tokens: ['wrong'] },
    { offered: ['chat', 'bearer.supersecret', 'bearer.other'], result: 'closed', tokens: [] },
    { offered: ['chat'], result: 'closed', tokens: [] },
    // The server never chooses the token itself, so the browser closes
    { offered: ['bearer.supersecret'], result: 'closed', tokens: ['supersecret'] },
  ])('$offered: $result', async ({ offered, result, tokens }) => {
    const { page } = await open()
    await page.goto(site.origin())
    expect(await connect(page, site.live(), offered)).toBe(result)
    expect(asked).toEqual(tokens)
  })
})
