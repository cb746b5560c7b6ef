/**
 * Records of providers' keys, API keys and outages. Each record is frozen, fits its schema, and contains no
 * secret.
 */
import { channel } from 'node:diagnostics_channel'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { apiKeyHeader } from 'koa-with-auth'
import { on, type Events } from 'koa-with-auth/events'
import { httpJwt } from 'koa-with-auth/jwt'
import { apiKeys, NoLiveKey } from 'koa-with-auth/keys'
import { memoryStore, sqliteStore } from 'koa-with-auth/stores'
import { describe, expect, it, onTestFinished } from 'vitest'
import { channels } from '../../src/core/events.js'
import { unfinishedReasons } from '../../src/core/UnfinishedReason.js'
import { repository } from '../support/projects/typecheck.js'
import { stoppedClock } from '../support/runs/clock.js'
import { eventsSchema, recordsOf, schemaOf } from '../support/runs/eventRecords.js'
import { API, identityProvider, processWarnings, signingKey } from '../support/servers/identityProvider.js'
import { sqliteFile } from '../support/stores/sessionStores.js'
import { another } from '../support/stores/sqliteEngines.js'
import { tokenSite } from '../support/sites/tokenSite.js'

describe('koa-with-auth:provider-keys', () => {
  it('each fetch has one record: new keys, the same keys, and other keys after a rotation', async () => {
    const clock = stoppedClock()
    const provider = await identityProvider()
    const { issuer, jwksUri } = provider
    const records = recordsOf('provider-keys', (record) => record.issuer === issuer)
    const { get } = await tokenSite(httpJwt({ issuer: { issuer, jwksUri }, audience: API, keys: { maxAge: 1000 } }))
    const token = await provider.token({ exp: Math.floor(Date.now() / 1000) + 3600 })
    for (const _ of [1, 2, 3]) expect((await get(token)).status).toBe(200)
    expect(records).toMatchObject([{ event: 'refreshed', issuer, changed: true }])
    clock.move(1001)
    expect((await get(token)).status).toBe(200)
    expect(records.slice(1)).toMatchObject([{ event: 'refreshed', issuer, changed: false }])
    provider.keys.push(await signingKey('ES256', 'k2'))
    clock.move(1001)
    expect((await get(token)).status).toBe(200)
    expect(records.slice(2)).toMatchObject([{ event: 'refreshed', issuer, changed: true }])
  })

  it('a failed fetch has a record of the problem and of how long the known keys are still used, without the response', async () => {
    processWarnings()
    const clock = stoppedClock()
    const provider = await identityProvider()
    const { issuer, jwksUri } = provider
    const records = recordsOf('provider-keys', (record) => record.issuer === issuer)
    const keys = { maxAge: 1000, staleIfError: 5000, retry: 10, refreshAhead: false }
    const { get } = await tokenSite(httpJwt({ issuer: { issuer, jwksUri }, audience: API, keys, verified: false }))
    const token = await provider.token({ exp: Math.floor(Date.now() / 1000) + 3600 })
    provider.mood = 'error'
    expect((await get(token)).status).toBe(503)
    expect(records).toMatchObject([{ event: 'failed', issuer, problem: 'answered 500', servesForMs: 0 }])
    provider.mood = 'well'
    clock.move(11)
    expect((await get(token)).status).toBe(200)
    provider.mood = 'error'
    clock.move(2000)
    expect((await get(token)).status).toBe(200)
    expect(records.at(-1)).toMatchObject({ event: 'failed', issuer, problem: 'answered 500', servesForMs: 4000 })
    expect(JSON.stringify(records)).not.toContain('secret')
  })
})

describe('koa-with-auth:api-key', () => {
  it('issued, adopted, rotated and revoked have a record when the store has made the change, and none when it failed', async () => {
    const records = recordsOf('api-key')
    const keys = apiKeys({ prefix: 'acme', store: memoryStore() })
    const expiresAt = new Date(Date.now() + 60_000)
    const { id } = await keys.issue({ owner: 'anna', name: 'ci', scopes: ['read'], expiresAt })
    const digest = createHash('sha256').update('old').digest('hex')
    const { id: adopted } = await keys.adopt(digest, { owner: 'bert' })
    await expect(keys.adopt(digest, { owner: 'bert' })).rejects.toThrow(/digest exists already/)
    await keys.rotate(id, { overlap: 1000 })
    await keys.revoke(id)
    await expect(keys.rotate(id, { overlap: 0 })).rejects.toThrow(NoLiveKey)
    expect(await keys.revoke('nothing')).toBe(false)
    expect(records).toStrictEqual([
      { event: 'issued', id, owner: 'anna', scopes: ['read'], expiresAt: expiresAt.getTime() },
      { event: 'adopted', id: adopted, owner: 'bert', scopes: [] },
      { event: 'rotated', id, overlapMs: 1000 },
      { event: 'revoked', id },
    ])
  })
})

