/**
 * A site that guards only upgrades and sends them to itself, in a separate process, because NODE_DEBUG is read when a
 * process starts.
 */
import { createServer, request } from 'node:http'
import Koa from 'koa'
import { httpBearer } from 'koa-with-auth'
import { guardUpgrade } from 'koa-with-auth/upgrades'

const [, , secret] = process.argv
const app = new Koa()
const guard = guardUpgrade(app, httpBearer({ schemeName: 'user', authenticate: () => false }), { route: '/socket' })
const server = createServer(app.callback())
server.on('upgrade', (...upgrade) => void guard(...upgrade))
server.listen(0, '127.0.0.1', () => {
  const headers = { Connection: 'Upgrade', Upgrade: 'websocket', Authorization: `Bearer ${secret}` }
  request({ port: server.address().port, host: '127.0.0.1', path: `/socket?key=${secret}`, headers })
    .on('response', (response) => {
      response.resume().on('end', () => server.close())
    })
    .end()
})
