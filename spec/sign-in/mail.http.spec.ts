/** C-04: codes and links by mail, over HTTP (rows M of the traps of signing in). */
import { setImmediate as turn } from 'node:timers/promises'
import * as E from 'fp-ts/lib/Either.js'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import {
  begin,
  finish,
  linkPage,
  emailSignIn,
  passwordReset,
  type Ceremony,
  type Kind,
  type LinkMail,
  type EmailVerificationOptions,
} from 'koa-with-auth/sign-in'
import Router from '@koa/router'
import Koa from 'koa'
import mount from 'koa-mount'
import { withAuth } from 'koa-with-auth'
import { running } from '../support/models/behavior.js'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { anna, expectAnonymousAt, expectUser } from '../support/sites/signedIn.js'
import { pathOf, sendJson, signInSite, visitedSite } from '../support/sites/signInSite.js'
import { describeEveryOther } from '../support/stores/sessionStores.js'
import { sessionsApp, setCookies, type Visitor } from '../support/sites/sessionsApp.js'
import { stoppedClock } from '../support/runs/clock.js'

const ask = { address: anna }

/** A site, a visitor who has asked for a mail to sign in, and the mail. */
const asked = async (...given: Parameters<typeof signInSite>) => {
  const { site, visitor } = await visitedSite(...given)
  const { handle } = (await sendJson(visitor, '/sign-in/mail', ask)).body as { handle: string }
  const { code, link } = await site.mail()
  const typed = (code: unknown, who = visitor) => sendJson(who, '/sign-in/mail/code', { handle, code })
  return { site, visitor, handle, code, link, typed }
}

