/**
 * The example API (examples/api) in its own process: section 4 of the requirements row by row, and faults of its
 * database.
 */
import { join } from 'node:path'
import { createClient } from '@libsql/client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { derivations } from '../support/models/derivations.js'
import { exampleText } from '../support/papers/examples.js'
import { asRequests } from '../support/papers/examplesCurl.js'
import { exampleProject, start, type Running } from '../support/papers/examplesProcess.js'
import { freePort } from '../support/servers/redisServer.js'
import { exampleApp } from '../../examples/api/app.js'
import { openDatabase } from '../../examples/api/database.js'
import { ask, listen } from '../support/servers/server.js'

let project: ReturnType<typeof exampleProject>
let running: Running
let url: string

beforeAll(async () => {
  project = exampleProject()
  const port = await freePort()
  running = start(project.folder, process.execPath, ['examples/server.js'], { PORT: String(port), HOST: '127.0.0.1' })
  await running.printed('Stop with Ctrl-C.')
  url = `http://127.0.0.1:${port}/api`
})
afterAll(async () => {
  running?.signal('SIGKILL')
  project?.remove()
})

const form = (fields: Record<string, string>) => ({ method: 'POST', body: new URLSearchParams(fields) })
const user = (username: string, password = `${username}-secret`) => ({ username, password })

const logIn = async (username: string) => {
  const { status, headers } = await ask(`${url}/login`, form(user(username)))
  expect(status).toBe(204)
  const cookie = headers.getSetCookie().map((line) => line.split(';')[0])
  return { Cookie: cookie.join('; ') }
}

describe('section 4: the rows of examples/README.md', () => {
  const row = /^\| ([A-Z]+ \/[\w-]+) +\|.*\| `(curl [^`]+)` +\| (\d{3}) `+([^`]*)`+ +\|$/gm
  const rows = [...exampleText('README.md').matchAll(row)]

  it('the response to each line is what its row says', async () => {
    expect(rows.length).toBe(19)
    const run = asRequests()
    for (const [, , curl = '', status, body] of rows) {
      const answer = await run(curl.replace('http://127.0.0.1:3000/api', url))
      expect({ curl, ...answer }).toEqual({ curl, status: Number(status), body })
    }
  })
})

describe('POST /token', () => {
  it('issues a random token, kept as a digest, that is accepted by what the application guards', async () => {
    const tokens = await Promise.all([1, 2].map(() => ask(`${url}/token`, form(user('anna')))))
    const [first = '', second = ''] = tokens.map(({ text }) => (JSON.parse(text) as { token: string }).token)
    expect(first).toMatch(/^[\w-]{43}$/)
    expect(first).not.toBe(second)
    for (const token of [first, second]) {
      const { status, text } = await ask(`${url}/whoami`, { headers: { Authorization: `Bearer ${token}` } })
      expect([status, text]).toEqual([200, '{"principal":"anna"}'])
    }
    const database = createClient({ url: `file:${join(project.folder, 'example.db')}` })
    const { rows } = await database.execute('select * from tokens')
    expect(rows.length).toBeGreaterThan(1)
    expect(JSON.stringify(rows)).not.toContain(first)
    await database.execute('update tokens set expires_at = 0')
    database.close()
    const expired = await ask(`${url}/whoami`, { headers: { Authorization: `Bearer ${first}` } })
    expect([expired.status, expired.challenge]).toEqual([401, 'Bearer realm="pets", error="invalid_token"'])
  })

  it('A-36 gives an unknown user, a wrong password and an inactive user the same response', async () => {
    const answers = []
    for (const fields of [user('anna', 'wrong'), user('stranger'), user('ina'), user('__proto__')]) {
      const { status, text, headers } = await ask(`${url}/token`, form(fields))
      answers.push({ status, text, headers: [...headers].filter(([name]) => name !== 'date') })
    }
    for (const answer of answers) expect(answer).toEqual(answers[0])
    expect(answers[0]).toMatchObject({ status: 401, text: '{"detail":"Invalid credentials"}' })
  })

  it('A-36 does as much work for an unknown user as for a wrong password', async () => {
    const database = await openDatabase('file::memory:')
    const served = await listen(exampleApp({ database, keys: ['k'.repeat(32)], allowedAddresses: '127.0.0.1' }))
    const work = (username: string) =>
      derivations(async () => {
        const { status } = await ask(`${served.url}/api/token`, form(user(username, 'wrong')))
        expect(status).toBe(401)
      })
    try {
      const known = await work('anna')
      expect(known.runs).toHaveLength(1)
      expect(await work('stranger')).toEqual(known)
    } finally {
      await served.close()
      database.close()
    }
  })

  it.each([
    ['no password', { username: 'anna' }, ['password']],
    ['no user name', { password: 'x' }, ['username']],
    ['an empty password', { username: 'anna', password: '' }, ['password']],
    ['nothing', {}, ['username', 'password']],
    ['index notation', { 'username[0]': 'anna', 'password[0]': 'anna-secret' }, ['username', 'password']],
  ])('is a 422 that names the missing field: %s', async (_what, fields: Record<string, string>, missing) => {
    const { status, text } = await ask(`${url}/token`, form(fields))
    expect([status, JSON.parse(text)]).toEqual([422, { detail: 'a field is missing', fields: missing }])
  })

  it.each([
    ['JSON', 'application/json', '{"username":"anna","password":"anna-secret"}', 415],
    ['no media type', '', 'username=anna&password=anna-secret', 415],
    ['A-13 a media type with a tab', 'application/x-www-form-urlencoded\ta', 'username=anna&password=anna-secret', 415],
    ['2 MB', 'application/x-www-form-urlencoded', `username=anna&password=${'a'.repeat(2_000_000)}`, 413],
  ])('%s is refused', async (_what, type, body, status) => {
    expect((await ask(`${url}/token`, { method: 'POST', body, headers: { 'Content-Type': type } })).status).toBe(status)
  })
})

