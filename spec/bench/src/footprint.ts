/**
 * Start-up time and memory of 10,000 routes under three levels, the time of building the document, and what a request
 * allocates. Each figure is measured in processes of its own: `node --expose-gc dist/footprint.js <what>` prints one number.
 */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import Router from '@koa/router'
import { httpBearer, withAuth } from '../../../dist/index.js'
import { openApi } from '../../../dist/openapi/index.js'
import { koaApps, registered } from './koaApps.js'
import type { Row, Section } from './measurements.js'
import { estimate, median, type Estimate } from './statistics.js'
import { ask, headersOf } from './stub.js'

const ROUTES = 10_000
const OPERATIONS = 5000
const REQUESTS = 3000

const collect = (): void => {
  if (globalThis.gc === undefined) throw new Error('start it with --expose-gc')
  globalThis.gc()
}

const milliseconds = (work: () => unknown): number => {
  const begun = process.hrtime.bigint()
  work()
  return Number(process.hrtime.bigint() - begun) / 1e6
}

const heapOf = (make: () => unknown): number => {
  make()
  collect()
  const before = process.memoryUsage().heapUsed
  const kept = make()
  collect()
  const after = process.memoryUsage().heapUsed
  if (kept === undefined) throw new Error('nothing was made')
  return after - before
}

// With a young generation that holds everything, nothing is collected between the two looks
const allocated = async (name: 'bare' | 'by hand' | 'ours'): Promise<number> => {
  const listener = koaApps[name]()
  const headers = headersOf({ Authorization: 'Bearer supersecret' })
  for (let at = 0; at < REQUESTS; at++) await ask(listener, '/x', headers)
  collect()
  const before = process.memoryUsage().heapUsed
  for (let at = 0; at < REQUESTS; at++) await ask(listener, '/x', headers)
  return (process.memoryUsage().heapUsed - before) / REQUESTS
}

const documented = (): number => {
  const bearer = httpBearer({ authenticate: () => false })
  const router = withAuth(bearer)(new Router())
  for (let at = 0; at < OPERATIONS; at++) router.get(`/things${at}/:id`, () => {})
  return milliseconds(() => openApi(router, { title: 'Things', version: '1.0.0' }))
}

const figures: Readonly<Record<string, () => number | Promise<number>>> = {
  'time bare': () => milliseconds(() => registered(ROUTES, false)),
  'time ours': () => milliseconds(() => registered(ROUTES, true)),
  'memory bare': () => heapOf(() => registered(ROUTES, false)),
  'memory ours': () => heapOf(() => registered(ROUTES, true)),
  'bytes bare': () => allocated('bare'),
  'bytes by hand': () => allocated('by hand'),
  'bytes ours': () => allocated('ours'),
  document: documented,
}

const self = fileURLToPath(import.meta.url)

const inProcess = (what: string): number =>
  Number(execFileSync(process.execPath, ['--expose-gc', '--max-semi-space-size=256', self, what], { encoding: 'utf8' }))

const measured = (what: string, times: number): ReadonlyArray<number> =>
  Array.from({ length: times }, () => inProcess(what))

// In turns, so that each pair is compared under one weather
const inTurns = (a: string, b: string, times: number): readonly [ReadonlyArray<number>, ReadonlyArray<number>] => {
  const pairs = Array.from({ length: times }, () => [inProcess(a), inProcess(b)] as const)
  return [pairs.map(([one]) => one), pairs.map(([, other]) => other)]
}

const of = (values: ReadonlyArray<number>, scale = 1): Estimate =>
  estimate(values.length, (rounds) => median(rounds.map((round) => (values[round] ?? Number.NaN) * scale)))

const paired = (a: ReadonlyArray<number>, b: ReadonlyArray<number>, f: (a: number, b: number) => number): Estimate =>
  of(a.map((one, at) => f(one, b[at] ?? Number.NaN)))

export const footprint = (times: number): Section => {
  const get = (what: string) => measured(what, times)
  // the noisiest figure is looked at three times as often, unless one look at each is all that is asked for
  const [timeOurs, timeBare] = inTurns('time ours', 'time bare', 3 * times - 2)
  const [memoryOurs, memoryBare] = inTurns('memory ours', 'memory bare', times)
  const bytes = (['bare', 'by hand', 'ours'] as const).map((name): Row => ({
    name: `allocated by a request, ${name}`,
    value: of(get(`bytes ${name}`)),
    unit: 'bytes',
  }))
  return {
    title: `${ROUTES} routes under three levels; the document of ${OPERATIONS} operations; allocations`,
    rows: [
      {
        name: 'registering them, beside the bare router',
        value: paired(timeOurs, timeBare, (a, b) => a / b),
        unit: 'times',
        target: 1.5,
      },
      {
        name: 'memory a route, more than the bare router',
        value: paired(memoryOurs, memoryBare, (a, b) => (a - b) / ROUTES / 1024),
        unit: 'KB',
        target: 1,
      },
      { name: 'building the document', value: of(get('document')), unit: 'ms', target: 1000 },
      ...bytes,
    ],
  }
}

if (process.argv[1] === self) {
  const figure = figures[process.argv[2] ?? '']
  if (figure === undefined) throw new Error(`there is no figure ${process.argv[2]}`)
  console.log(await figure())
}
