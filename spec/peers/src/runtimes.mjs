/**
 * Bun and Deno, as npm installs them: the hostile requests of the contract get the answers that they get on Node, and so
 * does a program that signs in, keeps sessions in SQLite, verifies tokens and webhooks, and guards a handshake.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { createServer, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import Router from '@koa/router'
import { SignJWT } from 'jose'
import Koa from 'koa'
import { withAuth } from '../../../dist/index.js'
import { httpJwt } from '../../../dist/jwt.js'
import { hash } from '../../../dist/passwords.js'
import { sessions } from '../../../dist/sessions.js'
import { passwordSignIn } from '../../../dist/sign-in.js'
import { sqliteStore } from '../../../dist/stores.js'
import { guardUpgrade } from '../../../dist/upgrades.js'
import { github, webhook } from '../../../dist/webhooks.js'
import { runContract } from '../../data/runner.mjs'
import { here } from './guide.mjs'

const SECRET = 'a secret that has more than thirty-two bytes'

const day = async () => {
  const users = new Map([['anna', { username: 'anna', hash: await hash('anna-secret') }]])
  const app = new Koa({ keys: [SECRET] })
  const store = await import('node:sqlite').then(
    () => sqliteStore({ url: 'file::memory:' }),
    () => undefined, // Node 20 has none
  )
  const { sessionAuth, logOut } = sessions(app, { loadUser: (name) => users.get(name), name: 'day', store })
  const accountOf = (name) => users.has(name) && { user: users.get(name), hash: users.get(name).hash }
  const user = (_request, claims) => ({ name: claims.sub })
  const jwt = httpJwt({ issuer: [{ issuer: 'day', secret: SECRET }], audience: 'day', authenticate: user })
  const router = new Router()
  router.post('/sign-in', withAuth(null), passwordSignIn({ accountOf }))
  router.post('/sign-out', withAuth(null), async (ctx) => {
    await logOut(ctx)
    ctx.status = 204
  })
  router.get('/me', withAuth([sessionAuth(), jwt]), (ctx) => {
    ctx.body = ctx.request.auth.username ?? ctx.request.auth.name
  })
  router.post('/hook', withAuth(webhook({ scheme: github, secrets: SECRET })), (ctx) => {
    ctx.body = ctx.request.auth.json()
  })
  const server = createServer(app.use(router.routes()).callback()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const admit = guardUpgrade(app, jwt)
  server.on('upgrade', async (req, socket, head) => {
    const admitted = await admit(req, socket, head)
    if (admitted !== undefined) socket.end(`HTTP/1.1 101 Switching Protocols\r\n\r\n${admitted.principal.name}`)
  })

  const { port } = server.address()
  const send = async (method, path, headers = {}, body = undefined) => {
    const req = request({ port, host: '127.0.0.1', method, path, headers }).end(body)
    const [res] = await Promise.race([once(req, 'response'), once(req, 'upgrade')])
    if (res.statusCode === 101) return { status: 101, text: '', headers: {} }
    return { status: res.statusCode, text: await text(res), headers: res.headers }
  }
  const json = { 'Content-Type': 'application/json' }
  const post = (path, body, headers = {}) => send('POST', path, { ...json, ...headers }, JSON.stringify(body))
  const token = await new SignJWT()
    .setProtectedHeader({ alg: 'HS256' })
    .setIssuer('day')
    .setSubject('bert')
    .setAudience('day')
    .setExpirationTime('5m')
    .sign(new TextEncoder().encode(SECRET))
  const bearer = { Authorization: `Bearer ${token}` }
  const signed = { 'X-Hub-Signature-256': `sha256=${createHmac('sha256', SECRET).update('{"a":1}').digest('hex')}` }
  const upgrade = { Connection: 'Upgrade', Upgrade: 'websocket' }

  const wrong = await post('/sign-in', { username: 'anna', password: 'wrong' })
  const right = await post('/sign-in', { username: 'anna', password: 'anna-secret' })
  const Cookie = (right.headers['set-cookie'] ?? []).map((line) => line.split(';')[0]).join('; ')
  const answers = [
    wrong,
    right,
    await send('GET', '/me'),
    await send('GET', '/me', { Cookie }),
    await send('GET', '/me', bearer),
    await send('GET', '/me', { Authorization: `${bearer.Authorization}x` }),
    await post('/sign-out', {}, { Cookie, Origin: 'https://evil.example' }),
    await post('/sign-out', {}, { Cookie }),
    await send('GET', '/me', { Cookie }),
    await post('/hook', { a: 1 }, signed),
    await post('/hook', { a: 2 }, signed),
    await send('GET', '/socket', upgrade),
    await send('GET', '/socket', { ...upgrade, ...bearer }),
  ]
  return answers.map(({ status, text, headers }) => [status, text, headers['www-authenticate'] ?? ''])
}

// npm runs no scripts here: the program is in the package of this platform
const programIn = (scope, file) => {
  const folder = here(`../node_modules/${scope}/`)
  return readdirSync(folder)
    .map((name) => `${folder}${name}/${file}`)
    .find((path) => existsSync(path))
}

if (process.argv[2] === 'day') {
  console.log(JSON.stringify(await day()))
  process.exit(0)
}
const self = fileURLToPath(import.meta.url)
const runtimes = [
  ['Node', process.execPath],
  ['Bun', programIn('@oven', 'bin/bun')],
  ['Deno', programIn('@deno', 'deno'), 'run', '--allow-all'],
]
const expected = [403, 204, 401, 200, 200, 401, 403, 204, 401, 200, 401, 401, 101]
const onNode = await day()
assert.deepEqual(
  onNode.map(([status]) => status),
  expected,
)
for (const [name, program, ...args] of runtimes) {
  const lines = execFileSync(program, [...args, self, 'day'], { encoding: 'utf8' })
    .trim()
    .split('\n')
  assert.deepEqual(JSON.parse(lines.at(-1)), onNode, name)
  const guard = spawn(program, [...args, here('./guards.mjs'), 'koa-with-auth'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [url] = await once(guard.stdout, 'data')
  const { results } = await runContract(String(url).trim())
  guard.kill()
  assert.deepEqual(
    results.filter(({ faults }) => faults.length > 0),
    [],
    name,
  )
  console.log(`${name}: ${onNode.length} answers of a day and ${results.length} hostile requests are those of Node`)
}
process.exit(0)