describeEveryOther((store) => {
  describe('C-04 a mail that signs in', () => {
    it('the code, typed where it began, signs in once', async () => {
      const { site, visitor } = await visitedSite(store)
      const begun = await sendJson(visitor, '/sign-in/mail', { ...ask, returnTo: '/basket' })
      expect([begun.status, Object.keys(begun.body as object)]).toEqual([200, ['handle']])
      const { handle } = begun.body as { handle: string }
      const { code, link } = await site.mail()
      expect(code).toMatch(/^\d{8}$/)
      expect(link.startsWith('https://shop.example/sign-in/mail/link?')).toBe(true)
      const before = visitor.copy()
      const answer = await sendJson(visitor, '/sign-in/mail/code', {
        handle,
        code: ` ${code.slice(0, 4)} ${code.slice(4)}`,
      })
      expect([answer.status, answer.body, answer.headers['cache-control']]).toEqual([
        200,
        { returnTo: '/basket' },
        'no-store',
      ])
      await expectUser(visitor, 'anna')
      expect((await visitor.ask('/proofs')).body).toMatchObject([{ method: 'mail', subject: anna }])
      // either ends the other; in the session that it made, each leads on, after the link is too old, too
      const clock = stoppedClock()
      clock.move(60_000)
      const again = await sendJson(before, '/sign-in/mail/code', { handle, code })
      expect([again.status, again.body]).toMatchObject([400, { reason: 'unknown' }])
      await expectAnonymousAt(before)
      expect((await before.ask(pathOf(link), { method: 'POST' })).status).toBe(400)
      clock.move(3_600_000)
      expect(await sendJson(visitor, '/sign-in/mail/code', { handle, code })).toMatchObject({ status: 200 })
      const pressed = await visitor.ask(pathOf(link), { method: 'POST', headers: { Accept: 'text/html' } })
      expect([pressed.status, pressed.headers['location']]).toEqual([303, '/basket'])
      expect((await sendJson(before, '/sign-in/mail/code', { handle, code })).status).toBe(400)
      expect(site.hooks()).toBe(1)
    })

    it('the code is good for ten minutes, and so is the link of a reset', async () => {
      for (const ms of [599_000, 601_000]) {
        const { code, site, typed } = await asked(store)
        expect((await sendJson(site.visitor(), '/reset', ask)).status).toBe(204)
        const { link } = await site.mail()
        stoppedClock().move(ms)
        const statuses = [await typed(code), await sendJson(site.visitor(), pathOf(link), { password: 'new' })]
        expect([ms, statuses.map(({ status }) => status < 300)]).toEqual([ms, [ms < 600_000, ms < 600_000]])
        vi.useRealTimers()
      }
    })

    it('a link carries no long path, and a path that comes twice is none', async () => {
      const { site, visitor } = await visitedSite(store)
      const path = (length: number) => `/${'a'.repeat(length - 1)}`
      for (const [returnTo, led] of [
        [path(1000), path(1000)],
        [path(1001), '/'],
      ] as const) {
        await sendJson(visitor, '/sign-in/mail', { ...ask, returnTo })
        const { link } = await site.mail()
        expect(link.length).toBeLessThan(2000)
        expect((await visitor.ask(pathOf(link), { method: 'POST' })).body).toEqual({ returnTo: led })
      }
      await sendJson(visitor, '/sign-in/mail?returnTo=/a&returnTo=/b', { address: anna })
      const { link } = await site.mail()
      expect((await visitor.ask(pathOf(link), { method: 'POST' })).body).toEqual({ returnTo: '/' })
    })

    it('M1 a GET and a HEAD of the link use nothing up', async () => {
      const { site, visitor, link } = await asked(store)
      site.store.asked.length = 0
      for (let at = 0; at < 20; at++) {
        const page = await visitor.ask(pathOf(link), { method: at % 2 === 0 ? 'GET' : 'HEAD' })
        expect([page.status, setCookies(page)]).toEqual([200, []])
      }
      expect(site.store.asked).toEqual([])
      expect((await visitor.ask(pathOf(link), { method: 'POST', headers: { Accept: 'text/html' } })).status).toBe(303)
      await expectUser(visitor, 'anna')
    })

    it('M2 the link pressed in another browser, or without a cookie, is refused, and uses nothing up', async () => {
      const { site, visitor, link, code, typed } = await asked(store)
      const other = site.visitor()
      await sendJson(other, '/sign-in/mail', { address: 'bert@shop.example' })
      for (const one of [other, site.visitor()]) {
        for (let at = 0; at < 4; at++) {
          const answer = await one.ask(pathOf(link), { method: 'POST' })
          expect([answer.status, answer.body]).toMatchObject([403, { reason: 'anotherBrowser' }])
          expect(await typed(code, one)).toMatchObject({ status: 400, body: { reason: 'unknown' } })
        }
        await expectAnonymousAt(one)
      }
      expect(site.hooks()).toBe(0)
      expect((await typed(code)).status).toBe(200)
      await expectUser(visitor, 'anna')
    })

    it('M4 after three wrong codes the right one is refused', async () => {
      const { visitor, code, link, typed } = await asked(store)
      const wrong = code === '00000000' ? '00000001' : '00000000'
      for (const one of [wrong, 'abc', 12345678]) {
        expect(await typed(one)).toMatchObject({ status: 403, body: { reason: 'wrong' } })
      }
      expect((await typed(code)).status).toBe(400)
      expect((await visitor.ask(pathOf(link), { method: 'POST' })).status).toBe(400)
      await expectAnonymousAt(visitor)
    })

    it('M4 ten right codes in parallel: one signs in, and the others lead where it leads', async () => {
      const { site, visitor, code, typed } = await asked(store)
      const answers = await Promise.all(Array.from({ length: 10 }, () => typed(code, visitor.copy())))
      expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200))
      expect(answers.filter((answer) => setCookies(answer).length > 0)).toHaveLength(1)
      expect(site.hooks()).toBe(1)
      const [bert, copy] = [site.visitor(), visitor.copy()]
      const { body } = await sendJson(bert, '/sign-in/mail', { address: 'bert@shop.example' })
      await sendJson(bert, '/sign-in/mail/code', { ...Object(body), code: (await site.mail()).code })
      await expectUser(bert, 'bert')
      copy.cookies.delete('session')
      expect((await typed(code, copy)).status, 'also when another user has signed in meanwhile').toBe(200)
    })

    it('a sign-in gives another id, drops the data but what is kept, and a store that is down is 503 before any check', async () => {
      const { site, visitor, code, typed } = await asked(store)
      await visitor.post('/set?basket=pear&seen=1')
      const attacker = visitor.copy()
      site.store.instead.insert = async () => Promise.reject(new Error('down'))
      const down = await typed(code)
      expect([down.status, down.headers['retry-after'], site.hooks()]).toEqual([503, '5', 0])
      delete site.store.instead.insert
      expect((await typed(code)).status).toBe(200)
      expect((await visitor.ask('/read')).body).toMatchObject({ basket: 'pear' })
      expect((await visitor.ask('/read')).body).not.toHaveProperty('seen')
      await expectAnonymousAt(attacker)
    })
  })

  describe('C-04 asking for a mail', () => {
    it.each([
      ['no body', undefined],
      ['another field', { email: anna }],
      ['two addresses', { address: `${anna}, ${anna}` }],
    ])('says that an address is needed: %s', async (_name, body) => {
      const site = await signInSite(store)
      for (const path of ['/sign-in/mail', '/reset']) {
        const answer = body === undefined ? await site.visitor().post(path) : await sendJson(site.visitor(), path, body)
        const detail = 'One mail address is needed, as "address" in the body.'
        expect([answer.status, answer.body]).toMatchObject([400, { reason: 'malformed', detail }])
      }
      expect(site.mails).toEqual([])
    })

    it('M6, M13 the same answer for unknown addresses, and for a mailer that throws or never ends', async () => {
      const answers: unknown[] = []
      for (const send of [undefined, () => Promise.reject(new Error('smtp')), () => new Promise(() => {})]) {
        const site = await signInSite(store, send === undefined ? {} : { send })
        for (const address of [anna, 'stranger@shop.example']) {
          const answer = await sendJson(site.visitor(), '/sign-in/mail', { address })
          const { handle } = answer.body as { handle: string }
          answers.push([answer.status, typeof handle, Object.keys(answer.headers).filter((name) => name !== 'date')])
        }
      }
      expect(new Set(answers.map((one) => JSON.stringify(one))).size).toBe(1)
    })

    it('M5 is counted by the same limiter as tries, so asking again gives no new ones', async () => {
      const { visitor } = await visitedSite(store, { limit: 5 })
      const statuses: number[] = []
      for (let at = 0; at < 4; at++) {
        const begun = await sendJson(visitor, '/sign-in/mail', ask)
        statuses.push(begun.status)
        if (begun.status !== 200) continue
        const { handle } = begun.body as { handle: string }
        for (let wrong = 0; wrong < 2; wrong++) {
          statuses.push((await sendJson(visitor, '/sign-in/mail/code', { handle, code: '1' })).status)
        }
      }
      expect(statuses).toEqual([200, 403, 403, 200, 403, 429, 429, 429])
      const refused = await sendJson(visitor, '/sign-in/mail', ask)
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
      // another account is not concerned
      expect((await sendJson(visitor, '/sign-in/mail', { address: 'bert@shop.example' })).status).toBe(200)
    })

    it('M7 takes exactly one address, trimmed and in lower case', async () => {
      const site = await signInSite(store)
      const bad = [
        'a@x.example,b@x.example',
        'a@x.example\nBcc: b@x.example',
        [anna],
        { a: 1 },
        '',
        'anna',
        '@x',
        `${'a'.repeat(1000)}@x.example`,
        'ann\u0430@shop.example',
        // the sign of the Kelvin, whose lower case is k
        'anna@\u212a.example',
        'a@b@c',
        'a b@x.example',
        undefined,
      ]
      for (const address of bad) expect((await sendJson(site.visitor(), '/sign-in/mail', { address })).status).toBe(400)
      expect(site.mails).toEqual([])
      await sendJson(site.visitor(), '/sign-in/mail', { address: '  ANNA@Shop.Example ' })
      expect((await site.mail()).address).toBe(anna)
    })

    it('M8 the link has the configured origin, whatever Host says', async () => {
      const site = await signInSite(store)
      await sendJson(site.visitor(), '/sign-in/mail', ask, { Host: 'evil.example', 'X-Forwarded-Host': 'evil.example' })
      expect(new URL((await site.mail()).link).origin).toBe('https://shop.example')
    })

    it('without an origin it is a 500, but for loopback in development', async () => {
      const site = await signInSite(store, { origin: undefined })
      const at = async (Host: string) => (await sendJson(site.visitor(), '/sign-in/mail', ask, { Host })).status
      for (const host of [
        'shop.example',
        'xlocalhost',
        'localhost.evil.example',
        '128.0.0.1',
        '127.0.0.1.evil.example',
      ]) {
        expect([host, await at(host)]).toEqual([host, 500])
      }
      expect(String(site.errors.at(-1))).toContain('origin')
      for (const host of ['localhost:1', 'shop.localhost', 'a.shop.localhost:8080', '127.1.2.3', '[::1]:80']) {
        expect([host, await at(host)]).toEqual([host, 200])
      }
      onTestFinished(() => void vi.unstubAllEnvs())
      vi.stubEnv('NODE_ENV', 'production')
      const live = await signInSite(store, { origin: undefined, sessions: { https: false } })
      expect((await sendJson(live.visitor(), '/sign-in/mail', ask)).status).toBe(500)
    })

    it('A-43 a form of more than 100 fields, and JSON of more members, is 400, and a field that comes twice is no string', async () => {
      const { visitor } = await visitedSite(store)
      const posted = (fields: ReadonlyArray<string>) =>
        visitor.ask('/sign-in/mail', {
          method: 'POST',
          headers: { 'Content-Type': 'application/x-www-form-urlencoded', Accept: 'application/json' },
          body: [`address=${encodeURIComponent(anna)}`, ...fields].join('&'),
        })
      const others = Array.from({ length: 100 }, (_, at) => `a${at}`)
      const members = (names: ReadonlyArray<string>) =>
        sendJson(visitor, '/sign-in/mail', Object.fromEntries([['address', anna], ...names.map((name) => [name, 0])]))
      expect([(await members(others.slice(1))).status, (await members(others)).status]).toEqual([200, 400])
      expect((await posted(others.slice(1))).status).toBe(200)
      expect((await posted(others)).status).toBe(400)
      expect((await posted(['address=bert%40shop.example'])).body).toMatchObject({ reason: 'malformed' })
      expect((await posted(['a', 'a', 'a'])).status).toBe(200)
      // a byte more than 64 kB is too much
      const fill = 65_536 - `address=${encodeURIComponent(anna)}&`.length
      expect((await posted(['a'.repeat(fill)])).status).toBe(200)
      expect((await posted(['a'.repeat(fill + 1)])).status).toBe(413)
    })
  })

  describe('C-04 the page of a link', () => {
    it('may depend on the request, and its form is of this origin for a browser without Sec-Fetch-Site', async () => {
      const { ask: asked } = await running((app) => {
        const page = linkPage((ctx) =>
          ctx.acceptsLanguages('en', 'de') === 'de'
            ? { title: 'Neues Passwort', button: 'Sichern', password: 'Passwort', language: 'de' }
            : { title: 'New password', button: 'Save' },
        )
        app.use(new Router().get('/link', withAuth(null), page).routes())
      })
      const bodyFor = async (language: string) =>
        String((await asked('/link', { headers: { 'Accept-Language': language } })).body)
      expect(await bodyFor('de')).toMatch(/lang="de"[^]*Neues Passwort[^]*type="password"/)
      // without a language, it says none
      expect(await bodyFor('en')).toMatch(/<html>(?![^]*type="password")[^]*Save/)
      // Safe: what JavaScript may pass
      expect(() => linkPage(((a: unknown, b: unknown) => [a, b]) as never)).toThrow(TypeError)
    })

    it('M12 is not stored, sends no Referer, loads nothing, and escapes what it repeats', async () => {
      const site = await signInSite(store)
      const page = await site.visitor().ask('/sign-in/mail/link?handle=%22%3E%3Cscript%3E&key=%27x')
      expect(page.headers).toMatchObject({ 'cache-control': 'no-store', 'referrer-policy': 'same-origin' })
      expect(page.headers['content-security-policy']).toContain("default-src 'none'")
      expect(String(page.body)).not.toContain('<script')
      expect(String(page.body)).not.toMatch(/https?:|src=|href=/)
      expect(/<title>([^<]*)/.exec(String(page.body))?.[1]).toBe('Sign in')
    })
  })

  describe('C-05 reset and verification', () => {
    const resetting = async (site: Awaited<ReturnType<typeof signInSite>>) => {
      expect((await sendJson(site.visitor(), '/reset', ask)).status).toBe(204)
      return pathOf((await site.mail()).link)
    }

    it('M10 works in any browser, ends all sessions, and never signs in', async () => {
      const site = await signInSite(store)
      const signedIn = site.visitor()
      await sendJson(signedIn, '/sign-in/password', { username: 'anna', password: 'anna-secret' })
      await expectUser(signedIn, 'anna')
      const link = await resetting(site)
      const other = site.visitor()
      expect((await other.ask(link)).status).toBe(200)
      const answer = await sendJson(other, link, { password: 'changed' })
      expect([answer.status, setCookies(answer).filter((line) => line.startsWith('session'))]).toEqual([204, []])
      await expectAnonymousAt(other)
      await expectAnonymousAt(signedIn)
      expect(site.people.get('anna')?.password).toBe('changed')
    })

    it('M9 used twice, after a change of the password or of the address, forged: refused', async () => {
      const site = await signInSite(store)
      const used = await resetting(site)
      const older = await resetting(site)
      const other = await resetting(site)
      expect((await sendJson(site.visitor(), older, { password: 'one' })).status).toBe(204)
      for (const link of [older, used, other])
        expect((await sendJson(site.visitor(), link, { password: 'two' })).status).toBe(400)
      const moved = await resetting(site)
      site.people.get('anna')!.address = 'moved@shop.example'
      expect((await sendJson(site.visitor(), moved, { password: 'two' })).status).toBe(400)
      site.people.get('anna')!.address = anna
      const forged = (await resetting(site)).replace(/key=[^&]*/, 'key=AAAA')
      expect((await sendJson(site.visitor(), forged, { password: 'two' })).status).toBe(400)
      expect([site.people.get('anna')?.password, site.hooks()]).toEqual(['one', 1])
    })

    it('M9 isGood looks only at what comes with a good link, which a weak password leaves good', async () => {
      const seen: string[] = []
      const site = await signInSite(store, { isGood: (typed) => seen.push(typed) > 0 && typed.length >= 4 })
      const older = await resetting(site)
      site.people.get('anna')!.password = 'meanwhile'
      const link = await resetting(site)
      const bad = ['/reset/link?handle=AAAA&key=AAAA', '/reset/link', link.replace(/key=[^&]*/, 'key=AAAA'), older]
      for (const path of bad) {
        const answer = await sendJson(site.visitor(), path, { password: 'typed' })
        expect([answer.status, answer.body], path).toMatchObject([400, { reason: 'unknown' }])
      }
      expect(seen).toEqual([])
      const good = await resetting(site)
      for (const password of ['abc', '']) {
        const weak = await sendJson(site.visitor(), good, { password })
        expect([weak.status, weak.body]).toMatchObject([400, { reason: 'weak' }])
      }
      expect((await sendJson(site.visitor(), good, { password: 'typed' })).status).toBe(204)
      expect((await sendJson(site.visitor(), good, { password: 'again' })).status).toBe(400)
      expect([seen, site.hooks(), site.people.get('anna')?.password]).toEqual([['abc', 'typed'], 1, 'typed'])
    })

    it('M6 an unknown address gets the same answer and no mail', async () => {
      const site = await signInSite(store)
      expect((await sendJson(site.visitor(), '/reset', { address: 'stranger@shop.example' })).status).toBe(204)
      // A mail that was asked for later comes, and no other one
      await sendJson(site.visitor(), '/reset', { address: 'anna@shop.example' })
      await site.mail()
      expect(site.mails).toEqual([])
    })

    it('M11 an address is verified by POST only, in any browser', async () => {
      const { site, visitor } = await visitedSite(store)
      await sendJson(visitor, '/sign-in/password', { username: 'anna', password: 'anna-secret' })
      expect((await visitor.post('/verify')).status).toBe(204)
      const link = pathOf((await site.mail()).link)
      await site.visitor().ask(link)
      expect([site.people.get('anna')?.isVerified, site.subjects]).toEqual([false, ['anna']])
      const presser = site.visitor()
      expect((await presser.post(link)).status).toBe(200)
      expect(site.people.get('anna')?.isVerified).toBe(true)
      // in the browser that verified it, it leads on
      const clock = stoppedClock()
      clock.move(60_000)
      expect((await site.visitor().post(link)).status).toBe(400)
      expect((await presser.post(link)).status).toBe(200)
      expect((await site.visitor().post(link)).status).toBe(400)
      clock.move(3_600_000)
      expect((await presser.post(link)).status).toBe(400)
    })

    it('a reset that comes again with the same password is done, at once and in its browser; with another one it is not', async () => {
      const site = await signInSite(store)
      const reset = await resetting(site)
      const visitor = site.visitor()
      const send = (who: Visitor, password: string) => sendJson(who, reset, { password })
      const [one, other] = await Promise.all([send(visitor, 'new'), send(visitor, 'new')])
      expect([one?.status, other?.status]).toEqual([204, 200])
      const clock = stoppedClock()
      clock.move(60_000)
      expect((await send(visitor, 'new')).status).toBe(200)
      expect((await send(visitor, 'newer')).status).toBe(400)
      expect((await send(site.visitor(), 'new')).status).toBe(400)
      // another process would take it for done if this one wrote something to find out
      const stranger = site.visitor()
      await sendJson(stranger, '/sign-in/mail', ask)
      const written: string[] = []
      site.store.instead.insert = async (key, ...rest) => {
        const isNew = await store().insert(key, ...rest)
        if (isNew) written.push(key)
        return isNew
      }
      expect([(await send(stranger, 'new')).status, written]).toEqual([400, []])
    })
  })
})