describe('koa-with-auth:store-outage', () => {
  const file = sqliteFile()
  it('a locked SQLite file: `begun` once with the first 503, `over` once with the next 200', async () => {
    const records = recordsOf('store-outage', ({ store }) => store === 'api-keys')
    const url = file()
    const store = sqliteStore({ url })
    const keys = apiKeys({ prefix: 'acme', store, timeout: 60_000, touch: false })
    onTestFinished(() => store.close())
    const { key } = await keys.issue({ owner: 'anna' })
    const { get } = await tokenSite(apiKeyHeader({ paramName: 'X-Key', authenticate: keys.authenticate }))
    const ask = async () => (await get(undefined, { 'X-Key': key })).status
    expect([await ask(), records]).toStrictEqual([200, []])

    const locker = another(url.replace('file:', ''))
    const unlock = locker.lock()
    const failing = ['bert', 'carl'].map((owner) => keys.issue({ owner }))
    for (const one of failing) await expect(one).rejects.toThrow(/API keys (?:failed|did not answer)/)
    expect(records).toMatchObject([{ event: 'begun', store: 'api-keys' }])
    unlock()
    locker.close()
    await expect.poll(ask).toBe(200)
    await ask()
    expect(records).toMatchObject([{ event: 'begun' }, { event: 'over', store: 'api-keys' }])
  })
})

describe('every channel', () => {
  // Safe: its keys are the channels
  const names = Object.keys(channels) as Array<keyof Events>

  it.each(names)(
    '%s: a listener that throws or rejects makes a warning; an ended one gets no records',
    async (name) => {
      const warnings = processWarnings()
      const to = channel(`koa-with-auth:${name}`)
      expect(to.hasSubscribers).toBe(false)
      const raise = () => {
        throw new Error('mine')
      }
      const reject: () => unknown = () => Promise.resolve().then(raise)
      const ends = [on(name, raise), on(name, reject)]
      expect(to.hasSubscribers).toBe(true)
      to.publish(Object.freeze({}))
      for (const end of ends) end()
      to.publish(Object.freeze({}))
      expect(to.hasSubscribers).toBe(false)
      await expect.poll(() => warnings().length).toBe(2)
      for (const warning of warnings()) {
        expect(warning).toContain(`EventListenerWarning: a listener of on('${name}') threw: Error: mine`)
      }
      expect(() => on(name, 'x' as never)).toThrow(`on('${name}', listener) must be a function, not a string`)
    },
  )

  it('has its record in the one schema, by its name, and a row in the guide', () => {
    expect(Object.keys(eventsSchema.$defs)).toStrictEqual(names)
    for (const name of names) expect(schemaOf(name)({})).toBe(false)
    const guide = readFileSync(`${repository}examples/guides/events.md`, 'utf8')
    const rows = [...guide.matchAll(/^\| (`[^|]+`) +\| /gm)].flatMap(([, cell = '']) => cell.match(/[\w-]+/g) ?? [])
    expect(rows).toStrictEqual(expect.arrayContaining(names.filter((name) => name !== 'decision')))
  })

  it.each(Object.keys(unfinishedReasons))('an unfinished sign-in has its reason in the schema: %s', (reason) => {
    const record = { event: 'refused', application: 'api', kind: 'mail', step: 'begin', failure: 'invalid' }
    const allows = schemaOf('ceremony')
    expect([allows({ ...record, reason }), allows({ ...record, reason: 'x' })]).toStrictEqual([true, false])
  })

  it.each(['decisions', 'toString', '__proto__', undefined, null, Symbol('x')])('%s is none: a TypeError', (name) => {
    expect(() => on(name as never, () => {})).toThrow(TypeError)
    expect(() => on(name as never, () => {})).toThrow(
      /^on\(channel, listener\): there is no channel .+; the channels are decision, /,
    )
  })
})
