// What every route needs: guards, accounts, second factors, and what counts guesses.
import { bodyParser } from '@koa/bodyparser'
import type Koa from 'koa'
import { withAuth, type ApiApp, type Limiter, type Limiters } from 'koa-with-auth'
import type { Sessions, Signals } from 'koa-with-auth/sessions'
import { secondFactor, countFailures, recoveryCodes, totp, type FinishHook } from 'koa-with-auth/sign-in'
import { passkeys } from 'koa-with-auth/sign-in/passkeys'
import { oneTimeIds, type Store } from 'koa-with-auth/stores'
import type { Account, Accounts } from './accounts.js'
import { done } from './answers.js'
import type { Limit } from './database.js'
import type { Mailer } from './mail.js'
import type { Settings } from './settings.js'

/** What the server makes of the settings. */
export interface Parts {
  readonly settings: Settings
  readonly accounts: Accounts
  /** For sessions and what else is over some day. */
  readonly store: Store
  /** For passkeys, which outlast sessions. */
  readonly lasting: Store
  /** Tells other processes that a session has ended. */
  readonly signals?: Signals | undefined
  readonly limiters: Limiters
  readonly send: Mailer
}

/** The router of the shop. */
export type Routes = ApiApp<undefined>

const MINUTES = 60

// How long a removal may take, in milliseconds: if its process ends, the next one can begin then
const REMOVAL = 10_000

/** What counts wrong passwords and codes, and what asks for mails. Times are in seconds. */
export const limitersOf = (limiterOf: (limit: Limit) => Limiter): Limiters => ({
  accountAndAddress: limiterOf({ keyPrefix: 'account-address', points: 10, duration: 15 * MINUTES }),
  account: limiterOf({ keyPrefix: 'account', points: 3000, duration: 24 * 60 * MINUTES }),
})

// Only the first five digits of a digest leave the shop
const breachedAt = (address: string) =>
  address === ''
    ? undefined
    : async (prefix: string): Promise<string> => (await fetch(new URL(prefix, address), { redirect: 'error' })).text()

/** Makes what the routes share. */
export const shopOf = (app: Koa, parts: Parts, signing: Sessions<Account>) => {
  const { settings, accounts, lasting, limiters, store } = parts
  const times = settings.lifetime === undefined ? {} : { lifetime: settings.lifetime }
  const keys = () => app.keys
  const authenticatorApp = totp({ issuer: 'Shop', keys, secretOf: accounts.secretOf, store })
  const recovery = recoveryCodes({ keys, use: accounts.useRecovery })
  // one kind for both, so a handle has five tries together
  const code = secondFactor({
    ...times,
    factors: [authenticatorApp, recovery],
    limiter: limiters,
    path: '/sign-in/code',
  })
  const { origin, relatedOrigins, rpId } = settings
  const isAddress = /^https?:\/\/(?:[\d.]+|\[.*\])(?::\d+)?$/.test(origin)
  const passkey = passkeys<Account>({
    ...times,
    rp: { id: rpId, name: 'Shop' },
    origins: [isAddress ? `http://localhost:${new URL(origin).port}` : origin, ...relatedOrigins],
    store: lasting,
    nameOf: ({ username, address }) => address ?? username,
  })
  const once = oneTimeIds(store, 'shop')
  // Of two removals at once, in any process, one happens: otherwise both could find the way that the other one removes
  const removeWay = async (user: string, own: 0 | 1, remove: () => Promise<boolean>): Promise<boolean> => {
    const id = `a removal by ${user}`
    if (!(await once.use(id, REMOVAL))) return false
    try {
      const left = (await accounts.waysOf(user)) + (await passkey.list(user)).length - own
      return left > 0 && (await remove())
    } finally {
      await once.release(id)
    }
  }
  const signedIn: FinishHook<{ method: string; subject: string }> = async (ctx, { proof, returnTo }) => {
    const account = await accounts.find(proof.subject)
    if (account !== undefined) done(ctx, returnTo)
    return account
  }
  return {
    ...parts,
    ...signing,
    app,
    times,
    authenticatorApp,
    recovery,
    code,
    /** How a password signs in, in a browser and on a device. */
    byPassword: {
      accountOf: async (username: string) => {
        const account = await accounts.find(username)
        return account && { user: account, hash: account.password }
      },
      factors: code,
      limiter: limiters,
      save: accounts.renew,
    },
    guess: countFailures(limiters),
    breached: breachedAt(settings.breached),
    passkey,
    /** Removes a way to sign in, unless nothing else is left. `own` is 1 if it is there. */
    removeWay,
    /** Signs in the user whom a proof names: the hook of `finish`. */
    signedIn,
    /** Reads the body, for handlers of the shop. The library reads what is its own. */
    parser: bodyParser({
      jsonLimit: '64kb',
      formLimit: '64kb',
      onError: (error, ctx) => ctx.throw('status' in error && error.status === 413 ? 413 : 400),
    }),
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
