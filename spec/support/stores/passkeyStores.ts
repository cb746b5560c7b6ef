/** Every store of passkeys with its real database. */
import { memoryPasskeyStore, type PasskeyStore } from 'koa-with-auth/sign-in/passkeys'
import { redisPasskeyStore } from 'koa-with-auth/redis'
import { sqlitePasskeyStore } from 'koa-with-auth/sqlite'
import { describeEveryStore, type Suite } from './everyStore.js'

/** Runs a suite on every store, and on Redis with every client. */
export const describeEveryPasskeyStore = (suite: Suite<PasskeyStore>): void =>
  describeEveryStore(
    'PasskeyStore',
    { memory: memoryPasskeyStore, sqlite: sqlitePasskeyStore, redis: redisPasskeyStore },
    suite,
  )
