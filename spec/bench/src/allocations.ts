/** Measures what a request allocates. */
import { bearer } from './contestants.js'
import { apart, oneByOne } from './inProcess.js'
import { koaApps } from './koaApps.js'
import { allocatedBy, sampling } from './memory.js'
import { row, type Section } from './Section.js'
import { medianOf } from './statistics.js'

// The check by hand is middleware, as a guard is: each function of an operation costs a promise and a closure of koa-compose
const middleware = 'by hand, in middleware'
const names = ['bare', 'by hand', middleware, 'ours'] as const
type Name = (typeof names)[number]

const headers = bearer('supersecret')
const bytesOf = apart(
  import.meta.url,
  (name: Name, samples: number) => allocatedBy(koaApps[name](), '/x', headers, { samples, requests: 500 }),
  sampling,
)

/** Over so many processes of each. */
export const allocations = async (processes: number, samples: number): Promise<Section> => {
  const rounds = await oneByOne(processes, async () => ({
    bare: await bytesOf('bare', samples),
    'by hand': await bytesOf('by hand', samples),
    [middleware]: await bytesOf(middleware, samples),
    ours: await bytesOf('ours', samples),
    again: await bytesOf(middleware, samples),
  }))
  const of = (figure: (round: (typeof rounds)[number]) => number) => medianOf(rounds.map(figure))
  const beside = (name: 'ours' | 'again') => of((round) => round[name] / round[middleware])
  const bytes = (name: Name) => of((round) => round[name])
  const more = (name: 'ours' | 'again') => of((round) => round[name] - round[middleware])
  return {
    title: 'Allocated by a request',
    rows: [
      ...names.map((name) => row(name, bytes(name), 'bytes')),
      row('ours, more than by hand in middleware', more('ours'), 'bytes', { target: 150, control: more('again') }),
      row('ours beside by hand in middleware', beside('ours'), 'times'),
      row('control: by hand in middleware twice', beside('again'), 'times'),
    ],
  }
}
