/** C-18: anybody gets handles, so how many wrong answers to them are kept, and sent to a provider, is limited. */
import Router from '@koa/router'
import * as E from 'fp-ts/lib/Either.js'
import { AuthError, sessionAuth, UnavailableError, withAuth } from 'koa-with-auth'
import { memoryStore, oneTimeIds } from 'koa-with-auth/stores'
import { secondFactor, finish, askSecondFactor, type Ceremony, type Kind, type OneTimeIds } from 'koa-with-auth/sign-in'
import { describe, expect, it } from 'vitest'
import { ceremonies } from '../../src/sign-in/ceremony.js'
import { recordsOf } from '../support/runs/eventRecords.js'
import { newBrowser } from '../support/sites/providerSite.js'
import { sessionsApp } from '../support/sites/sessionsApp.js'
import { sendJson } from '../support/sites/signInSite.js'
import { navigation } from '../support/servers/userAgent.js'
import { wrongSite } from '../support/sites/wrongProviderSite.js'

it('C-18 rubbish codes of one browser reach the provider fifty times, and keep no other browser out', async () => {
  const { provider, site, browser } = await wrongSite()
  const limits = recordsOf('guess-limit')
  const answers: unknown[] = []
  for (let at = 0; at < 70; at++) {
    const url = new URL(await site.toCallback(browser))
    url.searchParams.set('code', `rubbish${at}`)
    const page = await browser.send(url.href, { headers: navigation })
    answers.push([page.status, page.headers.has('retry-after')])
  }
  expect(provider.asked('/token')).toBe(50)
  expect(answers.filter((answer) => JSON.stringify(answer) === '[429,true]')).toHaveLength(20)
  expect(limits).toHaveLength(20)
  expect(limits[0]).toMatchObject({ event: 'reached', counter: 'finish', under: 'account and address' })
  // nor is a right one sent, and it is not used up
  expect((await browser.send(await site.toCallback(browser), { headers: navigation })).status).toBe(429)
  expect(provider.asked('/token')).toBe(50)
  const other = newBrowser()
  await site.signIn(other)
  expect(await site.me(other)).toBe('provider-anna')
})

/** Ceremonies whose answers are right, wrong, or an outage, as they say. */
const answering = (tries?: number) => {
  const rows = new Set<string>()
  const made = ceremonies({
    keys: () => ['a key that is long enough, for these tests'],
    name: 'shop',
    origin: 'https://shop.example',
    ids: { use: (id) => Promise.resolve(!rows.has(id) && rows.add(id).size > 0), release: () => Promise.resolve() },
  })
  const results: Readonly<Record<string, () => E.Either<AuthError, { method: string }>>> = {
    right: () => E.right({ method: 'test' }),
    wrong: () => E.left(AuthError.invalid),
    down: () => E.left(AuthError.unavailable()),
    thrown: () => {
      throw new UnavailableError('down')
    },
  }
  const kind: Kind<never, null, string> = {
    name: 'test',
    lifetime: 600_000,
    ...(tries !== undefined && { tries }),
    begin: () => E.right({ kept: null, send: (handle) => ({ body: { handle } }) }),
    read: ({ body }) => ({ handle: String(body['handle']), answer: String(body['answer']) }),
    check: (_kept, answer) => results[answer]!(),
  }
  const incoming = (address: string, body: Readonly<Record<string, unknown>> = {}) => ({
    ...{ method: 'POST', path: '/', query: new URLSearchParams(), body, principal: undefined, address },
  })
  const handleFor = async (browser: string): Promise<string> => {
    const begun = { incoming: incoming(''), browser, intent: 'signIn', subject: undefined, returnTo: '/' } as const
    const sent = await made.begin(kind, begun)
    // Safe: the kind sends this body
    return E.isRight(sent) ? (sent.right as { body: { handle: string } }).body.handle : 'none'
  }
  const answerTo = async (handle: string, answer: string, browser = 'b', address = '192.0.2.1'): Promise<string> => {
    const ended = await made.finish(kind, {
      ...{ incoming: incoming(address, { handle, answer }), browser, subject: undefined },
      ...{
        isGoingOn: () => Promise.resolve(true),
        isAwaited: () => true,
        isFinishedHere: () => Promise.resolve(false),
      },
      complete: () => Promise.resolve(E.right({ user: 'anna', isAccepted: true })),
    })
    return E.isLeft(ended) ? ended.left._tag : 'in'
  }
  const answer = async (what: string, browser?: string, address?: string) =>
    answerTo(await handleFor(browser ?? 'b'), what, browser, address)
  return { rows, answer, answerTo, handleFor }
}

