/** Sessions that are carried by a token: `sessions(app, { bearer })` and routes with `as: 'bearer'`. */
import { apiKeyCookie, authenticator, Challenge, fromCookie, sessionAuth, withAuth } from 'koa-with-auth'
import { begin, finish, secondFactor } from 'koa-with-auth/sign-in'
import { memoryStore, oneTimeIds, type Store } from 'koa-with-auth/stores'
import { describe, expect, it, vi } from 'vitest'
import { dpopClient, ORIGIN } from '../support/servers/dpopClient.js'
import { sendRaw } from '../support/servers/rawSocket.js'
import { stoppedClock } from '../support/runs/clock.js'
import { deviceSite, password } from '../support/sites/deviceSite.js'
import { strongKey } from '../support/sites/sessionsApp.js'

const bearer = (token: string) => ({ Authorization: `Bearer ${token}` })
const invalid = 'Bearer realm="api", error="invalid_token"'
const form = 'username=anna&password=a+secret+of+some+length'

describe('a route with as: bearer', () => {
  it('answers 200 with the token, its type and its time, sets no cookie, and forbids to store it', async () => {
    const { ask } = await deviceSite()
    const { status, body, headers } = await ask('/device/sign-in', {}, password)
    expect([status, body]).toEqual([
      200,
      { access_token: expect.stringMatching(/^kwa_[\w-]{49}$/), token_type: 'Bearer', expires_in: 604_800 },
    ])
    expect([headers.getSetCookie(), headers.get('Cache-Control')]).toEqual([[], 'no-store'])
    const me = await ask('/me', bearer(body.access_token))
    expect([me.status, me.body]).toEqual([200, { auth: { username: 'anna' }, proofs: ['password'] }])
  })

  it('has tokens of its own prefix', async () => {
    const { signIn } = await deviceSite({ bearer: { prefix: 'acme_live' } })
    expect(await signIn()).toMatch(/^acme_live_[\w-]{49}$/)
  })

  it('answers the form of a browser with JSON or a 4xx, never with a page or a redirect', async () => {
    const { ask } = await deviceSite()
    const html = { Accept: 'text/html' }
    const good = await ask('/device/sign-in', html, form)
    expect([good.status, good.body.token_type, good.headers.get('Location')]).toEqual([200, 'Bearer', null])
    const wrong = await ask('/device/sign-in', html, 'username=anna&password=wrong')
    expect([wrong.status, wrong.body.reason]).toEqual([403, 'wrong'])
    expect((await ask('/device/sign-in', html)).status).toBe(405)
  })

  it('leaves the session of a browser as it is', async () => {
    const { ask, cookieIn } = await deviceSite()
    const clock = stoppedClock()
    const Cookie = cookieIn(await ask('/cookie', {}, {}))
    // also where it would be prolonged
    clock.move(13 * 3_600_000)
    const { body, headers } = await ask('/device/sign-in', { Cookie }, password)
    expect(headers.getSetCookie()).toEqual([])
    expect((await ask('/me', { Cookie })).status).toBe(200)
    expect((await ask('/me', bearer(body.access_token))).status).toBe(200)
    expect((await ask('/list', { Cookie })).body).toHaveLength(2)
  })

  it('without bearer in sessions is a TypeError that names it, at its first request, and logIn rejects', async () => {
    const { ask, errors } = await deviceSite({ bearer: false })
    for (const path of ['/device/sign-in', '/device/begin', '/device/code', '/token', '/device/second']) {
      expect([path, (await ask(path, {}, password)).status]).toEqual([path, 500])
    }
    expect(errors).toHaveLength(5)
    for (const error of errors) {
      expect(error).toBeInstanceOf(TypeError)
      expect(String(error)).toContain('sessions(app, { bearer: true })')
    }
  })

  it('gives a second factor a token', async () => {
    const { ask } = await deviceSite()
    for (const [first, second] of [
      ['/device/two', '/device/two'],
      ['/device/second', '/device/second/code'],
    ] as const) {
      const { body, headers } = await ask(first, {}, password)
      expect([typeof body.handle, headers.getSetCookie()]).toEqual(['string', []])
      const { handle } = body
      expect((await ask(second, {}, { handle, code: '000000' })).status).toBe(403)
      const done = await ask(second, {}, { handle, code: '123456', username: 'anna' })
      expect([done.status, done.headers.getSetCookie()]).toEqual([200, []])
      const me = await ask('/me', bearer(done.body.access_token))
      expect(me.body.proofs).toEqual(['password', 'totp'])
    }
  })

  it('finishes nothing that began without it, nor the other way round', async () => {
    const { ask, cookieIn } = await deviceSite()
    const device = await ask('/device/second', {}, {})
    const browser = await ask('/two', {}, password)
    const Cookie = cookieIn(browser)
    const code = { code: '123456' }
    const wrong = [
      await ask('/second/code', { Cookie }, { ...code, handle: device.body.handle }),
      await ask('/device/second/code', { Cookie }, { ...code, handle: browser.body.handle }),
      await ask('/device/second/code', {}, { ...code, handle: browser.body.handle }),
    ]
    for (const { status, body, headers } of wrong) {
      expect([status, body.reason, body.access_token, headers.getSetCookie()]).toEqual([400, 'unknown', undefined, []])
    }
    expect((await ask('/device/second/code', {}, { ...code, handle: device.body.handle })).status).toBe(200)
  })

  it('gives a code of a mail a token, whichever device has the browser', async () => {
    const { ask, mails } = await deviceSite()
    const begun = await ask('/device/begin', { Accept: 'text/html' }, 'address=anna@shop.example')
    expect([begun.status, typeof begun.body.handle, begun.headers.getSetCookie()]).toEqual([200, 'string', []])
    await vi.waitFor(() => expect(mails).toHaveLength(1))
    const answer = { handle: begun.body.handle, code: mails[0] }
    expect((await ask('/code', {}, answer)).status).toBe(400)
    const done = await ask('/device/code', {}, answer)
    expect([done.status, done.headers.getSetCookie()]).toEqual([200, []])
    expect((await ask('/me', bearer(done.body.access_token))).status).toBe(200)
    expect((await ask('/device/code', {}, answer)).status).toBe(400)
  })

  it('is a 503 without a token if the store does not keep the session', async () => {
    const kept = memoryStore()
    const insert: Store['insert'] = (key, ...rest) =>
      key.includes('/session/') ? Promise.reject(new Error('down')) : kept.insert(key, ...rest)
    const { status, body } = await (await deviceSite({}, { ...kept, insert })).ask('/device/sign-in', {}, password)
    expect([status, body.access_token]).toEqual([503, undefined])
  })

  it('takes the sign-in back if the operation throws', async () => {
    const { ask, signIn } = await deviceSite()
    expect((await ask('/token?throws', {}, {})).status).toBe(500)
    expect((await ask('/list', bearer(await signIn()))).body).toHaveLength(1)
  })
})

