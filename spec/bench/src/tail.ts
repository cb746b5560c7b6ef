/**
 * How long the slowest answers take while requests arrive by themselves, as users do: the next one does not wait for the answer before.
 * Bare Koa, the check by hand and this library get the same arrivals, at 50 % and at 80 % of what one core can answer by hand. So a
 * guard that needs more time has less room at 80 %, and its slowest answers show it.
 *
 * `npm run bench:tail`. The load generator needs a second core.
 */
import { oneByOne } from './inProcess.js'
import { shuffled } from './paired.js'
import { row, type Row, type Section } from './Section.js'
import { AGAIN, type ServerName } from './servers.js'
import { started, stopped, WARM_UP, type Running } from './sockets.js'
import { median, medianOf, quantile, type Estimate } from './statistics.js'

const contestants = ['bare', 'by hand', `by hand${AGAIN}`, 'ours'] as const satisfies ReadonlyArray<ServerName>
type Contestant = (typeof contestants)[number]

const SHARES = [0.5, 0.8]
const quantiles = ['p50', 'p99', 'p99.9'] as const
type Quantile = (typeof quantiles)[number]

/** Independent arrivals (a Poisson process) at a rate, in milliseconds: the same for each contestant of a round. */
const arrivals = (perSecond: number, seconds: number, seed: number): Float64Array => {
  let [state, at] = [seed + 1, 0]
  return Float64Array.from({ length: Math.ceil(perSecond * seconds) }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    at -= (Math.log((state + 1) / 2 ** 32) / perSecond) * 1000
    return at
  })
}

const perSecondOf = async ({ load }: Running, requests: number): Promise<number> => {
  const begun = performance.now()
  await load.send(requests)
  return requests / ((performance.now() - begun) / 1000)
}

type Measured = Readonly<Record<Quantile, number>>

const measure = async ({ load }: Running, due: Float64Array): Promise<Measured> => {
  const took = await load.arrive(due)
  const at = (share: number) => quantile([...took], share)
  return { p50: at(0.5), p99: at(0.99), 'p99.9': at(0.999) }
}

export interface TailPace {
  readonly rounds: number
  /** How long requests arrive at one server, in one round. */
  readonly seconds: number
}

type Rounds = ReadonlyArray<ReadonlyMap<Contestant, Measured>>

const roundsAt = async (running: ReadonlyArray<Running>, rate: number, { rounds, seconds }: TailPace) => {
  const all: Array<Map<Contestant, Measured>> = []
  for (let round = 0; round < rounds; round++) {
    const due = arrivals(rate, seconds, round)
    const measured = new Map<Contestant, Measured>()
    for (const one of shuffled(running, round)) {
      // Safe: only contestants are started
      measured.set(one.name as Contestant, await measure(one, due))
    }
    all.push(measured)
  }
  return all
}

const rowsAt = (share: number, rounds: Rounds): ReadonlyArray<Row> => {
  const of = (figure: (at: (name: Contestant) => number) => number, quantile: Quantile): Estimate =>
    medianOf(rounds.map((round) => figure((name) => round.get(name)?.[quantile] ?? Number.NaN)))
  const at = `at ${share * 100} % of the requests that one core answers by hand`
  return quantiles.flatMap((quantile): ReadonlyArray<Row> => {
    const figure = (name: Contestant) => of((time) => 1000 * time(name), quantile)
    const beside = (name: Contestant) => of((time) => time(name) / time('by hand'), quantile)
    return [
      ...(['bare', 'by hand', 'ours'] as const).map((name) => row(`${at}: ${quantile}, ${name}`, figure(name), 'us')),
      row(`${at}: ${quantile}, ours beside by hand`, beside('ours'), 'times', { control: beside(`by hand${AGAIN}`) }),
    ]
  })
}

export const tail = async (pace: TailPace): Promise<Section> => {
  const running = await Promise.all(contestants.map(started))
  try {
    for (const one of running) await one.load.send(WARM_UP)
    const byHand = running.find(({ name }) => name === 'by hand')
    if (byHand === undefined) throw new Error('the check by hand was not started')
    const capacity = median(await oneByOne(5, () => perSecondOf(byHand, WARM_UP)))
    const rows: Row[] = []
    for (const share of SHARES) rows.push(...rowsAt(share, await roundsAt(running, capacity * share, pace)))
    return { title: 'The slowest answers under open load', rows }
  } finally {
    stopped(running)
  }
}