describe('POST /login and POST /logout', () => {
  it('5.4 anna, sam and sue reach what they may; ina can sign in nowhere', async () => {
    const reached: Record<string, number[]> = {}
    for (const name of ['anna', 'sam', 'sue']) {
      const headers = await logIn(name)
      const paths = ['/pets', '/protected', '/staff-area', '/admin-only']
      reached[name] = await Promise.all(paths.map(async (path) => (await ask(url + path, { headers })).status))
    }
    expect(reached).toEqual({ anna: [200, 200, 401, 401], sam: [200, 200, 200, 401], sue: [200, 200, 200, 200] })
    expect((await ask(`${url}/login`, form(user('ina')))).status).toBe(401)
  })
})

describe('the database locked or read-only', () => {
  const statuses = async (headers: Record<string, string>) => {
    const of = async (path: string, init: RequestInit = {}) => (await ask(url + path, init)).status
    return {
      session: await of('/protected', { headers }),
      clientKey: await of('/apikey?api_key=supersecret'),
      wrongToken: await of('/whoami', { headers: { Authorization: 'Bearer x' } }),
      bare: await of('/protected'),
      withoutDatabase: await of('/ipwhitelist'),
      withCookieBeside: await of('/bearer', { headers: { Authorization: 'Bearer supersecret', ...headers } }),
      signIn: await of('/token', form(user('anna'))),
    }
  }
  const well = { session: 200, clientKey: 200, wrongToken: 401, bare: 401, withoutDatabase: 200, withCookieBeside: 200 }

  // A process that locks the database until it ends
  const lock = `
    import { createClient } from '@libsql/client'
    const database = createClient({ url: 'file:example.db' })
    const transaction = await database.transaction('write')
    await transaction.execute('update users set is_active = is_active')
    console.log('locked')
    setInterval(() => {}, 1000)
  `

  it('locked: 503 for operations that write, no request passes unchecked, others work, and all work again later', async () => {
    const headers = await logIn('anna')
    expect(await statuses(headers)).toEqual({ ...well, signIn: 200 })
    const locking = start(project.folder, process.execPath, ['--input-type=module', '--eval', lock])
    await locking.printed('locked')
    expect(await statuses(headers)).toEqual({ ...well, signIn: 503 })
    expect((await ask(`${url}/login`, form(user('anna')))).status).toBe(503)
    // No request has waited for the lock, because it is held still
    locking.signal('SIGKILL')
    await locking.exited
    expect(await statuses(headers)).toEqual({ ...well, signIn: 200 })
  })
})
