/**
 * `npm start`: serves the example API (api/) below `/api`, its docs page at `/api/docs`, and the small examples below
 * `/examples`, and prints what to try.
 *
 * api/settings.ts lists the environment variables.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { redisStore, sqliteStore } from 'koa-with-auth/stores'
import { shutDown } from 'koa-with-auth/upgrades'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import { createClient } from 'redis'
import { exampleApp } from './api/app.js'
import { clientKeys, withDemoKey } from './api/clients.js'
import { openDatabase } from './api/database.js'
import { isLoopback, settingsIn, type Settings } from './api/settings.js'
import { databaseTokens, redisTokens } from './api/tokens.js'
import { application } from './app.js'

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

const { port, host, keys, databaseUrl, allowedAddresses, redisUrl } = settingsOrExit()

const toTry = (url: string) => `\
Open ${url} in a browser, and sign in as sam (password sam-secret).
The docs page is at ${url}/api/docs: choose Authorize, enter the token supersecret, and try each operation.

In another terminal, with the answers beside them:

  curl -i -H 'Authorization: Bearer supersecret' ${url}/api/bearer                          # 200
  curl -i -H 'Authorization: Bearer wrong' ${url}/api/bearer                                # 401
  curl -i -u admin:secret ${url}/api/basic                                                  # 200
  curl -i -u admin:wrong ${url}/api/basic                                                   # 401
  curl -i '${url}/api/apikey?api_key=supersecret'                                           # 200
  curl -i -H 'X-API-Key: supersecret' ${url}/api/multiple                                   # 200
  curl -i ${url}/api/multiple                                                               # 401
  curl -i ${url}/api/ipwhitelist                                                            # 200
  curl -i -d 'username=anna&password=anna-secret' ${url}/api/token                          # 200
  curl -i ${url}/api/whoami                                                                 # 401
  curl -i -c cookies.txt -d 'username=sam&password=sam-secret' ${url}/api/login             # 204
  curl -i -b cookies.txt ${url}/api/staff-area                                              # 200
  curl -i -b cookies.txt ${url}/api/admin-only                                              # 401
  curl -i -b cookies.txt -X POST ${url}/api/pets                                            # 201
  curl -i -b cookies.txt -X POST -H 'Origin: https://evil.example' ${url}/api/pets          # 403
  curl -i -H 'X-API-Key: partnerkey' ${url}/examples/levels/outside/reports                 # 200
  curl -i -H 'Authorization: Bearer supersecret' '${url}/examples/stream?lines=3'           # 200

What protects each route, and whether that is what its policy file says:

  npx koa-with-auth audit dist/examples/api/policy.js
  npx koa-with-auth audit dist/examples/api/policy.js --check examples/api/auth.lock

examples/README.md has more. "npm run shop" serves a shop that shows every way to sign in. Stop with Ctrl-C.`

const database = await openDatabase(databaseUrl).catch((error: Error) =>
  fail(`cannot open the database ${databaseUrl}: ${error.message}; set DATABASE_URL`),
)
// In an outage a command fails immediately, and does not wait for its connection
const redis = createClient({ url: redisUrl, disableOfflineQueue: true })
redis.on('error', ({ message }: Error) => console.error(`Redis: ${message}`))
if (redisUrl !== '') await redis.connect()
const command = (args: string[]) => redis.sendCommand(args)

const app = exampleApp({
  database,
  keys,
  allowedAddresses,
  store: redisUrl === '' ? sqliteStore({ url: databaseUrl, engine: '@libsql/client' }) : redisStore({ command }),
  clients: await withDemoKey(
    clientKeys(redisUrl === '' ? sqliteStore({ url: databaseUrl, engine: '@libsql/client' }) : redisStore({ command })),
  ),
  tokens: redisUrl === '' ? databaseTokens(database) : redisTokens(command),
  ...(redisUrl !== '' && {
    limiterOf: (options) => new RateLimiterRedis({ ...options, storeClient: redis, useRedisPackage: true }),
  }),
})

// Two applications with separate sessions. If the small examples were mounted inside of the API (koa-mount), they would
// use its session.
const api = app.callback()
const examples = application(keys).callback()
const isExample = (url = '') => /^\/examples(?:[/?]|$)/i.test(url)
const server = createServer((req, res) => void (isExample(req.url) ? examples : api)(req, res))

server.listen(port, host, () => {
  const { address, family, port: listening } = server.address() as AddressInfo
  if (!isLoopback(address)) {
    console.error(
      `Warning: ${address} is no loopback address, and the users, passwords and keys of this example are known to everyone. Do not serve it to a network: set HOST=127.0.0.1.`,
    )
  }
  console.log(toTry(`http://${family === 'IPv6' ? `[${address}]` : address}:${listening}`))
})

server.on('error', (error: NodeJS.ErrnoException) => {
  fail(error.code === 'EADDRINUSE' ? `port ${port} of ${host} is taken; set PORT` : `cannot listen: ${error.message}`)
})

// Streams end at once; other responses are completed, for at most 5 seconds
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    void shutDown(server, { timeout: 5000 }).then(() => {
      database.close()
      if (redis.isOpen) redis.destroy()
    })
  })
