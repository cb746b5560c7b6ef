/** C-09: a session that could not be read is not changed (S11). */
import Router from '@koa/router'
import type { Context } from 'koa'
import { withAuth } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { sessionsApp, setCookies } from '../support/sites/sessionsApp.js'
import { expectUser } from '../support/sites/signedIn.js'
import { describeEveryOther } from '../support/stores/sessionStores.js'

interface Own {
  regenerate: (callback?: () => void) => Promise<void>
  save: () => Promise<void>
  manuallyCommit: () => Promise<void>
}

describeEveryOther((store) => {
  describe('C-09 while the session cannot be read', () => {
    const ways: Readonly<Record<string, (session: Own) => unknown>> = {
      regenerate: (session) => session.regenerate(),
      'regenerate with a callback': (session) => new Promise<void>((resolve) => void session.regenerate(resolve)),
      save: (session) => session.save(),
      manuallyCommit: (session) => session.manuallyCommit(),
    }
    it.each(
      Object.keys(ways).flatMap(
        (way) =>
          [
            [way, false],
            [way, true],
          ] as const,
      ),
    )('%s is 503 without a cookie; swallowed: %s', async (way, isSwallowed) => {
      const site = await sessionsApp(store, {
        below: (app) => {
          const router = new Router()
          router.post('/change', withAuth(null), async (ctx: Context) => {
            const change = Promise.resolve(ways[way]!(ctx['session'] as Own))
            await (isSwallowed ? change.catch(() => undefined) : change)
            ctx.body = 'changed'
          })
          app.use(router.routes())
        },
      })
      const visitor = site.visitor()
      await visitor.post('/login')
      site.store.instead.get = async () => Promise.reject(new Error('down'))
      const answer = await visitor.post('/change')
      expect([answer.status, setCookies(answer)]).toEqual([503, []])
      delete site.store.instead.get
      await expectUser(visitor, 'anna')
    })
  })
})
