/** Calls upstream: the tokens of a provider are kept, refreshed once, and sent to their resource alone. */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type Router from '@koa/router'
import { decodeJwt } from 'jose'
import Koa from 'koa'
import { sessionAuth, withAuth } from 'koa-with-auth'
import type { Signing } from 'koa-with-auth/sessions'
import { askSecondFactor, begin, finish, secondFactor } from 'koa-with-auth/sign-in'
import {
  oidc,
  upstream,
  UpstreamGone,
  type OidcKind,
  type Upstream,
  type UpstreamOptions,
} from 'koa-with-auth/sign-in/oidc'
import { memoryStore, type Store } from 'koa-with-auth/stores'
import { testIssuer, type TestIssuer } from 'koa-with-auth/testing'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { guideProgram } from '../support/papers/guidePrograms.js'
import { recordsOf } from '../support/runs/eventRecords.js'
import { seconds } from '../support/servers/identityProvider.js'
import type { UserAgent } from '../support/servers/userAgent.js'
import { json, wrongProvider } from '../support/servers/wrongProvider.js'
import { newBrowser, providerSite, shopAt, type SiteOptions } from '../support/sites/providerSite.js'
import { aroundStore } from '../support/stores/aroundStore.js'
import { noting } from '../support/stores/stores.js'

interface Asked {
  readonly authorization: string | undefined
  readonly method: string
  readonly url: string
  readonly body: string
}