describe('the proof of a link', () => {
  it('has the stamp, so that the hook compares it in its write', async () => {
    const accountOf = () => ({ id: 'anna', stamp: 'hash of anna' })
    const kind = passwordReset({ accountOf, send: () => {}, path: '/reset/link' })
    const answer = { isGenuine: (stamp: string) => stamp === 'hash of anna' }
    // Safe: nothing of it is read
    const checked = await kind.check({ address: 'anna@shop.example' }, answer, {} as Ceremony)
    expect(checked).toMatchObject({ _tag: 'Right', right: { subject: 'anna', stamp: 'hash of anna' } })
  })
})

it('a link that is opened is no answer, also where finish is the handler of a GET', () => {
  const accountOf = () => ({ id: 'anna', stamp: 'hash' })
  const query = new URLSearchParams({ handle: 'h', key: 'k' })
  for (const kind of [
    emailSignIn({ path: '/link', send: () => {} }),
    passwordReset({ path: '/link', accountOf, send: () => {} }),
  ]) {
    const read = (method: string) =>
      // Safe: nothing else of them is read
      kind.read({ method, query, body: {}, address: '' } as never, { verify: () => true } as never)
    expect([read('GET'), read('POST')]).toEqual([undefined, expect.objectContaining({ handle: 'h' })])
  }
})

