/**
 * API keys while fifty clients send requests and their store fails: no request passes wrongly, each response comes in
 * time, and the service recovers by itself.
 */
import { redisStore, sqliteStore } from 'koa-with-auth/stores'
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createClient as createSqlite } from '@libsql/client'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { connecting, siteOf, slowProxy, TIMEOUT, type Connecting, type Site } from '../support/sites/keySite.js'
import { describeWithRedis, redisServer } from '../support/servers/redisServer.js'
import { ask } from '../support/servers/server.js'
import { repository } from '../support/projects/typecheck.js'

const CLIENTS = 50
const TOUCH = 60_000
// Twenty times the timeout of the store, for a busy machine
const IN_TIME = 20 * TIMEOUT

// What each client sends repeatedly; `replaced` is a secret whose overlap is over
const sorts = ['good', 'good', 'revoked', 'replaced', 'malformed'] as const
type Sort = (typeof sorts)[number]

interface Answer {
  readonly sort: Sort
  readonly owner: string
  readonly status: number
  readonly challenge: string | null
  readonly text: string
  readonly begun: number
  readonly ended: number
}

interface Client {
  readonly sort: Sort
  readonly key: string
  readonly owner: string
}

// One after the other: fifty at once may take longer than the store's timeout on a busy machine
const clientsOf = async ({ keys }: Site): Promise<ReadonlyArray<Client>> => {
  const clients: Client[] = []
  for (let at = 0; at < CLIENTS; at++) {
    const sort = sorts[at % sorts.length]!
    const owner = `${sort} ${at}`
    const { id, key } = await keys.issue({ owner })
    if (sort === 'revoked') expect(await keys.revoke(id)).toBe(true)
    if (sort === 'replaced') await keys.rotate(id, { overlap: 0 })
    clients.push({ sort, owner, key: sort === 'malformed' ? `${key}x` : key })
  }
  return clients
}

// Each client sends one request after the other, until all are stopped
const startCrowd = ({ url }: Site, clients: ReadonlyArray<Client>) => {
  const answers: Answer[] = []
  let isOver = false
  const working = clients.map(async ({ sort, owner, key }) => {
    while (!isOver) {
      const begun = performance.now()
      const { status, challenge, text } = await ask(url, { headers: { key } })
      answers.push({ sort, owner, status, challenge, text, begun, ended: performance.now() })
      // So that the clients do not wait for each other on a busy machine
      await pause(50 + 2 * (performance.now() - begun))
    }
  })
  return {
    answers,
    stop: async () => {
      isOver = true
      await Promise.all(working)
    },
  }
}

interface Fault {
  readonly begin: () => Promise<void> | void
  readonly end: () => Promise<void> | void
}

// `during` is the result of keys that need the store while the fault lasts
const expectHeld = async (
  site: Site,
  fault: Fault,
  during: Readonly<Record<'good' | 'refused', number>>,
): Promise<void> => {
  const clients = await clientsOf(site)
  const before = site.handled()
  const crowd = startCrowd(site, clients)
  try {
    await vi.waitFor(() => expect(crowd.answers.length).toBeGreaterThan(2 * CLIENTS), 120_000)
    await fault.begin()
    const down = performance.now()
    const asked = () => new Set(crowd.answers.filter(({ begun }) => begun > down).map(({ sort }) => sort))
    await vi.waitFor(() => expect(asked().size).toBe(new Set(sorts).size), 120_000)
    const change = site.keys.issue({ owner: 'late' }).then(
      () => 'issued',
      ({ status }: { status?: unknown }) => status,
    )
    expect(await change).toBe(503)
    const up = performance.now()
    await fault.end()
    const ended = performance.now()
    const last = () => new Map(crowd.answers.filter(({ begun }) => begun > ended).map((one) => [one.owner, one.status]))
    const well = new Map(clients.map(({ owner, sort }) => [owner, sort === 'good' ? 200 : 401]))
    await vi.waitFor(() => expect(last()).toEqual(well), { timeout: 120_000, interval: 100 })
    await site.keys.issue({ owner: 'back' })
    await crowd.stop()

    const { answers } = crowd
    const of = (...some: ReadonlyArray<Sort>) => answers.filter(({ sort }) => some.includes(sort))
    const statuses = (some: ReadonlyArray<Answer>) => [...new Set(some.map(({ status }) => status))].sort()
    // No request passes wrongly, at any time
    expect(of('revoked', 'replaced', 'malformed').filter(({ status }) => status < 400)).toEqual([])
    expect(of('good').filter(({ status }) => status !== 200 && status !== 503)).toEqual([])
    expect(statuses(of('malformed'))).toEqual([401])
    const held = (some: ReadonlyArray<Answer>) => some.filter(({ begun, ended }) => begun > down && ended < up)
    expect(statuses(held(of('good')))).toEqual([during.good])
    expect(statuses(held(of('revoked', 'replaced')))).toEqual([during.refused])
    // The handler ran for the accepted requests only
    expect(site.handled() - before).toBe(of('good').filter(({ status }) => status === 200).length)
    for (const { sort, owner, status, challenge, text, begun, ended } of answers) {
      expect(ended - begun).toBeLessThan(IN_TIME)
      // Each with its own principal
      if (status === 200) expect(text).toBe(owner)
      else expect(JSON.parse(text)).toMatchObject({ status })
      expect([sort, status, challenge === null]).toEqual([sort, status, status !== 401])
    }
  } finally {
    await crowd.stop()
  }
}

