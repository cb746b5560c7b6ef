/** A password form: right by itself, whatever is sent, for machines and for browsers. */
import { randomBytes, scryptSync } from 'node:crypto'
import Router from '@koa/router'
import type { Middleware } from 'koa'
import { authSettings, defaultErrorMapper, UnavailableError, withAuth, type ErrorMapper } from 'koa-with-auth'
import { hash, verify } from 'koa-with-auth/passwords'
import { SignInRefused, type Page, type SessionsOptions } from 'koa-with-auth/sessions'
import {
  secondFactor,
  finish,
  passwordSignIn,
  type CodeFactor,
  type FinishHook,
  type ProofGiven,
  type PasswordSignInOptions,
} from 'koa-with-auth/sign-in'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { unavailable } from '../../src/core/AuthError.js'
import type { Answer } from '../support/models/behavior.js'
import { recordsOf } from '../support/runs/eventRecords.js'
import { pollute } from '../support/runs/pollute.js'
import { expectUser } from '../support/sites/signedIn.js'
import { sendJson } from '../support/sites/signInSite.js'
import { daysOf, sessionsApp, setCookies, strongKey, type User, type Visitor } from '../support/sites/sessionsApp.js'

const DAY = 86_400_000
const PATH = '/sign-in'

const expectAnonymous = async (visitor: Visitor): Promise<void> => {
  expect((await visitor.ask('/me')).status).toBe(401)
}

/** A hash that took less work than today. */
const oldHash = (password: string): string => {
  const salt = randomBytes(16)
  const text = (bytes: Buffer) => bytes.toString('base64').replace(/=+$/, '')
  return `$scrypt$ln=10,r=8,p=1$${text(salt)}$${text(scryptSync(password, salt, 32, { N: 1024, r: 8, p: 1 }))}`
}

let stored = ''
beforeAll(async () => {
  stored = await hash('anna-secret')
})

type Given = Partial<PasswordSignInOptions<User>>
type Pages = Pick<SessionsOptions<User | undefined>, 'bearer' | 'origin' | 'pages' | 'texts'> & {
  readonly above?: Middleware
}

/** anna has a password, bert has none; the second factor of sam is always 1. */
const start = async (options: Given = {}, { pages, texts, above, ...given }: Pages = {}) => {
  const asked: string[] = []
  const hashes = new Map<string, string | undefined>([
    ['anna', stored],
    ['sam', stored],
    ['bert', undefined],
  ])
  const factor: CodeFactor = {
    method: 'own',
    has: (user) => user === 'sam',
    verify: async (_user, typed) => typed === '1',
  }
  const code = secondFactor({ factors: [factor], limiter: new RateLimiterMemory({ points: 50, duration: 900 }) })
  const errors: unknown[] = []
  const site = await sessionsApp(undefined, {
    keys: [strongKey, randomBytes(32).toString('hex')],
    origin: 'https://shop.example',
    ...given,
    ...(pages !== undefined && { pages }),
    ...(texts !== undefined && { texts }),
    below: (app) => {
      app.on('error', (error: { expose?: boolean }) => error.expose !== true && errors.push(error))
      if (above !== undefined) app.use(above)
      const form = passwordSignIn<User>({
        accountOf: (name) => {
          asked.push(name)
          return hashes.has(name) && { user: { username: name, isActive: true }, hash: hashes.get(name) }
        },
        factors: code,
        keep: ['basket'],
        ...options,
      })
      const router = new Router()
      router.get(PATH, withAuth(null), form)
      router.post(PATH, withAuth(null), form)
      const hook: FinishHook<ProofGiven> = (_ctx, { proof }) => ({ username: proof.subject, isActive: true })
      router.post('/code', withAuth(null), finish(code, hook))
      app.use(router.routes())
    },
  })
  return { site, visitor: site.visitor(), asked, hashes, errors }
}

const send = (visitor: Visitor, body: object, path = PATH) => sendJson(visitor, path, body)
const page = { Accept: 'text/html' }
const post = (visitor: Visitor, fields: string | Record<string, string>, headers: Record<string, string> = page) =>
  visitor.ask(PATH, {
    method: 'POST',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded', ...headers },
    body: typeof fields === 'string' ? fields : new URLSearchParams(fields).toString(),
  })

