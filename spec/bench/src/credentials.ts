/**
 * Credentials that come again and again, beside the check by hand. `node dist/credentials.js <pace as JSON>` prints the ratios of each
 * round.
 */
import { fileURLToPath } from 'node:url'
import { expectAlike } from './alike.js'
import { printMeasured, rowsOf, runsOf } from './beside.js'
import { credentialApps } from './credentialApps.js'
import type { Pace } from './paired.js'
import type { Section } from './Section.js'

const self = fileURLToPath(import.meta.url)

/** Over so many processes. Rejects where the two applications answer differently. */
export const credentials = async (processes: number, pace: Pace): Promise<Section> => {
  const { questions, refused, ...apps } = await credentialApps()
  for (const question of [...questions, ...refused]) await expectAlike(question, apps)
  const runs = await runsOf(self, processes, pace)
  return { title: 'Credentials that come again, beside the check written by hand', rows: rowsOf(questions, runs) }
}

if (process.argv[1] === self) {
  const { questions, ...apps } = await credentialApps()
  await printMeasured(questions, apps)
}
