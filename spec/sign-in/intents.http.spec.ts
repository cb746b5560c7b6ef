/** A hook for each intent: none runs for another, and a step-up is of the user who is signed in. */
import type Router from '@koa/router'
import * as E from 'fp-ts/lib/Either.js'
import { sessionAuth, withAuth } from 'koa-with-auth'
import { addProof } from 'koa-with-auth/sessions'
import {
  begin,
  finish,
  emailSignIn,
  passwordReset,
  type FinishHook,
  type FinishHooks,
  type Intent,
  type Kind,
  type Proof,
} from 'koa-with-auth/sign-in'
import { oidc, type OidcKind } from 'koa-with-auth/sign-in/oidc'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { describe, expect, it } from 'vitest'
import { deviceSite } from '../support/sites/deviceSite.js'
import { newBrowser, providerSite, shopAt, type ProviderSite, type SiteOptions } from '../support/sites/providerSite.js'
import { seconds } from '../support/servers/identityProvider.js'
import { navigation, type UserAgent } from '../support/servers/userAgent.js'
import { wrongProvider } from '../support/servers/wrongProvider.js'

const identityOf = ({ issuer, subject }: Proof) => `${issuer} ${subject}`

/** A site with a hook for each intent, which notes what ran. */
const start = async (intents: ReadonlyArray<Intent>, options: Partial<SiteOptions> = {}) => {
  const provider = await wrongProvider()
  provider.claims = (given) => ({ ...given, auth_time: seconds() })
  const ran: Intent[] = []
  const site = await providerSite({
    kinds: (callback) => ({ provider: oidc(shopAt(provider.issuer, callback('provider'))) }),
    hooks: ({ accounts }) => {
      const known: FinishHook<Proof> = (_ctx, { intent, proof }) => {
        ran.push(intent)
        const username = accounts.get(identityOf(proof))
        return username !== undefined && { username, isActive: true }
      }
      const noted: FinishHooks<Proof> = {
        signIn: known,
        stepUp: known,
        link: (_ctx, { proof, subject }) => {
          ran.push('link')
          accounts.set(identityOf(proof), String(subject))
          return true
        },
      }
      return Object.fromEntries(intents.map((intent) => [intent, noted[intent]]))
    },
    routes: (router: Router, { provider: kind }) => {
      // Safe: it is made by `oidc` above
      for (const [path, guard] of [
        ['/prove', sessionAuth()],
        ['/prove/open', null],
      ] as const)
        router.post(path, withAuth(guard as never), begin(kind as OidcKind, { intent: 'stepUp' }))
      router.post('/identity/:name', withAuth(null), async (ctx) => {
        await addProof(ctx, { method: 'oidc', issuer: provider.issuer, subject: String(ctx.params['name']) })
        ctx.status = 204
      })
      const fresh = sessionAuth({ proof: { methods: ['oidc'], maxAge: 60_000 } })
      router.post('/transfer', withAuth(fresh), (ctx) => (ctx.body = { done: true }))
    },
    ...options,
  })
  const browser = newBrowser()
  await browser.send(`${site.origin}/sign-in/as/anna`, { method: 'POST' })
  const as = (sub: string) => (provider.claims = (given) => ({ ...given, auth_time: seconds(), sub }))
  return { provider, site, browser, ran, as }
}

/** What the callback answers to what a POST began. */
const through = async (site: ProviderSite, browser: UserAgent, path: string) => {
  const begun = await browser.send(`${site.origin}${path}`, { method: 'POST' })
  const { stopped } = await browser.open(begun.location ?? '', (url) => url.startsWith(site.origin))
  const { status, body } = await browser.send(stopped, { headers: { Accept: 'application/json' } })
  return [status, body === '' ? undefined : (JSON.parse(body) as { reason?: string }).reason]
}

const all: ReadonlyArray<Intent> = ['signIn', 'link', 'stepUp']