describe('C-18 wrong answers to genuine handles', () => {
  it('are fifty of a browser, and a thousand of an address', async () => {
    const { rows, answer } = answering()
    for (let at = 0; at < 60; at++) await answer('wrong')
    expect([rows.size, await answer('right')]).toEqual([50, 'throttled'])
    for (let at = 0; at < 1200; at++) await answer('wrong', `browser ${at}`)
    expect([rows.size, await answer('right', 'another')]).toEqual([1000, 'throttled'])
    expect(await answer('right', 'another', '192.0.2.2')).toBe('in')
  })

  it('at the same time are as many', async () => {
    const { rows, answer } = answering()
    await Promise.all(Array.from({ length: 100 }, () => answer('wrong')))
    expect(rows.size).toBe(50)
  })

  it('are not those that were right, that came again, and that an outage decided', async () => {
    const { answer, answerTo, handleFor } = answering()
    const handle = await handleFor('b')
    expect(await answerTo(handle, 'right')).toBe('in')
    for (let at = 0; at < 30; at++) {
      expect(await answer('right')).toBe('in')
      expect(await answerTo(handle, 'right')).not.toBe('throttled')
      expect(await answer('down')).toBe('unavailable')
      expect(await answer('thrown')).toBe('unavailable')
    }
    expect(await answer('right')).toBe('in')
  })

  it('of a kind with several tries are counted by its own limiter', async () => {
    const { answer } = answering(3)
    for (let at = 0; at < 30; at++) await answer('wrong')
    expect(await answer('right')).toBe('in')
  })
})

describe('C-15 wrong codes of a second factor', () => {
  const factor = (checked: string[]) => ({
    method: 'totp',
    verify: async (_user: string, code: unknown) => checked.push(String(code)) > 0 && code === 'right',
  })
  const free = { points: 1e9, consume: () => Promise.resolve({}), reward: () => Promise.resolve({}) }

  it('are a hundred in all processes that share the store, and a right one takes none', async () => {
    const ids = oneTimeIds(memoryStore())
    const checked: string[] = []
    // two processes: each has its own counts in memory
    const both = [1, 2].map(() => secondFactor({ factors: [factor(checked)], limiter: free }))
    const ask = async (at: number, code: string, subject = 'anna') =>
      both[at % 2]!.check(null, { code, from: `192.0.2.${at}` }, { subject, ids } as Ceremony)
    for (let at = 0; at < 120; at++) expect(E.isRight(await ask(at, 'right'))).toBe(true)
    checked.length = 0
    await Promise.all(Array.from({ length: 150 }, (_, at) => ask(at, 'wrong')))
    expect(checked).toHaveLength(100)
    for (const at of [1, 2]) {
      expect(await ask(at, 'right')).toMatchObject({
        left: { _tag: 'throttled', retryAfter: expect.any(Number) as number },
      })
    }
    expect(E.isRight(await ask(1, 'right', 'bert'))).toBe(true)
    expect(checked).toHaveLength(101)
  })

  it('are none while the store is down: nothing is checked', async () => {
    const checked: string[] = []
    const kind = secondFactor({ factors: [factor(checked)], limiter: free })
    const release = () => Promise.resolve()
    const ids: OneTimeIds = { use: () => Promise.reject(new UnavailableError('down')), release }
    const asked = async () => kind.check(null, { code: 'right', from: '' }, { subject: 'anna', ids } as Ceremony)
    for (let at = 0; at < 110; at++) await expect(asked()).rejects.toThrow('down')
    const good: OneTimeIds = { use: () => Promise.resolve(true), release }
    const later = await kind.check(null, { code: 'right', from: '' }, { subject: 'anna', ids: good } as Ceremony)
    expect([E.isRight(later), checked]).toEqual([true, ['right']])
  })

  it('count over HTTP, at a second factor and at a step-up, whichever process is asked', async () => {
    const store = memoryStore()
    const checked: string[] = []
    const started = async () => {
      const kind = secondFactor({ factors: [factor(checked)], limiter: free })
      return sessionsApp(() => store, {
        origin: 'https://shop.example',
        below: (app) => {
          const router = new Router()
          router.post('/password', withAuth(null), async (ctx) => {
            ctx.body = await askSecondFactor(ctx, kind, { user: { username: 'anna' }, proof: { method: 'password' } })
          })
          const hook = () => ({ username: 'anna' })
          router.post('/code', withAuth(null), finish(kind, hook))
          router.post('/prove', withAuth(sessionAuth()), async (ctx) => {
            await kind.prove(ctx, ctx.request.auth.username, 'wrong')
          })
          app.use(router.routes())
        },
      })
    }
    const [one, two] = [await started(), await started()]
    const user = two.visitor()
    await user.post('/login')
    for (let at = 0; at < 50; at++) expect((await user.post('/prove')).status).toBe(403)
    const guest = one.visitor()
    const begun = async () => ((await sendJson(guest, '/password', {})).body as { handle: string }).handle
    for (let at = 0; at < 10; at++) {
      const handle = await begun()
      for (let n = 0; n < 5; n++) expect((await sendJson(guest, '/code', { handle, code: 'wrong' })).status).toBe(403)
    }
    expect(checked).toHaveLength(100)
    const refused = await sendJson(guest, '/code', { handle: await begun(), code: 'right' })
    expect([refused.status, Number(refused.headers['retry-after']) > 0]).toEqual([429, true])
    expect((await user.post('/prove')).status).toBe(429)
    expect(checked).toHaveLength(100)
  })
})
