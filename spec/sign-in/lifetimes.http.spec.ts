/** How long a session lasts is said by the first factor, and holds after the second one. */
import Router from '@koa/router'
import { withAuth } from 'koa-with-auth'
import type { LogInOptions } from 'koa-with-auth/sessions'
import {
  secondFactor,
  finish,
  emailSignIn,
  begin,
  askSecondFactor,
  type CodeFactor,
  type FinishHook,
  type ProofGiven,
  type FinishOptions,
} from 'koa-with-auth/sign-in'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { describe, expect, it } from 'vitest'
import { sendJson } from '../support/sites/signInSite.js'
import { daysOf, sessionsApp, setCookies, type User } from '../support/sites/sessionsApp.js'
import type { Answer } from '../support/models/behavior.js'

const DAY = 86_400_000

/** A site with a code by mail, and for anna a second factor whose code is always 1. */
const start = async (
  first: FinishOptions = {},
  second: FinishOptions = {},
  { own, asked, ...options }: { persistent?: boolean; own?: LogInOptions; asked?: { idle: number } } = {},
) => {
  const limiter = new RateLimiterMemory({ points: 50, duration: 900 })
  const factor: CodeFactor = { method: 'own', verify: async (_user, typed) => typed === '1' }
  const code = secondFactor({ factors: [factor], limiter })
  let typed = ''
  let resolveMail = (): void => {}
  const mail = emailSignIn({
    limiter,
    path: '/link',
    send: (sent) => {
      typed = sent.code
      resolveMail()
    },
  })
  const site = await sessionsApp(undefined, {
    ...options,
    origin: 'https://shop.example',
    below: (app, { logIn }) => {
      const router = new Router()
      const of = (address: string): User => ({ username: address.split('@')[0] ?? '', isActive: true })
      router.post('/mail', withAuth(null), begin(mail))
      const ofMail: FinishHook<ProofGiven> = async (ctx, { proof, returnTo }) => {
        const user = of(String(proof.subject))
        if (own !== undefined) await logIn(ctx, user, own)
        if (user.username !== 'anna') return user
        ctx.body = await askSecondFactor(ctx, code, { user, proof, returnTo, ...asked })
        return undefined
      }
      router.post('/mail/code', withAuth(null), finish(mail, ofMail, first))
      const ofCode: FinishHook<ProofGiven> = (_ctx, { proof }) => ({ username: proof.subject, isActive: true })
      router.post('/code', withAuth(null), finish(code, ofCode, second))
      app.use(router.routes())
    },
  })
  return {
    site,
    /** Signs in by mail, and for anna by the second factor. */
    signIn: async (name: string, more: object = {}): Promise<Answer> => {
      const visitor = site.visitor()
      const arrives = new Promise<void>((resolve) => (resolveMail = resolve))
      const { handle } = (await sendJson(visitor, '/mail', { address: `${name}@shop.example` })).body as {
        handle: string
      }
      await arrives
      const half = await sendJson(visitor, '/mail/code', { handle, code: typed, ...more })
      if (name !== 'anna' || half.status !== 200) return half
      return sendJson(visitor, '/code', { ...(half.body as object), code: '1' })
    },
  }
}

const remembering: FinishOptions = {
  idle: ({ body }) => body['remember'] === 'on' && 30 * DAY,
  absolute: ({ body }) => (body['remember'] === 'on' ? 60 * DAY : undefined),
}

describe('how long a session lasts', () => {
  it.each(['bert', 'anna'])(
    'is said by what came in with the first factor, also after a second one: %s',
    async (name) => {
      const { signIn } = await start(remembering)
      expect(daysOf(await signIn(name, { remember: 'on' }))).toBe(30)
      expect(daysOf(await signIn(name, { remember: 'off' }))).toBe(1)
    },
  )

  it('is a number for all, and what the second factor says counts', async () => {
    const { signIn } = await start({ idle: 3 * DAY }, { idle: 2 * DAY })
    expect(daysOf(await signIn('bert'))).toBe(3)
    expect(daysOf(await signIn('anna'))).toBe(2)
    const asking = await start({ idle: 3 * DAY }, {}, { asked: { idle: 4 * DAY } })
    expect(daysOf(await asking.signIn('anna')), 'as askSecondFactor says').toBe(4)
  })

  it('is refused when it is written, or is a 500 that signs in no user', async () => {
    for (const wrong of [0, -1, Number.NaN, 401 * DAY, '1' as never]) {
      await expect(start({ idle: wrong })).rejects.toThrow('finish(kind, hook, { idle }) must be a number')
    }
    for (const wrong of [0, Number.NaN, '30 days', null, Promise.resolve(1)]) {
      const { signIn } = await start({ idle: () => wrong as never })
      const answer = await signIn('anna')
      expect([answer.status, setCookies(answer).filter((one) => one.startsWith('session='))]).toEqual([500, []])
    }
    await expect(start({ persistent: 1 as never })).rejects.toThrow('persistent }) must be true or false')
    const { signIn } = await start({ absolute: 71 * DAY })
    expect((await signIn('anna')).status, 'more than ten times that of the application').toBe(500)
  })

  it('is what the hook of finish gave, if it signed the user in itself and returned the user', async () => {
    const { signIn } = await start({ idle: 3 * DAY }, {}, { own: { idle: 30 * DAY, absolute: 30 * DAY } })
    expect(daysOf(await signIn('bert'))).toBe(30)
    const closed = await start({ idle: 3 * DAY }, {}, { own: { persistent: false } })
    expect(daysOf(await closed.signIn('bert'))).toBeNaN()
  })

  it.each<[string, boolean | undefined, FinishOptions, string, boolean]>([
    ['persists', undefined, {}, '', true],
    ['ends with the browser', false, {}, '', false],
    ['persists by a choice', false, { persistent: ({ body }) => body['remember'] === 'on' }, 'on', true],
    [
      'ends with the browser by a choice',
      undefined,
      { persistent: ({ body }) => body['remember'] === 'on' },
      'off',
      false,
    ],
    ['is as the application says without a choice', false, { persistent: () => undefined }, 'on', false],
  ])('and its cookie %s', async (_name, persistent, first, remember, persists) => {
    const { signIn, site } = await start(first, {}, persistent === undefined ? {} : { persistent })
    for (const name of ['bert', 'anna']) {
      const answer = await signIn(name, { remember })
      expect([answer.status, Number.isNaN(daysOf(answer))]).toEqual([200, !persists])
      const line = setCookies(answer).find((one) => one.startsWith('session=')) ?? ''
      // the store knows it, however long the browser keeps the cookie
      const visitor = site.visitor(new Map([['session', line.split(/[=;]/)[1] ?? '']]))
      if (name === 'anna') expect((await visitor.ask('/me')).status).toBe(200)
    }
  })
})
