// Notes with a sign-in form, as users of koa-passport write it: koa 3, koa-session, passport-local
import Router from '@koa/router'
import Koa from 'koa'
import passport from 'koa-passport'
import session from 'koa-session'
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
  passport.serializeUser((user, done) => done(null, user.username))
  passport.deserializeUser((username, done) => done(null, users.get(username) ?? false))

  app.use(session({ key: 'session' }, app))
  app.use(form)
  app.use(passport.initialize())
  app.use(passport.session())

  const signedIn = (ctx, next) => (ctx.isAuthenticated() ? next() : ctx.throw(401, 'Unauthorized'))
  const admin = (ctx, next) => (ctx.state.user.isAdmin ? next() : ctx.throw(403, 'Forbidden'))

  const router = new Router()
  router.post('/login', passport.authenticate('local'), (ctx) => {
    ctx.status = 204
  })
  router.post('/logout', signedIn, async (ctx) => {
    await ctx.logout()
    ctx.status = 204
  })
  router.get('/notes', signedIn, (ctx) => {
    ctx.body = notes.get(ctx.state.user.username) ?? []
  })
  router.post('/notes', signedIn, (ctx) => {
    const { username } = ctx.state.user
    notes.set(username, [...(notes.get(username) ?? []), ctx.request.body.note])
    ctx.status = 201
  })
  router.get('/users', signedIn, admin, (ctx) => {
    ctx.body = [...users.keys()]
  })

  app.use(router.routes()).use(router.allowedMethods())
  return app
}
