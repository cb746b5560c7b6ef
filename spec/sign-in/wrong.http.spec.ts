/** C-18: anybody gets handles, so how many wrong answers to them are kept, and sent to a provider, is limited. */
import Router from '@koa/router'
import * as E from 'fp-ts/lib/Either.js'
import { sessionAuth, UnavailableError, withAuth } from 'koa-with-auth'
import { memoryStore, oneTimeIds } from 'koa-with-auth/stores'
import { secondFactor, finish, askSecondFactor, type Ceremony, type OneTimeIds } from 'koa-with-auth/sign-in'
import { describe, expect, it } from 'vitest'
import { BY_TOKEN } from '../../src/sign-in/ceremony.js'
import { world, type Sent } from '../support/models/ceremonyModel.js'
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

/** Answers to handles of a kind: `right`, or as the kind says. */
const answering = (which = 0) => {
  const w = world()
  const answerTo = async (sent: Sent, code: string, browser = 'b', address = '192.0.2.1'): Promise<string> => {
    const given = code === 'right' ? sent : { ...sent, code }
    const ended = await w.finish(which, browser, given, undefined, address)
    return E.isLeft(ended) ? ended.left._tag : 'in'
  }
  const begun = (browser = 'b') => w.begin(which, browser)
  const answer = async (code: string, browser?: string, address?: string) =>
    answerTo(await begun(browser), code, browser, address)
  return { used: w.spent, answer, answerTo, begun }
}

describe('C-18 wrong answers to genuine handles', () => {
  it('are fifty of a browser, and a thousand of an address', async () => {
    const { used, answer } = answering()
    for (let at = 0; at < 60; at++) await answer('wrong')
    expect([used(), await answer('right')]).toEqual([50, 'throttled'])
    for (let at = 0; at < 1200; at++) await answer('wrong', `browser ${at}`)
    expect([used(), await answer('right', 'another')]).toEqual([1000, 'throttled'])
    expect(await answer('right', 'another', '192.0.2.2')).toBe('in')
  })

  it('of clients that a token carries are a thousand of an address, because they are no one browser', async () => {
    const { answer } = answering()
    for (let at = 0; at < 60; at++) await answer('wrong', BY_TOKEN)
    expect(await answer('right', BY_TOKEN)).toBe('in')
  })

  it('at the same time are as many', async () => {
    const { used, answer } = answering()
    await Promise.all(Array.from({ length: 100 }, () => answer('wrong')))
    expect(used()).toBe(50)
  })

  it('are not those that were right, that came again, and that an outage decided', async () => {
    const { answer, answerTo, begun } = answering()
    const sent = await begun()
    expect(await answerTo(sent, 'right')).toBe('in')
    for (let at = 0; at < 60; at++) {
      expect(await answer('right')).toBe('in')
      expect(await answerTo(sent, 'right')).not.toBe('throttled')
      expect(await answer('down')).toBe('unavailable')
      expect(await answer('thrown')).toBe('unavailable')
    }
    expect(await answer('right')).toBe('in')
  })

  it('of a kind with several tries are counted by its own limiter', async () => {
    const { answer } = answering(2)
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

  it('are none while the factor itself is down', async () => {
    let isDown = true
    const verify = async () => (isDown ? Promise.reject(new UnavailableError('down')) : true)
    const kind = secondFactor({ factors: [{ method: 'totp', verify }], limiter: free })
    const ids = oneTimeIds(memoryStore())
    const asked = async () => kind.check(null, { code: '1', from: '' }, { subject: 'anna', ids } as Ceremony)
    for (let at = 0; at < 110; at++) expect(await asked()).toMatchObject({ left: { _tag: 'unavailable' } })
    isDown = false
    expect(E.isRight(await asked())).toBe(true)
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
