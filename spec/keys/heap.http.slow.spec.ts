/**
 * No key and no password is in the memory of a site after its request: not in the responses, records, errors and logs
 * that it kept, nor anywhere else in a heap snapshot. A snapshot does not contain the buffers of Node outside of the
 * heap.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startSite, type Site } from '../support/sites/sessionSite.js'
import { userProject, type UserProject } from '../support/projects/userProject.js'
import { exchange } from '../support/servers/server.js'

let project: UserProject
let site: Site
// One connection, so that a parser that kept the last request would be found
const agent = new Agent({ keepAlive: true, maxSockets: 1 })

beforeAll(async () => {
  project = userProject(['spec/support/sites/secretSite.ts', 'spec/support/sites/program.ts'], {})
  const args = ['--expose-gc', '--stack-trace-limit=50', join(project.folder, 'secretSite.js')]
  site = await startSite({ command: process.execPath, args, env: { NODE_ENV: 'test' } })
})
afterAll(async () => {
  agent.destroy()
  await site?.stop()
  project?.remove()
})

const send = (method: string, path: string, headers: Readonly<Record<string, string>> = {}, body = '') =>
  exchange({ port: site.port, agent, method, path, headers }, body)
const basicOf = (name: string, password: string) => Buffer.from(`${name}:${password}`).toString('base64')
const withKey = (key: string) => ({ 'X-API-Key': key })
const statusOf = async (path: string, headers: Readonly<Record<string, string>>) =>
  (await send('GET', path, headers)).status

it('a key and a password are not in memory after their requests, whatever the response was', async () => {
  const secret = () => randomBytes(24).toString('hex')
  const use = async () => {
    const password = secret()
    await send('POST', '/users/anna', {}, password)
    const first = JSON.parse((await send('POST', '/keys')).text) as { readonly key: string; readonly id: string }
    const second = JSON.parse((await send('POST', `/rotate/${first.id}`)).text) as typeof first
    const wrong = secret()
    const basic = (text: string) => ({ Authorization: `Basic ${basicOf('anna', text)}` })
    const all: ReadonlyArray<readonly [headers: Readonly<Record<string, string>>, status: number]> = [
      [withKey(first.key), 200],
      [withKey(second.key), 200],
      [{ Authorization: `Bearer ${second.key}` }, 200],
      [basic(password), 200],
      [withKey(`${first.key}x`), 401],
      [basic(wrong), 401],
    ]
    for (const [headers, status] of all) expect(await statusOf('/who', headers)).toBe(status)
    for (const headers of [withKey(second.key), basic(password)]) expect(await statusOf('/fails', headers)).toBe(500)
    await send('POST', '/down')
    expect(await statusOf('/who', withKey(second.key))).toBe(503)
    await send('POST', '/down')
    const random = ({ key }: typeof first) => key.slice('acme_'.length, -6)
    const credentials = [password, wrong].map((text) => basicOf('anna', text))
    return [first.key, random(first), second.key, random(second), password, wrong, ...credentials]
  }
  const secrets = await use()
  // Everything is used once more, so that what V8 and the parser remember is of this use
  await use()
  // The same words in the same header, kept on purpose: the search finds them
  const marker = `acme_${secret()}`
  expect((await send('GET', '/mark', withKey(marker))).status).toBe(204)
  const { status, text } = await send('POST', '/snapshot')
  expect(status).toBe(200)
  const memory = readFileSync(text)
  expect(memory.includes(marker)).toBe(true)
  // The errors that the site kept are in the snapshot
  expect(memory.includes('the handler failed')).toBe(true)
  expect(secrets.filter((one) => memory.includes(one))).toEqual([])
})
