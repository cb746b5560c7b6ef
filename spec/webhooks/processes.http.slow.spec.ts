/** Two processes and one Redis: a delivery counts once in both, and a process that is killed loses none. H-06. */
import { spawn, type ChildProcess } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { buildPackage } from '../support/projects/builtPackage.js'
import { repository } from '../support/projects/typecheck.js'
import { describeWithRedis } from '../support/servers/redisServer.js'
import { redisDatabase } from '../support/servers/redisDatabase.js'
import { githubSignature, SECRET } from '../support/sites/webhookSite.js'

interface Process {
  readonly child: ChildProcess
  readonly send: (body: string) => Promise<number>
  /** Resolves when it prints this line. */
  readonly prints: (line: string) => Promise<void>
}

describeWithRedis('two processes', () => {
  const database = redisDatabase()
  let folder = ''
  const running: ChildProcess[] = []
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'webhooks-'))
    buildPackage(folder)
    symlinkSync(`${repository}node_modules`, join(folder, 'node_modules'))
    cpSync(`${repository}spec/support/sites/webhookProcess.mjs`, join(folder, 'site.mjs'))
  })
  afterAll(() => {
    for (const child of running) child.kill('SIGKILL')
    rmSync(folder, { recursive: true })
  })

  const start = async (): Promise<Process> => {
    const env = { ...process.env, REDIS_URL: database().url, SECRET }
    const child = spawn(process.execPath, ['site.mjs'], { cwd: folder, env, stdio: ['pipe', 'pipe', 'inherit'] })
    running.push(child)
    const printed: string[] = []
    const waiting = new Map<string, () => void>()
    let port = 0
    const started = new Promise<void>((resolve) => waiting.set('port', resolve))
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.startsWith('port ')) port = Number(line.slice(5))
      printed.push(line)
      waiting.get(line.startsWith('port ') ? 'port' : line)?.()
    })
    await started
    return {
      child,
      send: async (body) => {
        const headers = { 'X-Hub-Signature-256': githubSignature(body) }
        return (await fetch(`http://127.0.0.1:${port}/hook`, { method: 'POST', body, headers })).status
      },
      prints: (line) =>
        printed.includes(line) ? Promise.resolve() : new Promise((resolve) => waiting.set(line, resolve)),
    }
  }

  it('handle a delivery once, also while the other handles it, and again after a failure', async () => {
    const [one, other] = [await start(), await start()]
    const first = one.send('wait 1')
    await one.prints('handles wait 1')
    expect(await other.send('wait 1')).toBe(409)
    one.child.stdin?.write('\n')
    expect(await first).toBe(204)
    expect([await other.send('wait 1'), await one.send('wait 1')]).toStrictEqual([200, 200])
    expect([await one.send('fail 2'), await other.send('fail 2'), await one.send('fail 2')]).toStrictEqual([
      500, 500, 500,
    ])
    const race = await Promise.all([one, other, one, other].map((process) => process.send('plain 3')))
    expect(race.filter((status) => status === 204)).toHaveLength(1)
    expect(race.filter((status) => ![200, 204, 409].includes(status))).toStrictEqual([])
  })

  it('keep a delivery whose process was killed for some minutes only', async () => {
    const [one, other] = [await start(), await start()]
    const lost = one.send('wait 4').catch(() => 'lost')
    await one.prints('handles wait 4')
    one.child.kill('SIGKILL')
    expect(await lost).toBe('lost')
    expect(await other.send('wait 4')).toBe(409)
    const keys = (await database().send('KEYS', '*')).split('\r\n').filter((line) => line.includes('koa-with-auth'))
    const lives = await Promise.all(keys.map(async (key) => Number((await database().send('PTTL', key)).slice(1))))
    expect(Math.min(...lives)).toBeLessThanOrEqual(600_000)
    expect(Math.min(...lives)).toBeGreaterThan(0)
  })
})