/** A resource server, which refuses tokens that are in `refused`. */
const resourceServer = async () => {
  const asked: Asked[] = []
  const refused = new Set<string>()
  const redirects = new Map<string, string>()
  const server = createServer((req: IncomingMessage, res) => {
    void text(req).then((body) => {
      const { authorization } = req.headers
      asked.push({ authorization, method: String(req.method), url: String(req.url), body })
      const to = redirects.get(String(req.url))
      if (to !== undefined) return void res.writeHead(307, { Location: to }).end()
      const token = authorization?.slice('Bearer '.length) ?? ''
      if (refused.has(token) || refused.has('*')) return void res.writeHead(401).end('refused')
      res.end(JSON.stringify({ sub: token === '' ? null : decodeJwt(token).sub, body }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, refused, redirects }
}

interface CallerOptions
  extends Partial<Omit<UpstreamOptions, 'provider'>>, Pick<SiteOptions, 'store' | 'list' | 'as' | 'after'> {
  /** Whether a second factor comes after the provider. */
  readonly factors?: boolean
  readonly handle?: (error: UpstreamGone, ctx: Koa.Context) => void
}

const { proxy } = await guideProgram<{ readonly proxy: (api: Upstream) => Router }>(
  'backend-for-frontend',
  'const proxy',
)

const userOf = (username: unknown) => ({ username: String(username), isActive: true })

const siteOf = async (
  issuer: Pick<TestIssuer, 'issuer' | 'subject'>,
  resource: string,
  options: CallerOptions = {},
) => {
  const { store = memoryStore(), list = false, handle, onGone, factors = false, as, after, ...over } = options
  const code = secondFactor({
    factors: [{ method: 'totp', verify: (_user, given) => Promise.resolve(given === '1') }],
  })
  const another = oidc({ issuer: issuer.issuer, client: { id: 'other' }, callback: '/other/callback' })
  let [api, others]: Upstream[] = []
  let made: { readonly provider: OidcKind; readonly parts: Pick<Signing<never>, 'logOutEverywhere' | 'endSession'> }
  const provided = await providerSite({
    ...{ store, list, as, after },
    kinds: (callback) => ({ provider: oidc(shopAt(issuer.issuer, callback('provider'))) }),
    hooks:
      () =>
      async (ctx, { proof }) => {
        const user = userOf(proof.subject)
        if (!factors) return user
        ctx.body = await askSecondFactor(ctx, code, { user, proof, as })
        return undefined
      },
    routes: (router, kinds, parts) => {
      // Safe: it was made by `oidc`
      made = { provider: kinds['provider'] as OidcKind, parts }
      const later: Koa.Middleware = (_ctx, next) => next().then(after)
      router.post(
        '/code',
        withAuth(null),
        later,
        finish(code, (_ctx, { subject }) => userOf(subject), { as }),
      )
      router.get('/token', withAuth(sessionAuth()), async (ctx) => {
        try {
          ctx.body = await api!.token(ctx)
        } catch (error) {
          if (handle === undefined || !(error instanceof UpstreamGone)) throw error
          handle(error, ctx)
        }
      })
      router.get('/visited', withAuth(null), async (ctx) => {
        ctx.body = await api!.token(ctx)
      })
      router.get('/other', withAuth(sessionAuth()), async (ctx) => {
        ctx.body = await others!.token(ctx)
      })
      router.use(proxy({ fetch: (...given) => api!.fetch(...given), token: (ctx) => api!.token(ctx) }).routes())
      router.all('/call/{*rest}', withAuth(sessionAuth()), async (ctx) => {
        const body = ctx.method === 'POST' ? await text(ctx.req) : null
        const answer = await api!.fetch(ctx, ctx.url.slice('/call'.length), { method: ctx.method, body })
        ctx.status = answer.status
        ctx.body = await answer.text()
      })
      router.get('/sign-out', withAuth(sessionAuth()), async (ctx) => {
        await parts.logOut(ctx)
        ctx.body = 'out'
      })
      router.get('/sessions', withAuth(sessionAuth()), async (ctx) => {
        ctx.body = await parts.listSessions(ctx)
      })
    },
  })
  const { app, origin, errors, me } = provided
  others = upstream(app, { provider: another, resource })
  api = upstream(app, {
    provider: made!.provider,
    resource,
    ...over,
    ...(onGone !== undefined && { onGone: (ctx, next) => onGone(ctx, next) }),
  })
  const get = (browser: UserAgent, path: string, init?: RequestInit) => browser.send(`${origin}${path}`, init)
  const toCallback = (browser: UserAgent, subject: string) => {
    issuer.subject = subject
    return provided.toCallback(browser)
  }
  const signIn = async (subject = 'anna', browser = newBrowser()): Promise<UserAgent> => {
    expect((await browser.send(await toCallback(browser, subject))).location).toBe(`${origin}/`)
    return browser
  }
  /** The first of two factors: the handle of the second. */
  const half = async (browser: UserAgent) =>
    (JSON.parse((await browser.send(await toCallback(browser, 'anna'))).body) as { handle: string }).handle
  const typed = (browser: UserAgent, handle: string) => get(browser, '/code', posted({ handle, code: '1' }))
  /** The whole way of a device, to what answers at the callback. */
  const signInDevice = async (subject = 'anna') => {
    const { body } = await newBrowser().send(await toCallback(newBrowser(), subject))
    return JSON.parse(body) as { access_token: string; handle?: string }
  }
  const by = async (token: string, path: string) => {
    const answer = await fetch(origin + path, { headers: { Authorization: `Bearer ${token}` } })
    return { status: answer.status, body: await answer.text() }
  }
  return { origin, store, errors, me, ...made!, api, signIn, half, typed, toCallback, signInDevice, by, get }
}

const start = async (options: CallerOptions = {}) => {
  const issuer = await testIssuer()
  onTestFinished(() => issuer.stop())
  const resource = await resourceServer()
  const site = await siteOf(issuer, options.resource ?? resource.origin, options)
  const refreshes = () => issuer.tokenRequests.filter((one) => one['grant_type'] === 'refresh_token')
  return { issuer, resource, site, refreshes }
}

/** The same, where anna is signed in. */
const signedIn = async (options?: CallerOptions) => {
  const made = await start(options)
  return { ...made, anna: await made.site.signIn() }
}

const posted = (body: object): RequestInit => ({
  method: 'POST',
  body: JSON.stringify(body),
  headers: { 'Content-Type': 'application/json' },
})

const atLater = (ms: number): void => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + ms })
  onTestFinished(() => void vi.useRealTimers())
}

describe('the token of the user of a request', () => {
  it('is that of the sign-in, and is sent to the resource', async () => {
    const { site, resource, refreshes, issuer } = await start({ scope: ['orders'] })
    const [anna, bert] = [await site.signIn('anna'), await site.signIn('bert')]
    expect(decodeJwt((await site.get(anna, '/token')).body)).toMatchObject({ sub: 'anna', scope: 'openid orders' })
    expect(JSON.parse((await site.get(bert, '/call/orders?page=2')).body)).toMatchObject({ sub: 'bert' })
    expect(resource.asked.map(({ url }) => url)).toEqual(['/orders?page=2'])
    expect(refreshes()).toEqual([])
    expect(issuer.tokenRequests).toHaveLength(2)
  })

  it('is kept for the client that it was given to, and for no other client at the same issuer', async () => {
    const { site, anna } = await signedIn()
    expect([(await site.get(anna, '/token')).status, (await site.get(anna, '/other')).status]).toEqual([200, 401])
  })

  it('is refreshed once for all requests that need it', async () => {
    const { site, issuer, refreshes } = await start()
    issuer.expiresIn = 300
    const anna = await site.signIn()
    const first = (await site.get(anna, '/token')).body
    atLater(291_000)
    const answers = await Promise.all(Array.from({ length: 20 }, () => site.get(anna, '/token')))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(new Set(answers.map(({ body }) => body)).size).toBe(1)
    expect(answers[0]?.body).not.toBe(first)
    expect(refreshes()).toHaveLength(1)
  })

  it.each([
    [289_000, 0],
    [291_000, 1],
  ])('is good for at least ten seconds: after %d ms of 300,000 there are %d refreshes', async (ms, count) => {
    const { site, issuer, refreshes } = await start()
    issuer.expiresIn = 300
    const anna = await site.signIn()
    atLater(ms)
    expect((await site.get(anna, '/token')).status).toBe(200)
    expect(refreshes()).toHaveLength(count)
  })

  it('is a 503 while the provider is not reached, and the session goes on', async () => {
    const { site, issuer, anna } = await signedIn()
    await issuer.stop()
    atLater(400_000)
    expect((await site.get(anna, '/token')).status).toBe(503)
    expect(await site.me(anna)).toBe('anna')
  })

  it('stands in no cookie, row, record or error', async () => {
    const records = recordsOf('upstream')
    const { store, given } = noting(memoryStore())
    const { site, issuer, refreshes, anna } = await signedIn({ store })
    const token = (await site.get(anna, '/token')).body
    atLater(400_000)
    const next = (await site.get(anna, '/token')).body
    issuer.failWith = 'invalid_grant'
    atLater(400_000)
    const gone = await site.get(anna, '/token')
    expect(gone.status).toBe(401)
    const secrets = [token, next, ...refreshes().map((one) => String(one['refresh_token']))]
    const seen = JSON.stringify([
      given,
      records,
      gone,
      site.errors.map(String),
      [...anna.cookies(new URL(site.origin).host)],
    ])
    for (const secret of secrets) expect([secret.length > 20, seen.includes(secret)]).toEqual([true, false])
    expect(records).toMatchObject([{ event: 'refreshed' }, { event: 'gone' }])
  })
})

describe('an answer of the provider', () => {
  it.each([null, -1, 'soon', ' ', true, 1e300, {}, undefined, '300', 0])(
    'with the lifetime %j ends nothing',
    async (lifetime) => {
      const { site, issuer, refreshes, anna } = await signedIn()
      issuer.expiresIn = lifetime as number
      atLater(400_000)
      const next = await site.get(anna, '/token')
      expect([next.status, decodeJwt(next.body).sub]).toEqual([200, 'anna'])
      expect((await site.get(anna, '/token')).status).toBe(200)
      expect(refreshes().length).toBeLessThanOrEqual(2)
    },
  )

  it.each([
    ['the same user', 'anna', 200],
    ['another user, which is garbage', 'bert', 503],
  ])('to a refresh may have an ID token of %s', async (_who, sub, status) => {
    const provider = await wrongProvider()
    const { origin } = await resourceServer()
    const site = await siteOf(Object.assign(provider, { subject: '' }), origin)
    const anna = await site.signIn()
    const now = seconds() + 400
    const idToken = await provider.idToken({ iss: provider.issuer, aud: 'shop', sub, iat: now, exp: now + 300 })
    provider.answers['/token'] = json(200, { access_token: 'next', token_type: 'Bearer', id_token: idToken })
    atLater(400_000)
    expect((await site.get(anna, '/token')).status).toBe(status)
    expect(await site.me(anna)).toBe('anna')
  })

  it('asks for no scope again, and may grant fewer', async () => {
    const { site, issuer, refreshes, anna } = await signedIn({ scope: ['read', 'write'] })
    atLater(400_000)
    expect((await site.get(anna, '/token')).status).toBe(200)
    expect(refreshes()).toEqual([{ grant_type: 'refresh_token', refresh_token: expect.any(String) as string }])
    expect(issuer.tokenRequests).toHaveLength(2)
  })
})

it('a store that fails is a 503, and the grant is there afterwards', async () => {
  const store = memoryStore()
  let down: string | undefined
  const failing: Store = {
    ...store,
    get: (keys) => {
      if (keys.some((key) => down !== undefined && key.includes(down))) throw new Error('ECONNREFUSED')
      return store.get(keys)
    },
  }
  const { site, anna } = await signedIn({ store: failing })
  // with the session, too, nobody knows who asks
  for (const [part, path] of [
    ['upstream', '/token'],
    ['', '/visited'],
  ] as const) {
    down = part
    expect((await site.get(anna, path)).status).toBe(503)
    down = undefined
    expect((await site.get(anna, path)).status).toBe(200)
  }
})

it('what came with a first factor is kept once the second one has come', async () => {
  const { site } = await start({ factors: true })
  const anna = newBrowser()
  const handle = await site.half(anna)
  expect((await site.get(anna, '/token')).status).toBe(401)
  expect((await site.typed(anna, handle)).status).toBe(200)
  expect(decodeJwt((await site.get(anna, '/token')).body).sub).toBe('anna')
})

it('of two first factors of a user, each second factor gets its own', async () => {
  const { site } = await start({ factors: true })
  const halves = []
  for (const browser of [newBrowser(), newBrowser()]) {
    atLater(1000)
    halves.push([browser, await site.half(browser)] as const)
  }
  for (const [browser, handle] of halves) await site.typed(browser, handle)
  const tokens = await Promise.all(halves.map(([browser]) => site.get(browser, '/token')))
  expect(tokens.map(({ status }) => status)).toEqual([200, 200])
  expect(new Set(tokens.map(({ body }) => body)).size).toBe(2)
})

describe('a grant that has ended', () => {
  it('is a 401 with why, a challenge, and a session that goes on', async () => {
    const { site, issuer, refreshes, anna } = await signedIn()
    issuer.failWith = 'invalid_grant'
    atLater(400_000)
    const gone = await site.get(anna, '/token')
    expect([gone.status, gone.headers.get('www-authenticate'), gone.headers.get('cache-control')]).toEqual([
      401,
      expect.stringContaining('Session'),
      expect.stringContaining('no-store'),
    ])
    expect(JSON.parse(gone.body)).toMatchObject({ status: 401, why: 'upstream' })
    expect(await site.me(anna)).toBe('anna')
    // it is not asked again
    expect((await site.get(anna, '/token')).status).toBe(401)
    expect(refreshes()).toHaveLength(1)
    // and begins again
    issuer.failWith = undefined
    await site.signIn('anna', anna)
    expect((await site.get(anna, '/token')).status).toBe(200)
    expect(site.errors).toEqual([])
  })

  it.each<[string, CallerOptions, number, unknown]>([
    [
      'the handler makes of it, if it catches the error',
      { handle: (_error, ctx) => void (ctx.body = 'caught') },
      0,
      'caught',
    ],
    ['onGone makes of it, which is called once', {}, 1, 'gone 1'],
  ])('is what %s', async (_who, options, expected, body) => {
    let calls = 0
    const { site, issuer, anna } = await signedIn({ ...options, onGone: (ctx) => void (ctx.body = `gone ${++calls}`) })
    issuer.failWith = 'invalid_grant'
    atLater(400_000)
    expect([(await site.get(anna, '/token')).body, calls]).toEqual([body, expected])
  })

  it('begins again by onGone, and is a 401 although onGone throws the same', async () => {
    let throws = false
    const { site, issuer, anna } = await signedIn({
      onGone: (ctx, next) => {
        if (throws) throw new UpstreamGone('again')
        return begin(site.provider)(ctx, next)
      },
    })
    issuer.failWith = 'invalid_grant'
    atLater(400_000)
    const led = await site.get(anna, '/token')
    expect([led.status, led.location?.startsWith(`${issuer.issuer}/authorize`)]).toEqual([303, true])
    throws = true
    expect((await site.get(anna, '/token')).status).toBe(401)
  })

  // 200: an answer without a token
  it.each([['invalid_client'], ['unauthorized_client'], [500], [503], [429], [200], [302]])(
    '%s ends nothing: it is a 503, and the next token is good',
    async (failWith) => {
      const { site, issuer, anna } = await signedIn()
      issuer.failWith = failWith
      atLater(400_000)
      const down = await site.get(anna, '/token')
      expect(down.status).toBe(503)
      issuer.failWith = undefined
      vi.setSystemTime(Date.now() + 1100)
      expect((await site.get(anna, '/token')).status).toBe(200)
    },
  )

  // The grant that a sign-in made is looked for in the store
  const liveAfter = async (
    site: Awaited<ReturnType<typeof start>>['site'],
    signIn: () => Promise<unknown>,
    end: () => Promise<unknown>,
  ) => {
    const insert = vi.spyOn(site.store, 'insert')
    await signIn()
    const keys = insert.mock.calls.map(([key]) => key).filter((key) => key.includes('upstream'))
    insert.mockRestore()
    const live = async () => (await site.store.get(keys)).map((one) => one !== undefined)
    const before = await live()
    await end()
    // an ended one has a millisecond left
    await expect.poll(live).not.toEqual(before)
    return live()
  }

  it.each([true, false])('goes with its session, by each way out, with a list: %j', async (list) => {
    const { site } = await start({ list })
    let anna = newBrowser()
    const signIn = async () => (anna = await site.signIn())
    const first = async () => String((JSON.parse((await site.get(anna, '/sessions')).body) as { id: string }[])[0]?.id)
    const ways = [
      () => site.get(anna, '/sign-out'),
      () => site.parts.logOutEverywhere('anna'),
      () => site.signIn('anna', anna),
      ...(list ? [async () => site.parts.endSession('anna', await first())] : []),
    ]
    for (const way of ways) expect(await liveAfter(site, signIn, way)).toEqual([false])
  })

  it.each([true, false])('of a sign-in by a token is used and goes alike, with a list: %j', async (list) => {
    const { site, refreshes } = await start({ list, as: 'bearer' })
    let token = ''
    const signIn = async () => (token = (await site.signInDevice()).access_token)
    const other = (await site.signInDevice('bert')).access_token
    for (const end of [() => site.by(token, '/sign-out'), () => site.parts.logOutEverywhere('anna')]) {
      expect(await liveAfter(site, signIn, end)).toEqual([false])
    }
    await signIn()
    expect(decodeJwt((await site.by(token, '/token')).body).sub).toBe('anna')
    expect(decodeJwt((await site.by(other, '/token')).body).sub).toBe('bert')
    atLater(400_000)
    const answers = await Promise.all([site.by(token, '/token'), site.by(token, '/token')])
    expect(answers.map(({ status, body }) => [status, decodeJwt(body).sub])).toEqual([
      [200, 'anna'],
      [200, 'anna'],
    ])
    expect(refreshes()).toHaveLength(1)
    expect((await site.by(other, '/sign-out')).status).toBe(200)
    expect((await site.by(other, '/token')).status).toBe(401)
  })

  it('of a sign-in by a token comes after its second factor, too', async () => {
    const { site } = await start({ as: 'bearer', factors: true })
    const { handle } = await site.signInDevice()
    const done = await fetch(`${site.origin}/code`, posted({ handle, code: '1' }))
    const { access_token } = (await done.json()) as { access_token: string }
    expect(decodeJwt((await site.by(access_token, '/token')).body).sub).toBe('anna')
  })

  it.each([true, undefined])('is revoked at the provider if upstream says so: %j', async (revoke) => {
    const { site, issuer, anna } = await signedIn(revoke === undefined ? {} : { revoke })
    await site.get(anna, '/sign-out')
    // a sign-in asks the provider afterwards
    await site.signIn('bert')
    await expect.poll(() => issuer.revoked.length).toBe(revoke === true ? 1 : 0)
    expect(issuer.revoked.every((token) => token.length > 20)).toBe(true)
  })

  it('is revoked with the tokens that came while its session ended', async () => {
    let reached: (() => void) | undefined
    let release = (): void => {}
    const released = new Promise<void>((resolve) => (release = resolve))
    const kept = memoryStore()
    const store = aroundStore(
      () => kept,
      async (method, args, ask) => {
        // the successor is about to be written
        if (method === 'update' && args[3] !== undefined && /^koa-with-auth\/upstream\/\S+$/.test(String(args[0]))) {
          reached?.()
          await released
        }
        return ask()
      },
    )
    const { site, issuer, anna } = await signedIn({ revoke: true, store })
    atLater(400_000)
    const arrived = new Promise<void>((resolve) => (reached = resolve))
    const asked = site.get(anna, '/token')
    await arrived
    expect((await site.get(anna, '/sign-out')).status).toBe(200)
    release()
    expect((await asked).status).toBe(401)
    await expect.poll(() => issuer.revoked.length).toBe(2)
  })

  it.each([
    // a link adds a second grant
    ['signs out everywhere', 'a sign-in', 'user', 'update', 1],
    ['signs out everywhere', 'a sign-in', 'user', 'insert', 1],
    ['signs out everywhere', 'a sign-in', 'session', 'insert', 1],
    ['signs out everywhere', 'a sign-in', 'session', 'add', 1],
    ['signs out everywhere', 'a link', 'user', 'update', 2],
    ['signs out everywhere', 'a link', 'session', 'update', 2],
    ['signs out everywhere', 'a first factor', 'user', 'insert', 1],
    ['signs out everywhere', 'a first factor', 'session', 'add', 1],
    ['signs out everywhere', 'a first factor', 'session', 'the code', 1],
    ['signs out everywhere', 'a second factor', 'session', 'insert', 1],
    ['signs out', 'a link', 'session', 'update', 2],
    ['signs out', 'a link', 'session', 'add', 1],
    ['signs out', 'a link after a password', 'session', 'insert', 1],
    ['ends the session', 'a sign-in', 'session', 'insert', 1],
    ['ends the session', 'a sign-in', 'session', 'add', 1],
    ['ends the session', 'a link', 'session', 'update', 2],
    ['ends the session', 'a second factor', 'session', 'add', 1],
  ] as const)('is revoked if the user %s during %s, per %s, before %s', async (way, during, per, before, count) => {
    let end: (() => Promise<unknown>) | undefined
    let entry = ''
    const kept = memoryStore()
    const store = aroundStore(
      () => kept,
      async (method, args, ask) => {
        const [key, text] = args.map(String)
        if (method === 'insert' && key?.startsWith('koa-with-auth/sign-in/')) entry = String(text)
        if (method !== before || !/^koa-with-auth\/upstream\/\S+$/.test(String(key))) return ask()
        const now = end
        end = undefined
        await now?.()
        return ask()
      },
    )
    const list = way === 'ends the session'
    const { site, issuer } = await start({ per, store, list, revoke: true, factors: during.endsWith('factor') })
    const anna = newBrowser()
    const ways = {
      'signs out everywhere': () => site.parts.logOutEverywhere('anna'),
      'signs out': () => site.get(anna, '/sign-out'),
      'ends the session': () => site.parts.endSession('anna', (JSON.parse(entry) as { id: string }).id),
    }
    const link = async () => {
      const begun = await site.get(anna, '/accounts/provider', { method: 'POST' })
      await anna.open(begun.location ?? '', (url) => url === `${site.origin}/`)
    }
    if (during === 'a link') await site.signIn('anna', anna)
    if (during === 'a link after a password') await site.get(anna, '/sign-in/as/anna', { method: 'POST' })
    const begun = during === 'a second factor' ? await site.half(anna) : ''
    end = ways[way]
    if (during === 'a sign-in') await site.signIn('anna', anna)
    else if (during === 'a second factor') await site.typed(anna, begun)
    else if (during === 'a first factor') {
      const handle = await site.half(anna)
      if (before === 'the code') await end()
      expect((await site.typed(anna, handle)).status).toBe(400)
    } else await link()
    if (before !== 'the code') expect(end).toBe(undefined)
    expect((await site.get(anna, '/token')).status).toBe(401)
    await expect.poll(() => issuer.revoked.length).toBe(count)
  })

  it.each<[string, string, CallerOptions]>([
    ['a later function throws', 'a sign-in', {}],
    ['a later function throws', 'a sign-in', { list: true }],
    ['a later function throws', 'a sign-in', { as: 'bearer' }],
    ['a later function throws', 'a second factor', { factors: true }],
    ['the store fails', 'a sign-in', {}],
    ['the store fails', 'a sign-in', { list: true }],
    ['the store fails', 'a second factor', { factors: true }],
  ])('is revoked if %s after %s, which is undone, with %j', async (way, during, options) => {
    let isFailing = false
    const isDown = (method: string, key: unknown) =>
      isFailing && way === 'the store fails' && method === 'get' && String(key).endsWith(' over')
    const kept = memoryStore()
    const store = aroundStore(
      () => kept,
      (method, args, ask) => {
        if (isDown(method, [args[0]].flat()[0])) throw new Error('ECONNREFUSED')
        return ask()
      },
    )
    const after = () => {
      if (isFailing && way !== 'the store fails') throw new Error('later')
    }
    const { site, issuer } = await start({ store, revoke: true, after, ...options })
    const anna = newBrowser()
    const handle = during === 'a second factor' ? await site.half(anna) : ''
    isFailing = true
    const answered = handle ? await site.typed(anna, handle) : await anna.send(await site.toCallback(anna, 'anna'))
    expect(answered.status).toBe(way === 'the store fails' ? 503 : 500)
    isFailing = false
    expect(await site.me(anna)).toBeUndefined()
    await expect.poll(() => issuer.revoked.length).toBe(1)
  })

  it('ends here at once, also if the provider cannot revoke', async () => {
    const { site, issuer, anna } = await signedIn({ revoke: true })
    await issuer.stop()
    expect((await site.get(anna, '/sign-out')).status).toBe(200)
    expect(site.errors).toEqual([])
  })

  it('of a user outlives one sign-out, and no sign-out everywhere', async () => {
    const { site } = await start({ per: 'user' })
    const [here, there] = [await site.signIn(), await site.signIn()]
    expect((await site.get(here, '/sign-out')).status).toBe(200)
    expect((await site.get(there, '/token')).status).toBe(200)
    await site.parts.logOutEverywhere('anna')
    const again = await site.signIn()
    expect((await site.get(again, '/token')).status).toBe(200)
  })
})

describe('fetch', () => {
  it('refreshes once after a 401 of the resource, and sends what can be sent again', async () => {
    const { site, resource, refreshes, anna } = await signedIn()
    const token = (await site.get(anna, '/token')).body
    resource.refused.add(token)
    const answer = await site.get(anna, '/call/orders', { method: 'POST', body: 'one' })
    expect([answer.status, JSON.parse(answer.body)]).toEqual([200, { sub: 'anna', body: 'one' }])
    expect(resource.asked.map(({ method, body }) => `${method} ${body}`)).toEqual(['POST one', 'POST one'])
    expect(refreshes()).toHaveLength(1)
  })

  it('sends a body that streams once, and the next request has the next token', async () => {
    const { site, resource, refreshes, anna } = await signedIn()
    resource.refused.add((await site.get(anna, '/token')).body)
    const answer = await site.get(anna, '/api/orders', { method: 'POST', body: 'one' })
    expect([answer.status, resource.asked.map(({ body }) => body)]).toEqual([401, ['one']])
    expect((await site.get(anna, '/api/orders', { method: 'POST', body: 'two' })).status).toBe(200)
    expect(refreshes()).toHaveLength(1)
  })

  it('of the proxy in the guide: an address that could be another host is a 404, and nobody is asked', async () => {
    const { site, resource, anna } = await signedIn()
    expect((await site.get(anna, '/api//other.example/x')).status).toBe(404)
    expect(resource.asked).toEqual([])
  })

  it('hands the second 401 on', async () => {
    const { site, resource, refreshes, anna } = await signedIn()
    resource.refused.add('*')
    expect((await site.get(anna, '/call/orders')).status).toBe(401)
    expect([resource.asked.length, refreshes().length]).toEqual([2, 1])
  })

  it('repeats no write that was redirected, because it may be done', async () => {
    const { site, resource, refreshes, anna } = await signedIn()
    resource.redirects.set('/orders', '/orders/1')
    resource.refused.add('*')
    const answer = await site.get(anna, '/call/orders', { method: 'POST', body: 'one' })
    expect([answer.status, resource.asked.map(({ url }) => url)]).toEqual([401, ['/orders', '/orders/1']])
    expect(refreshes()).toEqual([])
    expect((await site.get(anna, '/call/orders')).status).toBe(401)
    expect(refreshes()).toHaveLength(1)
  })

  it('follows a redirect to another origin without the token', async () => {
    const { site, resource } = await start()
    const other = await resourceServer()
    const anna = await site.signIn()
    resource.redirects.set('/away', `${other.origin}/there`)
    resource.redirects.set('/near', '/here')
    expect(JSON.parse((await site.get(anna, '/call/away')).body)).toMatchObject({ sub: null })
    expect(other.asked).toMatchObject([{ url: '/there', authorization: undefined }])
    expect(JSON.parse((await site.get(anna, '/call/near')).body)).toMatchObject({ sub: 'anna' })
  })

  it.each([
    'https://evil.example/x',
    '//evil.example/x',
    '/\\evil.example/x',
    'http://anna:secret@127.0.0.1/',
    'orders',
    '',
    7,
    'https://api.example/v10/x',
    'https://api.example/v1/../admin',
    '/../admin',
    '/%2e%2e/admin',
  ])('%j is a TypeError, and nothing is sent', async (address) => {
    const { site } = await start({ resource: 'https://api.example/v1' })
    const ctx = { request: { ctx: {} } }
    await expect(site.api.fetch(ctx as never, address as never)).rejects.toThrow(TypeError)
    // nor is it with the Authorization of its caller
    const own = { headers: { authorization: 'Bearer other' } }
    await expect(site.api.fetch(ctx as never, '/x', own)).rejects.toThrow('Authorization')
  })
})

describe('upstream(app, options)', () => {
  const provider = oidc({ issuer: 'https://login.example', client: { id: 'shop' }, callback: '/callback' })
  it.each([
    [{ provider: {}, resource: 'https://api.example' }, 'oidc(...) or oauth2(...)'],
    [{ provider, resource: 'http://api.example' }, 'private network'],
    [{ provider, resource: 'http://api:3000/?a' }, 'query'],
    [{ provider, resource: 'https://api.example', per: 'browser' }, 'per'],
    [{ provider, resource: 'https://api.example', scope: 'read' }, 'scope'],
    [{ provider, resource: 'https://api.example', onGone: 1 }, 'onGone'],
    [{ provider, resource: 'https://api.example', other: 1 }, 'other'],
  ])('refuses %#', (options, message) => {
    const make = () => upstream(new Koa(), options as never)
    expect(make).toThrow(TypeError)
    expect(make).toThrow(message)
  })

  it('takes one way to keep the grant of a provider', () => {
    const app = new Koa()
    upstream(app, { provider, resource: 'https://api.example' })
    upstream(app, { provider, resource: 'https://other.example' })
    expect(() => upstream(app, { provider, resource: 'https://api.example', per: 'user' })).toThrow("'session'")
  })
})
