/** C-02, C-06: proofs, fresh proofs and second factors, over HTTP (rows T of the traps of signing in). */
import { createHash } from 'node:crypto'
import { memoryStore, type Store } from 'koa-with-auth/stores'
import { totp, type TotpOptions } from 'koa-with-auth/sign-in'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { bytesOf, codeOf, codeOfStep } from '../support/servers/authenticatorApp.js'
import { expectAnonymousAt, expectUser } from '../support/sites/signedIn.js'
import { pathOf, sendJson, signInSite, visitedSite, type SignInSite } from '../support/sites/signInSite.js'
import { setCookies, strongKey, type Visitor } from '../support/sites/sessionsApp.js'
import { describeEveryOther } from '../support/stores/sessionStores.js'

const password = { username: 'anna', password: 'anna-secret' }

/** Signs in by password, and sets the second factor up. The code of now is used up. */
const enrolled = async (site: SignInSite): Promise<{ visitor: Visitor; secret: string; recovery: string[] }> => {
  const visitor = site.visitor()
  expect((await sendJson(visitor, '/sign-in/password', password)).status).toBe(204)
  const { secret } = (await visitor.post('/factors/totp')).body as { secret: string }
  const confirmed = await sendJson(visitor, '/factors/totp/confirm', { code: codeOf(secret, 0) })
  expect(confirmed.status).toBe(200)
  return { visitor, secret, recovery: (confirmed.body as { recovery: string[] }).recovery }
}

/** The first factor. */
const half = async (visitor: Visitor): Promise<string> => {
  const answer = await sendJson(visitor, '/sign-in/password', password)
  expect(answer.body).toMatchObject({ next: 'code' })
  return (answer.body as { handle: string }).handle
}

/** A visitor who is signed in by the password. */
const knownSite = async (...given: Parameters<typeof signInSite>) => {
  const made = await visitedSite(...given)
  await sendJson(made.visitor, '/sign-in/password', password)
  return made
}

/** A visitor who has given the first of two factors. */
const halfway = async (...given: Parameters<typeof signInSite>) => {
  const site = await signInSite(...given)
  const { secret } = await enrolled(site)
  const visitor = site.visitor()
  return { site, secret, visitor, handle: await half(visitor) }
}

