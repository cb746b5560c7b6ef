/** Two processes share the SQLite file of their sessions. */
import { spawn } from 'node:child_process'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { buildSite } from '../support/sites/sessionSite.js'
import { sqliteFile } from '../support/stores/sessionStores.js'

describe('two processes on one SQLite file', () => {
  const url = sqliteFile()
  let built: ReturnType<typeof buildSite>
  beforeAll(() => {
    built = buildSite()
  })
  afterAll(() => built?.remove())

  // Each inserts all ids and ends every third; at the end it prints what it reads
  const program = (name: string) => `
  import { sqliteStore } from 'koa-with-auth/stores'
  const store = sqliteStore({ url: process.argv[2] })
  const name = ${JSON.stringify(name)}
  const ids = Array.from({ length: 200 }, (_, at) => 'id ' + at)
  const work = async (id, at) => {
    await store.insert(id, name, 600000)
    if (at % 3 === 0) await store.end(id, 600000)
    await store.update(id, (await store.get([id]))[0] ?? name, 600000)
  }
  const left = [...ids.entries()]
  const worker = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) await work(next[1], next[0])
  }
  await Promise.all([worker(), worker(), worker(), worker()])
  process.stdout.write('done\\n')
  await new Promise((resolve) => process.stdin.once('data', resolve))
  console.log(JSON.stringify((await store.get(ids)).map((text) => text ?? null)))
  process.exit()
`
  const start = (name: string) => {
    const path = join(built.folder, `${name}.js`)
    writeFileSync(path, program(name))
    const child = spawn(process.execPath, [path, url()], { stdio: ['pipe', 'pipe', 'inherit'] })
    let reported = ''
    child.stdout.on('data', (chunk: Buffer) => (reported += chunk.toString()))
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    return {
      done: () => vi.waitFor(() => expect(reported).toMatch(/^done/), 120_000),
      read: async (): Promise<unknown> => {
        child.stdin.write('go')
        await ended
        return JSON.parse(reported.slice('done\n'.length))
      },
    }
  }

  it('agree on who inserted first and what was ended, and neither fails because of the locks of the other', async () => {
    const processes = [start('one'), start('two')]
    for (const one of processes) await one.done()
    const [here, there] = [await processes[0]!.read(), await processes[1]!.read()]
    expect(here).toEqual(there)
    const kept = here as ReadonlyArray<string | null>
    expect(kept.filter((_, at) => at % 3 === 0).every((one) => one === null)).toBe(true)
    expect(kept.filter((_, at) => at % 3 !== 0).every((one) => one === 'one' || one === 'two')).toBe(true)
  })

  it('leave no files except those of the database', () => {
    const folder = fileURLToPath(new URL('.', url()))
    expect(readdirSync(folder).filter((name) => !/^sessions\.db(?:-wal|-shm)?$/.test(name))).toEqual([])
  })
})
