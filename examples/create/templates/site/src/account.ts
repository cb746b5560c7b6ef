/** The page of one's account, and what it changes. Sessions and passkeys are found among those of the user alone. */
import { bodyParser } from '@koa/bodyparser'
import type Router from '@koa/router'
import type { Context } from 'koa'
import { unchecked, withAuth } from 'koa-with-auth'
import { hash, verify } from 'koa-with-auth/passwords'
import { SignInRefused } from 'koa-with-auth/sessions'
import { begin, countFailures, emailVerification, finish, linkPage } from 'koa-with-auth/sign-in'
import { limitersIn } from './limiter.js'
import { accountPage, deletePage, enrolPage, passwordPage, recoveryPage } from './pages.js'
import { mails } from './texts.js'
import type { Parts } from './parts.js'

export const toAccount = (ctx: Context, flash: string) => {
  ctx.session = { ...ctx.session, flash }
  ctx.redirect('/account')
}

export const fieldsOf = (ctx: Context) => ctx.request.body as Readonly<Record<string, unknown>>

/** Why a guess was refused, such as `wrong` or `throttled`. */
export const reasonOf = (error: unknown): string => {
  if (!(error instanceof SignInRefused)) throw error
  return error.failure.reason ?? error.failure._tag
}

export const accountRoutes = (router: Router, parts: Parts) => {
  const { accounts, auth, authenticatorApp, database, fresh, judge, open, passkey, recovery, send, user } = parts
  const { logIn, logOut, logOutEverywhere, listSessions, endSession, sessionAuth } = auth
  const guess = countFailures(limitersIn(database.store, 'account'))

  router.get('/account', user, async (ctx) => {
    const { id } = ctx.request.auth
    const flash = String(ctx.session?.['flash'] ?? '')
    delete ctx.session?.['flash']
    const [list, keys, spare] = await Promise.all([listSessions(ctx), passkey.list(id), accounts.spareCodes(id)])
    const signals = await passkey.signals(ctx)
    ctx.body = accountPage(ctx, { user: ctx.request.auth, sessions: list, passkeys: keys, spare, signals, flash })
  })

  // sessions
  const ofSession = withAuth(sessionAuth(), unchecked('id', 'endSession finds it among the sessions of the user'))
  router.post('/account/sessions/:id', ofSession, async (ctx) => {
    await endSession(ctx.request.auth.id, String(ctx.params['id']))
    toAccount(ctx, 'ended')
  })
  router.post('/account/everywhere', user, async (ctx) => {
    await logOutEverywhere(ctx.request.auth.id)
    ctx.redirect('/sign-in')
  })

  // the password and the address
  router.get('/account/password', user, (ctx) => (ctx.body = passwordPage(ctx, ctx.request.auth)))
  router.post('/account/password', user, bodyParser(), async (ctx) => {
    const { id, email, hash: before } = ctx.request.auth
    const { current, password } = fieldsOf(ctx)
    const refused = await guess(ctx, id, () => verify(before, String(current))).then(() => undefined, reasonOf)
    const chosen = await judge(password, email)
    const failure = refused ?? (chosen.ok ? undefined : chosen.reason)
    if (!chosen.ok || failure !== undefined) {
      Object.assign(ctx, { status: refused ? 403 : 400, body: passwordPage(ctx, ctx.request.auth, failure) })
      return
    }
    if (!(await accounts.setHash(id, before, await hash(chosen.password)))) return toAccount(ctx, 'wrong')
    await logOutEverywhere(id)
    await logIn(ctx, ctx.request.auth, { proof: { method: 'password' } })
    await send(email, ...mails.passwordChanged)
    toAccount(ctx, 'passwordSet')
  })
  const address = emailVerification({
    path: '/address',
    limiter: limitersIn(database.store, 'address'),
    // `subject` is who asks. Both addresses are in the stamp: a change ends the link
    accountOf: async (to, { subject = '' }) => {
      const account = await accounts.byId(subject)
      return account && !(await accounts.byEmail(to)) ? { id: subject, stamp: `${account.email} ${to}` } : undefined
    },
    send: ({ address, link }) => send(address, ...mails.address(link)),
  })
  router.get('/account/address', fresh, begin(address))
  router.post('/account/address', fresh, begin(address))
  router.get('/address', open, linkPage(address))
  const setAddress = finish(address, async (_ctx, { proof: { subject, stamp } }) => {
    const [before = '', to = ''] = stamp.split(' ')
    const isSet = await accounts.setEmail(subject, before, to)
    if (isSet) await send(before, ...mails.addressChanged(to))
    return isSet
  })
  router.post('/address', open, setAddress)

  // the second factor
  router.post('/account/app', fresh, async (ctx) => {
    const { id, email } = ctx.request.auth
    const made = authenticatorApp.enrol(id, email)
    await accounts.setPending(id, made.sealed)
    ctx.body = enrolPage(ctx, made)
  })
  const showCodes = async (ctx: Context, id: string) => {
    const { codes, digests } = recovery.make(id)
    await accounts.setRecovery(id, digests)
    ctx.body = recoveryPage(ctx, codes)
  }
  router.post('/account/app/confirm', fresh, bodyParser(), async (ctx) => {
    const { id, pending } = ctx.request.auth
    if (pending === null) return toAccount(ctx, 'wrong')
    const confirm = () => authenticatorApp.confirm(id, pending, fieldsOf(ctx)['appCode'])
    const refused = await guess(ctx, id, confirm).then(() => undefined, reasonOf)
    if (refused || !(await accounts.confirm(id, pending))) return toAccount(ctx, refused ?? 'wrong')
    await showCodes(ctx, id)
  })
  router.post('/account/app/remove', fresh, async (ctx) => {
    await accounts.removeApp(ctx.request.auth.id)
    toAccount(ctx, 'removed')
  })
  router.post('/account/recovery', fresh, async (ctx) => {
    const { id, totp } = ctx.request.auth
    if (totp === null) return toAccount(ctx, 'wrong')
    await showCodes(ctx, id)
  })

  // passkeys
  router.post('/account/passkey/options', fresh, begin(passkey.register))
  const added = finish(passkey.register, (ctx) => {
    ctx.session = { ...ctx.session, flash: 'passkeyAdded' }
    return true
  })
  router.post('/account/passkey', user, added)
  const ofPasskey = withAuth(
    sessionAuth({ proof: { maxAge: 900_000 } }),
    unchecked('id', 'remove finds it among the passkeys of the user'),
  )
  router.post('/account/passkeys/:id', ofPasskey, async (ctx) => {
    await passkey.remove(String(ctx.params['id']), ctx.request.auth.id)
    toAccount(ctx, 'passkeyRemoved')
  })

  // the end
  router.get('/account/delete', fresh, (ctx) => (ctx.body = deletePage(ctx, ctx.request.auth)))
  router.post('/account/delete', fresh, async (ctx) => {
    const { id } = ctx.request.auth
    await accounts.remove(id)
    for (const one of await passkey.list(id)) await passkey.remove(one.id, id)
    await logOutEverywhere(id)
    await logOut(ctx)
    ctx.redirect('/?deleted')
  })
}
