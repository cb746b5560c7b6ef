/**
 * Compares with the check by hand: two applications, with all kinds in one process. `node dist/koa.js <pace as JSON>`
 * checks that they send the same answers, and prints the ratios of each round.
 */
import { fileURLToPath } from 'node:url'
import { expectAlike } from './alike.js'
import { inProcess } from './inProcess.js'
import { race, type Contestant, type Pace } from './paired.js'
import { hanging, questions, timed } from './questions.js'
import type { Row, Section } from './Section.js'
import { median, ofProcesses, type Estimate } from './statistics.js'
import { ask } from './stub.js'
import { twoApps, type Setting } from './twoApps.js'

const apps = (setting: Setting) => ({ 'by hand': twoApps['by hand'](setting), ours: twoApps.ours(setting) })

/** Throws where the two applications answer differently. */
export const expectTwoAlike = async (): Promise<void> => {
  const plain = apps({})
  const behindCors = apps({ before: (ctx, next) => (ctx.set('Vary', 'Origin'), next()) })
  for (const question of questions) {
    await expectAlike(question, plain)
    await expectAlike(question, behindCors)
  }
  await expectAlike(hanging, apps({ limit: 20 }))
}

/** What one kind measured in one process. */
interface Measured {
  readonly name: string
  /** Nanoseconds of a request by hand. */
  readonly cost: number
  readonly ours: ReadonlyArray<number>
  readonly control: ReadonlyArray<number>
}

const roles = ['by hand', 'by hand, again', 'ours'] as const

const measured = async (pace: Pace): Promise<ReadonlyArray<Measured>> => {
  const { 'by hand': hand, ours } = apps({})
  const contestants = timed.flatMap(({ name, url, headers }): Contestant[] =>
    roles.map((role) => {
      const listener = role === 'ours' ? ours : hand
      return { name: `${name}: ${role}`, run: () => ask(listener, url, headers) }
    }),
  )
  const times = await race(contestants, pace)
  return timed.map(({ name }) => {
    const [first = [], again = [], mine = []] = roles.map((role) => times.get(`${name}: ${role}`))
    const beside = (some: ReadonlyArray<number>) => some.map((time, round) => time / (first[round] ?? Number.NaN))
    return { name, cost: median(first), ours: beside(mine), control: beside(again) }
  })
}

const self = fileURLToPath(import.meta.url)

/** Over so many processes. Rejects where the two applications answer differently. */
export const koa = async (processes: number, pace: Pace): Promise<Section> => {
  await expectTwoAlike()
  const runs: ReadonlyArray<Measured>[] = []
  for (let at = 0; at < processes; at++) {
    // Safe: it is printed below
    runs.push((await inProcess(self, [JSON.stringify(pace)])) as ReadonlyArray<Measured>)
  }
  const of = (kind: string, figures: (one: Measured) => ReadonlyArray<number>): Estimate =>
    ofProcesses(runs.map((run) => run.filter(({ name }) => name === kind).flatMap(figures)))
  const rows = timed.map(({ name, target }): Row => {
    const control = of(name, (one) => one.control)
    const cost = of(name, (one) => [one.cost / 1000])
    const value = of(name, (one) => one.ours)
    return {
      name,
      value,
      unit: 'times',
      control,
      note: `by hand ${cost.value.toFixed(1)} us`,
      ...(target !== undefined && { target }),
    }
  })
  return { title: 'Beside the check written by hand, all kinds in one application', rows }
}

if (process.argv[1] === self) {
  // Safe: `koa` above wrote it
  const pace = JSON.parse(process.argv[2] ?? '{}') as Pace
  console.log(JSON.stringify(await measured(pace)))
  process.exit(0)
}
