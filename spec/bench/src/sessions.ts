/** What the session of a signed-in user costs: beside koa-session by hand, on each store, and beside other libraries. */
import type { RequestListener } from 'node:http'
import { callsInRequest } from './calls.js'
import { withEngines } from './engines.js'
import { apart, oneByOne } from './inProcess.js'
import { allocatedBy, sampling } from './memory.js'
import { besideByHand, microseconds, race, ratio, type Contestant, type Pace, type Pair } from './paired.js'
import { row, type Row, type Section } from './Section.js'
import { byHand, ours, sessionApps, visitorOf } from './sessionApps.js'
import { medianOf } from './statistics.js'
import { answerOf, ask, headersOf, type Headers } from './stub.js'

// Throws where a contestant does not do its work
const contestant = async (name: string, listener: RequestListener, url: string, headers: Headers) => {
  const { status, body } = await answerOf(listener, url, headers)
  // express-session writes the last character alone
  if (status !== 200 || !body.endsWith('}')) throw new Error(`${name}: ${status} ${body}`)
  return { name, run: () => ask(listener, url, headers) }
}

interface Two {
  readonly name: string
  readonly hand: RequestListener
  readonly mine: RequestListener
  readonly url: string
  readonly target: number
  readonly visitor: (listener: RequestListener) => Promise<Headers>
}

const pairRows = async (all: ReadonlyArray<Two>, pace: Pace): Promise<ReadonlyArray<Row>> => {
  const pairs: Pair[] = []
  for (const { name, hand, mine, url, target, visitor } of all) {
    const of = async (listener: RequestListener) => (await contestant(name, listener, url, await visitor(listener))).run
    pairs.push({ name, target, hand: await of(hand), mine: await of(mine) })
  }
  return besideByHand(pairs, pace)
}

const signedIn = { url: '/me', target: 1, visitor: (listener: RequestListener) => visitorOf(listener) }
const without = { url: '/open', target: 1.05 }

const inMemory = (pace: Pace): Promise<ReadonlyArray<Row>> => {
  const [hand, mine] = [byHand(), ours()]
  const over = (listener: RequestListener) => visitorOf(listener, true)
  const anonymous = () => Promise.resolve(headersOf({}))
  return pairRows(
    [
      { name: 'in memory', hand, mine, ...signedIn },
      { name: 'without a session', hand, mine, ...without, visitor: anonymous },
      { name: 'whose session is over', hand, mine, ...without, visitor: over },
    ],
    pace,
  )
}

const targets = { SQLite: 1, Redis: 1, PostgreSQL: 1.15 }

// A store waits for its driver, so the processor time of all threads counts
const lasting = (pace: Pace): Promise<ReadonlyArray<Row>> =>
  withEngines((engines) =>
    pairRows(
      engines.map(({ name, mine, hand }) => ({
        ...signedIn,
        name: `on ${name}`,
        hand: byHand(hand),
        mine: ours(mine),
        target: targets[name],
      })),
      pace,
    ),
  )

type Name = keyof typeof sessionApps
// Safe: these are its keys
const names = Object.keys(sessionApps) as ReadonlyArray<Name>

const beside = async (others: ReadonlyArray<Name>, pace: Pace): Promise<ReadonlyArray<Row>> => {
  const contestants: Contestant[] = []
  for (const name of ['ours', ...others] as const) {
    const listener = await sessionApps[name]()
    contestants.push(await contestant(name, listener, '/me', await visitorOf(listener)))
  }
  const times = await race(contestants, pace)
  return others.map((name) =>
    row(`ours beside ${name}`, ratio(times, 'ours', name), 'times', {
      note: `${name} ${microseconds(times, name).toFixed(1)} us`,
    }),
  )
}

// It takes milliseconds, so a turn has fewer requests
const slow: Name = 'h3'

const bytesOf = apart(
  import.meta.url,
  async (name: Name, samples: number) => {
    const listener = await sessionApps[name]()
    return allocatedBy(listener, '/me', await visitorOf(listener), { samples, requests: 400 })
  },
  sampling,
)

const allocated = async (processes: number, samples: number): Promise<ReadonlyArray<Row>> => {
  const rounds = await oneByOne(processes, async () => ({
    hand: await bytesOf('by hand', samples),
    again: await bytesOf('by hand', samples),
    mine: await bytesOf('ours', samples),
  }))
  const of = (figure: (round: (typeof rounds)[number]) => number) => medianOf(rounds.map(figure))
  const byOthers = of(({ hand }) => hand)
  const more = of(({ mine, hand }) => mine - hand)
  const control = of(({ again, hand }) => again - hand)
  return [
    row('allocated by hand', byOthers, 'bytes'),
    row('allocated more by ours', more, 'bytes', { target: 2000, control }),
  ]
}

/** The section. */
export const sessions = async (pace: Pace, processes: number): Promise<Section> => ({
  title: 'A request with a session, beside koa-session by hand',
  rows: [
    ...(await inMemory({ ...pace, clock: 'processor' })),
    ...(await lasting({ ...pace, clock: 'processor' })),
    ...(await beside(
      names.filter((name) => name !== 'ours' && name !== slow),
      { ...pace, clock: 'processor' },
    )),
    ...(await beside([slow], { rounds: 20, batch: 5, warmUp: 100, clock: 'processor' })),
    ...(await callsInRequest()),
    ...(await allocated(processes, 15)),
  ],
})
