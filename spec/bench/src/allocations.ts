/** Measures what a request allocates. */
import { bearer } from './contestants.js'
import { apart, oneByOne } from './inProcess.js'
import { koaApps } from './koaApps.js'
import { allocatedBy, sampling } from './memory.js'
import type { Row, Section } from './Section.js'
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
  return {
    title: 'Allocated by a request',
    rows: [
      ...names.map((name): Row => ({ name, value: of((round) => round[name]), unit: 'bytes' })),
      {
        name: 'ours, more than by hand in middleware',
        value: of((round) => round.ours - round[middleware]),
        unit: 'bytes',
        target: 200,
        control: of((round) => round.again - round[middleware]),
      },
      {
        name: 'ours beside by hand in middleware',
        value: of((round) => round.ours / round[middleware]),
        unit: 'times',
      },
      {
        name: 'control: by hand in middleware twice',
        value: of((round) => round.again / round[middleware]),
        unit: 'times',
      },
    ],
  }
}