const ALL_503 = { good: 503, refused: 503 }
const UNHARMED = { good: 200, refused: 401 }

describe('K-05 SQLite with fifty clients', () => {
  let folder: string
  let path: string
  let store: ReturnType<typeof sqliteStore>
  let site: Site
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'koa-with-auth-keys-'))
    path = join(folder, 'keys.db')
    store = sqliteStore({ url: `file:${path}` })
    site = await siteOf(store, TOUCH)
  })
  afterEach(async () => {
    await site?.close()
    store?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('locked by another process: keys stay valid, changes are 503', async () => {
    const program = `
      const { createClient } = require('@libsql/client')
      createClient({ url: ${JSON.stringify(`file:${path}`)}, timeout: 5000 }).transaction('write').then(() => console.log('locked'))
      process.stdin.on('end', () => process.exit()).resume()`
    let child: ReturnType<typeof spawn> | undefined
    const ended = () => new Promise((resolve) => child?.once('exit', resolve))
    const begin = async () => {
      child = spawn(process.execPath, ['-e', program], { cwd: repository, stdio: ['pipe', 'pipe', 'inherit'] })
      await new Promise((resolve) => child?.stdout?.once('data', resolve))
    }
    const end = async () => {
      const gone = ended()
      child?.stdin?.end()
      await gone
    }
    try {
      await expectHeld(site, { begin, end }, UNHARMED)
    } finally {
      child?.kill('SIGKILL')
    }
  })

  it('truncated, then restored: 503 meanwhile', async () => {
    let kept: Buffer
    const begin = async () => {
      const client = createSqlite({ url: `file:${path}`, timeout: 5000, concurrency: 1 })
      await client.execute('pragma wal_checkpoint(truncate)')
      client.close()
      kept = readFileSync(path)
      truncateSync(path, 0)
    }
    await expectHeld(site, { begin, end: () => writeFileSync(path, kept) }, ALL_503)
  })
})

describeWithRedis('K-05 Redis under fifty clients', () => {
  const server = redisServer({ persistent: true })
  describe.each(Object.entries(connecting))('%s', (_name, connectTo) => {
    let proxy: Awaited<ReturnType<typeof slowProxy>>
    let client: Awaited<ReturnType<Connecting>>
    let site: Site
    beforeAll(async () => {
      proxy = await slowProxy(server().port)
      client = await connectTo(proxy.port)
      site = await siteOf(redisStore({ command: client.command }), TOUCH)
    })
    afterAll(async () => {
      await site?.close()
      client?.disconnect()
      proxy?.close()
    })

    it('stopped, then started again: 503 meanwhile', async () => {
      await expectHeld(site, { begin: () => server().stop(), end: () => server().start() }, ALL_503)
    })

    it('paused: 503 meanwhile, because silence is an outage, too', async () => {
      await expectHeld(site, { begin: () => server().pause(), end: () => server().continue() }, ALL_503)
    })

    it('slower than the timeout: 503 meanwhile', async () => {
      await expectHeld(site, { begin: () => proxy.delay(2 * TIMEOUT), end: () => proxy.delay(0) }, ALL_503)
    })
  })
})
