/** C-01: what a stranger can learn over HTTP, and what is worth nothing to a thief. */
import { memoryStore } from 'koa-with-auth/stores'
import { describe, expect, it } from 'vitest'
import { recordsOf } from '../support/runs/eventRecords.js'
import { setCookies } from '../support/sites/sessionsApp.js'
import { noting } from '../support/stores/stores.js'
import { sendJson, signInSite, type SignInSite } from '../support/sites/signInSite.js'

const address = 'anna@shop.example'

const asked = async (site: SignInSite) => {
  const visitor = site.visitor()
  const { body } = await sendJson(visitor, '/sign-in/mail', { address })
  return { visitor, handle: (body as { handle: string }).handle, ...(await site.mail()) }
}

describe('C-01 silence', () => {
  it('unknown, forged, foreign and spent have one status, body and head; in its own session, a spent one leads on', async () => {
    const site = await signInSite()
    const [own, foreign] = [await asked(site), await asked(site)]
    const { visitor, handle, code } = own
    const answer = (sent: object) => sendJson(visitor, '/sign-in/mail/code', sent)
    expect((await answer({ handle, code })).status).toBe(200)
    const answers = [
      await answer({}),
      await answer({ handle: 'AAAA', code }),
      await answer({ handle: `${handle.slice(0, -6)}AAAAAA`, code }),
      await answer({ handle: foreign.handle, code: foreign.code }),
      await sendJson(site.visitor(), '/sign-in/mail/code', { handle, code }),
    ]
    const seen = answers.map(({ status, body, headers }) => {
      const { date: _date, ...head } = headers
      return JSON.stringify([status, body, head])
    })
    expect(seen).toEqual(seen.map(() => seen[0]))
    expect(answers[0]).toMatchObject({ status: 400, body: { reason: 'unknown' } })
    expect(answers.flatMap(setCookies)).toEqual([])
    expect(await answer({ handle, code })).toMatchObject({ status: 200, body: { returnTo: '/' } })
    expect(site.hooks()).toBe(1)
  })

  it('a beginning calls no store, nor does an answer of a stranger', async () => {
    const site = await signInSite()
    const { handle, code } = await asked(site)
    const stranger = site.visitor()
    await sendJson(stranger, '/sign-in/mail', { address })
    await sendJson(stranger, '/sign-in/mail/code', { handle, code })
    await sendJson(site.visitor(), '/sign-in/mail/code', { handle, code })
    await sendJson(site.visitor(), '/reset', { address })
    expect(site.store.asked).toEqual([])
  })

  it('a copy of the store and of every record signs in no user', async () => {
    // everything that the store ever gets
    const { store, given: kept } = noting(memoryStore())
    const records = [recordsOf('ceremony'), recordsOf('decision'), recordsOf('signed-in')]
    const site = await signInSite(() => store)
    const done = await asked(site)
    const waiting = await asked(site)
    await sendJson(done.visitor, '/sign-in/mail/code', { handle: done.handle, code: done.code })
    expect((await done.visitor.ask('/me')).status).toBe(200)
    const copy = JSON.stringify([kept, records])
    const secrets = [done, waiting].flatMap(({ visitor, handle, code, link }) => [
      handle,
      code,
      new URL(link).searchParams.get('key') ?? link,
      ...visitor.cookies.values(),
    ])
    expect(secrets.length).toBeGreaterThan(8)
    for (const secret of secrets) expect(copy).not.toContain(secret)
    const found = [...new Set(copy.match(/[\w-]{20,}/g))]
    expect(found.length).toBeGreaterThan(4)
    const before = site.hooks()
    for (const one of found) {
      const thief = site.visitor(
        new Map([
          ['browser', one.slice(0, 43)],
          ['session', one],
        ]),
      )
      expect((await thief.ask('/me')).status).toBe(401)
      expect((await sendJson(thief, '/sign-in/mail/code', { handle: one, code: waiting.code })).status).toBe(400)
      expect((await sendJson(thief, '/sign-in/mail/code', { handle: waiting.handle, code: waiting.code })).status).toBe(
        400,
      )
    }
    expect(site.hooks()).toBe(before)
    const { visitor, handle, code } = waiting
    expect((await sendJson(visitor, '/sign-in/mail/code', { handle, code })).status).toBe(200)
  })
})