describe('a request with a field Authorization', () => {
  it('is that of the token alone, whatever cookie comes with it', async () => {
    const { ask, cookieIn, signIn } = await deviceSite()
    const Cookie = cookieIn(await ask('/cookie', {}, {}))
    for (const path of ['/me', '/optional']) {
      const wrong = await ask(path, { Cookie, ...bearer('kwa_wrong') })
      expect([wrong.status, wrong.headers.get('WWW-Authenticate')]).toEqual([401, expect.stringContaining(invalid)])
    }
    const other = await ask('/me', { Cookie, Authorization: 'Basic YTpi' })
    expect([other.status, other.headers.get('WWW-Authenticate')]).toEqual([
      401,
      'Session realm="api", Bearer realm="api"',
    ])
    expect((await ask('/me', { Cookie, ...bearer(await signIn()) })).headers.getSetCookie()).toEqual([])
  })

  it('is a 401 without a look-up if the token cannot be one of this application', async () => {
    const { ask, signIn, kept, port } = await deviceSite()
    const other = await deviceSite({ name: 'other' })
    const token = await signIn()
    kept.length = 0
    const wrong: Array<Record<string, string>> = [
      { Authorization: '' },
      { Authorization: `Bearer ${token}, Bearer ${token}` },
      { Authorization: token },
      { Authorization: `Token ${token}` },
      bearer(token.slice(0, -1)),
      bearer(await other.signIn()),
      bearer('x'.repeat(8000)),
    ]
    for (const headers of wrong) expect([headers, (await ask('/me', headers)).status]).toEqual([headers, 401])
    // Node keeps the first of two lines, and a proxy may have read the last
    for (const [first, second] of [
      [token, token],
      [token, 'kwa_x'],
      ['kwa_x', token],
    ]) {
      const lines = [`Authorization: Bearer ${first}`, `Authorization: Bearer ${second}`]
      const request = ['GET /me HTTP/1.1', 'Host: localhost', ...lines, 'Connection: close', '', ''].join('\r\n')
      expect((await sendRaw(port, request)).status).toBe(401)
    }
    expect(kept).toEqual([])
    expect((await ask('/me', bearer(token))).status).toBe(200)
    expect((await ask('/me', { authorization: `bearer  ${token}` })).status).toBe(200)
  })

  it('asks the store one question, for the session, the stamp and the entry', async () => {
    const store = memoryStore()
    const [{ signIn }, { ask, kept }] = [await deviceSite({}, store), await deviceSite({}, store)]
    const token = await signIn()
    // another process gets to know the user by the first request
    await ask('/me', bearer(token))
    kept.length = 0
    await ask('/me', bearer(token))
    expect(kept.map((keys) => keys.map((key) => key.split('/')[1]))).toEqual([['session', 'stamp', 'sign-in']])
    expect(JSON.stringify(kept)).not.toContain(token.slice(4))
  })

  it('is not looked at without bearer', async () => {
    const { ask, cookieIn } = await deviceSite({ bearer: false })
    const Cookie = cookieIn(await ask('/cookie', {}, {}))
    expect((await ask('/me', { Cookie, ...bearer('kwa_wrong') })).status).toBe(200)
    expect((await ask('/me')).headers.get('WWW-Authenticate')).toBe('Session realm="api"')
  })

  it('is not checked for other sites; that of the cookie is', async () => {
    const inCookie = apiKeyCookie({ paramName: 'key', authenticate: (_request, key) => key === 'good' })
    // a session of the application's own, which no token carries
    const own = authenticator({
      challenge: Challenge.make('Session'),
      ambient: true,
      extract: fromCookie('own'),
      authenticate: (_request, cookie) => cookie === 'good' && { cookie },
    })
    const done = (ctx: { status: number }) => void (ctx.status = 204)
    const { ask, cookieIn, signIn } = await deviceSite({}, memoryStore(), [strongKey], (router) => {
      router.post('/key', withAuth(inCookie), done)
      router.post('/own', withAuth(own), done)
      router.post('/root', withAuth(sessionAuth()), done)
    })
    const Cookie = cookieIn(await ask('/cookie', {}, {}))
    const elsewhere = { Origin: 'https://front.example', 'Sec-Fetch-Site': 'cross-site' }
    const token = await signIn('/device/sign-in', elsewhere)
    expect((await ask('/prove', { ...elsewhere, Cookie }, {})).status).toBe(403)
    expect((await ask('/prove', { ...elsewhere, ...bearer(token) }, {})).status).toBe(204)
    expect((await ask('/root', { ...elsewhere, ...bearer(token) }, {})).status).toBe(204)
    // no token helps the cookie of another kind
    for (const [path, cookie] of [
      ['/key', 'key=good'],
      ['/own', 'own=good'],
    ] as const) {
      expect((await ask(path, { ...bearer(token), Cookie: cookie }, {})).status).toBe(204)
      expect((await ask(path, { ...elsewhere, ...bearer(token), Cookie: cookie }, {})).status).toBe(403)
    }
    expect((await ask('/out', { ...elsewhere, ...bearer(token) }, {})).status).toBe(204)
    expect((await ask('/me', bearer(token))).status).toBe(401)
  })

  it('becomes no cookie, and a cookie becomes no token', async () => {
    const { ask, cookieIn, signIn } = await deviceSite()
    const token = await signIn()
    const cookie = cookieIn(await ask('/cookie', {}, {}))
    const id = /=(.{43})~/.exec(cookie)?.[1] ?? ''
    expect((await ask('/me', bearer(`kwa_${id}${token.slice(-6)}`))).status).toBe(401)
    expect((await ask('/me', { Cookie: cookie.replace(id, token.slice(4, 47)) })).status).toBe(401)
    // a sign-in by the cookie is another session
    const signedIn = await ask('/cookie', bearer(token), {})
    expect((await ask('/me', { Cookie: cookieIn(signedIn) })).status).toBe(200)
    expect((await ask('/me', bearer(token))).status).toBe(200)
  })
})

