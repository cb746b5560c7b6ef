/**
 * Keys that are authenticated while they are rotated and revoked, by two users of one store, like two processes: a
 * valid secret is never refused, and none is accepted after a revocation has returned.
 */
import { setImmediate as turn } from 'node:timers/promises'
import { either as E } from 'fp-ts'
import { apiKeys, NoLiveKey } from 'koa-with-auth/keys'
import { type Store, redisStore, sqliteStore } from 'koa-with-auth/stores'
import { mockRequest } from 'koa-with-auth/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { redisDatabase } from '../support/servers/redisDatabase.js'
import { describeWithRedis } from '../support/servers/redisServer.js'
import { clients, sqliteFile, type Connected } from '../support/stores/sessionStores.js'

const request = mockRequest({})
const DAY = 86_400_000
const PEPPERS = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)]

const suite = (sides: () => readonly [Store, Store]): void => {
  it.each([
    ['one digest', undefined],
    ['several peppers', PEPPERS],
  ])(
    'K-10 %s: no rotation refuses a valid secret, and no secret is accepted after a revocation',
    async (_name, pepper) => {
      const [one, two] = sides().map((store) => apiKeys({ prefix: 'acme', store, touch: 1, pepper, timeout: 20_000 }))
      const both = [one!, two!]
      const { id, key } = await both[0]!.issue({ owner: 'race' })
      const secrets = [key]
      const seen: { readonly begun: number; readonly isIn: boolean }[] = []
      let [events, revokedAt, isOver] = [0, Infinity, false]
      const asking = both.flatMap((keys) =>
        [0, 1].map(async () => {
          while (!isOver) {
            const begun = events++
            const result = await keys.authenticate(request, secrets[begun % secrets.length]!)
            seen.push({ begun, isIn: E.isRight(result) })
            await turn()
          }
        }),
      )
      for (let at = 0; at < 12; at++) {
        const rotating = both[at % 2]!.rotate(id, { overlap: DAY })
        const answered = seen.length
        secrets.push((await rotating).key)
        while (seen.length < answered + 4) await turn()
      }
      const beforehand = events++
      const late = both.map((keys) => keys.rotate(id, { overlap: DAY }).catch((error: unknown) => error))
      expect(await both[1]!.revoke(id)).toBe(true)
      revokedAt = events++
      for (const one of await Promise.all(late)) if (!(one instanceof NoLiveKey)) expect(one).toMatchObject({ id })
      while (seen.filter(({ begun }) => begun > revokedAt).length < 8) await turn()
      isOver = true
      await Promise.all(asking)
      const before = seen.filter(({ begun }) => begun < beforehand)
      expect(before.length).toBeGreaterThanOrEqual(48)
      // Only a request that was sent before the revocation may be refused by it
      const answered = before.slice(0, -4)
      expect(answered.filter(({ isIn }) => !isIn)).toEqual([])
      expect(seen.filter(({ begun, isIn }) => begun > revokedAt && isIn)).toEqual([])
    },
  )
}

describe('two connections to one SQLite file', () => {
  const url = sqliteFile()
  const stores = [sqliteStore({ url: url() }), sqliteStore({ url: url() })] as const
  afterAll(() => stores.forEach((store) => store.close()))
  suite(() => stores)
})

describeWithRedis('two connections to one Redis', () => {
  const server = redisDatabase()
  const connected: Connected[] = []
  beforeAll(async () => {
    for (const name of ['the official client, RESP3', 'ioredis']) connected.push(await clients[name]!(server()))
  })
  afterAll(async () => {
    for (const one of connected) await one.disconnect()
  })
  const storeOf = ({ command }: Connected) => redisStore({ command })
  suite(() => [storeOf(connected[0]!), storeOf(connected[1]!)])
})
