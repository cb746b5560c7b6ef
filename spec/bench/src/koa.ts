/** Compares with the check by hand: two applications with the same answers, with all kinds in one process. */
import { expectAlike } from './alike.js'
import { measured, rowsOf } from './beside.js'
import { apart, oneByOne } from './inProcess.js'
import type { Pace } from './paired.js'
import { hanging, questions, timed } from './questions.js'
import type { Section } from './Section.js'
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

const ratios = apart(import.meta.url, (pace: Pace) => measured(timed, apps({}), pace))

/** Over so many processes. Rejects where the two applications answer differently. */
export const koa = async (processes: number, pace: Pace): Promise<Section> => {
  await expectTwoAlike()
  const runs = await oneByOne(processes, () => ratios(pace))
  return { title: 'Beside the check written by hand, all kinds in one application', rows: rowsOf(timed, runs) }
}
