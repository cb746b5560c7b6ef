/** Counts the signatures that node:crypto verifies in this process. */
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { onTestFinished } from 'vitest'

/** Returns how many signatures were verified since this call. The count ends with the test. */
export const countedVerifications = (): (() => number) => {
  const { verify } = crypto
  let count = 0
  // Safe: it passes all arguments on, and returns what the original returns
  crypto.verify = ((...args: Parameters<typeof verify>) => {
    count++
    return verify(...args)
  }) as unknown as typeof verify
  syncBuiltinESMExports()
  onTestFinished(() => {
    crypto.verify = verify
    syncBuiltinESMExports()
  })
  return () => count
}
