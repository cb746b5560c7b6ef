// The same application with koa-with-auth, and passport still checks the password
import Router from '@koa/router'
import { pipe } from 'fp-ts/lib/function.js'
import Koa from 'koa'
import passport from 'koa-passport'
import { authorize, authSettings, sessionAuth, withAuth } from 'koa-with-auth'
import { sessions } from 'koa-with-auth/sessions'
import { Strategy } from 'passport-local'
import { form, users } from '../form.js'

export const makeApp = () => {
  const app = new Koa({ keys: ['a key of more than thirty-two characters'] })
  const notes = new Map()

  const verify = (username, password, done) => {
    const user = users.get(username)
    done(null, user?.password === password ? user : false)
  }
  passport.use(new Strategy(verify))

  app.use(authSettings({ realm: 'notes' }))
  const { logIn, logOut } = sessions(app, { loadUser: (username) => users.get(username) })
  app.use(form)
  app.use(passport.initialize())

  const user = sessionAuth()
  const admin = pipe(
    user,
    authorize(({ username }) => users.get(username)?.isAdmin === true),
  )

  const router = withAuth(user)(new Router())
  router.post('/login', withAuth(null), passport.authenticate('local', { session: false }), async (ctx) => {
    await logIn(ctx, ctx.state.user)
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