describe('C-12 the hook for an intent', () => {
  it('of a user is begun by a user', async () => {
    const { site } = await start(all)
    expect((await newBrowser().send(`${site.origin}/prove/open`, { method: 'POST' })).status).toBe(401)
  })

  it('runs for its intent alone: a step-up with the identity of a stranger links nothing', async () => {
    const { site, browser, ran, as } = await start(all)
    as('mallory')
    expect(await through(site, browser, '/prove')).toEqual([403, 'noAccount'])
    expect([ran, [...site.accounts]]).toEqual([['stepUp'], []])
    expect(await through(site, browser, '/accounts/provider')).toEqual([303, undefined])
    expect([ran, [...site.accounts.values()]]).toEqual([['stepUp', 'link'], ['anna']])
    // now it is an identity of anna
    expect(await through(site, browser, '/prove')).toEqual([303, undefined])
    expect((await browser.send(`${site.origin}/transfer`, { method: 'POST' })).status).toBe(200)
  })

  it('returns anything truthy for a link, such as an account that is not active', async () => {
    const { site, browser } = await start(all, { hooks: () => ({ link: () => ({ isActive: false }) }) })
    expect(await through(site, browser, '/accounts/provider')).toEqual([303, undefined])
  })

  it('returns another user for a step-up: 403, and no proof', async () => {
    const { provider, site, browser, as } = await start(all)
    site.accounts.set(`${provider.issuer} mallory`, 'mallory')
    as('mallory')
    expect(await through(site, browser, '/prove')).toEqual([403, 'anotherUser'])
    expect((await browser.send(`${site.origin}/transfer`, { method: 'POST' })).status).toBe(403)
    expect(await site.me(browser)).toBe('anna')
  })

  it.each<readonly [Intent, string]>([
    ['link', '/accounts/provider'],
    ['stepUp', '/prove'],
  ])('is missing for %s: 400, no hook runs, and no code is sent', async (intent, path) => {
    const { provider, site, browser, ran } = await start(all.filter((one) => one !== intent))
    expect(await through(site, browser, path)).toEqual([400, 'unknown'])
    expect([ran, provider.asked('/token')]).toEqual([[], 0])
  })

  it('is missing for signIn: 400, and no user is signed in', async () => {
    const { site, ran } = await start(['link', 'stepUp'])
    const browser = newBrowser()
    const page = await browser.send(await site.toCallback(browser), { headers: navigation })
    expect([page.status, await site.me(browser), ran]).toEqual([400, undefined, []])
  })
})

describe('C-12 a step-up at a provider', () => {
  it.each([
    ['now', () => ({ auth_time: seconds() }), [303, undefined], 200],
    ['an hour ago', () => ({ auth_time: seconds() - 3600 }), [400, 'provider'], 403],
    ['at a time that is not said', () => ({}), [400, 'provider'], 403],
  ])('asks the user there, and is a proof under another id if that was %s', async (_when, said, expected, transfer) => {
    const { provider, site, browser } = await start(all)
    const session = () => browser.cookies(`localhost:${site.port}`).get('session')
    site.accounts.set(`${provider.issuer} anna`, 'anna')
    provider.claims = (given) => ({ ...given, ...said() })
    const before = session()
    expect(await through(site, browser, '/prove')).toEqual(expected)
    expect([provider.authorizationRequest().get('max_age'), session() !== before]).toEqual(['0', transfer === 200])
    expect((await browser.send(`${site.origin}/transfer`, { method: 'POST' })).status).toBe(transfer)
    expect(await site.me(browser)).toBe('anna')
  })
})