describe('C-04 under koa-mount', () => {
  it('links and their pages keep the prefix', async () => {
    const mails: LinkMail[] = []
    const limiter = new RateLimiterMemory({ points: 50, duration: 60 })
    const kinds = {
      mail: emailSignIn({ path: '/mail/link', limiter, send: (one) => mails.push(one) }),
      // written with its prefix
      reset: passwordReset({
        path: '/auth/reset/link',
        limiter,
        accountOf: () => ({ id: 'anna', stamp: 'hash' }),
        send: (one) => mails.push(one),
      }),
    }
    const inner = new Koa()
    const router = new Router()
    const hook = () => ({ username: 'anna' })
    for (const [name, kind] of Object.entries(kinds)) {
      // Safe: what a kind is asked does not matter here
      const any = kind as Kind<never, unknown, unknown>
      router.post(`/${name}`, withAuth(null), begin(any))
      router.get(`/${name}/link`, withAuth(null), linkPage({ title: 'Link', button: 'Go' }))
      router.post(`/${name}/link`, withAuth(null), finish(any, hook))
    }
    inner.use(router.routes())
    const site = await sessionsApp(undefined, {
      origin: 'https://shop.example',
      below: (app) => app.use(mount('/auth', inner)),
    })
    const visitor = site.visitor()
    for (const name of ['mail', 'reset']) {
      expect((await sendJson(visitor, `/auth/${name}`, ask)).status).toBeLessThan(300)
      while (mails.length === 0) await new Promise((resolve) => setImmediate(resolve))
      const path = pathOf(mails.pop()!.link)
      expect(path.startsWith(`/auth/${name}/link?`)).toBe(true)
      const page = await visitor.ask(path, { headers: { Accept: 'text/html' } })
      expect([page.status, String(page.body)]).toEqual([
        200,
        expect.stringContaining(`action="/auth/${name}/link"`) as unknown,
      ])
      expect((await visitor.ask(path, { method: 'POST' })).status).toBe(200)
    }
  })
})

