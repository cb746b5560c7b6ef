/**
 * The example of live messages, with the real `ws`: signed-in users connect, and a sign-out elsewhere ends their socket
 * and their stream.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request as open, type IncomingMessage } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { live } from '../../examples/live/app.js'
import type { Store } from 'koa-with-auth/stores'
import { interruptedStore } from '../support/stores/interruptedStore.js'
import { visitorOf, type Visitor } from '../support/sites/sessionsApp.js'

const basic = (username: string) => ({
  Authorization: `Basic ${Buffer.from(`${username}:${username}secret`).toString('base64')}`,
})

const serving = async (store?: Store) => {
  const { server, open: opened } = live([randomBytes(32).toString('hex')], store)
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => sockets.add(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  )
  const signedIn = async (username: string): Promise<Visitor> => {
    const visitor = visitorOf(port)
    expect((await visitor.post('/login', basic(username))).status).toBe(204)
    return visitor
  }
  return { port, opened, signedIn }
}

const connecting = (port: number, headers: Readonly<Record<string, string>>) => {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/live`, { headers })
  const messages: string[] = []
  socket.on('message', (data: Buffer) => messages.push(data.toString()))
  const ended = new Promise<string>((resolve) => {
    socket.once('close', (code, reason) => resolve(`${code} ${reason.toString()}`))
    socket.once('unexpected-response', (_request, { statusCode }) => resolve(`refused ${statusCode}`))
    socket.on('error', () => {})
  })
  return { messages, ended }
}

const listening = async (port: number, headers: Readonly<Record<string, string>>) => {
  const outgoing = open({ port, host: '127.0.0.1', path: '/events', headers, agent: false })
  outgoing.end()
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
  let text = ''
  answer.on('data', (chunk: Buffer) => (text += chunk.toString()))
  const ended = new Promise<void>((resolve) => answer.once('end', resolve))
  return { status: answer.statusCode, text: () => text, ended }
}

describe('live messages', () => {
  it('come to a signed-in user, and end with this session, not with another', async () => {
    const { port, opened, signedIn } = await serving()
    const [anna, sam] = [await signedIn('anna'), await signedIn('sam')]
    const copy = anna.copy()
    const [socket, another] = [anna, sam].map((one) => connecting(port, { Cookie: one.header() })) as [
      ReturnType<typeof connecting>,
      ReturnType<typeof connecting>,
    ]
    const stream = await listening(port, { Cookie: anna.header() })
    await expect.poll(() => [socket.messages, another.messages]).toEqual([['Hello anna'], ['Hello sam']])
    await expect.poll(() => stream.text()).toBe('data: Hello anna\n\n')
    expect(opened()).toBe(3)
    await copy.post('/logout')
    expect(await socket.ended).toBe('4401 signed out')
    await stream.ended
    await expect.poll(opened).toBe(1)
    const again = connecting(port, { Cookie: anna.header() })
    expect(await again.ended).toBe('refused 401')
  })

  it('end if the session ends after it was read and before the socket is open', async () => {
    const { store, meanwhile } = interruptedStore()
    const { port, opened, signedIn } = await serving(store)
    const [anna, sam] = [await signedIn('anna'), await signedIn('sam')]
    // The session was read before its end was recorded
    meanwhile.push(() => anna.copy().post('/logout'))
    const ended = await listening(port, { Cookie: anna.header() })
    meanwhile.push(() => sam.copy().post('/logout'))
    expect(await connecting(port, { Cookie: sam.header() }).ended).toBe('4401 signed out')
    await ended.ended
    await expect.poll(opened).toBe(0)
    expect((await listening(port, { Cookie: anna.header() })).status).toBe(401)
  })
})