describe('C-12 a step-up whose hook returns true', () => {
  it.each([
    ['the session has a proof of the same identity', 'anna', [303, undefined], 200],
    ['it has one of another identity', 'bert', [403, 'anotherUser'], 403],
  ])('and %s', async (_name, subject, expected, transfer) => {
    const isTrue = () => true
    for (const hook of [isTrue, { stepUp: isTrue }]) {
      const { site, browser, as } = await start(all, { hooks: () => hook })
      await browser.send(`${site.origin}/identity/${subject}`, { method: 'POST' })
      as('anna')
      expect(await through(site, browser, '/prove')).toEqual(expected)
      if (transfer === 200) expect((await browser.send(`${site.origin}/transfer`, { method: 'POST' })).status).toBe(200)
      expect(await site.me(browser)).toBe('anna')
    }
  })

  it('and no session has a proof of that identity: 403', async () => {
    const { site, browser, as } = await start(all, { hooks: () => ({ stepUp: () => true }) })
    as('mallory')
    expect(await through(site, browser, '/prove')).toEqual([403, 'anotherUser'])
    expect((await browser.send(`${site.origin}/transfer`, { method: 'POST' })).status).toBe(403)
  })
})

describe('C-12 hooks that cannot work', () => {
  const limiter = new RateLimiterMemory({ points: 5, duration: 900 })
  const mail = emailSignIn({ limiter, path: '/link', send: () => undefined })
  const reset = passwordReset({ limiter, path: '/reset', send: () => undefined, accountOf: () => undefined })
  it.each<readonly [string, () => unknown, RegExp]>([
    ['none', () => finish(mail, {}), /a hook for an intent/],
    ['of another intent', () => finish(mail, { reset: () => true }), /reset/],
    ['of another kind', () => finish(reset, { signIn: () => true }), /signIn/],
    ['no function', () => finish(mail, { signIn: true as never }), /signIn.*must be a function/],
    ['null', () => finish(mail, null as never), /must be a function/],
  ])('%s is a TypeError', (_name, make, message) => {
    expect(make).toThrow(TypeError)
    expect(make).toThrow(message)
  })
})

it('a step-up that a token carries is of the user of the token, and never of a cookie', async () => {
  const mail = emailSignIn({ path: '/step/link', name: 'step', send: () => {} })
  const { ask, cookieIn, signIn } = await deviceSite({}, undefined, undefined, (router, { sessionAuth: signedIn }) => {
    router.post('/device/step', withAuth(signedIn()), begin(mail, { intent: 'stepUp', as: 'bearer' }))
    router.post('/step', withAuth(signedIn()), begin(mail, { intent: 'stepUp' }))
  })
  const cookie = { Cookie: cookieIn(await ask('/cookie', {}, {})) }
  const token = { Authorization: `Bearer ${await signIn()}` }
  const sent = { address: 'anna@shop.example' }
  const statuses = [
    await ask('/step', cookie, sent),
    await ask('/device/step', cookie, sent),
    await ask('/device/step', token, sent),
  ]
  expect(statuses.map(({ status }) => status)).toEqual([200, 401, 200])
})

it('a hook that says true lets a step-up pass only by a proof of the user who is signed in', async () => {
  const own: Kind<never, null, string> = {
    name: 'own',
    lifetime: 60_000,
    begin: () => E.right({ kept: null, send: (handle: string) => ({ body: { handle } }) }),
    read: ({ body }) => ({ handle: String(body['handle']), answer: String(body['of']) }),
    check: (_kept, subject) => E.right({ method: 'own', subject }),
  }
  const { ask, cookieIn } = await deviceSite({}, undefined, undefined, (router, { sessionAuth: signedIn }) => {
    router.post('/own', withAuth(signedIn()), begin(own, { intent: 'stepUp' }))
    router.post('/own/answer', withAuth(signedIn()), finish(own, { stepUp: () => true }))
  })
  const session = cookieIn(await ask('/cookie', {}, {}))
  for (const [of, status, reason] of [
    ['bert', 403, 'anotherUser'],
    ['anna', 200, undefined],
  ] as const) {
    const begun = await ask('/own', { Cookie: session }, {})
    const cookies = { Cookie: `${session}; ${cookieIn(begun)}` }
    const answer = await ask('/own/answer', cookies, { handle: begun.body.handle, of })
    expect([answer.status, answer.body.reason]).toEqual([status, reason])
  }
})
