/**
 * Measures requests per second of one process over real sockets of the loopback interface. All servers run at the same
 * time, each in a separate process. They are asked in short turns, in another order in each round, so that ratios
 * compare the same conditions.
 *
 * One machine does the work of two. If the load generator is slower than the servers, all servers look alike. So a row
 * shows its limit, with a server that answers fixed bytes. And each row has the processor time of its server, which
 * does not depend on the generator.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { get } from 'node:http'
import { oneByOne } from './inProcess.js'
import { signedToken } from './koaApps.js'
import { load, type Load } from './load.js'
import { shuffled } from './paired.js'
import { row, type Row, type Section } from './Section.js'
import { AGAIN, serverNames, serversModule, type ServerName } from './servers.js'
import { ofProcesses, type Estimate } from './statistics.js'

/** A server in a process of its own. */
export interface Running {
  readonly name: ServerName
  readonly child: ChildProcess
  readonly port: number
  readonly load: Load
}

const messageOf = (child: ChildProcess): Promise<number> =>
  new Promise((resolve, reject) => {
    const failed = (): void => reject(new Error('a server ended'))
    child.once('exit', failed)
    child.once('message', (value) => {
      child.off('exit', failed)
      resolve(Number(value))
    })
  })

const tokenOf = (name: ServerName): string => (name.toLowerCase().includes('jwt') ? signedToken : 'supersecret')

/** Starts a server, and connects to it. */
export const started = async (name: ServerName): Promise<Running> => {
  const child = fork(serversModule, [name])
  const port = await messageOf(child)
  return { name, child, port, load: await load(port, { Authorization: `Bearer ${tokenOf(name)}` }) }
}

export const stopped = (running: ReadonlyArray<Running>): void => {
  for (const { child, load } of running) {
    load.close()
    child.kill()
  }
}

// Status, headers and body, without what differs by the moment
const answerOf = ({ port }: Running, token: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const options = { port, host: '127.0.0.1', path: '/x', agent: false, headers: { Authorization: `Bearer ${token}` } }
    get(options, (response) => {
      const { date: _, ...headers } = response.headers
      let body = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (body += chunk))
      response.on('end', () => resolve(JSON.stringify([response.statusCode, Object.entries(headers).sort(), body])))
    }).on('error', reject)
  })

const pair = ['by hand', `by hand${AGAIN}`, 'ours', `ours${AGAIN}`] as const

const expectAlike = async (running: ReadonlyArray<Running>): Promise<void> => {
  const some = running.filter(({ name }) => pair.some((one) => one === name))
  for (const token of ['supersecret', 'wrong']) {
    const answers = new Set(await Promise.all(some.map((one) => answerOf(one, token))))
    if (answers.size > 1) throw new Error(`over sockets contestants answer differently:\n${[...answers].join('\n')}`)
  }
}

// Microseconds of processor time since the process began, including that of the kernel
const processorTime = ({ child }: Running): Promise<number> => {
  const answer = messageOf(child)
  child.send('time')
  return answer
}

/** The measurement of one server in one round. */
interface Round {
  /** Microseconds that passed for a request. */
  readonly time: number
  /** The server's microseconds of processor time for a request. */
  readonly cost: number
}

const turnOf = async (one: Running, requests: number): Promise<Round> => {
  const before = await processorTime(one)
  const begun = performance.now()
  await one.load.send(requests)
  const time = ((performance.now() - begun) * 1000) / requests
  return { time, cost: ((await processorTime(one)) - before) / requests }
}

/** Requests after which V8 has compiled a server. */
export const WARM_UP = 8000
// The contestants of the target have more turns in each round
const TURNS = 3

// A token takes twenty times as long to verify as a secret
const requestsOf = ({ name }: Running, requests: number): number =>
  name.toLowerCase().includes('jwt') ? Math.ceil(requests / 10) : requests

type Rounds = ReadonlyMap<ServerName, ReadonlyArray<Round>>