/** The inputs of the form of a page, and where it is posted. */
const formOf = ({ body }: Answer) => {
  const html = String(body)
  const attribute = (tag: string, name: string) => new RegExp(`${name}="([^"]*)"`).exec(tag)?.[1]
  return {
    action: /<form method="post" action="([^"]*)"/.exec(html)?.[1],
    alert: /role="alert">([^<]*)/.exec(html)?.[1],
    // Safe: a field without a value is overwritten where it is posted
    inputs: Object.fromEntries(
      [...html.matchAll(/<input [^>]*>/g)].map(([tag]) => [attribute(tag, 'name'), attribute(tag, 'value')]),
    ) as Record<string, string>,
  }
}

const right = { username: 'anna', password: 'anna-secret' }

describe('a password', () => {
  it('signs in: 204, and 303 to the path of this site for a browser', async () => {
    const { site, visitor } = await start()
    expect((await send(visitor, { ...right, returnTo: '/elsewhere' })).status).toBe(204)
    await expectUser(visitor, 'anna')
    for (const [returnTo, location] of [
      ['/account?tab=2', '/account?tab=2'],
      ['//evil.example', '/'],
    ] as const) {
      const browser = site.visitor()
      const answer = await post(browser, { ...right, returnTo })
      expect([answer.status, answer.headers['location']]).toEqual([303, location])
      await expectUser(browser, 'anna')
    }
  })

  it.each(['anna', 'sam'])(
    'signs in no user who is not active, before and after a second factor: %s',
    async (username) => {
      let isActive = false
      const signedIn = vi.fn()
      const accountOf = () => ({ user: { username, isActive }, hash: stored })
      const { site } = await start({ accountOf, signedIn })
      const visitor = site.visitor()
      const refused = { status: 403, body: { reason: 'noAccount' } }
      expect(await send(visitor, { ...right, username })).toMatchObject(refused)
      expect(await send(visitor, { username, password: 'wrong' })).toMatchObject({
        status: 403,
        body: { reason: 'wrong' },
      })
      if (username === 'sam') {
        isActive = true
        const half = await send(visitor, { ...right, username })
        isActive = false
        expect(await send(visitor, { ...Object(half.body), username, code: '1' })).toMatchObject(refused)
      }
      await expectAnonymous(visitor)
      expect(signedIn).not.toHaveBeenCalled()
      expect(visitor.cookies.has('session')).toBe(false)
    },
  )

  it('needs no public origin, whose links it does not write', async () => {
    const { errors, visitor } = await start({}, { origin: undefined })
    const answer = await sendJson(visitor, PATH, right, { Host: 'intranet.example' })
    expect([answer.status, errors]).toEqual([204, []])
    await expectUser(visitor, 'anna')
  })

  it('is read from what a host has parsed ahead of Koa, such as express.json()', async () => {
    const { site, visitor } = await start(
      {},
      {
        above: async ({ req }, next) => {
          const chunks = await req.toArray()
          if (chunks.length > 0) Object.assign(req, { body: JSON.parse(Buffer.concat(chunks).toString()) as unknown })
          return next()
        },
      },
    )
    expect((await send(visitor, right)).status).toBe(204)
    expect((await send(site.visitor(), { ...right, password: 'wrong' })).status).toBe(403)
    await expectUser(visitor, 'anna')
  })

  it('is wrong in one way: an unknown name, another password, a user without one', async () => {
    const { site, asked } = await start()
    const records = recordsOf('ceremony')
    const answers = []
    for (const given of [
      { username: 'anna', password: 'wrong' },
      { username: 'unknownUser', password: 'anna-secret' },
      { username: 'bert', password: 'anna-secret' },
    ]) {
      const visitor = site.visitor()
      const { status, body, headers } = await send(visitor, given)
      answers.push({ status, body, headers: Object.keys(headers) })
      await expectAnonymous(visitor)
    }
    expect(answers[0]).toMatchObject({ status: 403, body: { reason: 'wrong' } })
    expect(answers[1]).toEqual(answers[0])
    expect(answers[2]).toEqual(answers[0])
    expect(asked, 'the same look-ups').toEqual(['anna', 'unknownUser', 'bert'])
    const refused = { event: 'refused', kind: 'password', step: 'finish', failure: 'invalid', reason: 'wrong' }
    expect(records).toMatchObject([refused, refused, refused])
  })

  it('has other names of fields, JSON or a form, and keeps what the session may keep', async () => {
    const fields = { username: 'email', password: 'secret', returnTo: 'next', remember: 'stay' }
    const { visitor } = await start({ fields, idle: ({ remember }) => remember && 30 * DAY })
    expect((await send(visitor, right)).status).toBe(400)
    expect(String((await visitor.ask(PATH, { headers: page })).body)).toMatch(/type="email"[^]*name="stay"/)
    const answer = await post(visitor, { email: 'anna', secret: 'anna-secret', next: '/me', stay: 'on' })
    expect([answer.status, answer.headers['location'], daysOf(answer)]).toEqual([303, '/me', 30])
  })

  it('lasts as "stay signed in" says, also after a second factor', async () => {
    const { site } = await start({
      idle: ({ remember }) => remember && 30 * DAY,
      absolute: ({ body }) => (body['remember'] === 'on' ? 60 * DAY : undefined),
    })
    for (const remember of ['on', true, '1', undefined, '', 'false', 'off', '0', 1]) {
      const days = ['on', true, '1'].includes(remember as string) ? 30 : 1
      expect([remember, daysOf(await send(site.visitor(), { ...right, remember }))]).toEqual([remember, days])
    }
    const visitor = site.visitor()
    const half = await send(visitor, { ...right, username: 'sam', remember: 'on' })
    expect(daysOf(await sendJson(visitor, '/code', { ...(half.body as object), code: '1' }))).toBe(30)
  })

  it('that was right is hashed again if its hash is old; a failure of that is a warning', async () => {
    const saved: Array<readonly [string, string]> = []
    let isDown = false
    const save = (user: User, made: string) => {
      if (isDown) throw new Error('down')
      saved.push([user.username, made])
    }
    const { site, hashes } = await start({ save })
    expect((await send(site.visitor(), right)).status).toBe(204)
    expect(saved, 'today’s hash stays').toEqual([])
    hashes.set('anna', oldHash('anna-secret'))
    expect((await send(site.visitor(), { ...right, password: 'no' })).status).toBe(403)
    expect((await send(site.visitor(), right)).status).toBe(204)
    expect(saved.map(([name]) => name)).toEqual(['anna'])
    expect(await verify(saved[0]![1], 'anna-secret')).toBe(true)
    isDown = true
    const warned = new Promise<Error>((resolve) => process.once('warning', resolve))
    expect((await send(site.visitor(), right)).status).toBe(204)
    expect(String(await warned)).toContain('passwordSignIn: save failed')
  })

  it('looks no name up for a code without a good handle, so its time shows no account', async () => {
    const { site, asked } = await start()
    const answers = await Promise.all(
      ['anna', 'sam', 'unknownUser'].map((username) =>
        sendJson(site.visitor(), PATH, { username, handle: 'A'.repeat(300), code: '1' }),
      ),
    )
    for (const { status, body } of answers) expect([status, body]).toMatchObject([400, { reason: 'unknown' }])
    expect(asked).toEqual([])
  })

  it('that is hashed again undoes no reset that comes meanwhile', async () => {
    const save = vi.fn()
    const { site, hashes, asked } = await start({ save })
    hashes.set('anna', oldHash('anna-secret'))
    const get = hashes.get.bind(hashes)
    hashes.get = (name) => {
      // the second look-up is the one before the password is hashed again
      if (asked.length === 2) setImmediate(() => hashes.set('anna', stored))
      return get(name)
    }
    expect((await send(site.visitor(), right)).status).toBe(204)
    expect([asked, save.mock.calls]).toEqual([['anna', 'anna', 'anna'], []])
  })

  it.each([
    ['a reset changes', () => hash('another')],
    ['goes with its account', () => undefined],
  ])('that %s meanwhile signs no user in', async (_how, made) => {
    const { site, hashes } = await start()
    const other = await made()
    const visitor = site.visitor()
    let asked = 0
    const get = hashes.get.bind(hashes)
    // the second look-up is the one after the password was verified
    hashes.get = (name) => {
      if (++asked > 1) return other
      const before = get(name)
      if (other === undefined) hashes.delete(name)
      return before
    }
    expect((await send(visitor, right)).status).toBe(403)
    await expectAnonymous(visitor)
  })

  it.each([
    ['before the second factor is chosen', 1],
    ['before its code is typed', 2],
  ])('signs in no user who signs out everywhere %s', async (_when, ends) => {
    let times = 0
    const code = secondFactor({ factors: [{ method: 'own', verify: async () => true }] })
    const { site, visitor } = await start({
      factors: async ({ username }) => {
        if (++times === ends) await site.signing.logOutEverywhere(username)
        return code
      },
    })
    const half = await send(visitor, { ...right, username: 'sam' })
    const answer = await send(visitor, { ...Object(half.body), username: 'sam', code: '1' })
    expect([half.status, answer.status, answer.body]).toMatchObject([200, 400, { reason: 'unknown' }])
    await expectAnonymous(visitor)
  })

  it('is counted by itself: ten for an account from an address, and none for what was right', async () => {
    const { site } = await start()
    const status = async (given: object) => (await send(site.visitor(), { ...right, ...given })).status
    for (let at = 0; at < 12; at++) expect(await status({})).toBe(204)
    const eleven = async (...names: ReadonlyArray<string>) => {
      const found = []
      for (let at = 0; at < 11; at++) found.push(await status({ username: names[at % names.length], password: 'no' }))
      return found
    }
    const statuses = await eleven('anna', 'ANNA ')
    expect(statuses).toEqual([...Array<number>(10).fill(403), 429])
    const limited = await send(site.visitor(), right)
    expect([limited.status, Number(limited.headers['retry-after']) > 0]).toEqual([429, true])
    expect(await status({ username: 'sam' })).toBe(200)
    const unknown = await eleven('unknownUser')
    expect(unknown, 'as for a name that exists').toEqual(statuses)
  })

  it('is a 503 in an outage, which counts nothing, and a 500 if a hook fails', async () => {
    for (const thrown of [
      Object.assign(new Error('down'), { code: 'ERR_AUTH_UNAVAILABLE' }),
      new TypeError('a mistake'),
    ]) {
      const { visitor } = await start({
        accountOf: () => {
          throw thrown
        },
      })
      for (let at = 0; at < 12; at++) expect((await send(visitor, right)).status).toBe(500)
      await expectAnonymous(visitor)
    }
    // the look-up before the password is verified, and the one after it
    for (const failing of [1, 2]) {
      let asked = 0
      const { site, visitor } = await start({
        accountOf: (name) => {
          if (++asked === failing) return Promise.reject(new UnavailableError('down'))
          return { user: { username: name }, hash: stored }
        },
      })
      expect((await send(visitor, right)).status).toBe(503)
      await expectAnonymous(visitor)
      expect([(await send(site.visitor(), right)).status, asked]).toEqual([204, failing + 2])
    }
    const { site } = await start()
    site.store.instead.get = () => Promise.reject(new Error('down'))
    expect((await send(site.visitor(), right)).status).toBe(503)
    const shown = await post(site.visitor(), right)
    expect([shown.status, formOf(shown).inputs]).toMatchObject([503, { username: 'anna' }])
  })
})

