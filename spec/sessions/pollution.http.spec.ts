/**
 * R09: a polluted prototype signs no user in, grants no right and removes no session. Separate processes are polluted,
 * not this one.
 */
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { buildSite, startProgram } from '../support/sites/sessionSite.js'
import { visitorOf, type Visitor } from '../support/sites/sessionsApp.js'

let site: ReturnType<typeof buildSite>
beforeAll(() => {
  site = buildSite(['spec/support/sites/pollutedApp'])
})
afterAll(() => site.remove())

const start = (env: Readonly<Record<string, string>> = {}) =>
  startProgram(site.folder, 'spec/support/sites/pollutedApp', env)

const payloads: ReadonlyArray<readonly [string, object]> = [
  ['a record of who is signed in', { auth: { id: 'sue', at: 9e15, stamp: '', mac: '' } }],
  ['fields of one', { id: 'sue', at: 9e15, stamp: '', mac: '' }],
  ['a user', { user: { username: 'sue', isSuperuser: true } }],
  ['what a session says of its user', { userId: 'sue' }],
  ['rights', { isSuperuser: true, isStaff: true, isActive: true }],
  ['no activity', { isActive: null }],
  ['a user name', { username: 'sue' }],
  ['a failure of the store', { fault: 'x', storeError: { error: 'x' }, error: 'x' }],
  ['what is kept at a sign-in', { keep: 'basket' }],
  [
    'options of koa-session',
    { externalKey: 'x', ContextStore: 'x', valid: 'x', beforeSave: 'x', rolling: true, renew: true },
  ],
  ['options of cookies', { domain: 'evil.example', path: '/nowhere' }],
  ['what koa-session keeps', { _maxAge: 1, _session: true, _expire: 1, populated: true }],
  [
    'proofs and times of a sign-in',
    {
      proofs: [{ method: 'passkey', at: Date.now() }],
      ...{ method: 'passkey', idle: 1e15, absolute: 1e15, finished: 'x', listed: 'x' },
    },
  ],
  ['methods', { toJSON: 'x', save: 'x', regenerate: 'x' }],
]

// JSON.stringify drops a literal's own __proto__, so the JSON is built by hand
const polluting = (fields: object): string => `{"__proto__":${JSON.stringify(fields)}}`

const merge = async (one: Visitor, text: string, query = ''): Promise<void> => {
  expect((await one.ask(`/merge${query}`, { method: 'POST', body: text })).status).toBe(204)
}

const statuses = async (one: Visitor) =>
  Promise.all(
    ['/open', '/me', '/root', '/staff', '/by-key', '/fresh'].map(async (path) => (await one.ask(path)).status),
  )

describe.each([
  ['koa-with-auth/sessions', {}],
  ['a plain koa-session', { PLAIN: '1' }],
])('R09 %s', (how, env: Readonly<Record<string, string>>) => {
  // A plain koa-session reads its own options from the prototype, which this package cannot change
  const chosen = payloads.filter(
    ([what]) => how !== 'a plain koa-session' || !/^options|koa-session|methods/.test(what),
  )

  // A plain koa-session keeps no proofs, so a demand for one is a mistake of the application
  const unproven = how === 'a plain koa-session' ? 500 : 403

  let child: Awaited<ReturnType<typeof start>>
  beforeAll(async () => {
    child = await start(env)
  })
  afterAll(() => child?.stop())
  const visitor = () => visitorOf(child.port)

  it.each(chosen)('%s on every object', async (what, fields) => {
    onTestFinished(async () => {
      const { status } = await visitor().post('/unmerge')
      expect(status).toBe(204)
    })
    const [stranger, buyer, anna, sue] = [visitor(), visitor(), visitor(), visitor()]
    await buyer.post('/basket')
    await anna.post('/login/anna')
    await sue.post('/login/sue')
    await merge(visitor(), polluting(fields))
    // Twice, because what one request wrote is read by the next
    for (let at = 0; at < 2; at++) {
      expect(await statuses(stranger)).toEqual([200, 401, 401, 401, 401, 401])
      expect(await statuses(buyer)).toEqual([200, 401, 401, 401, 401, 401])
      expect(await statuses(anna)).toEqual([200, 200, 401, 401, 401, unproven])
      // The value in a plain koa-session cannot be distinguished from a copy from the prototype, so it is refused
      const isAmbiguous = how === 'a plain koa-session' && what === 'a user'
      expect((await sue.ask('/me')).status).toBe(isAmbiguous ? 401 : 200)
      await buyer.post('/basket')
      await stranger.post('/basket')
    }
    // A new sign-in has the right user
    const late = visitor()
    const answer = await late.post('/login/anna')
    expect(answer.status).toBe(204)
    for (const line of answer.headers['set-cookie'] ?? []) expect(line).not.toContain('evil.example')
    expect(await statuses(late)).toEqual([200, 200, 401, 401, 401, unproven])
  })
})

describe('R09 a class of users', () => {
  it('with a polluted prototype gives no right, and its getters count', async () => {
    const child = await start()
    onTestFinished(child.stop)
    const visitor = () => visitorOf(child.port)
    const [row, boss] = [visitor(), visitor()]
    await row.post('/login/row')
    await boss.post('/login/boss')
    expect(await statuses(row)).toEqual([200, 200, 401, 401, 401, 403])
    expect(await statuses(boss)).toEqual([200, 200, 200, 200, 401, 403])
    await merge(visitor(), '{"constructor":{"prototype":{"isStaff":true}}}', '?into=row')
    expect(await statuses(row)).toEqual([200, 200, 401, 401, 401, 403])
  })
})
