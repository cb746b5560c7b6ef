/** Counts the promises that a request makes. */
import { createHook } from 'node:async_hooks'
import type { RequestListener } from 'node:http'
import { timed, type Timed } from './questions.js'
import { row, type Section } from './Section.js'
import { exactly } from './statistics.js'
import { ask } from './stub.js'
import { twoApps } from './twoApps.js'

const counted = async (app: RequestListener, { url, headers }: Timed): Promise<number> => {
  let count = 0
  const hook = createHook({ init: (_id, type) => void (type === 'PROMISE' && count++) }).enable()
  await ask(app, url, headers)
  await new Promise(setImmediate)
  hook.disable()
  return count
}

// The least of some requests: the first fill what is kept, and the process may make promises of its own
const countOf = async (app: RequestListener, question: Timed): Promise<number> => {
  let least = Infinity
  for (let at = 0; at < 10; at++) least = Math.min(least, await counted(app, question))
  return least
}

/** Both applications beside each other. */
export const promises = async (): Promise<Section> => {
  const apps = { hand: twoApps['by hand']({}), ours: twoApps.ours({}) }
  const rows = []
  for (const question of timed) {
    const [hand, ours] = [await countOf(apps.hand, question), await countOf(apps.ours, question)]
    rows.push(row(question.name, exactly(ours - hand), 'promises', { target: 0, note: `by hand ${hand}` }))
  }
  return { title: 'Promises of a request, more than by hand', rows }
}
