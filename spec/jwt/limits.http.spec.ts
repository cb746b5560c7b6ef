/** Each fetch of this package ends within its limit, whatever the other side or a resolver of names does, and the next one begins anew. */
import dns from 'node:dns'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { createServer as createSecureServer } from 'node:tls'
import Router from '@koa/router'
import Koa, { type Middleware } from 'koa'
import { withAuth } from 'koa-with-auth'
import { httpIntrospection, httpJwt, type KeyOptions } from 'koa-with-auth/jwt'
import { sessions } from 'koa-with-auth/sessions'
import { memoryStore } from 'koa-with-auth/stores'
import { begin, finish } from 'koa-with-auth/sign-in'
import { oauth2, oidc } from 'koa-with-auth/sign-in/oidc'
import { mockRequest } from 'koa-with-auth/testing'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { FetchedDocument, keyPolicyOf } from '../../src/jwt/keySet.js'
import { fetchDirectory } from '../../src/signatures/directory.js'
import { certificates } from '../support/servers/certificates.js'
import { listen } from '../support/servers/server.js'
import { userAgent } from '../support/servers/userAgent.js'
import { strongKey } from '../support/sites/sessionsApp.js'

const API = 'https://api.example'
const limits: KeyOptions = { timeout: 100 }

const again = (socket: Socket, text: string): void => {
  const timer = setInterval(() => socket.write(text), 10)
  socket.on('close', () => clearInterval(timer))
}
const ok = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n'

/** What the other side does with a connection, after a request has come. */
const sides: Readonly<Record<string, (socket: Socket) => unknown>> = {
  'says nothing': () => {},
  'answers 101': (socket) =>
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n'),
  'answers 100 for ever': (socket) => again(socket, 'HTTP/1.1 100 Continue\r\n\r\n'),
  'drips its head': (socket) => (socket.write('HTTP/1.1 200 OK\r\nX-A: '), again(socket, 'a')),
  'drips its body': (socket) => (socket.write(`${ok}Content-Length: 1000\r\n\r\n`), again(socket, ' ')),
  'drips chunks': (socket) => (socket.write(`${ok}Transfer-Encoding: chunked\r\n\r\n`), again(socket, '1\r\n \r\n')),
  'closes without an answer': (socket) => socket.end(),
  'breaks off': (socket) => socket.destroy(),
  'closes within its body': (socket) => socket.end(`${ok}Content-Length: 1000\r\n\r\n{`),
  'answers no HTTP': (socket) => socket.end('SSH-2.0-x\r\n'),
}

const serving = async (side: (socket: Socket) => unknown, isSecure = false): Promise<string> => {
  const sockets = new Set<Socket>()
  const take = (socket: Socket): void => {
    sockets.add(socket.on('error', () => {}))
    socket.once('data', () => side(socket))
  }
  const { key, cert } = certificates().server
  const server: Server = isSecure ? createSecureServer({ key, cert }, take) : createServer(take)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const { port } = server.address() as AddressInfo
  return `http${isSecure ? 's' : ''}://127.0.0.1:${port}`
}

const token = [
  { alg: 'RS256', typ: 'at+jwt' },
  { iss: '', exp: 9e9, aud: API, sub: 'anna', client_id: 'c', iat: 1, jti: '1' },
]
const bearer = (issuer: string) => {
  const [header, claims] = token.map((part) =>
    Buffer.from(JSON.stringify({ ...part, ...('iss' in part && { iss: issuer }) })).toString('base64url'),
  )
  return mockRequest({ fields: [['Authorization', `Bearer ${header}.${claims}.${'A'.repeat(342)}`]] })
}

/** A site that begins a sign-in, and ends it. */
const site = async (beginning: Middleware, end: Middleware) => {
  const app = new Koa({ keys: [strongKey] })
  sessions(app, { loadUser: () => undefined, store: memoryStore() })
  const router = new Router()
  router.get('/begin', withAuth(null), beginning)
  router.get('/callback', withAuth(null), end)
  const { url } = await listen(app.use(router.routes()))
  return { url, browser: userAgent() }
}
const nobody = () => undefined
const client = { id: 'shop', secret: 'a secret of the client' }

