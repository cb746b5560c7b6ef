/** The shop of the examples, over HTTP in this process: its own accounts in a new file, its mails in a list. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryStore, type Store } from 'koa-with-auth/stores'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { onTestFinished } from 'vitest'
import { openAccounts } from '../../../examples/shop/accounts.js'
import { shopApp } from '../../../examples/shop/app.js'
import { openDatabase } from '../../../examples/shop/database.js'
import type { Mail } from '../../../examples/shop/mail.js'
import { settingsIn, type ProviderSettings } from '../../../examples/shop/settings.js'
import { limitersOf } from '../../../examples/shop/shop.js'
import { taken } from '../runs/taken.js'
import { jsonClient } from '../servers/jsonClient.js'
import { openIdProvider, SECRET, type OpenIdProvider } from '../servers/openIdProvider.js'
import { reserved } from '../servers/server.js'

export type ShopSite = Awaited<ReturnType<typeof shopSite>>

interface ShopSiteOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly provider?: (origin: string) => Promise<Pick<OpenIdProvider, 'issuer'> & Partial<ProviderSettings>>
  readonly store?: Store
  readonly url?: string
}

/** How the shop is registered at its provider. */
export const registeredAt = (origin: string) =>
  openIdProvider({
    redirectUris: ['provider', 'posted'].map((name) => `${origin}/sign-in/${name}/callback`),
    client: { post_logout_redirect_uris: [`${origin}/signed-out`] },
  })

/** Starts it until the test has finished. */
export const shopSite = async (options: ShopSiteOptions = {}) => {
  const folder = mkdtempSync(join(tmpdir(), 'shop-'))
  const url = options.url ?? `file:${join(folder, 'shop.db')}`
  const database = await openDatabase(url)
  // what is registered last ends first: the server
  onTestFinished(async () => {
    await database.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const { port, serve } = await reserved()
  const origin = `http://localhost:${port}`
  const accounts = await openAccounts(database)
  const mails: Mail[] = []
  const provider = (await options.provider?.(origin)) ?? { issuer: 'http://127.0.0.1:9' }
  const app = shopApp({
    settings: settingsIn({ ORIGIN: origin, KEYS: 'a key of the shop that is long enough', ...options.env }),
    accounts,
    store: options.store ?? memoryStore(),
    lasting: options.store ?? memoryStore(),
    limiters: limitersOf((limit) => new RateLimiterMemory(limit)),
    send: async (mail) => void mails.push(mail),
    provider: { id: 'shop', secret: SECRET, ...provider },
  })
  /** The errors that Koa reported. */
  const exceptions: unknown[] = []
  app.silent = true
  app.on('error', (error) => exceptions.push(error))
  serve(app.callback())
  const client = () => jsonClient(() => origin)
  return {
    origin,
    accounts,
    mails,
    exceptions,
    mail: () => taken(mails),
    client,
    /** A client that is signed in as this user. */
    signedIn: async (user = 'anna') => {
      const visitor = client()
      const { status } = await visitor.post('/sign-in/password', { username: user, password: `${user}-secret` })
      if (status !== 204) throw new Error(`signing in: ${status}`)
      return visitor
    },
  }
}

/** A password that will do. */
export const ANOTHER = 'four words for the next year'

export { pathOf } from './signInSite.js'
