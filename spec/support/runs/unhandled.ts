/** Collects unhandled rejections for the time of a suite. Node would end the process for one. */
import { afterAll, beforeAll } from 'vitest'

/** Collects them instead of vitest. Returns those since the last call. */
export const unhandledRejections = (): (() => ReadonlyArray<unknown>) => {
  const noted: unknown[] = []
  const note = (reason: unknown): void => void noted.push(reason)
  const others = process.listeners('unhandledRejection')
  beforeAll(() => {
    process.removeAllListeners('unhandledRejection')
    process.on('unhandledRejection', note)
  })
  afterAll(() => {
    process.off('unhandledRejection', note)
    for (const listener of others) process.on('unhandledRejection', listener)
  })
  return () => noted.splice(0)
}