/** Asks at an address, and resolves to what became of it. */
const fetches: Readonly<Record<string, (url: string) => Promise<unknown>>> = {
  'a key set': (url) =>
    Promise.resolve(
      httpJwt({ issuer: { issuer: API, jwksUri: url }, audience: API, keys: limits }).evaluate(bearer(API)),
    ),
  'a discovery': (url) => Promise.resolve(httpJwt({ issuer: url, audience: API, keys: limits }).evaluate(bearer(url))),
  'an introspection': (url) =>
    Promise.resolve(httpIntrospection({ endpoint: url, client, audience: API, timeout: 100 }).evaluate(bearer(API))),
  'the metadata of a provider': async (url) => {
    const kind = oidc({ issuer: url, client, callback: '/callback', keys: limits })
    const { url: own, browser } = await site(begin(kind), finish(kind, nobody))
    return (await browser.send(`${own}/begin`)).status
  },
  'the token endpoint of a provider': async (url) => {
    const urls = { authorize: `${url}/authorize`, token: `${url}/token` }
    const kind = oauth2({ name: 'plain', ...urls, client, callback: '/callback', subject: () => '1', timeout: 100 })
    const { url: own, browser } = await site(begin(kind), finish(kind, nobody))
    const { location = '' } = await browser.send(`${own}/begin`)
    const state = new URL(location).searchParams.get('state')
    return (await browser.send(`${own}/callback?code=c&state=${state}`)).status
  },
}

const hangingLookup = () => {
  const { lookup: real } = dns
  const lookup = vi.spyOn(dns, 'lookup').mockImplementation(((host: string, ...others: never[]) => {
    if (!host.endsWith('.example')) Reflect.apply(real, dns, [host, ...others])
  }) as never)
  const end = (at: number) => {
    const [host, , answer] = lookup.mock.calls[at] as unknown as [string, unknown, (error: Error) => void]
    if (host.endsWith('.example')) answer(new Error('no such name'))
  }
  onTestFinished(() => {
    for (const at of lookup.mock.calls.keys()) end(at)
    lookup.mockRestore()
  })
  return { lookup, end }
}

const outages: ReadonlyArray<unknown> = [
  503,
  expect.objectContaining({ left: expect.objectContaining({ _tag: 'unavailable' }) as unknown }),
]

describe.each(Object.entries(fetches))('%s', (name, ask) => {
  it.each(Object.entries(sides))('R29 is an outage if the other side %s', async (_side, side) => {
    expect(outages).toContainEqual(await ask(await serving(side)))
  })

  it('is an outage if its name is looked up for ever', async () => {
    const { lookup } = hangingLookup()
    // a host for each: the newest Node waits on for a connection whose request was given up
    const host = `${name.replaceAll(' ', '-')}.example`
    expect(outages).toContainEqual(await ask(`https://${host}`))
    expect(lookup).toHaveBeenCalledWith(host, expect.anything(), expect.anything())
  })
})

describe('the directory of an agent', () => {
  const policy = { timeout: 100, maxAge: 60_000, maxLength: 1000 }

  it.each(Object.entries(sides))('R29 is an outage if the other side %s', async (_side, side) => {
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
    onTestFinished(() => void vi.unstubAllEnvs())
    const url = new URL(await serving(side, true))
    await expect(fetchDirectory(url, policy, () => true)).rejects.toThrow()
  })

  it('is an outage if its name is looked up for ever', async () => {
    const { lookup, end } = hangingLookup()
    const ask = (name: string) => fetchDirectory(new URL(`https://${name}.example/keys`), policy)
    await expect(ask('bots')).rejects.toThrow('in time')
    expect(lookup).toHaveBeenCalledTimes(1)
    // a look-up holds a thread of Node, of which passwords need one, too: one new name at once, and a hundred that wait
    const others = await Promise.allSettled(Array.from({ length: 102 }, (_, at) => ask(`bot${at}`)))
    expect(lookup).toHaveBeenCalledTimes(1)
    expect(others.map((one) => one.status === 'rejected' && String(one.reason))).toEqual([
      ...Array.from({ length: 100 }, () => expect.stringContaining('in time') as unknown),
      ...Array.from({ length: 2 }, () => expect.stringContaining('too many') as unknown),
    ])
    // those that were given up are not looked up when one has ended
    end(0)
    await new Promise(setImmediate)
    await expect(ask('next')).rejects.toThrow('in time')
    expect(lookup).toHaveBeenLastCalledWith('next.example', expect.anything(), expect.anything())
    expect(lookup).toHaveBeenCalledTimes(2)
  })
})

it('a fetch that never ends is forgotten after its time, so the next request fetches again', async () => {
  let asked = 0
  const fetch = () => (++asked === 1 ? new Promise<number>(() => {}) : Promise.resolve(7))
  const { current } = new FetchedDocument<number, number>(
    { fetch, read: (n) => n, unreadable: '', issuer: API, failed: () => {} },
    { ...keyPolicyOf('keys', limits), retry: 1 },
  )
  expect(await current()).toMatchObject({ _tag: 'Left' })
  await new Promise((resolve) => setTimeout(resolve, 2))
  expect(await current()).toMatchObject({ right: 7 })
})
