/**
 * The example API throttles wrong passwords at every operation that takes one: over sockets, from real addresses, in
 * parallel.
 */

import { describe, expect, it, onTestFinished } from 'vitest'
import { exampleApp } from '../../examples/api/app.js'
import { openDatabase } from '../../examples/api/database.js'
import { untimedPasswords } from '../support/runs/untimedPasswords.js'
import { exchange, listen, type Exchanged } from '../support/servers/server.js'

const LIMIT = 20
const HOME = '127.0.0.1'
const ELSEWHERE = '127.0.0.2'

const started = async () => {
  // Forty passwords at once may take longer than the queue of passwords and the guard wait
  untimedPasswords('setTimeout', 'clearTimeout')
  const database = await openDatabase(':memory:')
  const served = await listen(exampleApp({ database, keys: ['k'.repeat(32)], allowedAddresses: HOME }))
  onTestFinished(async () => {
    await served.close()
    database.close()
  })
  // fetch cannot choose its local address
  const send = (method: string, path: string, localAddress: string, headers: Record<string, string>, body = '') =>
    exchange({ port: served.port, method, path, headers, localAddress }, body)
  const post = (path: string, username: string, password: string, from = HOME, headers = {}) =>
    send(
      'POST',
      path,
      from,
      { 'Content-Type': 'application/x-www-form-urlencoded', ...headers },
      new URLSearchParams({ username, password }).toString(),
    )
  const basic = (path: string, username: string, password: string, from = HOME) =>
    send('GET', path, from, { Authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` })
  return { post, basic, errors: served.errors }
}

const count = (answers: ReadonlyArray<Exchanged>, status: number) =>
  answers.filter((one) => one.status === status).length
const times = <A>(length: number, of: (at: number) => A): A[] => Array.from({ length }, (_, at) => of(at))

describe.each([
  { door: 'POST /api/token', path: '/api/token', refused: 401, passed: 200, ask: 'post' },
  { door: 'POST /api/login', path: '/api/login', refused: 401, passed: 204, ask: 'post' },
  { door: 'POST /sign-in', path: '/sign-in', refused: 303, passed: 303, ask: 'post' },
  { door: 'GET /api/basic', path: '/api/basic', refused: 401, passed: 200, ask: 'basic' },
] as const)('$door', ({ path, refused, passed, ask }) => {
  const [user, password] = ask === 'basic' ? ['admin', 'secret'] : ['anna', 'anna-secret']

  it('of parallel guesses, as many as the limit are verified and the others are 429; the owner passes from another address', async () => {
    const site = await started()
    const answers = await Promise.all(times(2 * LIMIT, (at) => site[ask](path, user, `wrong${at}`)))
    expect([count(answers, refused), count(answers, 429)]).toStrictEqual([LIMIT, LIMIT])
    const tooMany = await site[ask](path, user, password)
    expect(tooMany.status).toBe(429)
    expect(Number(tooMany.headers['retry-after'])).toBeGreaterThan(600)
    expect(Number(tooMany.headers['retry-after'])).toBeLessThanOrEqual(900)
    expect(tooMany.headers['set-cookie']).toBeUndefined()
    const owner = await site[ask](path, user, password, ELSEWHERE)
    expect(owner.status).toBe(passed)
    if (path === '/sign-in') expect(owner.headers['location']).toBe('/')
    expect(site.errors).toStrictEqual([])
  })
})

it('one count for all operations: a client that one refuses is refused by the next', async () => {
  const { post } = await started()
  await Promise.all(times(LIMIT / 2, (at) => post('/api/token', 'anna', `wrong${at}`)))
  await Promise.all(times(LIMIT / 2, (at) => post('/api/login', 'ANNA', `wrong${at}`)))
  const answer = await post('/sign-in', 'anna', 'anna-secret')
  expect(answer.status).toBe(429)
  expect(answer.text).toContain('<p role="alert">Too many wrong passwords. Try again later.</p>')
  expect(answer.headers['content-type']).toMatch(/text\/html/)
  expect((await post('/api/token', 'sam', 'sam-secret')).status).toBe(200)
})