describe('a session that a token carries', () => {
  it('keeps its token when a proof is added', async () => {
    const { ask, signIn } = await deviceSite()
    const token = await signIn()
    expect((await ask('/proved', bearer(token))).status).toBe(403)
    const proved = await ask('/prove', bearer(token), {})
    expect([proved.status, proved.headers.getSetCookie()]).toEqual([204, []])
    expect((await ask('/proved', bearer(token))).body.proofs).toEqual(['password', 'totp'])
    expect((await ask('/list', bearer(token))).body).toMatchObject([
      { kind: 'bearer', current: true, methods: ['password', 'totp'] },
    ])
  })

  it('is one of the list, which says how each is carried', async () => {
    const { ask, signIn, cookieIn, endSession } = await deviceSite()
    const token = await signIn()
    const Cookie = cookieIn(await ask('/cookie', {}, {}))
    const list = (await ask('/list', { Cookie })).body as object as Array<{
      id: string
      kind: string
      current: boolean
    }>
    expect(list.map(({ kind, current }) => [kind, current]).sort()).toEqual([
      ['bearer', false],
      ['cookie', true],
    ])
    expect(await endSession('anna', list.find(({ kind }) => kind === 'bearer')!.id)).toBe(true)
    expect([(await ask('/me', bearer(token))).status, (await ask('/me', { Cookie })).status]).toEqual([401, 200])
  })

  it('ends by logOut, which ends no other session, and by logOutEverywhere', async () => {
    const { ask, signIn, cookieIn, logOutEverywhere, signals } = await deviceSite()
    const [one, two] = [await signIn(), await signIn()]
    const Cookie = cookieIn(await ask('/cookie', {}, {}))
    await ask('/signal', bearer(one))
    const out = await ask('/out', { Cookie, ...bearer(one) }, {})
    expect([out.status, out.headers.getSetCookie(), signals[0]?.aborted]).toEqual([204, [], true])
    const states = async () => [
      (await ask('/me', bearer(one))).status,
      (await ask('/me', bearer(two))).status,
      (await ask('/me', { Cookie })).status,
    ]
    expect(await states()).toEqual([401, 200, 200])
    await logOutEverywhere('anna')
    expect(await states()).toEqual([401, 401, 401])
  })

  it('ends when it is unused for idle, and after absolute', async () => {
    const clock = stoppedClock()
    const { ask, signIn } = await deviceSite({ idle: 60_000, absolute: 120_000 })
    const [used, unused] = [await signIn(), await signIn()]
    const start = Date.now()
    const at = async (seconds: number, token: string) => {
      clock.set(start + seconds * 1000 - Date.now())
      return (await ask('/me', bearer(token))).status
    }
    expect([await at(40, used), await at(62, unused), await at(75, used)]).toEqual([200, 401, 200])
    expect([await at(110, used), await at(119, used), await at(121, used)]).toEqual([200, 200, 401])
  })

  it('outlives a rotation of app.keys, and needs the old key no longer after its next use', async () => {
    const keys = [strongKey]
    const { ask, signIn } = await deviceSite({}, memoryStore(), keys)
    const [used, unused] = [await signIn(), await signIn()]
    const visits = async () => (await ask('/public', bearer(unused), {})).body.visits
    expect([await visits(), await visits()]).toEqual([1, 2])
    keys.unshift('another key that is long enough, for tests')
    expect((await ask('/me', bearer(used))).status).toBe(200)
    keys.pop()
    expect([(await ask('/me', bearer(used))).status, (await ask('/me', bearer(unused))).status]).toEqual([200, 401])
    // nor does it carry data any more
    expect(await visits()).toBe(1)
  })
})

