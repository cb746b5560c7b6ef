/** The laws of all that an application can write itself, under one name. */
import type { ErrorMapper } from '../../core/Settings.js'
import type { AuthenticatorLike } from '../../core/Authenticator.js'
import type { Spent } from '../../core/Spent.js'
import type { KeyStore } from '../../keys/KeyStore.js'
import type { PasskeyStore } from '../../sign-in/passkeys/PasskeyStore.js'
import type { LawOptions } from './Subject.js'
import { checkAuthenticator, lawsOf, type LawTest } from './authenticator.js'
import { checkKeyStore, lawsOfKeyStore } from './keyStore.js'
import { checkErrorMapper, lawsOfErrorMapper, type MapperOptions } from './mapper.js'
import { checkPasskeyStore, lawsOfPasskeyStore } from './passkeyStore.js'
import { checkSpent, lawsOfSpent, type SpentLawOptions } from './spent.js'

/** The laws of one thing. */
export interface Laws {
  /** A test of each law, for a test runner. */
  readonly tests: ReadonlyArray<LawTest>
  /** Checks all of them. Rejects with `LawViolations`, which lists all that do not hold. */
  readonly check: () => Promise<void>
}

/**
 * The laws of an authenticator (or any function of the request), an error mapper, one-time ids (`spentOver`), and stores of API keys
 * and of passkeys. Stores are written to: pass a database for tests. Each throws a TypeError for what it cannot check, and for
 * options that cannot work.
 *
 * @example
 * import test from 'node:test' // or vitest, jest, mocha
 * import { apiKeyHeader, constantTimeEqual, defaultErrorMapper } from 'koa-with-auth'
 * import { memoryKeyStore } from 'koa-with-auth/keys'
 * import { withHeader } from 'koa-with-auth/testing'
 * import { laws } from 'koa-with-auth/testing/laws'
 *
 * const key = apiKeyHeader({
 *   paramName: 'X-API-Key',
 *   authenticate: (_request, key) => constantTimeEqual(key, 'k1') && { client: 'Acme' },
 * })
 * await laws.authenticator(key, { valid: [withHeader('X-API-Key', 'k1')] }).check()
 * await laws.errorMapper(defaultErrorMapper).check()
 * await laws.keyStore(memoryKeyStore()).check()
 *
 * const suite = () => {
 *   for (const { name, check } of laws.keyStore(memoryKeyStore()).tests) test(name, check)
 * }
 */
export const laws = {
  authenticator: (authenticator: AuthenticatorLike, options: LawOptions): Laws => ({
    tests: lawsOf(authenticator, options),
    check: () => checkAuthenticator(authenticator, options),
  }),
  errorMapper: (mapper: ErrorMapper, options: MapperOptions = {}): Laws => ({
    tests: lawsOfErrorMapper(mapper, options),
    check: () => checkErrorMapper(mapper, options),
  }),
  keyStore: (store: KeyStore): Laws => ({ tests: lawsOfKeyStore(store), check: () => checkKeyStore(store) }),
  passkeyStore: (store: PasskeyStore): Laws => ({
    tests: lawsOfPasskeyStore(store),
    check: () => checkPasskeyStore(store),
  }),
  spent: (spent: Spent, options: SpentLawOptions = {}): Laws => ({
    tests: lawsOfSpent(spent, options),
    check: () => checkSpent(spent, options),
  }),
} as const
