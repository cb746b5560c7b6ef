/** Each counter reports alike that its limit is reached, and that its limiter failed. */
import Router from '@koa/router'
import { httpBearer, rateLimit, throttled, withAuth } from 'koa-with-auth'
import {
  begin,
  countFailures,
  emailSignIn,
  emailVerification,
  finish,
  passwordReset,
  passwordSignIn,
  secondFactor,
  askSecondFactor,
} from 'koa-with-auth/sign-in'
import { describe, expect, it } from 'vitest'
import { recordsOf } from '../support/runs/eventRecords.js'
import { sendJson } from '../support/sites/signInSite.js'
import { sessionsApp, strongKey, type User } from '../support/sites/sessionsApp.js'

/** One route for each counter, all with the same limiter. */
const site = (consume: () => Promise<unknown>) =>
  sessionsApp(undefined, {
    keys: [strongKey],
    origin: 'https://shop.example',
    below: (app) => {
      const limiter = { consume, reward: () => Promise.resolve() }
      const mails = { limiter, send: () => undefined }
      const links = { ...mails, accountOf: () => ({ id: 'anna', stamp: 's' }) }
      const bearer = httpBearer({ authenticate: (_request, token) => token === 'good' && { name: 'anna' } })
      const anna: User = { username: 'anna', isActive: true }
      const code = secondFactor({
        limiter,
        factors: [{ method: 'own', has: () => true, verify: () => Promise.resolve(true) }],
      })
      const router = new Router()
      const open = withAuth(null)
      router.post('/throttled', withAuth(throttled({ limiter })(bearer)), (ctx) => void (ctx.body = 'in'))
      router.post('/rate-limit', withAuth(bearer, rateLimit({ limiter, by: ({ name }) => name })), () => {})
      router.post('/passwordSignIn', open, passwordSignIn<User>({ limiter, accountOf: () => undefined }))
      router.post('/emailSignIn', open, begin(emailSignIn({ ...mails, path: '/in' })))
      router.post('/passwordReset', open, begin(passwordReset({ ...links, path: '/reset' })))
      router.post('/emailVerification', open, begin(emailVerification({ ...links, path: '/verify' })))
      const again = finish(code, () => anna)
      router.post('/ask', open, async (ctx) => {
        ctx.body = await askSecondFactor(ctx, code, { user: anna, proof: { method: 'password' } })
      })
      router.post('/secondFactor', open, again)
      router.post('/countFailures', open, async (ctx) => {
        await countFailures(limiter)(ctx, 'anna', () => true)
      })
      app.use(router.routes())
    },
  })

describe('guess-limit', () => {
  it.each([
    { event: 'reached', consume: () => Promise.reject({ msBeforeNext: 1500 }), more: { retryAfter: 1.5 }, status: 429 },
    { event: 'failed', consume: () => Promise.reject(new Error('down')), more: {}, status: 503 },
  ])('$event: each counter refuses and reports alike', async ({ event, consume, more, status }) => {
    const records = recordsOf('guess-limit')
    const { visitor } = await site(consume)
    const browser = visitor()
    const body = { username: 'anna', password: 'x', address: 'anna@shop.example' }
    const headers = { Authorization: 'Bearer good' }
    const { body: begun } = await sendJson(browser, '/ask', {})
    const all = [
      ['throttled', 'address'],
      ['rate limit', 'caller'],
      ['passwordSignIn', 'account and address'],
      ['emailSignIn', 'account and address'],
      ['passwordReset', 'account and address'],
      ['emailVerification', 'account and address'],
      ['secondFactor', 'account and address'],
      ['countFailures', 'account and address'],
    ] as const
    for (const [counter, under] of all) {
      const sent = counter === 'secondFactor' ? { ...Object(begun), code: '1' } : body
      expect([counter, (await sendJson(browser, `/${counter.replace(' ', '-')}`, sent, headers)).status]).toStrictEqual(
        [counter, status],
      )
      expect(records.pop()).toStrictEqual({ event, counter, under, ...more })
    }
    expect(records).toStrictEqual([])
  })
})
