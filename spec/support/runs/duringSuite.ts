/** What is started before a suite, and ended after it. */
import { afterAll, beforeAll } from 'vitest'

/** Starts it before the surrounding suite, and ends it afterwards. Ask for it inside of hooks and tests. */
export const duringSuite = <A>(
  start: () => Promise<A> | A,
  end: (started: A) => unknown,
  timeout?: number,
): (() => A) => {
  let started: { readonly it: A } | undefined
  beforeAll(async () => {
    started = { it: await start() }
  }, timeout)
  afterAll(async () => {
    if (started !== undefined) await end(started.it)
  })
  return () => {
    if (started === undefined) throw new Error('not started yet: ask inside of a hook or a test')
    return started.it
  }
}
