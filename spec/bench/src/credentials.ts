/**
 * Credentials that come again and again, beside the check by hand. `node dist/credentials.js <pace as JSON>` prints the ratios of each
 * round.
 */
import { fileURLToPath } from 'node:url'
import { expectAlike } from './alike.js'
import { measured, rowsOf, type Measured } from './beside.js'
import { credentialApps } from './credentialApps.js'
import { inProcess } from './inProcess.js'
import type { Pace } from './paired.js'
import type { Section } from './Section.js'

const self = fileURLToPath(import.meta.url)

/** Over so many processes. Rejects where the two applications answer differently. */
export const credentials = async (processes: number, pace: Pace): Promise<Section> => {
  const { questions, refused, ...apps } = await credentialApps()
  for (const question of [...questions, ...refused]) await expectAlike(question, apps)
  const runs: ReadonlyArray<Measured>[] = []
  for (let at = 0; at < processes; at++) {
    // Safe: it is printed below
    runs.push((await inProcess(self, [JSON.stringify(pace)])) as ReadonlyArray<Measured>)
  }
  return { title: 'Credentials that come again, beside the check written by hand', rows: rowsOf(questions, runs) }
}

if (process.argv[1] === self) {
  const { questions, ...apps } = await credentialApps()
  // Safe: `credentials` above wrote it
  const pace = JSON.parse(process.argv[2] ?? '{}') as Pace
  console.log(JSON.stringify(await measured(questions, apps, pace)))
  process.exit(0)
}
