/** C-17 A session that support acts in: the records of the sign-in and of each request say who acts, and for whom. */
import Router from '@koa/router'
import Koa from 'koa'
import { authorize, authSettings, withAuth } from 'koa-with-auth'
import { sessions } from 'koa-with-auth/sessions'
import { expect, it } from 'vitest'
import { recordsOf } from '../support/runs/eventRecords.js'
import { ask, listen } from '../support/servers/server.js'

interface User {
  readonly name: string
  readonly isStaff: boolean
  readonly act?: string
}

it('C-17 both are named, and who loses the right of support acts for no user from the next request on', async () => {
  const users = new Map<string, User>([
    ['anna', { name: 'anna', isStaff: false }],
    ['sam', { name: 'sam', isStaff: true }],
  ])
  const app = new Koa()
  app.keys = ['k'.repeat(40)]
  app.use(authSettings({ events: { subject: (user: User) => user.name } }))
  const { logIn, sessionAuth, sessionAuthIsStaff } = sessions(app, {
    name: 'with support',
    loadUser: (id) => {
      // Safe: `identify` has written it
      const [name, act] = JSON.parse(id) as [string, string?]
      const user = users.get(name)
      if (act === undefined) return user
      return users.get(act)?.isStaff === true && user && { ...user, isStaff: false, act }
    },
    identify: ({ name, act }) => JSON.stringify(act === undefined ? [name] : [name, act]),
    isActive: () => true,
    isStaff: (user) => user.isStaff,
    isSuperuser: () => false,
  })
  const router = new Router()
  router.post('/login', withAuth(null), async (ctx) => {
    await logIn(ctx, users.get('sam')!)
    ctx.status = 204
  })
  router.post('/support/:user', withAuth(sessionAuthIsStaff()), async (ctx) => {
    await logIn(ctx, { ...users.get(ctx.params['user']!)!, act: ctx.request.auth.name }, { absolute: 1_800_000 })
    ctx.status = 204
  })
  router.get('/me', withAuth(sessionAuth()), (ctx) => void (ctx.body = ctx.request.auth))
  const alone = authorize((user: User) => user.act === undefined)
  router.delete('/account', withAuth(sessionAuth(), alone), (ctx) => void (ctx.status = 204))
  app.use(router.routes())
  const { url } = await listen(app)

  const decisions = recordsOf('decision', ({ route, actor }) => route === '/me' && actor !== undefined)
  const signIns = recordsOf('signed-in', ({ application }) => application === 'with support')
  let cookie = ''
  const send = async (method: string, path: string) => {
    const answer = await ask(`${url}${path}`, { method, headers: { cookie, 'sec-fetch-site': 'same-origin' } })
    const set = answer.headers.getSetCookie().map((one) => one.split(';')[0])
    if (set.length > 0) cookie = set.join('; ')
    return answer
  }
  expect((await send('POST', '/login')).status).toBe(204)
  expect((await send('POST', '/support/anna')).status).toBe(204)
  expect(JSON.parse((await send('GET', '/me')).text)).toMatchObject({ name: 'anna', act: 'sam' })
  expect((await send('DELETE', '/account')).status).toBe(403)
  expect((await send('POST', '/support/anna')).status).toBe(401)
  await expect.poll(() => [signIns.length, decisions.length]).toEqual([2, 1])
  expect(signIns.map(({ subject, actor }) => [subject, actor])).toEqual([
    ['sam', undefined],
    ['anna', 'sam'],
  ])
  expect(decisions[0]).toMatchObject({ subject: 'anna', actor: 'sam' })
  users.set('sam', { name: 'sam', isStaff: false })
  expect((await send('GET', '/me')).status).toBe(401)
})
