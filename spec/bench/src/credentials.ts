/** Credentials that come again and again, beside the check by hand. */
import { expectAlike } from './alike.js'
import { measured, rowsOf } from './beside.js'
import { credentialApps } from './credentialApps.js'
import { apart, oneByOne } from './inProcess.js'
import type { Pace } from './paired.js'
import type { Section } from './Section.js'

const ratios = apart(import.meta.url, async (pace: Pace) => {
  const { questions, ...apps } = await credentialApps()
  return measured(questions, apps, pace)
})

/** Over so many processes. Rejects where the two applications answer differently. */
export const credentials = async (processes: number, pace: Pace): Promise<Section> => {
  const { questions, refused, ...apps } = await credentialApps()
  for (const question of [...questions, ...refused]) await expectAlike(question, apps)
  const runs = await oneByOne(processes, () => ratios(pace))
  return { title: 'Credentials that come again, beside the check written by hand', rows: rowsOf(questions, runs) }
}
