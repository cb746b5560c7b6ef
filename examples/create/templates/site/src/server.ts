/** `npm start`: serves the site until SIGTERM or SIGINT; then it completes what it has begun. */
import { shutDown } from 'koa-with-auth/upgrades'
import { site } from './app.js'
import { mailer } from './mail.js'
import { settingsIn } from './settings.js'
import { openDatabase } from './store.js'

const settings = settingsIn(process.env)
const database = await openDatabase(settings.databaseUrl, settings.redisUrl)
const app = await site(settings, database, await mailer(settings))
const server = app.listen(settings.port, settings.host, () => console.log(`The site is at ${settings.origin}`))
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, async () => {
    await shutDown(server)
    await database.close()
    process.exit()
  })
}
