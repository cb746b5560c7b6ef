// Second factors, fresh proofs, and the operations that ask for them.
import type { Context } from 'koa'
import { operation, withAuth } from 'koa-with-auth'
import { verify } from 'koa-with-auth/passwords'
import { SignInRefused } from 'koa-with-auth/sessions'
import { done, fieldsOf, isNavigation, page, refuse } from './answers.js'
import { enrolPage, recoveryPage } from './accountPages.js'
import type { Routes, Shop } from './shop.js'

// Recovery codes are shown once, whether as a page or as JSON
const show = (ctx: Context, codes: ReadonlyArray<string>): void => {
  ctx.set('Cache-Control', 'no-store')
  if (isNavigation(ctx.request)) page(ctx, recoveryPage(codes))
  else ctx.body = { recovery: codes }
}

// A refusal leads a navigation to the sign-in page; here it is the same page again
const askAgain = (ctx: Context) => (error: unknown) => {
  if (!(error instanceof SignInRefused) || !isNavigation(ctx.request)) throw error
  page(ctx, enrolPage(undefined, error.failure.reason ?? error.failure._tag))
}

/** Adds the routes. */
export const factorRoutes = (api: Routes, shop: Shop): void => {
  const {
    accounts,
    addProof,
    code: codeKind,
    authenticatorApp,
    fresh,
    guess,
    parser,
    recovery,
    sessionAuth,
    user,
  } = shop
  const of = (summary: string) => operation({ summary, tags: ['Second factors and fresh proofs'] })

  api.post('/factors/totp', of('A secret for an authenticator app'), fresh, async (ctx) => {
    const { username } = ctx.request.auth
    const { secret, uri, sealed } = authenticatorApp.enrol(username)
    await accounts.enrol(username, sealed)
    ctx.set('Cache-Control', 'no-store')
    if (isNavigation(ctx.request)) page(ctx, enrolPage({ secret, uri }))
    else ctx.body = { secret, uri }
  })
  api.post('/factors/totp/confirm', of('The first code makes the secret active'), fresh, parser, async (ctx) => {
    const { username } = ctx.request.auth
    const { code } = fieldsOf(ctx)
    if (typeof code !== 'string') return refuse(ctx, 400, 'malformed')
    const made = await guess(ctx, username, async () => {
      const sealed = await accounts.pendingOf(username)
      if (sealed === undefined || !(await authenticatorApp.confirm(username, sealed, code))) return undefined
      const set = recovery.make(username)
      // another code may have made it active meanwhile
      return (await accounts.activate(username, sealed, set.digests)) ? set : undefined
    }).catch(askAgain(ctx))
    if (made !== undefined) show(ctx, made.codes)
  })
  api.post('/factors/recovery', of('New recovery codes'), fresh, async (ctx) => {
    const { username, hasFactor } = ctx.request.auth
    if (!hasFactor) return refuse(ctx, 409, 'noFactor')
    const { codes, digests } = recovery.make(username)
    await accounts.setRecovery(username, digests)
    show(ctx, codes)
  })
  // a form has no DELETE
  for (const [method, path] of [
    ['delete', '/factors/totp'],
    ['post', '/factors/totp/remove'],
  ] as const) {
    api[method](path, of('Remove the second factor'), fresh, async (ctx) => {
      await accounts.removeFactor(ctx.request.auth.username)
      done(ctx, '/', 'removed')
    })
  }

  api.post('/prove/password', of('A fresh proof by the password'), user, parser, async (ctx) => {
    const { username, password: stored } = ctx.request.auth
    const { password } = fieldsOf(ctx)
    if (typeof password !== 'string') return refuse(ctx, 400, 'malformed')
    await guess(ctx, username, () => verify(stored, password))
    await addProof(ctx, { method: 'password' })
    done(ctx, '/', 'proved')
  })
  api.post('/prove/code', of('A fresh proof by a code'), user, parser, async (ctx) => {
    const { code } = fieldsOf(ctx)
    if (typeof code !== 'string') return refuse(ctx, 400, 'malformed')
    await addProof(ctx, await codeKind.prove(ctx, ctx.request.auth.username, code))
    done(ctx, '/', 'proved')
  })
  api.post('/transfer', of('Asks for a fresh proof'), fresh, (ctx) => {
    ctx.body = { done: true }
  })
  const second = sessionAuth({ proof: { methods: ['totp', 'recovery', 'passkey'] } })
  api.get('/vault', of('Asks for a second factor'), withAuth(second), (ctx) => {
    ctx.body = { vault: `gold of ${ctx.request.auth.username}` }
  })
}
