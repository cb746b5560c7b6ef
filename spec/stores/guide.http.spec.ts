/** The programs of the guide "Stores", as they are written there, on real databases. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import type { Store } from 'koa-with-auth/stores'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { blocksOf } from '../support/papers/docExamples.js'
import { repository } from '../support/projects/typecheck.js'
import { sqlPort } from '../support/runs/sqlOfRun.js'
import { redisDatabase } from '../support/servers/redisDatabase.js'
import { describeWithRedis } from '../support/servers/redisServer.js'
import { describeWithSql, USER } from '../support/servers/sqlServer.js'
import { asOwner, newName } from '../support/stores/databases.js'
import { sqliteFile } from '../support/stores/sessionStores.js'

const folder = `${repository}spec/.generated/stores-${process.pid}/`
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The module that a block of the guide is. */
const program = async (words: string): Promise<unknown> => {
  const block = blocksOf('examples/guides/stores.md').find(({ code }) => code.includes(words))
  mkdirSync(folder, { recursive: true })
  const file = `${folder}${words.replaceAll(/\W+/g, '-')}.ts`
  writeFileSync(file, block?.code ?? '')
  return import(/* @vite-ignore */ pathToFileURL(file).href)
}

interface Opening {
  readonly openStore: (url: string) => Promise<{ readonly store: Store; readonly close: () => unknown }>
}

describe('a store for a URL', () => {
  // Safe: the block exports it
  const opening = () => program('const openStore') as Promise<Opening>
  const keeps = async (url: string) => {
    const { openStore } = await opening()
    const { store, close } = await openStore(url)
    onTestFinished(async () => void (await close()))
    expect(await store.insert(url, 'text', 60_000)).toBe(true)
    expect(await store.get([url, 'other'])).toStrictEqual(['text', undefined])
  }

  const file = sqliteFile()
  it('of a file', () => keeps(file()))

  it('that is of no database is a TypeError that names them', async () => {
    const { openStore } = await opening()
    await expect(openStore('mongodb://127.0.0.1/app')).rejects.toThrow('postgres:, mysql:, redis: or file:')
  })

  describeWithSql('postgres', 'of PostgreSQL', () => {
    it.each(['postgres', 'postgresql'])('%s:', async (scheme) => {
      const name = newName()
      await asOwner('postgres', `create database ${name}`)
      await keeps(`${scheme}://${USER}@127.0.0.1:${await sqlPort('postgres')}/${name}`)
    })
  })

  describeWithSql('mariadb', 'of MariaDB', () => {
    it.each(['mysql', 'mariadb'])('%s:', async (scheme) => {
      const name = newName()
      await asOwner('mariadb', `create database ${name}`)
      await keeps(`${scheme}://${USER}@127.0.0.1:${await sqlPort('mariadb')}/${name}`)
    })
  })

  describeWithRedis('of Redis', () => {
    const database = redisDatabase()
    it('redis:', () => keeps(database().url))
  })
})
