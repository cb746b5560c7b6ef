// Starts the example: `npm start`. PORT, HOST, IP_ALLOW_LIST, DATABASE_URL and KEYS are read from the environment.
import { randomBytes } from 'node:crypto'
import { exampleApp } from './app.js'
import { openDatabase } from './database.js'

const { env } = process
const host = env['HOST'] ?? '127.0.0.1'
const port = Number(env['PORT'] ?? 3000)
if (!Number.isInteger(port) || port < 0 || port > 65535) {
  console.error(`PORT must be a number from 0 to 65535, not ${JSON.stringify(env['PORT'])}`)
  process.exit(1)
}

const database = await openDatabase(env['DATABASE_URL'] ?? 'file:example.db')
const app = exampleApp({
  database,
  // Without KEYS, sessions end with the process
  keys: env['KEYS']?.split(',') ?? [randomBytes(32).toString('hex')],
  allowedAddresses: (env['IP_ALLOW_LIST'] ?? '127.0.0.1,::1').split(',').map((address) => address.trim()),
})

const server = app.listen(port, host, () => {
  const address = server.address()
  const url = `http://${host}:${typeof address === 'object' && address ? address.port : port}/api`
  console.log(`The example API answers at ${url}. Try:

  curl -i ${url}/bearer
  curl -i ${url}/bearer -H 'Authorization: Bearer supersecret'
  curl -i ${url}/basic -u admin:secret
  curl -i '${url}/apikey?api_key=supersecret'
  curl -i ${url}/headerkey -H 'X-API-Key: supersecret'
  curl -i ${url}/ipwhitelist
  curl -i ${url}/token -d username=anna -d password=anna-secret
  curl -i ${url}/whoami -H 'Authorization: Bearer <the token>'
  curl -i -c cookies.txt ${url}/login -d username=anna -d password=anna-secret
  curl -i -b cookies.txt ${url}/pets`)
})
server.on('error', (error) => {
  console.error(`cannot listen on ${host}:${port}: ${error.message}`)
  process.exit(1)
})

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    server.close(() => database.close())
    server.closeAllConnections()
  })
}
