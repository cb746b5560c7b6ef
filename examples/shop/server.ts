/**
 * `npm run shop`: serves the shop, and prints what to try. settings.ts lists the environment variables.
 */
import { createServer } from 'node:http'
import { shutDown } from 'koa-with-auth/upgrades'
import { openAccounts } from './accounts.js'
import { shopApp } from './app.js'
import { openDatabase, openRedis, type Kept } from './database.js'
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

// a URL may have a password
const named = URL.canParse(databaseUrl) ? databaseUrl.replace(/\/\/[^@/]*@/, '//') : databaseUrl
const cannotOpen = (error: Error): never =>
  fail(`cannot open the database ${named}: ${error.message}; set DATABASE_URL`)
const database = await openDatabase(databaseUrl).catch(cannotOpen)
const accounts = await openAccounts(database).catch(cannotOpen)
const kept: Kept = redisUrl === '' ? database : await openRedis(redisUrl)
const limiters = limitersOf(kept.limiterOf)
const own = settings.provider === undefined ? await startProvider(origin, port === 0 ? 0 : port + 1) : undefined
const provider = settings.provider ?? own ?? fail('set ISSUER')
const send = mailer(settings.mailFolder)
const [store, lasting] = [kept.store(), database.store()]
const app = shopApp({ settings, accounts, store, lasting, signals: kept.signals, limiters, send, provider })
const answer = app.callback()
const server = createServer((req, res) => void answer(req, res))

const toTry = `\
The shop is at ${origin}. Sign in as anna (password anna-secret) or bert (bert-secret).
Mails are ${settings.mailFolder === '' ? 'printed here' : `in ${settings.mailFolder}`}. The provider is ${provider.issuer}.
Its page of devices is ${origin}/devices, and ${origin}/orders calls an API of the provider.
Every operation is described at ${origin}/docs; try:

  curl -i -c jar -H 'Content-Type: application/json' -d '{"username":"anna","password":"anna-secret"}' ${origin}/sign-in/password
  curl -i -b jar ${origin}/me
  curl -i -b jar -X POST ${origin}/transfer
  curl -i -b jar ${origin}/vault
  curl -i -d username=bert -d password=bert-secret ${origin}/device/sign-in   # a token, and no cookie

Stop with Ctrl-C.`

server.listen(port, host, () => console.log(toTry))
server.on('error', (error: NodeJS.ErrnoException) => {
  fail(error.code === 'EADDRINUSE' ? `port ${port} of ${host} is taken; set PORT` : `cannot listen: ${error.message}`)
})

// Streams end at once; other responses are completed, for at most 5 seconds
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    own?.close()
    void shutDown(server, { timeout: 5000 }).then(async () => {
      await Promise.all([...new Set<Kept>([kept, database])].map(async ({ close }) => close()))
    })
  })
