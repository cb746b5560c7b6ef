/** Signing up, in and out. */
import type Router from '@koa/router'
import { hash } from 'koa-with-auth/passwords'
import { begin, finish, linkPage, passwordReset, passwordSignIn } from 'koa-with-auth/sign-in'
import type { Account } from './accounts.js'
import { limitersIn } from './limiter.js'
import { mails } from './texts.js'
import type { Parts } from './parts.js'

const DAY = 86_400_000

export const signInRoutes = (router: Router, parts: Parts) => {
  const { accounts, auth, byPassword, database, judge, open, passkey, send, settings } = parts
  const signIn = passwordSignIn<Account>({
    ...byPassword,
    idle: ({ remember }) => remember && 30 * DAY,
    absolute: ({ remember }) => remember && 60 * DAY,
  })
  router.get('/sign-in', open, signIn)
  router.post('/sign-in', open, signIn)
  router.post('/passkey/options', open, begin(passkey))
  const byPasskey = finish(passkey, (_ctx, { proof }) => accounts.byId(proof.subject))
  router.post('/passkey', open, byPasskey)
  router.post('/sign-out', open, async (ctx) => {
    await auth.logOut(ctx)
    ctx.redirect('/')
  })

  // Signing up and a forgotten password are one mail, so a stranger cannot learn who has an account
  const password = passwordReset({
    path: '/password',
    limiter: limitersIn(database.store, 'reset'),
    isGood: (typed, { address }) => judge(typed, address),
    accountOf: async (email) => ({ id: email, stamp: (await accounts.byEmail(email))?.hash ?? '' }),
    send: ({ address, link }) => send(address, ...mails.password(link)),
  })
  router.get('/sign-up', open, begin(password))
  router.post('/sign-up', open, begin(password))
  router.get('/password', open, linkPage(password))
  const set = finish(password, async (_ctx, { proof: { subject: email, stamp }, body }) => {
    const made = await hash(String(body['password']))
    const account = await accounts.byEmail(email)
    if (account === undefined) {
      const role = email === settings.admin ? 'admin' : 'member'
      return stamp === '' && accounts.add(email, made, role)
    }
    const isSet = await accounts.setHash(account.id, stamp, made)
    if (isSet) await auth.logOutEverywhere(account.id)
    return isSet
  })
  router.post('/password', open, set)
}
