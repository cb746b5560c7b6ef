/**
 * `npm run shop`: serves the shop, and prints what to try. settings.ts lists the environment variables.
 */
import { createServer } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import Database from 'libsql'
import { redisStore, sqliteStore } from 'koa-with-auth/stores'
import { shutDown } from 'koa-with-auth/upgrades'
import { RateLimiterRedis, RateLimiterSQLite } from 'rate-limiter-flexible'
import { createClient } from 'redis'
import { openAccounts } from './accounts.js'
import { shopApp } from './app.js'
import { mailer } from './mail.js'
import { startProvider } from './provider.js'
import { settingsIn, type Settings } from './settings.js'
import { limitersOf } from './shop.js'

const fail = (message: string): never => {
  console.error(message)
  process.exit(1)
}

const settingsOrExit = (): Settings => {
  try {
    return settingsIn(process.env)
  } catch (error) {
    return fail(error instanceof Error ? error.message : String(error))
  }
}

const settings = settingsOrExit()
const { databaseUrl, host, origin, port, redisUrl } = settings

const accounts = await openAccounts(databaseUrl).catch((error: Error) =>
  fail(`cannot open the database ${databaseUrl}: ${error.message}; set DATABASE_URL`),
)

// In an outage a command fails immediately, and does not wait for its connection
const redis = createClient({
  url: redisUrl,
  disableOfflineQueue: true,
  socket: { connectTimeout: 2000, socketTimeout: 3000, reconnectStrategy: (times) => Math.min(times * 100, 1000) },
})
redis.on('error', ({ name }: Error) => console.error(`Redis: ${name}`))
// Without Redis the shop starts, too: what needs it is a 503 until it is there
if (redisUrl !== '') await Promise.race([redis.connect(), setTimeout(1000)])

const store =
  redisUrl === ''
    ? sqliteStore({ url: databaseUrl, engine: '@libsql/client' })
    : redisStore({ command: (args: string[]) => redis.sendCommand(args) })
const guesses = new Database(databaseUrl, { timeout: 1000 })
const limiters = limitersOf((limit) =>
  redisUrl === ''
    ? new RateLimiterSQLite({ ...limit, storeClient: guesses, storeType: 'better-sqlite3', tableName: 'guesses' })
    : new RateLimiterRedis({ ...limit, storeClient: redis, useRedisPackage: true }),
)
const own = settings.provider === undefined ? await startProvider(origin, port === 0 ? 0 : port + 1) : undefined
const provider = settings.provider ?? own ?? fail('set ISSUER')
const send = mailer(settings.mailFolder)
const app = shopApp({ settings, accounts, store, limiters, send, provider })
const answer = app.callback()
const server = createServer((req, res) => void answer(req, res))

const toTry = `\
The shop is at ${origin}. Sign in as anna (password anna-secret) or bert (bert-secret).
Mails are ${settings.mailFolder === '' ? 'printed here' : `in ${settings.mailFolder}`}. The provider is ${provider.issuer}.
Every operation is described at ${origin}/docs; try:

  curl -i -c jar -H 'Content-Type: application/json' -d '{"username":"anna","password":"anna-secret"}' ${origin}/sign-in/password
  curl -i -b jar ${origin}/me
  curl -i -b jar -X POST ${origin}/transfer
  curl -i -b jar ${origin}/vault

Stop with Ctrl-C.`

server.listen(port, host, () => console.log(toTry))
server.on('error', (error: NodeJS.ErrnoException) => {
  fail(error.code === 'EADDRINUSE' ? `port ${port} of ${host} is taken; set PORT` : `cannot listen: ${error.message}`)
})

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    own?.close()
    void shutDown(server, { timeout: 5000 }).then(() => {
      accounts.close()
      guesses.close()
      if (redis.isOpen) redis.destroy()
    })
  })