const clocked = (store: Store = memoryStore(), further: Pick<TotpOptions, 'window'> = {}) => {
  vi.useFakeTimers({ now: 1_700_000_010_000, toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  let keys = [strongKey]
  const secrets = new Map<string, string>()
  const app = totp({ issuer: 'My Shop', keys: () => keys, secretOf: (user) => secrets.get(user), store, ...further })
  const { secret, sealed, uri } = app.enrol('anna', 'anna@shop.example')
  secrets.set('anna', sealed)
  return { app, secret, sealed, uri, secrets, rotate: (to: string[]) => (keys = to) }
}

describe('C-06 codes of an authenticator app', () => {
  // The other tests type the codes of this app
  it('T1 are, in the app of these tests, those of RFC 4226 D and of RFC 6238 B', () => {
    const key = Buffer.from('12345678901234567890')
    const hotp = '755224 287082 359152 969429 338314 254676 287922 162583 399871 520489'.split(' ')
    expect(hotp.map((_, at) => codeOfStep(key, at))).toEqual(hotp)
    const totps = { 59: '94287082', 1111111109: '07081804', 1111111111: '14050471', 1234567890: '89005924' }
    const later = { 2000000000: '69279037', 20000000000: '65353130' }
    for (const [time, code] of Object.entries({ ...totps, ...later })) {
      expect(codeOfStep(key, Math.floor(Number(time) / 30), 8)).toBe(code)
    }
  })

  it('have a secret in base32, which this app reads as RFC 4648 says', () => {
    const vectors = { f: 'MY', fo: 'MZXQ', foo: 'MZXW6', foob: 'MZXW6YQ', fooba: 'MZXW6YTB', foobar: 'MZXW6YTBOI' }
    for (const [text, encoded] of Object.entries(vectors)) expect(String(bytesOf(encoded))).toBe(text)
  })

  it('the secret is encrypted for its user; every key of the list opens it', async () => {
    const { app, secret, sealed, secrets, uri, rotate } = clocked()
    expect(uri).toBe(`otpauth://totp/My%20Shop:anna%40shop.example?secret=${secret}&issuer=My%20Shop`)
    expect(Buffer.from(sealed, 'base64url').includes(bytesOf(secret))).toBe(false)
    rotate(['another key that is long enough, for tests', strongKey])
    expect(await app.verify('anna', codeOf(secret))).toBe(true)
    secrets.set('bert', sealed)
    await expect(app.verify('bert', codeOf(secret, 1))).rejects.toThrow('no key')
    rotate(['another key that is long enough, for tests'])
    await expect(app.verify('anna', codeOf(secret, 1))).rejects.toThrow('no key')
    expect(await app.verify('stranger', '123456')).toBe(false)
  })

  it('a secret that is no string switches nothing off, and null is none', async () => {
    const { app, sealed } = clocked()
    const of = (found: unknown) =>
      // Safe: a driver may return anything
      totp({ issuer: 'x', keys: () => [strongKey], store: memoryStore(), secretOf: () => found as string })
    for (const wrong of [Buffer.from(sealed), { sealed }, new String(sealed), true, '']) {
      await expect(of(wrong).has!('anna')).rejects.toThrow(
        'totp({ secretOf }) must return the sealed secret as a string',
      )
      await expect(of(wrong).verify('anna', '000000')).rejects.toThrow(TypeError)
    }
    for (const none of [null, undefined]) {
      expect([await of(none).has!('anna'), await of(none).verify('anna', '000000')]).toEqual([false, false])
    }
    expect(await app.has!('anna')).toBe(true)
  })
})

describeEveryOther((store) => {
  describe('C-06 codes that are spent', () => {
    it('T2 a code is good once, also in parallel', async () => {
      const { app, secret } = clocked(store())
      const results = await Promise.all(Array.from({ length: 20 }, () => app.verify('anna', codeOf(secret))))
      expect(results.filter(Boolean)).toHaveLength(1)
    })

    it('T3 the step before and after are good, others not, and never backwards', async () => {
      for (const offset of [-2, -1, 0, 1, 2]) {
        const { app, secret } = clocked(store())
        expect([offset, await app.verify('anna', codeOf(secret, offset))]).toEqual([offset, Math.abs(offset) <= 1])
      }
      const { app, secret } = clocked(store())
      expect(await app.verify('anna', codeOf(secret, 0))).toBe(true)
      expect(await app.verify('anna', codeOf(secret, -1))).toBe(false)
      expect(await app.verify('anna', codeOf(secret, 1))).toBe(true)
      expect(await app.verify('anna', codeOf(secret, 0))).toBe(false)
    })

    it('T4 other lengths, letters and numbers are refused', async () => {
      const { app, secret } = clocked(store())
      const code = codeOf(secret)
      const strings = [`${code}0`, code.slice(1), `${code}a`, '', '½'.repeat(6)]
      for (const one of [...strings, Number(code), [code], null, undefined]) {
        expect(await app.verify('anna', one)).toBe(false)
      }
    })

    const digitsFrom = (zero: number) => (code: string) =>
      [...code].map((one) => String.fromCodePoint(zero + Number(one))).join('')
    const with3 = (separator: string) => (code: string) => `${code.slice(0, 3)}${separator}${code.slice(3)}`

    it.each<[string, (code: string) => string]>([
      ['blanks', (code) => ` ${code.slice(0, 3)} ${code.slice(3)}\n`],
      ['a no-break space', with3('\u00a0')],
      ['a hyphen', with3('-')],
      ['an en dash', with3(' \u2013 ')],
      ['keycaps', (code) => code.replace(/./g, '$&\ufe0f\u20e3')],
      ['a zero-width space and a soft hyphen', with3('\u200b\u00ad')],
      ['full-width digits', digitsFrom(0xff10)],
      ['Arabic-Indic digits', digitsFrom(0x660)],
      ['digits of a second row in Unicode', digitsFrom(0x116da)],
    ])('T4 a code is read as people type it: %s', async (_name, typed) => {
      const { app, secret } = clocked(store())
      expect(await app.verify('anna', typed(codeOf(secret)))).toBe(true)
    })

    it('with a window of 0, the present step alone is good', async () => {
      for (const offset of [-1, 0, 1]) {
        const { app, secret } = clocked(store(), { window: 0 })
        expect([offset, await app.verify('anna', codeOf(secret, offset))]).toEqual([offset, offset === 0])
      }
      expect(() => clocked(store(), { window: 2 as never })).toThrow(new TypeError('totp({ window }) must be 0 or 1'))
      const { app, rotate } = clocked(store())
      rotate(['a short key'])
      expect(() => app.enrol('anna')).toThrow('32')
    })
  })

  describe('C-06 a second factor', () => {
    it('T6 after the password alone no user is signed in; the code signs in once, with both proofs', async () => {
      const site = await signInSite(store)
      const { secret } = await enrolled(site)
      const visitor = site.visitor()
      await visitor.post('/set?basket=pear')
      const before = visitor.cookies.get('session')
      const handle = await half(visitor)
      await expectAnonymousAt(visitor)
      expect(visitor.cookies.get('session')).toBe(before)
      const answer = await sendJson(visitor, '/sign-in/code', { handle, code: codeOf(secret) })
      expect([answer.status, answer.body]).toEqual([200, { returnTo: '/' }])
      await expectUser(visitor, 'anna')
      expect(visitor.cookies.get('session')).not.toBe(before)
      const proofs = (await visitor.ask('/proofs')).body as ReadonlyArray<{ method: string }>
      expect(proofs.map(({ method }) => method)).toEqual(['password', 'totp'])
      expect((await visitor.ask('/vault')).status).toBe(200)
      // T2: through another route, in another half
      const other = site.visitor()
      const refused = await sendJson(other, '/sign-in/code', { handle: await half(other), code: codeOf(secret) })
      expect([refused.status, refused.body]).toMatchObject([403, { reason: 'wrong' }])
      expect((await sendJson(visitor, '/prove/code', { code: codeOf(secret) })).status).toBe(403)
    })

    it('T5 takes five tries, also in parallel', async () => {
      const { secret, visitor, handle } = await halfway(store)
      const sent = Array.from({ length: 10 }, () => sendJson(visitor, '/sign-in/code', { handle, code: '1' }))
      const statuses = (await Promise.all(sent)).map(({ status }) => status).sort()
      expect(statuses).toEqual([...Array<number>(5).fill(400), ...Array<number>(5).fill(403)])
      expect((await sendJson(visitor, '/sign-in/code', { handle, code: codeOf(secret) })).status).toBe(400)
      await expectAnonymousAt(visitor)
    })

    it('T7 another browser cannot finish it, and a reset ends it', async () => {
      const { site, secret, visitor, handle } = await halfway(store)
      const thief = site.visitor()
      await half(thief)
      expect((await sendJson(thief, '/sign-in/code', { handle, code: codeOf(secret) })).status).toBe(400)
      await sendJson(site.visitor(), '/reset', { address: 'anna@shop.example' })
      expect((await sendJson(site.visitor(), pathOf((await site.mail()).link), { password: 'new' })).status).toBe(204)
      const late = await sendJson(visitor, '/sign-in/code', { handle, code: codeOf(secret) })
      expect([late.status, late.body]).toMatchObject([400, { reason: 'unknown' }])
      await expectAnonymousAt(visitor)
      // it used the code up as little as a try
      const again = await sendJson(visitor, '/sign-in/password', { ...password, password: 'new' })
      const sent = { handle: (again.body as { handle: string }).handle, code: codeOf(secret) }
      expect((await sendJson(visitor, '/sign-in/code', sent)).status).toBe(200)
      await expectUser(visitor, 'anna')
    })

    it('T7 a reset while the code is checked ends it, too', async () => {
      const { site, secret, visitor, handle } = await halfway(store)
      let asked = 0
      site.store.instead.get = async (keys) => {
        const [stamp] = keys.filter((key) => key.includes('/stamp/'))
        // as another process replaces the stamp
        if (stamp !== undefined && asked++ === 1) await store().update(stamp, 'another', 60_000)
        return store().get(keys)
      }
      const late = await sendJson(visitor, '/sign-in/code', { handle, code: codeOf(secret) })
      delete site.store.instead.get
      expect([late.status, late.body, asked]).toMatchObject([400, { reason: 'unknown' }, 2])
      expect(setCookies(late)).toEqual([])
      await expectAnonymousAt(visitor)
    })

    it('T8 a recovery code is good once, and a new set ends the old one', async () => {
      const site = await signInSite(store)
      const { recovery } = await enrolled(site)
      expect(recovery).toHaveLength(10)
      expect(new Set(recovery).size).toBe(10)
      // 24 characters of 5 bits
      for (const one of recovery) expect(one).toMatch(/^[A-Z2-7]{4}(?:-[A-Z2-7]{4}){5}$/)
      const visitor = site.visitor()
      const [code = ''] = recovery
      const sent = { handle: await half(visitor), code: ` ${code.toLowerCase().replace('-', ' \u2013')} ` }
      expect((await sendJson(visitor, '/sign-in/code', sent)).status).toBe(200)
      await expectUser(visitor, 'anna')
      // what was finished leads on in its session, and uses up no other code
      const again = await sendJson(visitor, '/sign-in/code', { ...sent, code: recovery[1] })
      expect([again.status, again.body]).toMatchObject([200, { returnTo: '/' }])
      expect((await visitor.ask('/proofs')).body).toMatchObject([{ method: 'password' }, { method: 'recovery' }])
      const other = site.visitor()
      expect((await sendJson(other, '/sign-in/code', { handle: await half(other), code })).status).toBe(403)
      const digests = [...(site.people.get('anna')?.recovery ?? [])]
      expect(digests).toHaveLength(9)
      expect(digests).not.toContain(createHash('sha256').update(recovery[1]!.replaceAll('-', '')).digest('base64url'))
    })

    it('T9 an enrolment without its first code is not active', async () => {
      const { site, visitor } = await knownSite(store)
      const old = (await visitor.post('/factors/totp')).body as { secret: string }
      await visitor.post('/factors/totp')
      expect((await sendJson(visitor, '/factors/totp/confirm', { code: codeOf(old.secret) })).status).toBe(403)
      expect((await sendJson(site.visitor(), '/sign-in/password', password)).status).toBe(204)
    })
  })

  describe('C-02 proofs', () => {
    it('T13 a step-up gives another id, and keeps the data and the other proofs', async () => {
      const site = await signInSite(store)
      const { visitor, secret } = await enrolled(site)
      await visitor.post('/set?basket=pear')
      const thief = visitor.copy()
      expect((await visitor.ask('/vault')).status).toBe(403)
      const answer = await sendJson(visitor, '/prove/code', { code: codeOf(secret) })
      expect([answer.status, answer.headers['cache-control']]).toEqual([204, 'no-store'])
      expect(visitor.cookies.get('session')).not.toBe(thief.cookies.get('session'))
      await expectUser(visitor, 'anna')
      await expectAnonymousAt(thief)
      expect((await visitor.ask('/read')).body).toMatchObject({ basket: 'pear' })
      expect((await visitor.ask('/proofs')).body).toMatchObject([{ method: 'password' }, { method: 'totp' }])
      expect((await visitor.ask('/vault')).status).toBe(200)
    })

    it('T12 a step-up ends as the user who began it, still signed in', async () => {
      const { site, visitor } = await knownSite(store)
      const begin = async () => {
        const { handle } = (await sendJson(visitor, '/prove/mail', {})).body as { handle: string }
        return { handle, code: (await site.mail()).code }
      }
      const first = await begin()
      expect((await sendJson(visitor, '/prove/mail/code', first)).status).toBe(200)
      expect((await visitor.ask('/proofs')).body).toMatchObject([{ method: 'password' }, { method: 'mail' }])
      const second = await begin()
      // at the route that signs in it stays a step-up, for the same user only
      await visitor.post('/logout')
      expect((await sendJson(visitor, '/sign-in/mail/code', second)).body).toMatchObject({ reason: 'anotherUser' })
      await sendJson(visitor, '/sign-in/password', { username: 'bert', password: 'bert-secret' })
      const answer = await sendJson(visitor, '/prove/mail/code', second)
      expect([answer.status, answer.body]).toMatchObject([403, { reason: 'anotherUser' }])
      await expectUser(visitor, 'bert')
      expect((await visitor.ask('/proofs')).body).toMatchObject([{ method: 'password' }])
    })

    it('T11 is fresh at maxAge, not a millisecond later, and not if it is of a clock that is far ahead', async () => {
      const { visitor } = await visitedSite(store)
      const now = Date.now()
      vi.useFakeTimers({ now, toFake: ['Date'] })
      onTestFinished(() => void vi.useRealTimers())
      await sendJson(visitor, '/sign-in/password', password)
      const transfer = async (at: number) => {
        vi.setSystemTime(at)
        return visitor.post('/transfer')
      }
      expect((await transfer(now + 300_000)).status).toBe(200)
      const late = await transfer(now + 300_001)
      expect([late.status, late.body, late.seen]).toMatchObject([
        403,
        { reason: 'insufficient', proof: { maxAge: 300 } },
        [],
      ])
      expect((await transfer(now - 5001)).status).toBe(403)
      // another process may have signed the user in, a moment ago
      expect((await transfer(now - 5000)).status).toBe(200)
    })

    it('a session without a proof counts as another method, at its sign-in', async () => {
      const { site, visitor } = await visitedSite(store)
      await visitor.post('/login')
      expect((await visitor.ask('/proofs')).body).toMatchObject([{ method: 'other' }])
      expect((await visitor.post('/transfer')).status).toBe(200)
      expect((await visitor.ask('/vault')).body).toMatchObject({ proof: { methods: ['totp', 'recovery'] } })
      expect((await site.visitor().ask('/proofs')).body).toEqual([])
    })
  })
})
