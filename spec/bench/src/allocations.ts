/**
 * Measures what a request allocates. `node --expose-gc dist/allocations.js <contestant>` prints the bytes of many short
 * samples.
 *
 * The young generation has a fixed size that holds a whole sample, so nothing is collected during one. The heap is
 * collected before each. A response is kept meanwhile: V8 throws away what it has compiled for objects of which none is left. Early
 * samples are too large, because the optimizer is still compiling, so the median counts.
 */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { koaApps } from './koaApps.js'
import type { Row, Section } from './Section.js'
import { median, medianOf } from './statistics.js'
import { ask, headersOf } from './stub.js'

const REQUESTS = 500
const WARM_UP = 20_000
// The check by hand is middleware, as a guard is: each function of an operation costs a promise and a closure of koa-compose
const middleware = 'by hand, in middleware'
const again = 'again'
const names = ['bare', 'by hand', middleware, 'ours', again] as const
type Name = (typeof names)[number]

const looks = async (name: Name, count: number): Promise<ReadonlyArray<number>> => {
  const { gc } = globalThis
  if (gc === undefined) throw new Error('start it with --expose-gc')
  const listener = koaApps[name === again ? middleware : name]()
  const headers = headersOf({ Authorization: 'Bearer supersecret' })
  const bytes: number[] = []
  for (let at = 0; at < WARM_UP; at++) await ask(listener, '/x', headers)
  for (let look = 0; look < count; look++) {
    const kept = await ask(listener, '/x', headers)
    gc()
    if (!kept.headersSent) throw new Error('no answer')
    const before = process.memoryUsage().heapUsed
    for (let at = 0; at < REQUESTS; at++) await ask(listener, '/x', headers)
    bytes.push((process.memoryUsage().heapUsed - before) / REQUESTS)
  }
  return bytes
}

const self = fileURLToPath(import.meta.url)
const flags = ['--expose-gc', '--min-semi-space-size=64', '--max-semi-space-size=64', '--single-threaded-gc']
const inProcess = (name: Name, count: number): number => {
  const text = execFileSync(process.execPath, [...flags, self, name, String(count)], { encoding: 'utf8' })
  return median(JSON.parse(text) as number[])
}

/** Over so many processes of each. */
export const allocations = (processes: number, count: number): Section => {
  const rounds = Array.from(
    { length: processes },
    () => Object.fromEntries(names.map((name) => [name, inProcess(name, count)])) as Record<Name, number>,
  )
  const of = (figure: (round: Record<Name, number>) => number) => medianOf(rounds.map(figure))
  const row = (name: Name): Row => ({ name, value: of((round) => round[name]), unit: 'bytes' })
  return {
    title: 'Allocated by a request',
    rows: [
      row('bare'),
      row('by hand'),
      row(middleware),
      row('ours'),
      {
        name: 'ours, more than by hand in middleware',
        value: of((round) => round.ours - round[middleware]),
        unit: 'bytes',
        target: 200,
        control: of((round) => round[again] - round[middleware]),
      },
      {
        name: 'ours beside by hand in middleware',
        value: of((round) => round.ours / round[middleware]),
        unit: 'times',
      },
      {
        name: 'control: by hand in middleware twice',
        value: of((round) => round[again] / round[middleware]),
        unit: 'times',
      },
    ],
  }
}

if (process.argv[1] === self) {
  const name = names.find((one) => one === process.argv[2])
  if (name === undefined) throw new Error(`no contestant is called ${process.argv[2]}`)
  console.log(JSON.stringify(await looks(name, Number(process.argv[3]))))
}
