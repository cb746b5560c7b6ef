// What every route needs: guards, accounts, second factors, and what counts guesses.
import type Koa from 'koa'
import { withAuth, type ApiApp, type Limiters } from 'koa-with-auth'
import type { Sessions, SessionStore } from 'koa-with-auth/sessions'
import { codes, guessing, recoveryCodes, totp } from 'koa-with-auth/sign-in'
import type { Account, Accounts } from './accounts.js'
import type { Mailer } from './mail.js'
import type { Settings } from './settings.js'

/** What the server makes of the settings. */
export interface Parts {
  readonly settings: Settings
  readonly accounts: Accounts
  readonly store: SessionStore
  readonly limiters: Limiters
  readonly send: Mailer
}

/** The router of the shop. */
export type Routes = ApiApp<undefined>

/** Makes what the routes share. */
export const shopOf = (app: Koa, parts: Parts, signing: Sessions<Account>) => {
  const { settings, accounts, limiters, store } = parts
  const times = settings.lifetime === undefined ? {} : { lifetime: settings.lifetime }
  const keys = () => app.keys
  const authenticatorApp = totp({ issuer: 'Shop', keys, secretOf: accounts.secretOf, store })
  const recovery = recoveryCodes({ keys, use: accounts.useRecovery })
  // one kind for both, so a handle has five tries together
  const code = codes({ ...times, factors: [authenticatorApp, recovery], limiter: limiters })
  return {
    ...parts,
    ...signing,
    times,
    authenticatorApp,
    recovery,
    code,
    guess: guessing(limiters),
    /** The guard of routes for everybody. */
    open: withAuth(null),
    /** The guard of routes for users who are signed in. */
    user: withAuth(signing.sessionAuth()),
    /** The guard of routes that ask for a fresh proof. */
    fresh: withAuth(signing.sessionAuth({ proof: { maxAge: settings.fresh } })),
  }
}

export type Shop = ReturnType<typeof shopOf>

/** What a session keeps when its user signs in. */
export const keep = ['basket']
