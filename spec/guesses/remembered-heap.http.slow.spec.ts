/**
 * `remembered` keeps no credential: the memory of a process that remembers credentials contains none. What is kept on
 * purpose is found there.
 */
import { spawn } from 'node:child_process'
import { cpSync, symlinkSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { buildPackage } from '../support/projects/builtPackage.js'
import { repository } from '../support/projects/typecheck.js'

const unique = (name: string) => `${name}-${randomBytes(18).toString('hex')}`

it('M-03 after requests over HTTP, a heap snapshot contains each principal, but no password and no token', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'koa-with-auth-heap-'))
  buildPackage(folder)
  symlinkSync(`${repository}node_modules`, join(folder, 'node_modules'))
  cpSync(`${repository}spec/support/sites/rememberedSite.mjs`, join(folder, 'site.mjs'))
  const site = spawn(process.execPath, ['--expose-gc', 'site.mjs'], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(async () => {
    site.kill('SIGKILL')
    await rm(folder, { recursive: true, force: true })
  })
  const ended = once(site, 'exit').then(([code]) => {
    throw new Error(`the site has ended with ${code}, see what it printed`)
  })
  const [port] = (await Promise.race([once(site.stdout, 'data'), ended])) as [Buffer]
  const ask = async (path: string, headers: Record<string, string>, method = 'GET') => {
    const url = `http://127.0.0.1:${String(port).trim()}${path}`
    const response = await fetch(url, { method, headers: { ...headers, Connection: 'close' } })
    return { status: response.status, text: await response.text() }
  }

  const [password, token] = [unique('password'), unique('token')]
  const [byBasic, byBearer] = [unique('marker'), unique('marker')]
  const payload = Buffer.from(`anna:${password}`).toString('base64')
  expect((await ask('/enrol', { 'X-Password': password, 'X-Token': token }, 'POST')).status).toBe(204)
  for (let at = 0; at < 3; at++) {
    expect(await ask('/basic', { Authorization: `Basic ${payload}`, 'X-Marker': byBasic })).toMatchObject({
      status: 200,
    })
    expect(await ask('/bearer', { Authorization: `Bearer ${token}`, 'X-Marker': byBearer })).toMatchObject({
      status: 200,
    })
  }
  const file = join(folder, 'one.heapsnapshot')
  // They are remembered, because each hook ran once
  expect((await ask('/snapshot', { 'X-File': file })).text).toBe('{"basic":1,"bearer":1}')

  const heap = await readFile(file, 'utf8')
  for (const marker of [byBasic, byBearer]) expect(heap.includes(marker), 'what is kept on purpose').toBe(true)
  // The credentials as they were sent, their decoded forms, and a half of each
  const secrets = { password, token, payload, base64: payload.slice(8, 40), half: token.slice(10, 30) }
  for (const [name, secret] of Object.entries(secrets)) expect(heap.includes(secret), name).toBe(false)
})
