/** C-13: kinds have names of their own, so what one began, no other one finishes. */
import Router from '@koa/router'
import { withAuth } from 'koa-with-auth'
import { memoryStore, type Store } from 'koa-with-auth/stores'
import {
  begin,
  secondFactor,
  finish,
  emailSignIn,
  passwordReset,
  askSecondFactor,
  emailVerification,
  type CodeFactor,
  type FinishHook,
  type ProofGiven,
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
const hook: FinishHook<ProofGiven> = (_ctx, { proof }) => ({ username: proof.subject })

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
        router.post(`/${group}/code`, withAuth(null), finish(code, hook))
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
type Send = (mail: AnyMail) => unknown

/** A site that begins each kind at its name, and finishes it at the link below. */
const mailSite = (kinds: Readonly<Record<string, object>>, hook: () => unknown, store?: () => Store) =>
  sessionsApp(store, {
    origin: 'https://shop.example',
    below: (app) => {
      app.silent = true
      const router = new Router()
      for (const [name, made] of Object.entries(kinds)) {
        // Safe: what a kind is asked does not matter here
        const kind = made as Kind<never, unknown, unknown>
        router.post(`/${name}`, withAuth(null), begin(kind))
        router.post(`/${name}/link`, withAuth(null), finish(kind, hook))
      }
      app.use(router.routes())
    },
  })

const arrived = async (mails: ReadonlyArray<unknown>, count: number) => {
  while (mails.length < count) await new Promise((resolve) => setImmediate(resolve))
}

describe('C-13 two kinds of mails', () => {
  const accountOf = (address: string) => ({ id: address, stamp: 'the same for all' })
  it.each<[string, (path: string, send: Send, name?: string) => object]>([
    ['emailSignIn', (path, send, name) => emailSignIn({ path, send, limiter, name })],
    ['passwordReset', (path, send, name) => passwordReset({ path, send, limiter, accountOf, name })],
    ['emailVerification', (path, send, name) => emailVerification({ path, send, limiter, accountOf, name })],
  ])('%s: a link of one is good for no other', async (_name, make) => {
    // in one process, two with one name are a TypeError; in several, each may have seen another one first
    for (const [names, status] of [
      [['staff', 'customers'], 400],
      [[undefined, undefined], 500],
    ] as const) {
      const mails: AnyMail[] = []
      let ran = 0
      const kinds = ['staff', 'customers'].map((group, at) => [
        group,
        make(`/${group}/link`, (mail) => mails.push(mail), names[at]),
      ])
      const site = await mailSite(
        Object.fromEntries(kinds) as Record<string, object>,
        () => ran++ >= 0 && { username: 'anna' },
      )
      const visitor = site.visitor()
      await sendJson(visitor, '/staff', { address: 'anna@shop.example' })
      await arrived(mails, 1)
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
    const process = (path: string) => {
      const mail = emailSignIn({ path, limiter, send: (one) => mails.push(one) })
      const reset = passwordReset({ path, limiter, accountOf, send: (one) => resets.push(one) })
      return mailSite(
        { mail, reset },
        () => ({ username: 'anna' }),
        () => store,
      )
    }
    const [staff, customers] = [await process('/staff/link'), await process('/customers/link')]
    const visitor = staff.visitor()
    for (const path of ['/mail', '/reset']) await sendJson(visitor, path, { address: 'anna@shop.example' })
    await arrived(mails, 1)
    await arrived(resets, 1)
    const membersOf = (link: string) => Object.fromEntries(new URL(link).searchParams)
    const cookies = { Cookie: visitor.header() }
    const elsewhere = customers.visitor()
    const { handle, key } = membersOf(mails[0]!.link)
    for (const answer of [
      { handle, key },
      { handle, code: mails[0]!.code },
    ]) {
      expect((await sendJson(elsewhere, '/mail/link', answer, cookies)).status).toBeGreaterThanOrEqual(400)
    }
    expect((await sendJson(elsewhere, '/reset/link', membersOf(resets[0]!.link), cookies)).status).toBe(400)
    // the cookies and the handle are good, as their own process shows
    expect((await sendJson(visitor, '/mail/link', { handle, key })).status).toBe(200)
  })
})
