/** The cost of a listener of decisions, compared with the same application without one. */
import type { RequestListener } from 'node:http'
import { on } from '../../../dist/events.js'
import { bearer } from './contestants.js'
import { koaApps } from './koaApps.js'
import type { Row, Section } from './Section.js'
import { added, race, ratio, type Contestant, type Pace } from './paired.js'
import { ask, headersOf, type Headers } from './stub.js'

let heard = 0
let end: (() => void) | undefined

// The process has only one channel, so the first request of each batch switches it
const listening = (wanted: boolean): void => {
  if (wanted === (end !== undefined)) return
  if (end === undefined) end = on('decision', () => heard++)
  else end = void end()
}

const hearing = (name: string, wanted: boolean, listener: RequestListener, headers: Headers): Contestant => ({
  name,
  run: async () => {
    listening(wanted)
    const response = await ask(listener, '/x', headers)
    // Node emits both when the last byte is written, which never happens for a response without a socket
    response.emit('finish')
    response.emit('close')
  },
})

const cases: ReadonlyArray<readonly [string, RequestListener, Headers]> = [
  ['accepted', koaApps.ours(), bearer('supersecret')],
  ['accepted, asynchronous hook', koaApps['ours, async'](), bearer('supersecret')],
  ['refused', koaApps.ours(), bearer('wrong')],
  ['third of a list of 3', koaApps['ours, list'](), headersOf({ 'X-Key-3': 'supersecret' })],
]

/** With a listener, and without. */
export const events = async (pace: Pace): Promise<Section> => {
  const times = await race(
    cases.flatMap(([name, listener, headers]) => [
      hearing(name, false, listener, headers),
      hearing(`${name}, again`, false, listener, headers),
      hearing(`${name}, heard`, true, listener, headers),
    ]),
    pace,
  )
  listening(false)
  if (heard === 0) throw new Error('the listener heard nothing')
  const rows = cases.flatMap(([name]): Row[] => [
    { name: `control, without a listener: ${name}`, value: ratio(times, `${name}, again`, name), unit: 'times' },
    { name: `a listener adds: ${name}`, value: added(times, `${name}, heard`, name), unit: 'us', target: 1.5 },
  ])
  return { title: 'A listener of decisions', rows }
}
