/** The recipe of a graceful end, in a process of its own that gets SIGTERM while it streams, answers, and keeps idle connections. */
import { once } from 'node:events'
import { Agent, request as open, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { start } from '../support/papers/examplesProcess.js'
import { userProject, type UserProject } from '../support/projects/userProject.js'

const PROGRAM = `
import { once } from 'node:events'
import { createServer } from 'node:http'
import { PassThrough } from 'node:stream'
import Router from '@koa/router'
import Koa from 'koa'
import { authSignal, httpBearer, untilEnd, withAuth } from 'koa-with-auth'
import { guardUpgrade, shutDown } from 'koa-with-auth/upgrades'

const bearer = httpBearer({ authenticate: (_request, token) => token === 'good' && { user: 'anna' } })
const say = (...words) => console.log(words.join(' '))
const watch = (name, signal) => signal.addEventListener('abort', () => say(name, 'ended:', signal.reason.cause))
const router = new Router()
router.get('/stream', withAuth(bearer), (ctx) => {
  watch('stream', authSignal(ctx))
  const source = new PassThrough()
  source.write('open')
  ctx.body = untilEnd(ctx, source)
})
router.get('/slow', withAuth(bearer), async (ctx) => {
  watch('slow', authSignal(ctx))
  say('slow begins')
  await once(process.stdin, 'data')
  process.stdin.unref()
  ctx.body = 'complete'
})
router.get('/quick', withAuth(bearer), (ctx) => (ctx.body = 'quick'))
const app = new Koa().use(router.routes())
const server = createServer(app.callback())
const guard = guardUpgrade(app, bearer)
server.on('upgrade', async (request, socket, head) => {
  const admitted = await guard(request, socket, head)
  if (admitted === undefined) return
  const { signal } = admitted
  watch('socket', signal)
  signal.addEventListener('abort', () => socket.end('bye'))
  socket.write('HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: x\\r\\n\\r\\n')
})
server.listen(0, '127.0.0.1', () => say('port', server.address().port))
process.once('SIGTERM', async () => {
  say('stopping')
  await shutDown(server, { timeout: Number(process.env.TIMEOUT) })
  say('closed')
})
`

let project: UserProject
beforeAll(() => {
  project = userProject([], { 'server.js': PROGRAM })
})
afterAll(() => project?.remove())

const headers = { authorization: 'Bearer good' }

const running = async (timeout: number) => {
  const program = join(project.folder, 'server.js')
  const child = start(project.folder, process.execPath, [program], { TIMEOUT: String(timeout) })
  onTestFinished(() => child.signal('SIGKILL'))
  await child.printed('port')
  const port = Number(/port (\d+)/.exec(child.output.stdout)?.[1])
  const get = async (path: string, agent?: Agent): Promise<IncomingMessage> => {
    const request = open({ port, host: '127.0.0.1', path, headers, agent: agent ?? false }).end()
    const [answer] = (await once(request, 'response')) as [IncomingMessage]
    return answer
  }
  const agent = new Agent({ keepAlive: true })
  onTestFinished(() => agent.destroy())
  expect(await text(await get('/quick', agent))).toBe('quick')
  const stream = await get('/stream')
  await once(stream, 'readable')
  const socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.write('GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer good\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n')
  await once(socket, 'readable')
  const slow = get('/slow')
  await child.printed('slow begins')
  return { ...child, port, stream, socket, slow, idle: Object.values(agent.freeSockets)[0]?.[0] }
}

it('SIGTERM closes the port and idle connections, ends streams and sockets with their cause, and completes what is in flight', async () => {
  const child = await running(600_000)
  const [bytes, ended, idleClosed] = [text(child.stream), text(child.socket), once(child.idle!, 'close')]
  child.signal('SIGTERM')
  expect([await bytes, (await ended).split('\r\n\r\n')[1]]).toEqual(['open', 'bye'])
  await idleClosed
  await child.printed('slow ended: shutting down')
  const [refused] = (await once(connect(child.port, '127.0.0.1'), 'error')) as [NodeJS.ErrnoException]
  expect(refused.code).toBe('ECONNREFUSED')
  expect(child.output.stdout).not.toContain('closed')
  child.write('now')
  const slow = await child.slow
  expect([slow.statusCode, await text(slow)]).toEqual([200, 'complete'])
  expect(await child.exited).toBe(0)
  const said = child.output.stdout.trim().split('\n').slice(2)
  expect([said[0], said.slice(1, -1).sort(), said.at(-1)]).toEqual([
    'stopping',
    ['slow ended: shutting down', 'socket ended: shutting down', 'stream ended: shutting down'],
    'closed',
  ])
})

it('after its time limit the process ends, although a request is in flight', async () => {
  const child = await running(300)
  child.socket.resume()
  const slow = expect(child.slow).rejects.toThrow('socket hang up')
  child.signal('SIGTERM')
  await child.printed('closed')
  await slow
  child.write('now')
  expect(await child.exited).toBe(0)
})
