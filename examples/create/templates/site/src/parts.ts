/** What the site is made of. */
import Koa from 'koa'
import { withAuth } from 'koa-with-auth'
import { newPassword } from 'koa-with-auth/passwords'
import { sessions } from 'koa-with-auth/sessions'
import { normalizeEmail, recoveryCodes, secondFactor, totp } from 'koa-with-auth/sign-in'
import { passkeys } from 'koa-with-auth/sign-in/passkeys'
import { openAccounts, type Account } from './accounts.js'
import { limitersIn } from './limiter.js'
import { pageOf } from './pages.js'
import type { Settings } from './settings.js'
import type { Database } from './store.js'

/** Sends a mail. */
export type Send = (to: string, subject: string, text: string) => Promise<unknown>

const browsers = [/Firefox|Edg|Chrome|Safari/, /Android|iPhone|iPad|Windows|Mac OS|Linux/]
const labelOf = (agent: string) => browsers.flatMap((one) => one.exec(agent)?.[0] ?? []).join(', ')

export const partsOf = async (settings: Settings, database: Database, send: Send) => {
  const { keys, origin, proxy } = settings
  const { store, signals } = database
  const accounts = await openAccounts(database.run)
  const app = new Koa({ keys, proxy })
  const auth = sessions(app, {
    loadUser: accounts.byId,
    identify: ({ id }) => id,
    store,
    signals,
    origin,
    pages: pageOf,
    list: { label: (request) => labelOf(request.get('User-Agent')) },
    bearer: true, // devices
  })
  const site = new URL(origin)
  const authenticatorApp = totp({
    issuer: site.host,
    keys: () => app.keys,
    secretOf: async (id) => (await accounts.byId(id))?.totp ?? undefined,
    store,
  })
  const recovery = recoveryCodes({ keys: () => app.keys, use: accounts.useRecovery })
  const passkey = passkeys<Account>({
    rp: { id: site.hostname, name: site.host },
    origins: [origin],
    store,
    nameOf: ({ email }) => email,
  })
  /** How a password signs in. */
  const byPassword = {
    accountOf: async (typed: string) => {
      const user = await accounts.byEmail(normalizeEmail(typed) ?? '')
      return user && { user, hash: user.hash }
    },
    fields: { username: 'email' },
    factors: secondFactor({ factors: [authenticatorApp, recovery], limiter: limitersIn(store, 'code') }),
    limiter: limitersIn(store, 'password'),
    save: ({ id, hash }: Account, made: string) => accounts.setHash(id, hash, made),
  }
  return {
    settings,
    database,
    send,
    accounts,
    app,
    auth,
    authenticatorApp,
    recovery,
    passkey,
    byPassword,
    /** Whether a new password will do, and why not. `breached` can ask a list of those that have leaked. */
    judge: (typed: unknown, email: string) => newPassword(typed, { user: { email }, words: ['my site'] }),
    open: withAuth(null),
    user: withAuth(auth.sessionAuth()),
    /** Who has signed in within 15 minutes; others sign in once more. */
    fresh: withAuth(auth.sessionAuth({ proof: { maxAge: 900_000 } })),
  }
}

export type Parts = Awaited<ReturnType<typeof partsOf>>
