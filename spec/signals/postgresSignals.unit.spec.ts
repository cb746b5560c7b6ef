/** `postgresSignals` over a real PostgreSQL, by the drivers that can listen. */
import { postgresSignals, type Signals } from 'koa-with-auth/stores'
import pg from 'pg'
import postgres from 'postgres'
import { expect, it, onTestFinished } from 'vitest'
import { sqlPort } from '../support/runs/sqlOfRun.js'
import { describeWithSql, USER } from '../support/servers/sqlServer.js'

const made: Readonly<Record<string, (port: number) => Signals>> = {
  pg: (port) => {
    const config = { host: '127.0.0.1', port, user: USER, database: 'postgres' }
    const pool = new pg.Pool(config)
    onTestFinished(() => pool.end())
    return postgresSignals({
      query: (sql, values) => pool.query(sql, values),
      listen: async (channel, onPayload) => {
        const client = new pg.Client(config)
        client.on('error', () => {})
        client.on('notification', ({ payload = '' }) => onPayload(payload))
        await client.connect()
        await client.query(`listen ${channel}`)
        onTestFinished(() => client.end())
        return () => client.end()
      },
    })
  },
  'postgres.js': (port) => {
    const sql = postgres({ host: '127.0.0.1', port, user: USER, database: 'postgres' })
    onTestFinished(() => sql.end({ timeout: 1 }))
    return postgresSignals({
      query: (text, values) => sql.unsafe(text, values),
      listen: async (channel, onPayload) => (await sql.listen(channel, onPayload)).unlisten,
    })
  },
}

describeWithSql('postgres', 'postgresSignals', () => {
  it.each(Object.entries(made))('%s: each process hears all messages, once', async (_name, make) => {
    const port = await sqlPort('postgres')
    const [here, there] = [make(port), make(port)]
    const heard: string[][] = [[], []]
    for (const [at, signals] of [here, there].entries()) await signals.subscribe((message) => heard[at]?.push(message))
    const message = JSON.stringify({ v: 1, about: `it's "x" 🔑${'x'.repeat(200)}` })
    await here.publish(message)
    await there.publish('second')
    await expect
      .poll(() => heard)
      .toStrictEqual([
        [message, 'second'],
        [message, 'second'],
      ])
    // as after a silence: the connection before it is given up, so nothing is heard twice
    const again: string[] = []
    await there.subscribe((one) => again.push(one))
    await here.publish('third')
    await expect.poll(() => again).toStrictEqual(['third'])
    await expect.poll(() => heard[0]).toStrictEqual([message, 'second', 'third'])
    expect(heard[1]).toStrictEqual([message, 'second'])
  })

  it('a connection that is lost does not keep it from listening anew', async () => {
    let listening = 0
    const signals = postgresSignals({
      query: async () => [],
      listen: async () => {
        listening += 1
        return () => {
          throw new Error('lost')
        }
      },
    })
    await signals.subscribe(() => {})
    await signals.subscribe(() => {})
    expect(listening).toBe(2)
  })

  it('a connection that comes after a later one is ended', async () => {
    const begun: Array<() => void> = []
    const open = new Set<number>()
    const signals = postgresSignals({
      query: async () => [],
      listen: async () => {
        const at = begun.length
        await new Promise<void>((resolve) => begun.push(resolve))
        open.add(at)
        return () => open.delete(at)
      },
    })
    const both = [0, 1].map(async () => signals.subscribe(() => {}))
    await expect.poll(() => begun.length).toBe(2)
    for (const begin of begun.toReversed()) begin()
    await Promise.all(both)
    expect([...open]).toStrictEqual([1])
  })

  it.each(['query', 'listen'])('is a TypeError without %s', (name) => {
    const options = { query: async () => [], listen: async () => () => {}, [name]: undefined }
    // Safe: that it is wrong is what is tested
    expect(() => postgresSignals(options as never)).toThrow(`postgresSignals({ ${name} }) must be a function`)
  })
})
