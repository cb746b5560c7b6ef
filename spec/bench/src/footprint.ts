/**
 * Start-up time and memory of 10,000 routes under three levels, and the time to build the document. Each figure is
 * measured in separate processes: `node --expose-gc dist/footprint.js <what>` prints one number.
 */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import Router from '@koa/router'
import { httpBearer, withAuth } from '../../../dist/index.js'
import { seal } from '../../../dist/audit.js'
import { openApi } from '../../../dist/openapi.js'
import { registered } from './koaApps.js'
import type { Section } from './Section.js'
import { medianOf } from './statistics.js'

const ROUTES = 10_000
const OPERATIONS = 5000

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

const guardedRouter = () => {
  const bearer = httpBearer({ authenticate: () => false })
  const router = withAuth(bearer)(new Router())
  for (let at = 0; at < OPERATIONS; at++) router.get(`/things${at}/:id`, () => {})
  return router
}

const documented = (): number => {
  const router = guardedRouter()
  return milliseconds(() => openApi(router, { title: 'Things', version: '1.0.0' }))
}

const sealed = (): number => {
  const router = guardedRouter()
  const before = process.cpuUsage()
  seal(router)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

const figures: Readonly<Record<string, () => number>> = {
  'time bare': () => milliseconds(() => registered(ROUTES, false)),
  'time ours': () => milliseconds(() => registered(ROUTES, true)),
  'levels bare': () => milliseconds(() => registered(ROUTES, false, 8)),
  'levels ours': () => milliseconds(() => registered(ROUTES, true, 8)),
  'memory bare': () => heapOf(() => registered(ROUTES, false)),
  'memory ours': () => heapOf(() => registered(ROUTES, true)),
  document: documented,
  seal: sealed,
}

const self = fileURLToPath(import.meta.url)

const inProcess = (what: string): number =>
  Number(execFileSync(process.execPath, ['--expose-gc', '--max-semi-space-size=256', self, what], { encoding: 'utf8' }))

// In turns, so that each round compares them under the same conditions
const inTurns = (what: string, rounds: number) => {
  const [ours, bare] = [`${what} ours`, `${what} bare`]
  const all = Array.from({ length: rounds }, () => {
    const [a, b, again] = [inProcess(ours), inProcess(bare), inProcess(bare)]
    return { ours: a, bare: b, again }
  })
  return {
    figure: (f: (mine: number, bare: number) => number) => medianOf(all.map((round) => f(round.ours, round.bare))),
    control: (f: (mine: number, bare: number) => number) => medianOf(all.map((round) => f(round.again, round.bare))),
  }
}

export const footprint = (rounds: number): Section => {
  // The figure with the most noise is measured more often
  const time = inTurns('time', 2 * rounds)
  const levels = inTurns('levels', rounds)
  const memory = inTurns('memory', rounds)
  const beside = (mine: number, bare: number) => mine / bare
  const perRoute = (mine: number, bare: number) => (mine - bare) / ROUTES / 1024
  return {
    title: `${ROUTES} routes under three levels; the document of ${OPERATIONS} operations`,
    rows: [
      {
        name: 'registering them, beside the bare router',
        value: time.figure(beside),
        unit: 'times',
        target: 1.5,
        control: time.control(beside),
      },
      {
        name: 'registering them under eight levels, beside the bare router',
        value: levels.figure(beside),
        unit: 'times',
        target: 1.5,
        control: levels.control(beside),
      },
      {
        name: 'memory a route, more than the bare router',
        value: memory.figure(perRoute),
        unit: 'KB',
        target: 1,
        control: memory.control(perRoute),
      },
      {
        name: 'building the document',
        value: medianOf(Array.from({ length: rounds }, () => inProcess('document'))),
        unit: 'ms',
        target: 1000,
      },
      {
        name: `sealing ${OPERATIONS} operations, in processor time`,
        value: medianOf(Array.from({ length: rounds }, () => inProcess('seal'))),
        unit: 'ms',
        target: 2000,
      },
    ],
  }
}

if (process.argv[1] === self) {
  const figure = figures[process.argv[2] ?? '']
  if (figure === undefined) throw new Error(`there is no figure ${process.argv[2]}`)
  console.log(figure())
}
