/** `npm start`: serves the site on PORT and HOST. */
import { shutDown } from 'koa-with-auth/upgrades'
import { site } from './app.js'

const { PORT = '3000', HOST = '127.0.0.1' } = process.env
const server = (await site()).listen(Number(PORT), HOST, () => console.log(`The site is at http://localhost:${PORT}`))
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void shutDown(server).then(() => process.exit()))