const mean = (turns: ReadonlyArray<Round>, of: keyof Round): number =>
  turns.reduce((sum, turn) => sum + turn[of], 0) / turns.length

// Two equal processes differ because of their place in memory, so there are several of each
const generation = async (rounds: number, requests: number): Promise<Rounds> => {
  const running = await Promise.all(serverNames.map(started))
  try {
    await expectAlike(running)
    for (const one of running) await one.load.send(requestsOf(one, WARM_UP))
    const all = running.flatMap(
      (one) => Array(pair.some((name) => name === one.name) ? TURNS : 1).fill(one) as Running[],
    )
    const measured = new Map(serverNames.map((name) => [name, [] as Round[]]))
    for (let round = 0; round < rounds; round++) {
      const turns = new Map(serverNames.map((name) => [name, [] as Round[]]))
      for (const one of shuffled(all, round)) turns.get(one.name)?.push(await turnOf(one, requestsOf(one, requests)))
      for (const [name, some] of turns) {
        measured.get(name)?.push({ time: mean(some, 'time'), cost: mean(some, 'cost') })
      }
    }
    return measured
  } finally {
    stopped(running)
  }
}

export interface SocketsPace {
  /** How often all servers are started again. */
  readonly generations: number
  readonly rounds: number
  /** Requests of one turn. */
  readonly requests: number
}

type Figure = (of: (...names: ReadonlyArray<ServerName>) => Round) => number

const figures = (generations: ReadonlyArray<Rounds>) => {
  const inEach = (some: Rounds, figure: Figure): ReadonlyArray<number> =>
    (some.get('bare') ?? []).map((_, round) =>
      figure((...names) => {
        const those = names.flatMap((name) => some.get(name)?.slice(round, round + 1) ?? [])
        return { time: mean(those, 'time'), cost: mean(those, 'cost') }
      }),
    )
  return (figure: Figure): Estimate => ofProcesses(generations.map((some) => inEach(some, figure)))
}

export const sockets = async ({ generations, rounds, requests }: SocketsPace): Promise<Section> => {
  const of = figures(await oneByOne(generations, () => generation(rounds, requests)))
  const [hands, mine] = [['by hand', `by hand${AGAIN}`] as const, ['ours', `ours${AGAIN}`] as const]
  const rate = (name: ServerName): Row => {
    const perSecond = of((at) => 1e6 / at(name).time)
    const note = `${of((at) => at(name).cost).value.toFixed(1)} us of its processor a request`
    return row(name === 'fixed bytes' ? 'the load generator, on fixed bytes' : name, perSecond, 'req/s', { note })
  }
  type Names = ReadonlyArray<ServerName>
  // Requests per second are the reverse of time
  const beside = (name: string, ours: Names, theirs: Names, target: Pick<Row, 'atLeast'> = {}): Row => {
    const times = of((at) => at(...theirs).time / at(...ours).time)
    return row(name, times, 'times', target)
  }
  const inProcessorTime = (ours: Names, theirs: Names) => of((at) => at(...ours).cost / at(...theirs).cost)
  return {
    title: 'Over sockets: requests per second of one process, 20 connections',
    control: of((at) => at('by hand').time / at(`by hand${AGAIN}`).time),
    rows: [
      ...serverNames.map(rate),
      beside('ours beside by hand, two processes of each', mine, hands, { atLeast: 0.98 }),
      row('the same, in processor time of the server', inProcessorTime(mine, hands), 'times', {
        target: 1 / 0.98,
        control: inProcessorTime([`by hand${AGAIN}`], ['by hand']),
      }),
      beside('ours beside bare', ['ours'], ['bare']),
      beside('koa-passport beside bare', ['passport'], ['bare']),
      beside('ours beside koa-passport', ['ours'], ['passport'], { atLeast: 1 }),
      beside('ours beside koa-jwt, the same verifier', ['ours, JWT'], ['koa-jwt'], { atLeast: 1 }),
    ],
  }
}
