// Devices: where a user is signed in, by the cookie of a browser or by the token of a program, and signing out.
import { PassThrough } from 'node:stream'
import type { Request } from 'koa'
import { operation, unchecked, untilEnd, withAuth } from 'koa-with-auth'
import { finish, passwordSignIn } from 'koa-with-auth/sign-in'
import type { Account } from './accounts.js'
import { devicesPage } from './accountPages.js'
import { done, isNavigation, noticeIn, page, refuse } from './answers.js'
import type { Routes, Shop } from './shop.js'

const programs = [/Firefox|Edg|OPR|Chrome|Safari|curl|okhttp|CFNetwork/, /Android|iPhone|iPad|Windows|Mac OS|Linux/]

/** What the list calls a device: its browser and its system, as far as it says so. */
export const deviceOf = (request: Request): string | undefined => {
  const agent = request.get('User-Agent').slice(0, 500)
  const found = programs.flatMap((names) => names.exec(agent)?.[0] ?? [])
  return found.length === 0 ? undefined : found.join(' on ')
}

/** Adds the routes. */
export const deviceRoutes = (api: Routes, shop: Shop): void => {
  const {
    accounts,
    byPassword,
    code,
    endSession,
    listSessions,
    logOut,
    logOutEverywhere,
    open,
    sessionAuth,
    settings,
  } = shop
  const { user } = shop
  const of = (summary: string) => operation({ summary, tags: ['Devices'] })

  // a program signs in as a browser does, but gets a token; the route decides, never the request
  const signIn = passwordSignIn<Account>({ ...byPassword, as: 'bearer' })
  api.post('/device/sign-in', of('Sign a device in: the answer has a token'), open, signIn)
  const second = finish(code, (_ctx, { proof }) => accounts.find(proof.subject), { as: 'bearer' })
  api.post('/device/code', of('The second factor of a device'), open, second)

  api.get('/devices', of('Your devices'), user, async (ctx) => {
    const list = await listSessions(ctx)
    if (isNavigation(ctx.request)) page(ctx, devicesPage(ctx.request.auth, list, settings.origin, noticeIn(ctx)))
    else ctx.body = list
  })
  api.get('/sessions', of('Your devices'), user, async (ctx) => {
    if (isNavigation(ctx.request)) done(ctx, '/devices')
    else ctx.body = await listSessions(ctx)
  })
  const own = withAuth(sessionAuth(), unchecked('id', 'endSession finds it among the sessions of the user'))
  // a form has no DELETE
  for (const method of ['delete', 'post'] as const) {
    api[method]('/sessions/:id', of('End one of them'), own, async (ctx) => {
      if (await endSession(ctx.request.auth.username, String(ctx.params['id']))) done(ctx, '/devices', 'ended')
      else refuse(ctx, 404, 'notFound')
    })
  }
  // the page of devices learns at once that it is signed out
  api.get('/live', of('A stream that ends with the session'), user, (ctx) => {
    const stream = new PassThrough()
    stream.write(': open\n\n')
    ctx.type = 'text/event-stream'
    ctx.set('Cache-Control', 'no-store')
    ctx.body = untilEnd(ctx, stream)
  })

  api.post('/sign-out', of('Sign out'), open, async (ctx) => {
    await logOut(ctx)
    done(ctx, '/', 'signedOut')
  })
  api.post('/sign-out/everywhere', of('Sign out everywhere'), user, async (ctx) => {
    await logOutEverywhere(ctx.request.auth.username)
    done(ctx, '/', 'signedOutEverywhere')
  })
}
