/** C-13: kinds have names of their own, so what one began, no other one finishes. */
import Router from '@koa/router'
import { withAuth } from 'koa-with-auth'
import { memoryStore } from 'koa-with-auth/stores'
import {
  begin,
  secondFactor,
  finish,
  emailSignIn,
  passwordReset,
  askSecondFactor,
  emailVerification,
  type CodeFactor,
  type SecondFactor,
  type Kind,
  type LinkMail,
  type SignInMail,
} from 'koa-with-auth/sign-in'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { describe, expect, it } from 'vitest'
import { pathOf, sendJson } from '../support/sites/signInSite.js'
import { sessionsApp } from '../support/sites/sessionsApp.js'

const limiter = new RateLimiterMemory({ points: 1000, duration: 900 })
const factor = (method: string, right: string): CodeFactor => ({
  method,
  verify: (_user, code) => Promise.resolve(code === right),
})

/** Staff and customers, each with codes of their own. */
const twoGroups = async (staff: SecondFactor, customers: SecondFactor) => {
  const errors: unknown[] = []
  const site = await sessionsApp(undefined, {
    origin: 'https://shop.example',
    below: (app) => {
      app.on('error', (error: unknown) => errors.push(error))
      const router = new Router()
      for (const [group, code] of [
        ['staff', staff],
        ['customers', customers],
      ] as const) {
        router.post(`/${group}/password`, withAuth(null), async (ctx) => {
          ctx.body = await askSecondFactor(ctx, code, { user: { username: 'anna' }, proof: { method: 'password' } })
        })
        router.post(
          `/${group}/code`,
          withAuth(null),
          finish(code, (_ctx, { proof }) => ({ username: proof.subject })),
        )
      }
      app.use(router.routes())
    },
  })
  return { site, errors }
}

describe('C-13 a second factor', () => {
  it('of staff is not finished by the weaker one of customers', async () => {
    const { site, errors } = await twoGroups(
      secondFactor({ factors: [factor('totp', '1')], limiter }),
      secondFactor({ factors: [factor('sms', '2')], limiter }),
    )
    const visitor = site.visitor()
    const { handle } = (await sendJson(visitor, '/staff/password', {})).body as { handle: string }
    const { status, body } = await sendJson(visitor, '/customers/code', { handle, code: '2' })
    expect([status, body]).toMatchObject([400, { reason: 'unknown' }])
    expect((await sendJson(visitor, '/staff/code', { handle, code: '1' })).status).toBe(200)
    expect(errors).toEqual([])
  })

  it('of two kinds with the same factors is a TypeError that names the fix, and signs no user in', async () => {
    const both = [factor('totp', '1')]
    const { site, errors } = await twoGroups(
      secondFactor({ factors: both, limiter }),
      secondFactor({ factors: both, limiter }),
    )
    const visitor = site.visitor()
    const { handle } = (await sendJson(visitor, '/staff/password', {})).body as { handle: string }
    for (const path of ['/customers/code', '/customers/password']) {
      expect((await sendJson(visitor, path, { handle, code: '1' })).status).toBe(500)
    }
    expect(errors).toEqual([1, 2].map(() => expect.any(TypeError) as unknown))
    expect(String(errors[0])).toMatch(/two different kinds are called "code:totp".*\{ name \}/)
  })
})

type AnyMail = SignInMail | LinkMail

describe('C-13 two kinds of mails', () => {
  const stamp = 'the same for all'
  const accountOf = (address: string) => ({ id: address, stamp })
  it.each([
    [
      'emailSignIn',
      (path: string, send: (mail: AnyMail) => unknown, name?: string) => emailSignIn({ path, send, limiter, name }),
    ],
    [
      'passwordReset',
      (path: string, send: (mail: AnyMail) => unknown, name?: string) =>
        passwordReset({ path, send, limiter, accountOf, name }),
    ],
    [
      'emailVerification',
      (path: string, send: (mail: AnyMail) => unknown, name?: string) =>
        emailVerification({ path, send, limiter, accountOf, name }),
    ],
  ])('%s: a link of one is good for no other', async (_name, make) => {
    // in one process, two with one name are a TypeError; in several, each may have seen another one first
    for (const [names, status] of [
      [['staff', 'customers'], 400],
      [[undefined, undefined], 500],
    ] as const) {
      const mails: AnyMail[] = []
      let ran = 0
      const site = await sessionsApp(undefined, {
        origin: 'https://shop.example',
        below: (app) => {
          app.silent = true
          const router = new Router()
          for (const [at, group] of ['staff', 'customers'].entries()) {
            const kind = make(`/${group}/link`, (mail) => mails.push(mail), names[at])
            // Safe: what a kind is asked does not matter here
            const any = kind as Kind<never, unknown, unknown>
            router.post(`/${group}`, withAuth(null), begin(any))
            router.post(
              `/${group}/link`,
              withAuth(null),
              finish(any, () => ran++ >= 0 && { username: 'anna' }),
            )
          }
          app.use(router.routes())
        },
      })
      const visitor = site.visitor()
      await sendJson(visitor, '/staff', { address: 'anna@shop.example' })
      while (mails.length === 0) await new Promise((resolve) => setImmediate(resolve))
      const path = pathOf(mails[0]!.link)
      const other = await visitor.ask(path.replace('/staff/', '/customers/'), { method: 'POST' })
      expect([other.status, ran]).toEqual([status, 0])
      expect((await visitor.ask(path, { method: 'POST' })).status).toBeLessThan(304)
      expect(ran).toBe(1)
    }
  })

  it('in two processes, of which each knows another one: a link and a code are good for their own path', async () => {
    const mails: SignInMail[] = []
    const resets: LinkMail[] = []
    const store = memoryStore()
    const process = async (path: string) => {
      const limited = { path, limiter }
      const mail = emailSignIn({ ...limited, send: (one) => mails.push(one) })
      const reset = passwordReset({ ...limited, accountOf, send: (one) => resets.push(one) })
      return sessionsApp(() => store, {
        origin: 'https://shop.example',
        below: (app) => {
          const router = new Router()
          router.post('/mail', withAuth(null), begin(mail))
          router.post(
            '/mail/finish',
            withAuth(null),
            finish(mail, () => ({ username: 'anna' })),
          )
          router.post('/reset', withAuth(null), begin(reset))
          router.post(
            '/reset/finish',
            withAuth(null),
            finish(reset, () => true),
          )
          app.use(router.routes())
        },
      })
    }
    const [staff, customers] = [await process('/staff/link'), await process('/customers/link')]
    const visitor = staff.visitor()
    for (const path of ['/mail', '/reset']) await sendJson(visitor, path, { address: 'anna@shop.example' })
    while (mails.length + resets.length < 2) await new Promise((resolve) => setImmediate(resolve))
    const membersOf = (link: string) => Object.fromEntries(new URL(link).searchParams)
    const cookies = { Cookie: visitor.header() }
    const elsewhere = customers.visitor()
    const { handle, key } = membersOf(mails[0]!.link)
    for (const answer of [
      { handle, key },
      { handle, code: mails[0]!.code },
    ]) {
      expect((await sendJson(elsewhere, '/mail/finish', answer, cookies)).status).toBeGreaterThanOrEqual(400)
    }
    expect((await sendJson(elsewhere, '/reset/finish', membersOf(resets[0]!.link), cookies)).status).toBe(400)
    // the cookies and the handle are good, as their own process shows
    expect((await sendJson(visitor, '/mail/finish', { handle, key })).status).toBe(200)
  })
})
