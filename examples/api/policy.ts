/**
 * The example API for `koa-with-auth audit`, in memory and not served.
 *
 * auth.lock says who may call what; `npm run policy` compares.
 */
import type Koa from 'koa'
import { exampleApp } from './app.js'
import { openDatabase } from './database.js'

/** Makes the application. */
export default async (): Promise<Koa> =>
  exampleApp({
    database: await openDatabase(':memory:'),
    keys: ['a key that signs nothing, because nothing is served'],
    allowedAddresses: '127.0.0.1',
  })
