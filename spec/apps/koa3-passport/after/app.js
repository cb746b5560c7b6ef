// The same application with koa-with-auth
import Router from '@koa/router'
import { pipe } from 'fp-ts/lib/function.js'
import Koa from 'koa'
import { authorize, authSettings, sessionAuth, withAuth } from 'koa-with-auth'
import { sessions } from 'koa-with-auth/sessions'
import { form, users } from '../form.js'

export const makeApp = () => {
  const app = new Koa({ keys: ['a key of more than thirty-two characters'] })
  const notes = new Map()

  const verify = (username, password) => {
    const user = users.get(username)
    return user?.password === password ? user : undefined
  }

  app.use(authSettings({ realm: 'notes' }))
  const { logIn, logOut } = sessions(app, { loadUser: (username) => users.get(username) })
  app.use(form)

  const user = sessionAuth()
  const admin = pipe(
    user,
    authorize(({ username }) => users.get(username)?.isAdmin === true),
  )

  const router = withAuth(user)(new Router())
  router.post('/login', withAuth(null), async (ctx) => {
    const found = verify(ctx.request.body.username, ctx.request.body.password)
    if (found === undefined) ctx.throw(401, 'Unauthorized')
    await logIn(ctx, found, { proof: { method: 'password' } })
    ctx.status = 204
  })
  router.post('/logout', async (ctx) => {
    await logOut(ctx)
    ctx.status = 204
  })
  router.get('/notes', (ctx) => {
    ctx.body = notes.get(ctx.request.auth.username) ?? []
  })
  router.post('/notes', (ctx) => {
    const { username } = ctx.request.auth
    notes.set(username, [...(notes.get(username) ?? []), ctx.request.body.note])
    ctx.status = 201
  })
  router.get('/users', withAuth(admin), (ctx) => {
    ctx.body = [...users.keys()]
  })

  app.use(router.routes()).use(router.allowedMethods())
  return app
}