describe('with dpop', () => {
  const bound = async () => {
    const ids = oneTimeIds(memoryStore())
    const uses: string[] = []
    const spent = { use: (id: string, lifetime: number) => (uses.push(id), ids.use(id, lifetime)) }
    const code = secondFactor({ name: 'step', factors: [{ method: 'totp', verify: async () => true }] })
    const site = await deviceSite({ bearer: { dpop: { origin: ORIGIN, spent } } }, undefined, undefined, (router) => {
      router.post('/step', withAuth(sessionAuth()), begin(code, { intent: 'stepUp', as: 'bearer' }))
      const prove = finish(code, { stepUp: () => true }, { as: 'bearer' })
      router.post('/step/code', withAuth(sessionAuth()), prove)
      router.post('/renew', withAuth(null), async (ctx) => {
        await (ctx['session'] as unknown as { readonly regenerate: () => Promise<void> }).regenerate()
        Object.assign(ctx['session'] as object, { basket: 'pear' })
        ctx.status = 204
      })
    })
    const [client, thief] = [await dpopClient(), await dpopClient()]
    const proofFor = (path: string, token?: string, by = client, more: object = {}) =>
      by.proof(token ?? '', {
        claims: {
          ...more,
          htu: ORIGIN + path,
          htm: path === '/me' || path === '/list' ? 'GET' : 'POST',
          ...(token === undefined && { ath: undefined }),
        },
      })
    const signIn = async () => site.signIn('/device/sign-in', { DPoP: await proofFor('/device/sign-in') })
    const fields = async (path: string, token: string, by = client, more: object = {}) => ({
      Authorization: `DPoP ${token}`,
      DPoP: await proofFor(path, token, by, more),
    })
    return { ...site, client, thief, proofFor, signIn, fields, uses }
  }

  it('a token is bound to the key of the proof that came with its sign-in, and each request needs one', async () => {
    const { ask, proofFor, fields, thief, kept } = await bound()
    const made = await ask('/device/sign-in', { DPoP: await proofFor('/device/sign-in') }, password)
    expect(made.body).toMatchObject({ token_type: 'DPoP', expires_in: 604_800 })
    const token: string = made.body.access_token
    expect((await ask('/me', await fields('/me', token))).status).toBe(200)
    const good = await fields('/me', token)
    const wrong: Array<Record<string, string>> = [
      { Authorization: `DPoP ${token}` },
      { ...good, Authorization: `Bearer ${token}` },
      await fields('/me', token, thief),
      await fields('/list', token),
      { Authorization: `DPoP ${token}`, DPoP: await proofFor('/me') },
    ]
    for (const headers of wrong) expect((await ask('/me', headers)).status).toBe(401)
    expect((await ask('/me', good)).status).toBe(200)
    // a copy of a request that was answered
    expect((await ask('/me', good)).status).toBe(401)
    expect(kept.length).toBeGreaterThan(0)
  })

  it('a sign-in without a proof is a 401, and the challenge names DPoP and the cookie, not Bearer', async () => {
    const { ask, proofFor, client } = await bound()
    const ofToken = await client.proof('a token', { claims: { htu: `${ORIGIN}/device/sign-in`, htm: 'POST' } })
    for (const headers of [{}, { DPoP: ofToken }, { DPoP: await proofFor('/device/two') }]) {
      const { status, headers: sent } = await ask('/device/sign-in', headers, password)
      expect([status, sent.get('WWW-Authenticate')]).toEqual([401, expect.stringContaining('DPoP ')])
    }
    const challenge = (await ask('/me')).headers.get('WWW-Authenticate')
    expect(challenge).toMatch(/^Session realm="api", DPoP realm="api", algs=/)
    expect(challenge).not.toContain('Bearer')
  })

  it('a stranger with a key of their own has no id kept, and a sign-in has one, which is good once', async () => {
    const { ask, proofFor, uses } = await bound()
    const path = '/device/second/code'
    const finished = async (handle: string, proof: string, typed = '123456') =>
      (await ask(path, { DPoP: proof }, { handle, code: typed })).status
    const begun = async () => String((await ask('/device/second', {}, {})).body.handle)
    const handle = await begun()
    const statuses = [
      await finished('rubbish', await proofFor(path)),
      await finished(handle, await proofFor(path), '0'),
    ]
    expect([statuses, uses]).toEqual([[400, 403], []])
    const proof = await proofFor(path)
    expect([await finished(handle, proof), uses.length]).toEqual([200, 1])
    expect(await finished(await begun(), proof)).toBe(401)
  })

  it('a clock of a phone may be ahead by five seconds, and by no more', async () => {
    stoppedClock()
    const { ask, signIn, fields, client } = await bound()
    const token = await signIn()
    const ahead = async (seconds: number) => {
      const iat = Math.floor(Date.now() / 1000) + seconds
      return (await ask('/me', await fields('/me', token, client, { iat }))).status
    }
    expect([await ahead(5), await ahead(7)]).toEqual([200, 401])
  })

  it('a step-up needs the proof of its request, and no other one', async () => {
    const { ask, signIn, fields } = await bound()
    const token = await signIn()
    const { body } = await ask('/step', await fields('/step', token), {})
    const answer = { handle: body.handle, code: '1' }
    expect((await ask('/step/code', await fields('/step/code', token), answer)).status).toBe(204)
    expect((await ask('/me', await fields('/me', token))).body.proofs).toEqual(['password', 'totp'])
  })

  it('a sign-out needs a proof, too', async () => {
    const { ask, signIn, fields } = await bound()
    const token = await signIn()
    await ask('/out', { Authorization: `DPoP ${token}` }, {})
    // nor does what a public operation writes reach the session of a token without one
    expect((await ask('/renew', { Authorization: `DPoP ${token}` }, {})).status).toBe(204)
    expect((await ask('/me', await fields('/me', token))).status).toBe(200)
    expect((await ask('/out', await fields('/out', token), {})).status).toBe(204)
    expect((await ask('/me', await fields('/me', token))).status).toBe(401)
  })
})
