/**
 * The laws of a store of API keys. Check your own with them: each law in a separate test, or all together.
 *
 * They write to the store, with random ids and owners. Give them a database for tests.
 *
 * | law       | a violation is, for example                                            |
 * |-----------|---------------------------------------------------------------------|
 * | keeps     | a column that is too short, an `expiresAt` that comes back as `null`  |
 * | refuses   | `insert or replace`: a second key under the digest of another         |
 * | lists     | an owner `a%` who sees the keys of `ab`, a list without revoked keys  |
 * | rotates   | a key that was revoked and has a new secret, a secret without an end   |
 * | revokes   | a revocation that a later one, or a rotation, undoes                  |
 * | touches   | a slow request that sets the last use back                            |
 * | is atomic | a rotation at the same time that outlives a revocation                |
 */
import { inspect, isDeepStrictEqual } from 'node:util'
import type { KeyStore } from '../../keys/KeyStore.js'
import type { LawTest } from './authenticatorLaws.js'
import { refuse, type Violation } from '../LawViolations.js'
import { keyStoreLaws, type KeyStoreLaw, type Trial } from './keyStores.js'

class Broken extends Error {}

const violationOf = async ({ name, fix, hold }: KeyStoreLaw, store: KeyStore): Promise<Violation | undefined> => {
  const expect: Trial['expect'] = (done, actual, expected) => {
    if (isDeepStrictEqual(actual, expected)) return
    throw new Broken(`${done}: ${inspect(actual, { depth: 5 })}\nit must be: ${inspect(expected, { depth: 5 })}`)
  }
  try {
    await hold({ store, expect })
    return undefined
  } catch (error) {
    const counterexample = error instanceof Broken ? error.message : `it throws: ${inspect(error)}`
    return { law: name, counterexample, fix }
  }
}

/**
 * Returns the laws of a store of API keys. Each has a name and a check, so you can make a test of it.
 *
 * @example
 * import test from 'node:test' // or vitest, jest, mocha
 * import { memoryKeyStore } from 'koa-with-auth/keys'
 * import { lawsOfKeyStore } from 'koa-with-auth/testing/laws'
 *
 * const suite = () => {
 *   for (const { name, check } of lawsOfKeyStore(memoryKeyStore())) test(name, check)
 * }
 */
export const lawsOfKeyStore = (store: KeyStore): ReadonlyArray<LawTest> =>
  keyStoreLaws.map((law) => ({
    name: law.name,
    check: async () => {
      const violation = await violationOf(law, store)
      refuse('a store of API keys', violation === undefined ? [] : [violation])
    },
  }))

/**
 * Checks every law of a store of API keys. Rejects with `LawViolations`, which lists all that do not hold.
 *
 * @example
 * import { memoryKeyStore } from 'koa-with-auth/keys'
 * import { checkKeyStore } from 'koa-with-auth/testing/laws'
 *
 * await checkKeyStore(memoryKeyStore())
 */
export const checkKeyStore = async (store: KeyStore): Promise<void> => {
  const violations = []
  for (const law of keyStoreLaws) violations.push((await violationOf(law, store)) ?? [])
  refuse('a store of API keys', violations.flat())
}