describe('a hook of a mail that fails', () => {
  const incoming = { method: 'POST', body: { address: anna }, query: new URLSearchParams(), address: '127.0.0.1' }
  const signer = { sign: () => 'key', verify: () => true }

  const warned = async (
    hooks: Pick<EmailVerificationOptions, 'accountOf' | 'send'>,
  ): Promise<ReadonlyArray<unknown>> => {
    const warn = vi.spyOn(process, 'emitWarning').mockReturnValue(undefined)
    const kind = passwordReset({
      ...hooks,
      path: '/reset/link',
      limiter: new RateLimiterMemory({ points: 5, duration: 60 }),
    })
    // Safe: what the kind reads of them
    const begun = await kind.begin(incoming as never, { origin: 'https://shop.example' } as never, undefined, signer)
    if (E.isLeft(begun) || !('send' in begun.right)) throw new Error('not begun')
    expect(await begun.right.send('handle')).toEqual({ body: null })
    // the mail is sent in this turn, and its hooks reject at once
    await turn()
    await turn()
    const calls = warn.mock.calls.map((call) => [...call])
    warn.mockRestore()
    return calls
  }
  const account = () => ({ id: 'anna', stamp: 'hash' })
  const down = () => Promise.reject(new Error('connect ECONNREFUSED'))
  const shape = 'passwordReset({ accountOf }) must return { id, stamp }: the identifier of the user, and a string'

  it('does not concern a code, which is made of 48 bits of the secret', async () => {
    const codes: string[] = []
    const kind = emailSignIn({ path: '/link', send: ({ code }) => codes.push(code) })
    const ceremony = { origin: 'https://shop.example', secret: () => Buffer.alloc(32, 255).toString('base64url') }
    // Safe: what the kind reads of them
    const begun = await kind.begin(incoming as never, ceremony as never, undefined, signer)
    if (E.isRight(begun)) await begun.right.send('handle')
    await turn()
    await turn()
    expect(codes).toEqual([String((2 ** 48 - 1) % 1e8)])
  })

  it.each<readonly [string, Pick<EmailVerificationOptions, 'accountOf' | 'send'>, string]>([
    ['send', { accountOf: account, send: down }, 'passwordReset: send failed: Error: connect ECONNREFUSED'],
    ['accountOf', { accountOf: down, send: () => {} }, 'passwordReset: accountOf failed: Error: connect ECONNREFUSED'],
    // Safe, both: what JavaScript may answer
    [
      'a number',
      { accountOf: () => ({ id: 7 }) as never, send: () => {} },
      `passwordReset: accountOf failed: TypeError: ${shape}`,
    ],
    [
      'no id',
      { accountOf: () => ({ id: '', stamp: '' }), send: () => {} },
      `passwordReset: accountOf failed: TypeError: ${shape}`,
    ],
  ])('is a warning that names it: %s', async (_name, hooks, text) => {
    expect(await warned(hooks)).toEqual([[text, 'SignInWarning']])
  })

  it('sends nothing, and warns of nothing, if there is no account', async () => {
    const sent: unknown[] = []
    for (const none of [undefined, null]) {
      // Safe: what databases answer
      expect(await warned({ accountOf: () => none as never, send: (mail) => sent.push(mail) })).toEqual([])
    }
    expect(sent).toEqual([])
  })

  it.each<readonly [string, (mail: LinkMail) => Error, string]>([
    ['the address', ({ address }) => new Error(`550 <${address}> is unknown`), 'Error'],
    ['the address, encoded', ({ address }) => new Error(`550 ${encodeURIComponent(address).toUpperCase()}`), 'Error'],
    ['the name in the address', ({ address }) => new Error(`no mailbox ${address.split('@')[0]}`), 'Error'],
    ['the link', ({ link }) => new Error(`554 refused: ${link}`), 'Error'],
    [
      'the link, quoted-printable',
      ({ link }) => new Error(link.replaceAll('=', '=3D').replace(/.{40}/g, '$&=\r\n')),
      'Error',
    ],
    ['the end of the link', ({ link }) => new Error(`...${link.slice(-60)}`), 'Error'],
    [
      'a code beside it',
      ({ link }) => Object.assign(new TypeError(link), { code: 'EENVELOPE' }),
      'TypeError EENVELOPE',
    ],
    [
      'a line of its own',
      () => new Error('550 no\r\n(node:1) Warning: forged\u2028'),
      'Error: 550 no\\u{d}\\u{a}(node:1) Warning: forged\\u{2028}',
    ],
  ])('is a warning without what was passed to it: %s', async (_name, refusal, text) => {
    for (const env of ['production', 'prod', 'development', undefined]) {
      onTestFinished(() => void vi.unstubAllEnvs())
      vi.stubEnv('NODE_ENV', env)
      const warnings = await warned({ accountOf: account, send: (mail) => Promise.reject(refusal(mail)) })
      const said = env === 'production' ? text.split(':')[0]! : text
      expect(warnings).toEqual([[`passwordReset: send failed: ${said}`, 'SignInWarning']])
    }
  })
})
