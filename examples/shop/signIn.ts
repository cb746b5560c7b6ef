// Signing in with a password, a second factor, or a mail; setting a new password, and verifying an address.
import { operation } from 'koa-with-auth'
import {
  begin,
  finish,
  linkPage,
  mailAddress,
  mailed,
  resetLink,
  secondly,
  verifyLink,
  type LinkAccount,
} from 'koa-with-auth/sign-in'
import type { Account } from './accounts.js'
import { done, fieldsOf, refuse, settled } from './answers.js'
import { keep, type Routes, type Shop } from './shop.js'

/** The account of an address, as links by mail know it. */
const linkAccounts =
  ({ accounts }: Shop, stampOf: (account: Account) => Promise<string>) =>
  async (address: string): Promise<LinkAccount | undefined> => {
    const account = await accounts.byAddress(address)
    return account && { id: account.username, stamp: await stampOf(account) }
  }

/** Adds the routes. */
export const signInRoutes = (api: Routes, shop: Shop): void => {
  const { accounts, code, guess, logIn, logOutEverywhere, open, user, send, limiters, times } = shop
  const of = (summary: string) => operation({ summary, tags: ['Sign in'] })

  api.post(
    '/sign-in/password',
    of('Sign in with a password'),
    open,
    settled(async (ctx) => {
      const { username, password, returnTo } = fieldsOf(ctx)
      if (typeof username !== 'string' || typeof password !== 'string') return refuse(ctx, 400, 'malformed')
      // no account has a longer name
      if (username.length > 320) return refuse(ctx, 403, 'wrong')
      const known = await guess(ctx, username, () => accounts.withPassword(username, password))
      const { account, isStill } = known
      const proof = { method: 'password' }
      const half = account.hasFactor ? await secondly(ctx, code, { user: account, proof }) : undefined
      if (half === undefined) await logIn(ctx, account, { proof, keep })
      // a reset meanwhile has ended the sessions before this one. What throws undoes the sign-in
      if (!(await isStill())) ctx.throw(403)
      if (half === undefined) done(ctx, returnTo ?? ctx.query['returnTo'])
      else ctx.body = { next: 'code', ...half }
    }),
  )
  const second = finish(code, (_ctx, { proof }) => accounts.find(proof.subject), { keep })
  for (const path of ['/sign-in/code', '/sign-in/recovery']) {
    api.post(path, of('The second factor'), open, settled(second))
  }

  const mail = mailed({
    ...times,
    path: '/sign-in/mail/link',
    limiter: limiters,
    send: async ({ address, link, code: typed }) => {
      if ((await accounts.byAddress(address)) === undefined) return
      const text = `Open ${link} in the browser where you began, or type the code ${typed} there.`
      await send({ to: address, subject: 'Sign in to the shop', text, link, code: typed })
    },
  })
  const byMail = settled(
    finish(
      mail,
      async (ctx, { proof, returnTo }) => {
        const account = await accounts.byAddress(proof.subject)
        if (account?.hasFactor !== true) return account
        ctx.body = { next: 'code', ...(await secondly(ctx, code, { user: account, proof, returnTo })) }
        return undefined
      },
      { keep },
    ),
  )
  const beginMail = settled(begin(mail))
  api.post('/sign-in/mail', of('Ask for a mail with a link and a code'), open, (ctx, next) =>
    mailAddress(fieldsOf(ctx)['address']) === undefined ? refuse(ctx, 400, 'address') : beginMail(ctx, next),
  )
  api.post('/sign-in/mail/code', of('Sign in with the code of the mail'), open, byMail)
  const signInPage = linkPage({
    title: 'Sign in to the shop',
    text: 'This signs you in if this is the browser where you asked for the mail.',
    button: 'Sign in',
  })
  api.get('/sign-in/mail/link', of('The page of the link'), open, signInPage)
  api.post('/sign-in/mail/link', of('Sign in with the link'), open, byMail)

  const reset = resetLink({
    ...times,
    path: '/reset/link',
    limiter: limiters,
    accountOf: linkAccounts(shop, accounts.stampOf),
    send: ({ address, link }) =>
      send({ to: address, subject: 'A new password', text: `Set a new password: ${link}`, link }),
  })
  const beginReset = begin(reset)
  api.post('/reset', of('Ask for a mail that sets a new password'), open, async (ctx, next) => {
    const { address } = fieldsOf(ctx)
    // the same answer for what is no address
    if (typeof address === 'string' && mailAddress(address) === undefined) return done(ctx, '/sign-in?done=reset')
    await beginReset(ctx, next)
    if (ctx.status === 204) done(ctx, '/sign-in?done=reset')
  })
  const resetPage = linkPage({
    title: 'A new password',
    text: 'It signs you out everywhere. Then sign in with it.',
    button: 'Save',
    password: 'New password',
  })
  api.get('/reset/link', of('The page of the link'), open, resetPage)
  const setPassword = finish(reset, async (ctx, { proof, body: { password } }) => {
    // another link was pressed at the same time
    if (typeof password !== 'string' || !(await accounts.setPassword(proof.stamp, password))) {
      return refuse(ctx, 400, 'unknown')
    }
    await logOutEverywhere(proof.subject)
    done(ctx, '/sign-in?done=password')
    return true
  })
  api.post('/reset/link', of('Set a new password'), open, async (ctx, next) => {
    const { password } = fieldsOf(ctx)
    // before the link is used up
    if (typeof password !== 'string' || password === '') return refuse(ctx, 400, 'malformed')
    await setPassword(ctx, next)
  })

  const verify = verifyLink({
    ...times,
    path: '/verify/link',
    limiter: limiters,
    accountOf: linkAccounts(shop, async ({ username, address, verified }) =>
      JSON.stringify([username, address, verified]),
    ),
    send: ({ address, link }) =>
      send({ to: address, subject: 'Your address', text: `Verify your address: ${link}`, link }),
  })
  const beginVerify = begin(verify, { ask: ({ request }) => addressIn(request) })
  api.post('/verify', of('Ask for a mail that verifies the address'), user, async (ctx, next) => {
    if (ctx.request.auth.address === undefined) return refuse(ctx, 409, 'noAddress')
    await beginVerify(ctx, next)
    if (ctx.status === 204) done(ctx, '/?done=verify')
  })
  const verifyPage = linkPage({
    title: 'Your address',
    text: 'It is yours if this mail came to you.',
    button: 'Verify it',
  })
  api.get('/verify/link', of('The page of the link'), open, verifyPage)
  const verifyAddress = finish(verify, async (ctx, { proof }) => {
    const account = await accounts.find(proof.subject)
    if (account?.address === undefined) return false
    done(ctx, '/?done=verified')
    return accounts.verify(account.address)
  })
  api.post('/verify/link', of('Verify the address'), open, verifyAddress)
}

// Safe: the operation is guarded, and accounts without an address are refused before
const addressIn = (request: object): string => (request as { auth: Account }).auth.address ?? ''
