/**
 * Start-up time and memory of 10,000 routes under three levels, and the time to build the document. Each figure is
 * measured in separate processes.
 */
import Router from '@koa/router'
import { httpBearer, withAuth } from '../../../dist/index.js'
import { seal } from '../../../dist/audit.js'
import { openApi } from '../../../dist/openapi.js'
import { apart, oneByOne } from './inProcess.js'
import { registered } from './koaApps.js'
import { collecting, heapOf } from './memory.js'
import { row, type Section } from './Section.js'
import { medianOf } from './statistics.js'

const ROUTES = 10_000
const OPERATIONS = 5000

const milliseconds = (work: () => unknown): number => {
  const begun = process.hrtime.bigint()
  work()
  return Number(process.hrtime.bigint() - begun) / 1e6
}

// The first ones fill what is kept once
const memoryOf = (make: () => unknown): Promise<number> => {
  make()
  return heapOf(make)
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

const figures = {
  'time bare': () => milliseconds(() => registered(ROUTES, false)),
  'time ours': () => milliseconds(() => registered(ROUTES, true)),
  'levels bare': () => milliseconds(() => registered(ROUTES, false, 8)),
  'levels ours': () => milliseconds(() => registered(ROUTES, true, 8)),
  'memory bare': () => memoryOf(() => registered(ROUTES, false)),
  'memory ours': () => memoryOf(() => registered(ROUTES, true)),
  document: documented,
  seal: sealed,
} satisfies Readonly<Record<string, () => number | Promise<number>>>

const figureOf = apart(import.meta.url, (name: keyof typeof figures) => figures[name](), [
  ...collecting,
  '--max-semi-space-size=256',
])

// In turns, so that each round compares them under the same conditions
const inTurns = async (name: 'time' | 'levels' | 'memory', rounds: number) => {
  const all = await oneByOne(rounds, async () => ({
    ours: await figureOf(`${name} ours`),
    bare: await figureOf(`${name} bare`),
    again: await figureOf(`${name} bare`),
  }))
  return (label: string, unit: 'times' | 'KB', target: number, figure: (mine: number, bare: number) => number) =>
    row(label, medianOf(all.map(({ ours, bare }) => figure(ours, bare))), unit, {
      target,
      control: medianOf(all.map(({ again, bare }) => figure(again, bare))),
    })
}

export const footprint = async (rounds: number): Promise<Section> => {
  // The figure with the most noise is measured more often
  const time = await inTurns('time', 2 * rounds)
  const levels = await inTurns('levels', rounds)
  const memory = await inTurns('memory', rounds)
  const beside = (mine: number, bare: number) => mine / bare
  const perRoute = (mine: number, bare: number) => (mine - bare) / ROUTES / 1024
  const documents = await oneByOne(rounds, () => figureOf('document'))
  const seals = await oneByOne(rounds, () => figureOf('seal'))
  return {
    title: `${ROUTES} routes under three levels; the document of ${OPERATIONS} operations`,
    rows: [
      time('registering them, beside the bare router', 'times', 1.5, beside),
      levels('registering them under eight levels, beside the bare router', 'times', 1.5, beside),
      memory('memory a route, more than the bare router', 'KB', 1, perRoute),
      row('building the document', medianOf(documents), 'ms', { target: 1000 }),
      row(`sealing ${OPERATIONS} operations, in processor time`, medianOf(seals), 'ms', { target: 2000 }),
    ],
  }
}
