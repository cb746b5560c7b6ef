/**
 * Clients that break the protocol of WebSockets end their own connection, and never the process: in the example, and in
 * each example of the guide and the docstrings, which run as they are.
 */
import { copyFileSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { blocksOf, documents, examplesOf, sources, type DocExample } from '../support/papers/docExamples.js'
import { buildSite, startSite } from '../support/sites/sessionSite.js'
import { visitorOf } from '../support/sites/sessionsApp.js'
import { ownOptions, repository } from '../support/projects/typecheck.js'

const examples = [...sources().flatMap(examplesOf), ...documents().flatMap(blocksOf)].filter(({ code }) =>
  code.includes('.handleUpgrade('),
)

let site: ReturnType<typeof buildSite>
beforeAll(() => {
  site = buildSite(['examples/live/app'])
  copyFileSync(`${repository}spec/support/sites/documentedUpgrades.mjs`, join(site.folder, 'serve.mjs'))
})
afterAll(() => site.remove())

const serving = async (path: string): Promise<number> => {
  const env = { NODE_ENV: 'test' }
  const { port, stop } = await startSite({
    command: process.execPath,
    args: [join(site.folder, 'serve.mjs'), path],
    env,
  })
  onTestFinished(stop)
  return port
}

const serve = ({ code }: DocExample): Promise<number> => {
  const compilerOptions = { ...ownOptions(), module: ts.ModuleKind.ESNext }
  const path = join(site.folder, 'example.js')
  writeFileSync(path, ts.transpileModule(code, { compilerOptions }).outputText)
  return serving(path)
}

const handshake = (lines: ReadonlyArray<string>): string =>
  [
    'GET /live HTTP/1.1',
    'Host: 127.0.0.1',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ...lines,
    '',
    '',
  ].join('\r\n')

/** Connects and does the handshake. Returns the status and the socket. */
const opened = async (port: number, lines: ReadonlyArray<string>): Promise<readonly [Socket, string]> => {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  socket.write(handshake(lines))
  const [head] = (await once(socket, 'data')) as [Buffer]
  return [socket, head.toString('latin1').slice(0, 12)]
}

const closed = async (socket: Socket): Promise<void> => {
  if (socket.closed) return
  socket.resume()
  await once(socket, 'close')
}

const bytes = (...given: ReadonlyArray<number>) => Buffer.from(given)
const attacks: ReadonlyArray<readonly [string, (socket: Socket) => unknown]> = [
  ['a frame without a mask', (socket) => socket.write(bytes(0x81, 0x01, 0x61))],
  ['reserved bits', (socket) => socket.write(bytes(0xf1, 0x80, 0, 0, 0, 0))],
  ['an unknown opcode', (socket) => socket.write(bytes(0x83, 0x80, 0, 0, 0, 0))],
  ['a message that is not UTF-8', (socket) => socket.write(bytes(0x81, 0x82, 0, 0, 0, 0, 0xc0, 0x80))],
  ['a length above all limits', (socket) => socket.write(bytes(0x82, 0xff, 0x7f, 255, 255, 255, 255, 255, 255, 255))],
  ['a length of 16 MB', (socket) => socket.write(bytes(0x82, 0xff, 0, 0, 0, 0, 1, 0, 0, 0, 1, 2, 3, 4))],
  ['a ping that is too long', (socket) => socket.write(bytes(0x89, 0xfe, 1, 0, 0, 0, 0, 0))],
  ['a close with an invalid code', (socket) => socket.write(bytes(0x88, 0x82, 0, 0, 0, 0, 0, 1))],
  ['HTTP', (socket) => socket.write('GET / HTTP/1.1\r\n\r\n')],
  ['half of a frame, then an end', (socket) => socket.end(bytes(0x81, 0xfe))],
  ['half of a frame, then a reset', (socket) => socket.write(bytes(0x81, 0xfe), () => socket.resetAndDestroy())],
  ['a reset', (socket) => socket.resetAndDestroy()],
]

const survives = async (port: number, lines: ReadonlyArray<string>): Promise<void> => {
  for (const [what, attack] of attacks) {
    const [socket, status] = await opened(port, lines)
    expect([what, status]).toEqual([what, 'HTTP/1.1 101'])
    attack(socket)
    if (what !== 'a length of 16 MB') await closed(socket)
    else socket.destroy()
  }
  // Resets before, during and after the decision
  for (const sent of [handshake(lines), handshake(lines).slice(0, 60), handshake([]), 'GET /other HTTP/1.1\r\n']) {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write(sent, () => socket.resetAndDestroy())
    await closed(socket)
  }
  const [socket, status] = await opened(port, lines)
  expect(status).toBe('HTTP/1.1 101')
  socket.destroy()
}

describe('hostile clients', () => {
  it('do not end the example of live messages', async () => {
    const path = join(site.folder, 'live.mjs')
    writeFileSync(path, `import { live } from './examples/live/app.js'\nlive(['k'.repeat(40)])\n`)
    const port = await serving(path)
    const anna = visitorOf(port)
    const authorization = `Basic ${Buffer.from('anna:annasecret').toString('base64')}`
    expect((await anna.post('/login', { Authorization: authorization })).status).toBe(204)
    await survives(port, [`Cookie: ${anna.header()}`])
  })

  it.each(examples.filter(({ code }) => code.includes('supersecret')))(
    'do not end the example of $place',
    async (example) => {
      await survives(await serve(example), ['Sec-WebSocket-Protocol: chat', 'Authorization: Bearer supersecret'])
    },
  )

  it.each(examples)('are handled in the code of $place', ({ code }) => {
    const [, ...served] = code.split('.handleUpgrade(')
    for (const one of served) expect(one).toContain("webSocket.on('error', () => webSocket.terminate())")
  })

  it('are tried on all examples', () => {
    expect(examples.map(({ place }) => place.split(':')[0])).toEqual([
      'src/upgrades/guardUpgrade.ts',
      'examples/guides/upgrades.md',
      'examples/guides/upgrades.md',
    ])
  })
})
