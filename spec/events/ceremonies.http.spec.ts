/**
 * Records of ceremonies (C-10): each that was begun, finished or refused, with digests only. What looks the same to the
 * client differs here.
 */
import { on, type SignedInEvent } from 'koa-with-auth/events'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { recordsOf } from '../support/runs/eventRecords.js'
import { sendJson, signInSite, type SignInSite } from '../support/sites/signInSite.js'
import { memoryStore } from 'koa-with-auth/stores'
import type { Visitor } from '../support/sites/sessionsApp.js'

const anna = 'anna@shop.example'

const asked = async (site: SignInSite, visitor: Visitor, address = anna) => {
  const { body } = await sendJson(visitor, '/sign-in/mail', { address })
  const { handle } = body as { handle: string }
  return { handle, ...(await site.mail()) }
}

const finished = (visitor: Visitor, handle: string, code: string) =>
  sendJson(visitor, '/sign-in/mail/code', { handle, code })

describe('C-10 records of ceremonies', () => {
  it('a sign-in: begun and finished are of one ceremony, and the user is that of the sign-in', async () => {
    const records = recordsOf('ceremony')
    const signIns: SignedInEvent[] = []
    onTestFinished(on('signed-in', (record) => signIns.push(record)))
    const site = await signInSite()
    const visitor = site.visitor()
    const { handle, code } = await asked(site, visitor)
    expect(records).toMatchObject([{ event: 'begun', kind: 'mail', intent: 'signIn' }])
    expect((await finished(visitor, handle, code)).status).toBe(200)
    const [begun, ended] = records
    await expect.poll(() => signIns.length).toBe(1)
    const { application, user } = signIns[0]!
    const ceremony = begun!.ceremony
    expect(records).toStrictEqual([
      { event: 'begun', application, kind: 'mail', intent: 'signIn', ceremony },
      { event: 'finished', application, kind: 'mail', intent: 'signIn', ceremony, user },
    ])
    expect(ended!.ceremony).toMatch(/^[\w-]{43}$/)
  })

  it('what was used has a reason of its own, and what was opened has its ceremony; forged and foreign have none', async () => {
    const records = recordsOf('ceremony')
    const site = await signInSite()
    const [visitor, other] = [site.visitor(), site.visitor()]
    const { handle, code } = await asked(site, visitor)
    await sendJson(other, '/sign-in/mail', { address: anna })
    await site.mail()
    const { ceremony } = records[0]!
    records.length = 0
    const at = { event: 'refused', step: 'finish', kind: 'mail' }
    const known = { ...at, intent: 'signIn', ceremony }
    await finished(other, handle, code)
    await finished(visitor, `${handle.slice(0, -4)}AAAA`, code)
    await sendJson(visitor, '/sign-in/mail/code', {})
    await finished(visitor, handle, '00000000')
    await finished(visitor, handle, code)
    // with the session that it signed in, it leads on
    await finished(visitor, handle, code)
    for (const name of visitor.cookies.keys()) if (name.includes('session')) visitor.cookies.delete(name)
    // answers that came at the same time lead on for five seconds
    vi.useFakeTimers({ now: Date.now() + 6000, toFake: ['Date'] })
    onTestFinished(() => void vi.useRealTimers())
    await finished(visitor, handle, code)
    vi.setSystemTime(Date.now() + 600_000)
    await finished(visitor, handle, code)
    expect(records).toMatchObject([
      ...[1, 2, 3].map(() => ({ ...at, failure: 'invalid', reason: 'unknown' })),
      { ...known, failure: 'invalid', reason: 'wrong' },
      { event: 'finished', kind: 'mail', intent: 'signIn', ceremony },
      { ...known, failure: 'invalid', reason: 'used' },
      { ...known, failure: 'expired', reason: 'late' },
    ])
    for (const record of records.slice(0, 3)) expect(record.ceremony).toBe(undefined)
  })

  it('a second factor: the user of the first one is named by a digest', async () => {
    const records = recordsOf('ceremony')
    const site = await signInSite()
    site.people.get('anna')!.secret = 'sealed'
    const visitor = site.visitor()
    const { body } = await sendJson(visitor, '/sign-in/password', { username: 'anna', password: 'anna-secret' })
    const { handle } = body as { handle: string }
    site.people.get('anna')!.secret = undefined
    await sendJson(visitor, '/sign-in/code', { handle, code: 'x' })
    expect(records).toMatchObject([
      { event: 'begun', kind: 'code:totp,recovery', intent: 'signIn' },
      { event: 'refused', step: 'finish', kind: 'code:totp,recovery', reason: 'wrong', ceremony: records[0]!.ceremony },
    ])
    expect(records[0]).toHaveProperty('user', expect.stringMatching(/^[\w-]{43}$/))
    expect(records[1]).toHaveProperty('user', records[0]!.user)
  })

  it('a ceremony that is a first factor is finished, and no user is signed in yet', async () => {
    const records = recordsOf('ceremony')
    const site = await signInSite()
    const visitor = site.visitor()
    const { handle, code } = await asked(site, visitor)
    site.people.get('anna')!.secret = 'sealed'
    expect((await finished(visitor, handle, code)).status).toBe(200)
    expect(records).toMatchObject([
      { event: 'begun', kind: 'mail' },
      { event: 'begun', kind: 'code:totp,recovery' },
      { event: 'finished', kind: 'mail', intent: 'signIn', user: expect.stringMatching(/^[\w-]{43}$/) as unknown },
    ])
  })

  it('what another site caused, too many requests, an outage, and no account are refused', async () => {
    const records = recordsOf('ceremony')
    const site = await signInSite(undefined, { limit: 2 })
    const visitor = site.visitor()
    const { handle, code } = await asked(site, visitor)
    await sendJson(visitor, '/sign-in/mail', { address: anna }, { 'Sec-Fetch-Site': 'cross-site' })
    await sendJson(visitor, '/sign-in/mail/code', {}, { 'Sec-Fetch-Site': 'cross-site' })
    await sendJson(visitor, '/sign-in/mail', { address: 'x' })
    for (const _ of [1, 2]) await sendJson(visitor, '/sign-in/mail', { address: anna })
    await sendJson(visitor, '/prove/mail', {})
    expect(records.slice(1)).toMatchObject([
      { event: 'refused', step: 'begin', kind: 'mail', failure: 'forged' },
      { event: 'refused', step: 'finish', kind: 'mail', failure: 'forged' },
      { event: 'refused', step: 'begin', kind: 'mail', failure: 'invalid', reason: 'malformed' },
      { event: 'begun' },
      { event: 'refused', step: 'begin', kind: 'mail', failure: 'throttled' },
    ])
    records.length = 0
    site.store.instead.insert = () => Promise.reject(new Error('down'))
    expect((await finished(visitor, handle, code)).status).toBe(503)
    site.store.instead.insert = undefined
    site.people.delete('anna')
    const again = await signInSite(undefined)
    const stranger = again.visitor()
    const mail = await asked(again, stranger)
    again.people.delete('anna')
    expect((await finished(stranger, mail.handle, mail.code)).status).toBe(403)
    expect(records).toMatchObject([
      { event: 'refused', step: 'finish', kind: 'mail', failure: 'unavailable' },
      { event: 'begun' },
      { event: 'refused', step: 'finish', kind: 'mail', failure: 'insufficient', reason: 'noAccount' },
    ])
  })

  it('no record contains a handle, a code, an address, a name, a cookie or an id of the store', async () => {
    const records = recordsOf('ceremony')
    const store = memoryStore()
    const site = await signInSite(() => store)
    const visitor = site.visitor()
    const { handle, code, link } = await asked(site, visitor)
    await finished(visitor, handle, '00000000')
    await finished(visitor, handle, code)
    await sendJson(visitor, '/prove/mail', {})
    const { code: second } = await site.mail()
    await sendJson(visitor, '/prove/mail/code', { handle: 'x', code: second })
    const text = JSON.stringify(records)
    const cookies = [...visitor.cookies.values()]
    for (const secret of [handle, code, link, 'anna', '127.0.0.1', ...cookies, ...site.store.ids]) {
      expect(text).not.toContain(secret)
    }
    expect(records.length).toBe(5)
  })
})
