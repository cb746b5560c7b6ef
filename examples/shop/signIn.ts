// Signing in with a password, a second factor, or a mail; setting a new password, and verifying an address.
import { operation } from 'koa-with-auth'
import { newPassword } from 'koa-with-auth/passwords'
import {
  begin,
  finish,
  linkPage,
  normalizeEmail,
  emailSignIn,
  passwordSignIn,
  passwordReset,
  askSecondFactor,
  emailVerification,
} from 'koa-with-auth/sign-in'
import type { Account } from './accounts.js'
import { done, fieldsOf, refuse } from './answers.js'
import { keep, type Routes, type Shop } from './shop.js'

/** Adds the routes. */
export const signInRoutes = (api: Routes, shop: Shop): void => {
  const { accounts, code, logOutEverywhere, open, parser, signedIn, user, send, limiters, times, breached } = shop
  const of = (summary: string) => operation({ summary, tags: ['Sign in'] })

  api.post(
    '/sign-in/password',
    of('Sign in with a password'),
    open,
    passwordSignIn<Account>({ ...shop.byPassword, keep }),
  )
  const second = finish(code, signedIn, { keep })
  for (const path of ['/sign-in/code', '/sign-in/recovery']) {
    api.post(path, of('The second factor'), open, second)
  }

  const mail = emailSignIn({
    ...times,
    path: '/sign-in/mail/link',
    limiter: limiters,
    send: async ({ address, link, code: typed }) => {
      if ((await accounts.byAddress(address)) === undefined) return
      const text = `Open ${link} in the browser where you began, or type the code ${typed} there.`
      await send({ to: address, subject: 'Sign in to the shop', text, link, code: typed })
    },
  })
  const byMail = finish(
    mail,
    async (ctx, { proof, returnTo }) => {
      const account = await accounts.byAddress(proof.subject)
      if (account?.hasFactor === true) await askSecondFactor(ctx, code, { user: account, proof, returnTo })
      else if (account !== undefined) done(ctx, returnTo)
      return account?.hasFactor === true ? undefined : account
    },
    { keep },
  )
  api.post('/sign-in/mail', of('Ask for a mail with a link and a code'), open, begin(mail))
  api.post('/sign-in/mail/code', of('Sign in with the code of the mail'), open, byMail)
  api.get('/sign-in/mail/link', of('The page of the link'), open, linkPage(mail))
  api.post('/sign-in/mail/link', of('Sign in with the link'), open, byMail)

  const accountOf = async (address: string) => {
    const account = await accounts.byAddress(address)
    return account && { id: account.username, stamp: accounts.stampOf(account) }
  }
  // the page of the link says why one will not do
  const goodFor = (chosen: string, { id, address }: { readonly id: string; readonly address: string }) =>
    newPassword(chosen, { user: { username: id, email: address }, words: ['shop'], breached })
  const reset = passwordReset({
    ...times,
    path: '/reset/link',
    limiter: limiters,
    isGood: goodFor,
    accountOf,
    send: ({ address, link }) =>
      send({ to: address, subject: 'A new password', text: `Set a new password: ${link}`, link }),
  })
  const beginReset = begin(reset)
  api.post('/reset', of('Ask for a mail that sets a new password'), open, parser, (ctx, next) => {
    const { address } = fieldsOf(ctx)
    // the same answer for what is no address
    if (typeof address === 'string' && normalizeEmail(address) === undefined) return done(ctx, '/sign-in', 'reset')
    return beginReset(ctx, next)
  })
  api.get('/reset/link', of('The page of the link'), open, linkPage(reset))
  const setPassword = finish(reset, async (ctx, { proof, body: { password } }) => {
    // another link was pressed at the same time
    if (!(await accounts.setPassword(proof.stamp, String(password)))) return refuse(ctx, 400, 'unknown')
    await logOutEverywhere(proof.subject)
    done(ctx, '/sign-in', 'password')
    return true
  })
  api.post('/reset/link', of('Set a new password'), open, setPassword)

  const verify = emailVerification({
    ...times,
    path: '/verify/link',
    limiter: limiters,
    accountOf,
    send: ({ address, link }) =>
      send({ to: address, subject: 'Your address', text: `Verify your address: ${link}`, link }),
  })
  const beginVerify = begin(verify, { ask: ({ request }) => addressIn(request) })
  api.post('/verify', of('Ask for a mail that verifies the address'), user, (ctx, next) =>
    ctx.request.auth.address === undefined ? refuse(ctx, 409, 'noAddress') : beginVerify(ctx, next),
  )
  api.get('/verify/link', of('The page of the link'), open, linkPage(verify))
  const verifyAddress = finish(verify, async (ctx, { proof }) => {
    const isVerified = await accounts.verify(proof.stamp)
    if (isVerified) done(ctx, '/', 'verified')
    return isVerified
  })
  api.post('/verify/link', of('Verify the address'), open, verifyAddress)
}

// Safe: the operation is guarded, and accounts without an address are refused before
const addressIn = (request: object): string => (request as { auth: Account }).auth.address ?? ''
