/**
 * `npm run bench -- --against <ref>`: builds another commit of this library, and times its guard and today's in one process, in short
 * turns and in changing order. A second application of each shows how much a figure may be wrong.
 *
 * A figure is the ratio of lower quartiles, over several processes. In every second process the other build is loaded first.
 *
 * Four applications and two builds in one process share Koa and Node's HTTP code, which V8 then compiles for all of them. A service has
 * one build, so a second table times each build alone in its process, in turn. Its processes differ more than the turns of one.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { expectAlike } from './alike.js'
import { inProcess, oneByOne, printed } from './inProcess.js'
import { race, type Contestant, type Pace } from './paired.js'
import { timed } from './questions.js'
import { row, type Section } from './Section.js'
import { lowerQuartile, median, medianOf } from './statistics.js'
import { ask } from './stub.js'
import { guardedBy, type Library } from './twoApps.js'

const repository = fileURLToPath(new URL('../../../', import.meta.url))
const git = (...args: ReadonlyArray<string>): string =>
  execFileSync('git', args, { cwd: repository, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim()

/** The commit that a name stands for. Throws if the repository has no such commit. */
export const commitOf = (ref: string): string => git('rev-parse', '--verify', `${ref}^{commit}`)

/** The folder with a build of a commit. It is built once, with the packages that are installed here. */
export const buildOf = (commit: string): string => {
  const folder = `${repository}spec/bench/dist/releases/${commit}`
  if (existsSync(folder)) return folder
  const unfinished = `${folder}.unfinished`
  rmSync(unfinished, { recursive: true, force: true })
  mkdirSync(unfinished, { recursive: true })
  const archive = execFileSync('git', ['archive', commit], { cwd: repository, maxBuffer: 1 << 28 })
  execFileSync('tar', ['-x', '-C', unfinished], { input: archive })
  symlinkSync(`${repository}node_modules`, `${unfinished}/node_modules`, 'dir')
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: unfinished, stdio: ['ignore', 'ignore', 'inherit'] })
  // Its specs and papers are not those of this repository
  for (const name of readdirSync(unfinished)) {
    if (!['dist', 'node_modules', 'package.json'].includes(name)) rmSync(`${unfinished}/${name}`, { recursive: true })
  }
  renameSync(unfinished, folder)
  return folder
}

// Safe: every release exports what `Library` names
const libraryIn = async (folder: string): Promise<Library> =>
  (await import(pathToFileURL(`${folder}/dist/index.js`).href)) as Library

// Two applications of each, because code that two applications use is slower than code of one
const roles = ['then', 'then, again', 'now', 'now, again'] as const
type Turns = Readonly<Record<(typeof roles)[number], ReadonlyArray<number>>>

const measured = async (then: string, thenFirst: boolean, pace: Pace): Promise<Readonly<Record<string, Turns>>> => {
  const first = await libraryIn(thenFirst ? then : repository)
  const second = await libraryIn(thenFirst ? repository : then)
  const [old, own] = thenFirst ? [first, second] : [second, first]
  const apps = {
    then: guardedBy(old),
    'then, again': guardedBy(old),
    now: guardedBy(own),
    'now, again': guardedBy(own),
  }
  for (const question of timed) await expectAlike(question, { then: apps.then, now: apps.now })
  const contestants = timed.flatMap(({ name, url, headers }): Contestant[] =>
    roles.map((role) => ({ name: `${name}: ${role}`, run: () => ask(apps[role], url, headers) })),
  )
  const times = await race(contestants, pace)
  const turnsOf = (name: string) => {
    const turns = roles.map((role) => [role, times.get(`${name}: ${role}`) ?? []] as const)
    // Safe: each role has an entry
    return Object.fromEntries(turns) as unknown as Turns
  }
  return Object.fromEntries(timed.map(({ name }) => [name, turnsOf(name)]))
}

/** Times one application of a build that is alone in its process. */
const measuredAlone = async (folder: string, pace: Pace): Promise<Readonly<Record<string, number>>> => {
  const app = guardedBy(await libraryIn(folder))
  const contestants = timed.map(({ name, url, headers }): Contestant => ({ name, run: () => ask(app, url, headers) }))
  const times = await race(contestants, pace)
  return Object.fromEntries([...times].map(([name, turns]) => [name, lowerQuartile(turns)]))
}

const beside = (some: ReadonlyArray<number>, others: ReadonlyArray<number>): number =>
  lowerQuartile(some) / lowerQuartile(others)

const self = fileURLToPath(import.meta.url)

/** Two tables of today's guard beside that of another commit. Rejects where the two answer differently. */
export const against = async (ref: string, processes: number, pace: Pace): Promise<ReadonlyArray<Section>> => {
  const folder = buildOf(commitOf(ref))
  return [await together(ref, folder, processes, pace), await alone(ref, folder, processes, pace)]
}

const together = async (ref: string, folder: string, processes: number, pace: Pace): Promise<Section> => {
  const runs = await oneByOne(processes, async (at) => {
    // Safe: it is printed below
    return (await inProcess(self, [folder, String(at % 2), JSON.stringify(pace)])) as Readonly<Record<string, Turns>>
  })
  const rows = timed.map(({ name }) => {
    const turns = runs.flatMap((run) => run[name] ?? [])
    return row(name, medianOf(turns.map(({ then, now }) => beside(now, then))), 'times', {
      control: medianOf(turns.map(({ now, 'now, again': again }) => beside(again, now))),
      target: 1,
      note: `then ${(lowerQuartile(turns.flatMap(({ then }) => then)) / 1000).toFixed(2)} us`,
    })
  })
  return { title: `Today's guard beside that of ${ref}, both in one process`, rows }
}

const alone = async (ref: string, folder: string, processes: number, pace: Pace): Promise<Section> => {
  // Safe: it is printed below
  const run = async (build: string) =>
    (await inProcess(self, [build, ALONE, JSON.stringify(pace)])) as Readonly<Record<string, number>>
  const runs = await oneByOne(processes, async (at) => {
    const first = await run(at % 2 === 0 ? folder : repository)
    const second = await run(at % 2 === 0 ? repository : folder)
    return at % 2 === 0 ? { then: first, now: second } : { then: second, now: first }
  })
  const rows = timed.map(({ name }) => {
    const of = (times: Readonly<Record<string, number>>): number => times[name] ?? Number.NaN
    return row(name, medianOf(runs.map(({ then, now }) => of(now) / of(then))), 'times', {
      target: 1,
      note: `then ${(median(runs.map(({ then }) => of(then))) / 1000).toFixed(2)} us`,
    })
  })
  return { title: `Today's guard beside that of ${ref}, each alone in its process`, rows }
}

const ALONE = 'alone'

if (process.argv[1] === self) {
  const [, , folder = '', how, given = '{}'] = process.argv
  // Safe: `against` above wrote it
  const pace = JSON.parse(given) as Pace
  await printed(() => (how === ALONE ? measuredAlone(folder, pace) : measured(folder, how === '1', pace)))
}