describe('what cannot be read', () => {
  it.each(['x'.repeat(8192), 'anna\0', '\ud800', 'anna\n'])(
    'Q-05 a name that no user can have is like an unknown one: %j',
    async (username) => {
      const { asked, visitor } = await start()
      for (let at = 0; at < 10; at++) {
        expect((await send(visitor, { username, password: 'anna-secret' })).status).toBe(403)
      }
      expect((await send(visitor, { username, password: 'anna-secret' })).status).toBe(429)
      await expectAnonymous(visitor)
      expect(asked).toEqual([])
    },
  )
})

describe('a page', () => {
  it('has the form, and again after a failure, with what was typed but the password', async () => {
    const { visitor } = await start({ idle: ({ remember }) => remember && DAY * 2 })
    const first = await visitor.ask(`${PATH}?returnTo=%2Faccount`, { headers: page })
    expect([first.status, first.headers['content-type'], first.headers['cache-control']]).toEqual([
      200,
      'text/html; charset=utf-8',
      'no-store',
    ])
    expect(formOf(first)).toEqual({
      action: PATH,
      alert: undefined,
      inputs: { returnTo: '/account', step: 'begin', username: undefined, password: undefined, remember: undefined },
    })
    const again = await post(visitor, {
      username: '"><script>',
      password: 'wrong',
      returnTo: '/account',
      remember: 'on',
    })
    expect(again.status).toBe(403)
    expect(formOf(again)).toEqual({
      action: PATH,
      alert: 'That was not right. Check what you typed, and try again.',
      inputs: {
        returnTo: '/account',
        step: 'begin',
        username: '&#34;&#62;&#60;script&#62;',
        password: undefined,
        remember: undefined,
      },
    })
    expect(String(again.body)).toContain('name="remember" checked')
    expect(String(again.body)).not.toContain('wrong"')
  })

  it('asks for the code at the same path, again if it is wrong, and leads where the form said', async () => {
    const { site, visitor } = await start()
    const half = await post(visitor, { ...right, username: 'sam', returnTo: '/vault?a=1' })
    expect([half.status, formOf(half).action, Object.keys(formOf(half).inputs)]).toEqual([
      200,
      PATH,
      ['handle', 'username', 'code'],
    ])
    await expectAnonymous(visitor)
    const wrong = await post(visitor, { ...formOf(half).inputs, code: '2' })
    expect([wrong.status, formOf(wrong).inputs]).toEqual([403, formOf(half).inputs])
    expect(formOf(wrong).alert).toBe('That was not right. Check what you typed, and try again.')
    const stolen = await post(site.visitor(), { ...formOf(half).inputs, code: '1' })
    expect([stolen.status, Object.keys(formOf(stolen).inputs)]).toEqual([
      400,
      ['returnTo', 'step', 'username', 'password'],
    ])
    const other = await post(visitor, {
      ...formOf(half).inputs,
      username: 'anna',
      code: '1',
    })
    expect(other.status).toBe(400)
    const done = await post(visitor, { ...formOf(wrong).inputs, code: '1' })
    expect([done.status, done.headers['location']]).toEqual([303, '/vault?a=1'])
    await expectUser(visitor, 'sam')
  })

  it('asks for the code at an address of this browser alone, if the form was shown at that path', async () => {
    const { site, visitor } = await start()
    const form = formOf(await visitor.ask(PATH, { headers: page })).inputs
    const half = await post(visitor, { ...form, ...right, username: 'sam', returnTo: '/vault' })
    const address = String(half.headers['location'])
    expect([half.status, address.startsWith(`${PATH}?step=`), address.includes('sam')]).toEqual([303, true, false])
    const shown = await visitor.ask(address, { headers: page })
    expect([shown.status, Object.keys(formOf(shown).inputs)]).toEqual([200, ['handle', 'username', 'code']])
    expect(formOf(await visitor.ask(address, { headers: page }))).toEqual(formOf(shown))
    for (const [who, at] of [
      [site.visitor(), address],
      [visitor, `${address}A`],
      [visitor, `${address}&step=A`],
    ] as const) {
      expect(Object.keys(formOf(await who.ask(at, { headers: page })).inputs)).toContain('password')
    }
    const done = await post(visitor, { ...formOf(shown).inputs, code: '1' })
    expect([done.status, done.headers['location']]).toEqual([303, '/vault'])
    // servers refuse a long address
    const accountOf = () => ({ user: { username: 'sam', isActive: true }, hash: stored })
    const long = { ...right, username: '\u4e00'.repeat(1000), returnTo: `/${'a'.repeat(1999)}`, step: 'begin' }
    expect((await post((await start({ accountOf })).visitor, long)).status).toBe(200)
    await expectUser(visitor, 'sam')
  })

  it('calls signedIn when a user has been signed in, after a second factor, too; what it writes is the answer', async () => {
    const seen: unknown[] = []
    const { site } = await start({
      signedIn: (ctx, { user, remember }) => {
        seen.push([user.username, remember])
        if (user.username === 'sam') ctx.redirect('/new-device')
      },
    })
    await post(site.visitor(), { ...right, remember: 'on', password: 'wrong' })
    expect(seen).toEqual([])
    const [anna, sam] = [site.visitor(), site.visitor()]
    expect((await post(anna, { ...right, remember: 'on' })).headers['location']).toBe('/')
    const half = await post(sam, { ...right, username: 'sam' })
    expect(seen).toEqual([['anna', true]])
    const done = await post(sam, { ...formOf(half).inputs, code: '1' })
    expect([done.status, done.headers['location']]).toEqual([302, '/new-device'])
    expect(seen).toEqual([
      ['anna', true],
      ['sam', false],
    ])
    await expectUser(sam, 'sam')
  })

  it('whose sign-in a token carries leads nowhere, whatever signedIn writes', async () => {
    const { visitor } = await start({ as: 'bearer', signedIn: (ctx) => ctx.redirect('/new-device') }, { bearer: true })
    const answer = await send(visitor, right)
    const { status, headers, body } = answer
    expect([status, headers['location'], setCookies(answer)]).toEqual([200, undefined, []])
    expect(headers['cache-control']).toBe('no-store')
    expect(body).toEqual({ access_token: expect.any(String), token_type: 'Bearer', expires_in: expect.any(Number) })
    // an app gets no page
    expect(await post(visitor, { ...right, password: 'no' })).toMatchObject({ status: 403, body: { reason: 'wrong' } })
  })

  it.each([
    [500, new Error('mine')],
    [503, new SignInRefused(unavailable())],
  ])('signs in no user if signedIn throws: %i', async (status, thrown) => {
    const { visitor } = await start({ signedIn: () => Promise.reject(thrown) })
    expect((await post(visitor, right)).status).toBe(status)
    await expectAnonymous(visitor)
  })

  it('needs no name beside the handle, if the account of the identifier is that user', async () => {
    const { visitor } = await start()
    await visitor.post('/set?basket=pear&other=1')
    for (const typed of ['2', '1']) {
      const half = await post(visitor, { ...right, username: 'sam' })
      const { handle = '' } = formOf(half).inputs
      await expectAnonymous(visitor)
      const ended = await post(visitor, { handle, code: typed })
      expect([ended.status, formOf(ended).inputs]).toEqual(
        typed === '1' ? [303, {}] : [403, { handle, code: undefined }],
      )
    }
    await expectUser(visitor, 'sam')
    expect((await visitor.ask('/read')).body).toMatchObject({ basket: 'pear' })
    expect((await visitor.ask('/read')).body).not.toHaveProperty('other')
  })

  it('is not let in by a handle alone where the account of the identifier is another user', async () => {
    const { visitor } = await start({
      accountOf: (name) => ({ user: { username: name === 'mail' ? 'sam' : 'anna', isActive: true }, hash: stored }),
    })
    const half = await post(visitor, { ...right, username: 'mail' })
    const { handle = '', username = '' } = formOf(half).inputs
    expect((await post(visitor, { handle, code: '1' })).status).toBe(400)
    await expectAnonymous(visitor)
    expect((await post(visitor, { handle, username, code: '1' })).status).toBe(303)
    await expectUser(visitor, 'sam')
  })

  it('is for a browser, whose Accept is short: a long one costs no time', async () => {
    const { visitor } = await start()
    const wrong = (length: number) =>
      post(visitor, { ...right, password: 'no' }, { Accept: `text/html,${'a'.repeat(length - 10)}` })
    expect(formOf(await wrong(1000)).action).toBe(PATH)
    expect(await wrong(1001)).toMatchObject({ status: 403, body: { reason: 'wrong' } })
  })

  it('is made by the application: data goes in, a string or what it renders comes out', async () => {
    const seen: Page[] = []
    const { visitor } = await start(
      {},
      {
        pages: async (given, ctx) => {
          seen.push(given)
          if (given.step === 'begin') return `<p>${given.kind}</p>`
          if (given.failure?.reason === 'wrong') {
            ctx.body = '<i>rendered</i>'
            ctx.type = 'html'
          }
          return undefined
        },
      },
    )
    expect((await visitor.ask(PATH, { headers: page })).body).toBe('<p>password</p>')
    const wrong = await post(visitor, { ...right, password: 'no' })
    expect([wrong.status, wrong.body]).toEqual([403, '<i>rendered</i>'])
    const half = await post(visitor, { ...right, username: 'sam' })
    expect(formOf(half).action, 'the page of the library, where it made none').toBe(PATH)
    expect(seen.map(({ kind, step, failure }) => [kind, step, failure?.reason])).toEqual([
      ['password', 'begin', undefined],
      ['password', 'failed', 'wrong'],
      ['code', 'answer', undefined],
    ])
    expect(JSON.stringify(seen)).not.toContain('secret')
  })

  it('that throws is a 500, and no user is signed in', async () => {
    for (const pages of [() => Promise.reject(new Error('no template')), () => 42]) {
      const { visitor } = await start({}, { pages })
      expect((await post(visitor, { ...right, username: 'sam' })).status).toBe(500)
      expect((await post(visitor, { ...right, password: 'no' })).status).toBe(500)
      await expectAnonymous(visitor)
    }
  })

  it('Q-01 is made by an error mapper that makes pages; one that leaves it to others changes nothing', async () => {
    const mapped = async (errorMapper: ErrorMapper) => {
      const { visitor } = await start({}, { above: authSettings({ errorMapper }) })
      return [await post(visitor, { ...right, password: 'no' }), await send(visitor, { ...right, password: 'no' })]
    }
    const [own] = await mapped(() => ({ status: 403, headers: { 'Content-Type': 'text/html' }, body: '<i>mine</i>' }))
    expect([own?.status, own?.body]).toEqual([403, '<i>mine</i>'])
    const [again, data] = await mapped((error, request) =>
      error._tag === 'absent' ? { status: 303 } : defaultErrorMapper(error, request),
    )
    expect([again?.status, again && formOf(again).action]).toEqual([403, PATH])
    expect([data?.status, data?.body]).toMatchObject([403, { reason: 'wrong' }])
    const [asked] = await mapped(defaultErrorMapper)
    expect([asked?.status, asked?.body]).toMatchObject([403, { reason: 'wrong' }])
  })

  it('is in the language of the request, if there are texts', async () => {
    const { site } = await start({}, { texts: { de: { begin: 'Anmelden', username: 'Name oder Adresse' } } })
    const titleOf = async (language: string) => {
      const { body, headers } = await site.visitor().ask(PATH, { headers: { ...page, 'Accept-Language': language } })
      const html = String(body)
      return [
        /<html lang="([^"]*)"/.exec(html)?.[1],
        /<h1>([^<]*)/.exec(html)?.[1],
        String(headers['vary']).includes('Accept-Language'),
      ]
    }
    expect(await titleOf('de-AT,de;q=0.9')).toEqual(['de', 'Anmelden', true])
    expect(await titleOf('en')).toEqual(['en', 'Sign in', true])
    expect(await titleOf('fr')).toEqual(['en', 'Sign in', true])
    pollute({ en: { begin: 'Polluted' } })
    expect(await titleOf('en')).toEqual(['en', 'Sign in', true])
  })
})

describe('options that cannot work', () => {
  const [one, two, three] = [(_a: 1) => _a, (_a: 1, _b: 2) => _a, (_a: 1, _b: 2, _c: 3) => _a]
  it.each<[string, object]>([
    ['accountOf', { accountOf: undefined }],
    ['accountOf', { accountOf: 1 }],
    ['accountOf }) takes 2', { accountOf: two }],
    ['factors', { factors: {} }],
    ['factors }) takes 2', { factors: two }],
    ['save }) takes 3', { save: three }],
    ['signedIn }) takes 3', { signedIn: three }],
    ['passwordSignIn({ limiter })', { limiter: {} }],
    ['limiter', { limiter: null }],
    ['fields', { fields: { name: 'x' } }],
    ['two fields have one name', { fields: { username: 'password' } }],
    ['two fields have one name', { factors: one, fields: { username: 'handle' } }],
    ['idle', { idle: 0 }],
    ['no option "remember"', { remember: true }],
  ])('are a TypeError that names %s', (name, options) => {
    expect(() => passwordSignIn({ accountOf: one, ...options } as never)).toThrow(name)
  })
})
