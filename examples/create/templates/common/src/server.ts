/** `npm start`: serves the application on PORT and HOST until SIGTERM or SIGINT; then it completes what it has begun. */
import { shutDown } from 'koa-with-auth/upgrades'
import { service } from './app.js'

const { PORT = '3000', HOST = '127.0.0.1' } = process.env

const { app, toTry } = await service()
const url = `http://${HOST}:${PORT}/api`
const server = app.listen(Number(PORT), HOST, () => {
  console.log([`The docs page is at ${url}/docs. Try:`, ...toTry(url)].join('\n  '))
})
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void shutDown(server).then(() => process.exit()))
