import Router from '@koa/router'
import passport from 'koa-passport'

new Router().get('/me', passport.authenticate('bearer', { session: false }), (ctx) => {
  const one: Shown = ctx.state.user
  ctx.body = one
})
