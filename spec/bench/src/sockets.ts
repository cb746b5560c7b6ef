/**
 * Over real sockets of the loopback interface: requests per second of one process. All servers are up at once, each a process
 * of its own; they are asked in short turns, in another order in each round, so that ratios are those of one weather.
 *
 * Two machines' work is done on one: where the load generator is the slower half, all servers look alike. So its own limit is a
 * row, from a server that answers with fixed bytes; and the processor time of each server is in its row, which does not
 * depend on the generator.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { createServer } from 'node:http'
import { createServer as createRawServer, type AddressInfo, type Server } from 'node:net'
import { fileURLToPath } from 'node:url'
import { getRequestListener } from '@hono/node-server'
import { koaApps, signedToken } from './koaApps.js'
import { load, type Load } from './load.js'
import { fastifyApps, honoApps } from './otherApps.js'
import { shuffled } from './paired.js'
import type { Row, Section } from './Section.js'
import { estimate, median } from './statistics.js'

const names = [
  'fixed bytes',
  'node:http',
  'bare',
  'by hand',
  'by hand, again',
  'ours',
  'passport',
  'koa-jwt',
  'ours, JWT',
  'hono bare',
  'hono bearer',
  'fastify bare',
  'fastify bearer',
] as const
type Name = (typeof names)[number]

const body = '{"user":"anna"}'
const fixed = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`

const serverOf = async (name: string): Promise<Server> => {
  if (name === 'fixed bytes') {
    return createRawServer(
      (socket) =>
        void socket
          .setNoDelay()
          .on('data', () => socket.write(fixed))
          .on('error', () => {}),
    )
  }
  if (name === 'node:http') {
    return createServer((_request, response) => {
      response.setHeader('Content-Type', 'application/json')
      response.end(body)
    })
  }
  const koa = Object.entries(koaApps).find(([known]) => known === name.replace(', again', ''))?.[1]
  if (koa !== undefined) return createServer(koa())
  const hono = Object.entries(honoApps).find(([known]) => known === name)?.[1]
  if (hono !== undefined) return createServer(getRequestListener(hono().fetch))
  const fastify = Object.entries(fastifyApps).find(([known]) => known === name)?.[1]
  if (fastify === undefined) throw new Error(`no contestant is called ${name}`)
  const app = await fastify()
  return createServer((request, response) => app.routing(request, response))
}

const self = fileURLToPath(import.meta.url)

interface Running {
  readonly name: Name
  readonly child: ChildProcess
  readonly load: Load
}

const answerOf = (child: ChildProcess): Promise<number> =>
  new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('message', (value) => {
      child.off('error', reject)
      resolve(Number(value))
    })
  })

const started = async (name: Name): Promise<Running> => {
  const child = fork(self, [name])
  const token = name.toLowerCase().includes('jwt') ? signedToken : 'supersecret'
  const port = await answerOf(child)
  return { name, child, load: await load(port, { Authorization: `Bearer ${token}` }) }
}

// Microseconds of processor time, kernel's included, since the process began
const processorTime = ({ child }: Running): Promise<number> => {
  const answer = answerOf(child)
  child.send('time')
  return answer
}

interface Turn {
  /** Requests per second. */
  readonly rate: number
  /** The server's microseconds of processor time for a request. */
  readonly cost: number
}

const turnOf = async (one: Running, requests: number): Promise<Turn> => {
  const before = await processorTime(one)
  const begun = performance.now()
  await one.load.send(requests)
  const seconds = (performance.now() - begun) / 1000
  return { rate: requests / seconds, cost: ((await processorTime(one)) - before) / requests }
}

const WARM_UP = 8000

// A token takes twenty times as long to verify as a secret
const turnsOf = ({ name }: Running, requests: number): number =>
  name.toLowerCase().includes('jwt') ? Math.ceil(requests / 10) : requests

type Turns = ReadonlyMap<Name, ReadonlyArray<Turn>>

// Two equal processes differ, by where their memory is: so there are several of each
const generation = async (rounds: number, requests: number, turns: Map<Name, Turn[]>): Promise<void> => {
  const running = await Promise.all(names.map(started))
  try {
    for (const one of running) await one.load.send(turnsOf(one, WARM_UP))
    for (let round = 0; round < rounds; round++) {
      for (const one of shuffled(running, round)) turns.get(one.name)?.push(await turnOf(one, turnsOf(one, requests)))
    }
  } finally {
    for (const { child, load } of running) {
      load.close()
      child.kill()
    }
  }
}

export interface SocketsPace {
  /** How often all servers are started anew. */
  readonly generations: number
  readonly rounds: number
  /** Requests of one turn. */
  readonly requests: number
}

const figure = (turns: Turns, of: (at: (name: Name) => Turn) => number) => {
  const count = Math.min(...[...turns.values()].map(({ length }) => length))
  const at =
    (round: number) =>
    (name: Name): Turn =>
      turns.get(name)?.[round] ?? { rate: Number.NaN, cost: Number.NaN }
  return estimate(count, (some) => median(some.map((round) => of(at(round)))))
}

export const sockets = async ({ generations, rounds, requests }: SocketsPace): Promise<Section> => {
  const turns = new Map<Name, Turn[]>(names.map((name) => [name, []]))
  for (let at = 0; at < generations; at++) await generation(rounds, requests, turns)
  const rate = (name: Name): Row => ({
    name,
    value: figure(turns, (at) => at(name).rate),
    unit: 'req/s',
    note: `${figure(turns, (at) => at(name).cost).value.toFixed(0)} us of its processor a request`,
  })
  const beside = (what: keyof Turn, mine: Name, theirs: Name) =>
    figure(turns, (at) => at(mine)[what] / at(theirs)[what])
  const row = (name: string, mine: Name, theirs: Name, target: Pick<Row, 'atLeast'> = {}): Row => ({
    name,
    value: beside('rate', mine, theirs),
    unit: 'times',
    ...target,
  })
  return {
    title: 'Over sockets: requests per second of one process, 20 connections',
    control: beside('rate', 'by hand, again', 'by hand'),
    rows: [
      ...names.map((name) =>
        name === 'fixed bytes' ? { ...rate(name), name: 'the load generator, on fixed bytes' } : rate(name),
      ),
      row('ours beside by hand', 'ours', 'by hand', { atLeast: 0.98 }),
      {
        name: 'the same, in processor time of the server',
        value: beside('cost', 'ours', 'by hand'),
        unit: 'times',
        target: 1 / 0.98,
        control: beside('cost', 'by hand, again', 'by hand'),
      },
      row('ours beside bare', 'ours', 'bare'),
      row('koa-passport beside bare', 'passport', 'bare'),
      row('ours beside koa-passport', 'ours', 'passport', { atLeast: 1 }),
      row('ours beside koa-jwt, the same verifier', 'ours, JWT', 'koa-jwt', { atLeast: 1 }),
      row('hono bearer beside its bare', 'hono bearer', 'hono bare'),
      row('fastify bearer beside its bare', 'fastify bearer', 'fastify bare'),
    ],
  }
}

if (process.argv[1] === self) {
  const server = await serverOf(process.argv[2] ?? '')
  // connections rest while others have their turns
  if ('keepAliveTimeout' in server) Object.assign(server, { keepAliveTimeout: 0 })
  process.on('message', () => {
    const { user, system } = process.cpuUsage()
    process.send?.(user + system)
  })
  process.on('disconnect', () => process.exit())
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
}
