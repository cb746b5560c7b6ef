/**
 * What Redis has lost (evicted, or deleted by hand) is not created again by a change of the key, because a digest would
 * come back without its end. `rotate`, `revoke` and `list` report nothing that they cannot know.
 */
import { createHash } from 'node:crypto'
import { either as E } from 'fp-ts'
import { apiKeys, type ApiKey, type ApiKeys } from 'koa-with-auth/keys'
import { redisKeyStore } from 'koa-with-auth/redis'
import { mockRequest } from 'koa-with-auth/testing'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { redisDatabase } from '../support/servers/redisDatabase.js'
import { describeWithRedis } from '../support/servers/redisServer.js'
import { clients, type Connected } from '../support/stores/sessionStores.js'

const PREFIX = '{lost}:'
const request = mockRequest({})
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const digestOf = (key: string) => `digest:${sha256(key)}`
const verdictOf = (result: E.Either<{ readonly _tag: string }, ApiKey>) => (E.isLeft(result) ? result.left._tag : 'in')
const DAY = 86_400_000

// The cause says what Redis has lost; a client gets a 503
const lost = (what: RegExp) =>
  expect.objectContaining({ status: 503, cause: expect.objectContaining({ message: expect.stringMatching(what) }) })

describeWithRedis('what Redis has lost', () => {
  const server = redisDatabase()
  describe.each(Object.entries(clients))('%s', (_name, connect) => {
    let connected: Connected
    let keys: ApiKeys<string>
    const lose = async (...names: string[]) =>
      expect(await server().send('DEL', ...names.map((name) => PREFIX + name))).toBe(`:${names.length}\r\n`)
    const isKept = async (name: string) => (await server().send('EXISTS', PREFIX + name)) === ':1\r\n'
    const asked = async (key: string) => verdictOf(await keys.authenticate(request, key))

    beforeAll(async () => {
      connected = await connect(server())
    })
    afterAll(() => connected?.disconnect())
    beforeEach(async () => {
      await server().send('FLUSHDB')
      const store = redisKeyStore({ command: connected.command, prefix: PREFIX })
      keys = apiKeys({ prefix: 'acme', adopted: /^old-/, touch: false, store })
    })

    it('K-12 a lost digest with an end is not created again by revoke, rotate or touch', async () => {
      const first = await keys.issue({ owner: 'anna' })
      const second = await keys.rotate(first.id, { overlap: DAY })
      await lose(digestOf(first.key))
      expect(await asked(first.key)).toBe('invalid')
      const store = redisKeyStore({ command: connected.command, prefix: PREFIX })
      await store.touch(first.id, Date.now())
      expect([await asked(first.key), await isKept(digestOf(first.key))]).toEqual(['invalid', false])
      const third = await keys.rotate(first.id, { overlap: DAY })
      expect([await asked(first.key), await isKept(digestOf(first.key))]).toEqual(['invalid', false])
      expect([await asked(second.key), await asked(third.key)]).toEqual(['in', 'in'])
      expect(await keys.revoke(first.id)).toBe(true)
      expect(await isKept(digestOf(first.key))).toBe(false)
      for (const { key } of [first, second, third]) expect(await asked(key)).toBe('invalid')
    })

    it('a lost digest is not created again when its key is revoked', async () => {
      const { id, key } = await keys.issue({ owner: 'anna' })
      await lose(digestOf(key))
      expect([await keys.revoke(id), await isKept(digestOf(key))]).toEqual([true, false])
    })

    it('a digest that another key has now is not changed', async () => {
      const before = await keys.adopt(sha256('old-1'), { owner: 'anna' })
      await lose(digestOf('old-1'))
      const after = await keys.adopt(sha256('old-1'), { owner: 'sam' })
      await keys.rotate(before.id, { overlap: 0 })
      expect(await keys.revoke(before.id)).toBe(true)
      const result = await keys.authenticate(request, 'old-1')
      expect(E.isRight(result) && [result.right.id, result.right.owner, result.right.expiresAt]).toEqual([
        after.id,
        'sam',
        undefined,
      ])
    })

    it('K-12 a lost record: rotate and revoke reject; after revoke no secret is valid, and a second revoke finds no key', async () => {
      const first = await keys.issue({ owner: 'anna' })
      const second = await keys.rotate(first.id, { overlap: DAY })
      const other = await keys.issue({ owner: 'anna' })
      await lose(`key:${first.id}`)
      await expect(keys.rotate(first.id, { overlap: 0 })).rejects.toEqual(lost(/LOST a part of this key/))
      await expect(keys.list('anna')).rejects.toEqual(
        lost(new RegExp(`LOST the record of the key ${first.id}; revoke it`)),
      )
      await expect(keys.revoke(first.id)).rejects.toEqual(lost(/LOST the record of this key; its secrets were deleted/))
      for (const { key } of [first, second])
        expect([await asked(key), await isKept(digestOf(key))]).toEqual(['invalid', false])
      expect(await keys.revoke(first.id)).toBe(false)
      expect((await keys.list('anna')).map(({ id }) => id)).toEqual([other.id])
      expect(await asked(other.key)).toBe('in')
    })

    it('a lost record whose digest another key has now: that key stays valid', async () => {
      const before = await keys.adopt(sha256('old-2'), { owner: 'anna' })
      await lose(digestOf('old-2'))
      await keys.adopt(sha256('old-2'), { owner: 'sam' })
      await lose(`key:${before.id}`)
      await expect(keys.revoke(before.id)).rejects.toEqual(lost(/LOST/))
      expect(await asked('old-2')).toBe('in')
    })

    it('a lost list of digests: rotate changes nothing, and revoke rejects, because the secrets may still be valid', async () => {
      const { id, key } = await keys.issue({ owner: 'anna' })
      await lose(`digests:${id}`)
      await expect(keys.rotate(id, { overlap: 0 })).rejects.toEqual(lost(/it was not rotated/))
      expect((await keys.list('anna'))[0]?.rotatedAt).toBeUndefined()
      for (let at = 0; at < 2; at++) {
        await expect(keys.revoke(id)).rejects.toEqual(lost(/LOST the digests .* may still work/))
      }
      expect((await keys.list('anna'))[0]?.revokedAt).toBeInstanceOf(Date)
      expect(await asked(key)).toBe('in')
    })

    it('a lost list of an owner: the keys are not listed, and revoke still revokes one', async () => {
      const { id, key } = await keys.issue({ owner: 'anna' })
      await lose('owner:anna')
      expect([await keys.list('anna'), await asked(key)]).toEqual([[], 'in'])
      expect([await keys.revoke(id), await asked(key)]).toEqual([true, 'invalid'])
    })

    it('K-12 a client that mixes up replies: no request gets the owner of another key', async () => {
      const [anna, sam] = [await keys.issue({ owner: 'anna' }), await keys.issue({ owner: 'sam' })]
      let shift: unknown
      // One reply too late, like a connection that has lost count
      const command: Connected['command'] = async (args, key) => {
        const [late, answer] = [shift, await connected.command(args, key)]
        shift = answer
        return late
      }
      for (const pepper of [undefined, [new Uint8Array(32), new Uint8Array(33)]]) {
        const store = redisKeyStore({ command, prefix: PREFIX })
        const off = apiKeys({ prefix: 'acme', store, touch: false, ...(pepper && { pepper }) })
        for (const { key } of [anna, sam, anna, sam]) {
          const verdict = await Promise.resolve(off.authenticate(request, key)).then(verdictOf, ({ status }) => status)
          expect(verdict).not.toBe('in')
        }
      }
      expect([await asked(anna.key), await asked(sam.key)]).toEqual(['in', 'in'])
    })

    it('all lost except one digest: revoke reports that there is no such key', async () => {
      const { id } = await keys.issue({ owner: 'anna' })
      await lose(`key:${id}`, `digests:${id}`, 'owner:anna')
      expect(await keys.revoke(id)).toBe(false)
    })
  })
})
