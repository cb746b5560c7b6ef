/** Passwords without time: their queue is never too slow for a busy machine, and no work is added for kinds of hashes. */
import { onTestFinished, vi } from 'vitest'

const key = Symbol.for('koa-with-auth/passwords')

/** Stops the clock of the queue until the test has finished, and lets the test have a queue of its own. */
export const untimedPasswords = (...others: ReadonlyArray<'setTimeout' | 'clearTimeout'>): void => {
  vi.useFakeTimers({ toFake: ['performance', ...others] })
  const before: unknown = Reflect.get(globalThis, key)
  Reflect.deleteProperty(globalThis, key)
  onTestFinished(() => {
    vi.useRealTimers()
    Reflect.set(globalThis, key, before)
  })
}
