/**
 * The shop for `koa-with-auth audit`, in memory and not served.
 *
 * auth.lock says who may call what; `npm run policy` compares.
 */
import type Koa from 'koa'
import { memoryStore } from 'koa-with-auth/stores'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { openAccounts } from './accounts.js'
import { shopApp } from './app.js'
import { openDatabase } from './database.js'
import { settingsIn } from './settings.js'
import { limitersOf } from './shop.js'

const provider = { issuer: 'https://provider.example', id: 'shop', secret: 'a secret that no provider knows' }
const api = { resource: 'https://api.example', scope: ['orders'] }

/** Makes the application. */
export default async (): Promise<Koa> =>
  shopApp({
    settings: {
      ...settingsIn({ KEYS: 'a key that signs nothing as nothing is served' }),
      second: { ...provider, issuer: 'https://other.example' },
      plain: {
        authorize: 'https://plain.example/authorize',
        token: 'https://plain.example/token',
        user: 'https://plain.example/user',
        clientId: 'shop',
        clientSecret: 'a secret that no provider knows',
      },
    },
    accounts: await openAccounts(await openDatabase(':memory:')),
    store: memoryStore(),
    lasting: memoryStore(),
    limiters: limitersOf((limit) => new RateLimiterMemory(limit)),
    send: async () => {},
    provider: { ...provider, api },
  })
