/** The ends of credentials that wait in one test. */
import { onTestFinished } from 'vitest'
import type { End } from '../../../src/core/ends.js'
import { ends } from '../../../src/ends/ends.js'

const mark = Symbol.for('koa-with-auth/ends')

/** Until the test is over, the process has ends of this test alone. Returns how many of them wait. */
export const ownEnds = (): (() => number) => {
  const others: unknown = Reflect.get(globalThis, mark)
  Reflect.deleteProperty(globalThis, mark)
  onTestFinished(() => void Reflect.set(globalThis, mark, others))
  const own = ends()
  const opened = new Set<End>()
  const open = own.open.bind(own)
  own.open = (end, target) => {
    opened.add(end)
    open(end, target)
  }
  return () => [...opened].filter(({ target }) => target !== undefined).length
}
