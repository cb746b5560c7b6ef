/**
 * One-time ids in a store: an action that may happen once uses its id first.
 *
 * An id that is released is not forgotten: its text says that it is free, and the next use replaces that text. So a release works at once,
 * with any clock of the store, and one of many callers gets the id.
 */
import { declareFactory, typeName } from '../core/options.js'
import { digest } from '../crypto/secrets.js'
import type { OneTimeIds } from '../core/OneTimeIds.js'
import { storeLike, timedStore, type Store } from './Store.js'

const TIMEOUT = 2000

const USED = 'used'
const FREE = 'free'

// How long a released id is known as free; then it is unknown, which is as free
const FREE_FOR = 86_400_000

/**
 * One-time ids in a store. The store gets digests of them. `application` separates the ids of several applications that share a store. A
 * method rejects with an `UnavailableError`, a 503, if the store fails or does not answer within 2 seconds. Throws a TypeError for
 * something that is no store.
 *
 * @example
 * import { memoryStore, oneTimeIds } from 'koa-with-auth/stores'
 *
 * const { use, release } = oneTimeIds(memoryStore())
 * assert.deepStrictEqual([await use('delivery 7', 60_000), await use('delivery 7', 60_000)], [true, false])
 * await release('delivery 7')
 * assert.equal(await use('delivery 7', 60_000), true)
 */
export const oneTimeIds = (store: Store, application?: string): OneTimeIds => {
  storeLike('oneTimeIds(store)', store)
  if (application !== undefined && typeof application !== 'string') {
    throw new TypeError(`oneTimeIds(store, application): application must be a string, not ${typeName(application)}`)
  }
  return idsIn(timedStore('one-time-ids', store, TIMEOUT), application)
}

/** @internal The same in a store that has a time limit already. */
export const idsIn = (store: Store, application?: string): OneTimeIds => {
  const keyOf = (method: string, id: unknown): string => {
    if (typeof id === 'string') return idKey(application, id)
    throw new TypeError(`${method}(id): id must be a string, not ${typeName(id)}`)
  }
  return {
    use: async (id, lifetime) => {
      const key = keyOf('use', id)
      if (typeof lifetime !== 'number' || !(lifetime >= 1))
        throw new TypeError('use(id, lifetime): lifetime must be milliseconds, at least 1')
      return (await store.insert(key, USED, lifetime)) || store.update(key, USED, lifetime, FREE)
    },
    release: async (id, lifetime = 0) => {
      const key = keyOf('release', id)
      await (lifetime >= 1 ? store.update(key, USED, lifetime, USED) : store.update(key, FREE, FREE_FOR))
    },
  }
}

/** @internal Whether an id is used, without using it. */
export const isUsedIn = async (store: Store, application: string, id: string): Promise<boolean> =>
  (await store.get([idKey(application, id)]))[0] === USED

const idKey = (application: string | undefined, id: string): string =>
  `koa-with-auth/once/${digest(JSON.stringify([application ?? null, id]))}`

declareFactory('oneTimeIds', oneTimeIds)
