/** Sign-outs while an upgrade is decided: the socket is not registered yet, so only the guard can refuse it. */
import { channel } from 'node:diagnostics_channel'
import { pipe } from 'fp-ts/lib/function.js'
import { apiKeyHeader, authorize, sessionAuth } from 'koa-with-auth'
import { endsSession, on, type Decision, type SessionDigest } from 'koa-with-auth/events'
import { sessionDigest } from 'koa-with-auth/sessions'
import { guardUpgrade, type UpgradeGuard } from 'koa-with-auth/upgrades'
import { describe, expect, it, onTestFinished } from 'vitest'
import { valuesOf } from '../support/servers/rawSocket.js'
import { sessionsApp } from '../support/sites/sessionsApp.js'
import { listenWithUpgrades, sendUpgrade } from '../support/servers/upgradeServer.js'

/**
 * A site that registers its sockets like the guide. `meanwhile` runs during a decision, `after` runs after the guard.
 */
const site = async () => {
  const running = await sessionsApp()
  const meanwhile: Array<() => Promise<unknown>> = []
  const after: Array<() => Promise<unknown>> = []
  let isAllowed = true
  const forbid = () => (isAllowed = false)
  const late = authorize(async () => {
    for (const run of meanwhile.splice(0)) await run()
    return isAllowed
  })
  const key = apiKeyHeader({ authenticate: (_request, given) => given === 'k1' && { username: 'robot' } })
  const guard = guardUpgrade(running.app, [pipe(sessionAuth(), late), pipe(key, late)])
  const open = new Map<() => void, SessionDigest>()
  const end = on('signed-out', (record) => {
    for (const [close, signIn] of open) if (endsSession(record, signIn)) close()
  })
  onTestFinished(end)
  const registering: UpgradeGuard<unknown> = async (request, socket, head) => {
    const admitted = await guard(request, socket, head)
    if (admitted === undefined) return undefined
    for (const run of after.splice(0)) await run()
    const signIn = sessionDigest(admitted)
    if (signIn !== undefined) open.set(() => socket.destroy(), signIn)
    return admitted
  }
  const server = await listenWithUpgrades(running.app, () => registering)
  onTestFinished(server.close)
  const signedIn = async (user: string) => {
    const visitor = running.visitor()
    await visitor.post(`/login?user=${user}`)
    return visitor
  }
  const [anna, sam] = [await signedIn('anna'), await signedIn('sam')]
  const upgrade = (lines: ReadonlyArray<string> = []) =>
    sendUpgrade(server.port, 'GET /live', [`Cookie: ${anna.header()}`, ...lines])
  return { ...server, signing: running.signing, anna, sam, meanwhile, after, open, upgrade, end, forbid }
}

type Site = Awaited<ReturnType<typeof site>>

const ends: ReadonlyArray<readonly [string, (site: Site) => Promise<unknown>]> = [
  ['here', ({ anna }) => anna.copy().post('/logout')],
  ['everywhere', ({ signing }) => signing.logOutEverywhere('anna')],
  ['by a new sign-in', ({ anna }) => anna.copy().post('/login?user=anna')],
]

describe('an upgrade whose user signs out during the decision', () => {
  it.each(ends)('%s is refused, and the next one, too', async (_how, signOut) => {
    const made = await site()
    const records: Decision[] = []
    onTestFinished(on('decision', (record) => records.push(record)))
    made.meanwhile.push(async () => [await made.sam.post('/logout'), await signOut(made)])
    const answers = [await made.upgrade(), await made.upgrade()]
    for (const answer of answers) {
      const challenges = ['Session realm="api"', 'ApiKey realm="api", in="header", name="key"']
      expect([answer.status, valuesOf(answer, 'WWW-Authenticate')]).toEqual([401, challenges])
    }
    expect(made.admitted).toEqual([])
    const ofUpgrades = () => records.filter(({ level }) => level === 'upgrade')
    const refused = { outcome: 'refused', status: 401 }
    await expect.poll(ofUpgrades).toMatchObject([refused, refused])
  })

  it('is refused even with a valid key, because its socket would be registered for the session', async () => {
    const made = await site()
    made.meanwhile.push(() => made.signing.logOutEverywhere('anna'))
    expect((await made.upgrade(['key: k1'])).status).toBe(401)
    expect((await made.upgrade(['key: k1'])).status).toBe(101)
    expect(made.admitted).toEqual([{ username: 'robot' }])
    expect(made.open.size).toBe(0)
  })

  it('is a 403 if it is not allowed either way', async () => {
    const made = await site()
    made.forbid()
    made.meanwhile.push(() => made.signing.logOutEverywhere('anna'))
    expect((await made.upgrade()).status).toBe(403)
  })

  it('after the decision, but before its socket is registered, is closed', async () => {
    const made = await site()
    made.after.push(() => made.signing.logOutEverywhere('anna'))
    expect((await made.upgrade()).status).toBe('closed')
    expect((await made.upgrade()).status).toBe(401)
  })
})

describe('another upgrade', () => {
  it('is accepted, whoever else signs out', async () => {
    const made = await site()
    made.meanwhile.push(async () => [await made.sam.post('/logout'), await made.signing.logOutEverywhere('root')])
    made.after.push(() => made.signing.logOutEverywhere('sam'))
    expect((await made.upgrade()).status).toBe(101)
    expect(made.admitted).toEqual([{ username: 'anna', isActive: true }])
    expect(made.open.size).toBe(1)
  })

  it('leaves no listener, whether it is accepted or refused', async () => {
    const made = await site()
    expect((await made.upgrade()).status).toBe(101)
    made.meanwhile.push(() => made.signing.logOutEverywhere('anna'))
    expect((await made.upgrade()).status).toBe(401)
    made.end()
    await expect.poll(() => channel('koa-with-auth:signed-out').hasSubscribers).toBe(false)
  })
})
