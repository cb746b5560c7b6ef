/** The memory of a session and of a stamp in Redis, which the guide "How far it goes" multiplies, is that of a real sign-in. */
import { randomBytes, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { redisStore } from 'koa-with-auth/stores'
import { createClient } from 'redis'
import { expect, it, onTestFinished } from 'vitest'
import { repository } from '../support/projects/typecheck.js'
import { describeWithRedis, startRedis } from '../support/servers/redisServer.js'
import { at, sessionsApp } from '../support/sites/sessionsApp.js'

const COUNT = 20_000
const guide = readFileSync(`${repository}examples/guides/how-far-it-goes.md`, 'utf8').replace(/\s+/g, ' ')
const figure = (pattern: RegExp): number => Number(pattern.exec(guide)?.[1]?.replace(',', ''))
const [session, whole] = [figure(/takes (\d+) bytes by `MEMORY USAGE`/), figure(/about (\d+) bytes of `used_memory`/)]
const [stamp, wholeStamp] = [figure(/A stamp takes (\d+) bytes/), figure(/A stamp takes \d+ bytes, or (\d+) with/)]

describeWithRedis('How far it goes, in Redis', () => {
  it('a session and a stamp take as much memory as the guide says', async () => {
    const server = await startRedis()
    onTestFinished(() => server.close())
    const client = await createClient({ url: server.url }).connect()
    onTestFinished(() => client.destroy())
    const store = redisStore({ command: (args) => client.sendCommand(args) })
    const user = { username: randomUUID(), isActive: true }
    const { visitor } = await sessionsApp(() => store, {
      below: (app, { logIn }) => app.use(at('/as', (ctx) => logIn(ctx, user))),
    })
    expect((await visitor().post('/as')).status).toBe(200)
    const used = async () => Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1])
    for (const [kind, alone, perKey] of [
      ['session', session, whole],
      ['stamp', stamp, wholeStamp],
    ] as const) {
      const [key = ''] = (await client.keys('*')).filter((one) => one.includes(`/${kind}/`))
      const bytes = Number(await client.sendCommand(['MEMORY', 'USAGE', key]))
      expect(Math.abs(bytes / alone - 1), `${kind}: ${bytes}`).toBeLessThan(0.05)
      const text = (await client.get(key)) ?? ''
      const before = await used()
      const more = () => `${key.slice(0, -43)}${randomBytes(32).toString('base64url')}`
      await Promise.all(Array.from({ length: COUNT }, () => client.set(more(), text, { PX: 600_000 })))
      const each = ((await used()) - before) / COUNT
      expect(Math.abs(each / perKey - 1), `${kind}: ${each}`).toBeLessThan(0.1)
    }
  })

  it('the arithmetic of a billion sessions is right', () => {
    expect(guide).toContain(`A billion take ${whole} GB`)
    const [, masters = '', size = ''] = /That is (\d+) masters of (\d+) GB/.exec(guide) ?? []
    expect(Math.ceil(whole / Number(masters))).toBe(Number(size))
    expect(figure(/16,384 slots hold ([\d,]+) sessions each/)).toBe(Math.round(1e9 / 16_384 / 1000) * 1000)
  })
})
