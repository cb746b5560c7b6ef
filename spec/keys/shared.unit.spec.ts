/**
 * A store shares no object with the application: changing an object changes no key, and no principal of another
 * request.
 */
import { createHash, randomBytes } from 'node:crypto'
import { either as E } from 'fp-ts'
import { apiKeys, memoryKeyStore, type ApiKey } from 'koa-with-auth/keys'
import { onApiKey } from 'koa-with-auth/events'
import { mockRequest } from 'koa-with-auth/testing'
import { expect, it } from 'vitest'
import { describeEveryKeyStore, digestOf, recordOf } from '../support/stores/keyStores.js'

const request = mockRequest({})
const principalOf = (result: E.Either<unknown, ApiKey>): ApiKey => {
  if (E.isLeft(result)) throw new Error('refused')
  return result.right
}
// What a handler without TypeScript could do
const changed = (scopes: ReadonlyArray<string>): void => {
  // Safe: a frozen array throws, and nothing else is read
  expect(() => (scopes as string[]).push('admin')).toThrow(TypeError)
}

describeEveryKeyStore((store, name) => {
  it('scopes that were given to issue or adopt can change later: the key keeps its scopes', async () => {
    const keys = apiKeys({ prefix: 'acme', store: store(), adopted: /^old-/ })
    const given = ['read']
    const old = `old-${name}`
    const { key, id } = await keys.issue({ owner: `${name} shared`, scopes: given })
    await keys.adopt(createHash('sha256').update(old).digest('hex'), { owner: `${name} shared`, scopes: given })
    given.push('admin')
    for (const one of [key, old]) {
      expect(principalOf(await keys.authenticate(request, one)).scopes).toEqual(['read'])
    }
    const { key: second } = await keys.rotate(id, { overlap: 0 })
    expect(principalOf(await keys.authenticate(request, second)).scopes).toEqual(['read'])
    for (const { scopes } of await keys.list(`${name} shared`)) expect(scopes).toEqual(['read'])
  })

  it('scopes of a principal, of a list and of an event are frozen, and each has its own Dates', async () => {
    const keys = apiKeys({ prefix: 'acme', store: store() })
    const events: ReadonlyArray<string>[] = []
    const end = onApiKey((event) => 'scopes' in event && events.push(event.scopes))
    const expiresAt = new Date(Date.now() + 3_600_000)
    const { key } = await keys.issue({ owner: `${name} frozen`, scopes: ['read'], expiresAt })
    end()
    const until = expiresAt.getTime()
    expiresAt.setTime(0)
    const first = principalOf(await keys.authenticate(request, key))
    const [listed] = await keys.list(`${name} frozen`)
    for (const scopes of [first.scopes, listed?.scopes ?? [], events[0] ?? []]) changed(scopes)
    first.expiresAt?.setTime(9e12)
    first.createdAt.setTime(0)
    listed?.expiresAt?.setTime(0)
    Object.assign(first, { owner: 'root', name: 'root' })
    const second = principalOf(await keys.authenticate(request, key))
    expect([second.owner, second.name, second.scopes, second.expiresAt?.getTime()]).toEqual([
      `${name} frozen`,
      '',
      ['read'],
      until,
    ])
    expect(second.createdAt.getTime()).toBeGreaterThan(0)
  })

  it('a record that a store takes or returns is not the one that it keeps', async () => {
    const [digest, scopes] = [digestOf(`${name} given`), ['read']]
    const record = { ...recordOf(`${name} given`), owner: `${name} given`, scopes }
    await store().insert(digest, record)
    scopes.push('admin')
    record.owner = 'sam'
    for (let at = 0; at < 2; at++) {
      for (const found of [(await store().find([digest]))?.record, ...(await store().list(`${name} given`))]) {
        expect([found?.owner, found?.scopes]).toEqual([`${name} given`, ['read']])
        Reflect.set(found ?? {}, 'owner', 'root')
        Reflect.set(found?.scopes ?? [], 0, 'admin')
      }
    }
  })
})

it('if your own store returns one record to all requests, none of them can change it', async () => {
  const kept = { ...recordOf('one'), scopes: ['read'] }
  const store = { ...memoryKeyStore(), find: () => Promise.resolve({ record: kept }) }
  const keys = apiKeys({ prefix: 'acme', store })
  const { key } = await keys.issue({ owner: 'anna' })
  changed(principalOf(await keys.authenticate(request, key)).scopes)
  expect(kept.scopes).toEqual(['read'])
  kept.scopes.push('write')
  expect(principalOf(await keys.authenticate(request, key)).scopes).toEqual(['read', 'write'])
})

it('a pepper and its array can be overwritten later: digests stay the same', async () => {
  const store = memoryKeyStore()
  const [newest, oldest] = [new Uint8Array(randomBytes(32)), new Uint8Array(randomBytes(32))]
  const { key: first } = await apiKeys({ prefix: 'acme', store, pepper: Uint8Array.from(oldest) }).issue({
    owner: 'anna',
  })
  const given = [newest, oldest]
  const keys = apiKeys({ prefix: 'acme', store, pepper: given })
  const { key: second } = await keys.issue({ owner: 'anna' })
  for (const one of given) one.fill(0)
  given.length = 0
  for (const key of [first, second]) expect(E.isRight(await keys.authenticate(request, key))).toBe(true)
})
