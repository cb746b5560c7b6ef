/** Tries the program of the guide "better-auth on Koa" with the real better-auth. */
import assert from 'node:assert/strict'
import { reserve } from './frameworks.mjs'

process.env.BETTER_AUTH_SECRET ??= 'a signing key of the application that is long enough'
process.env.BETTER_AUTH_TELEMETRY = '0'
const { make } = await import('./betterAuthOnKoa.mjs')

const { origin, serve } = await reserve()
const app = await make(origin)
app.silent = true
serve(app.callback())

const post = (path, body, headers = {}) =>
  fetch(origin + path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Origin: origin, ...headers },
    body: JSON.stringify(body),
  })
const cookieOf = (response) =>
  response.headers
    .getSetCookie()
    .map((line) => line.split(';')[0])
    .join('; ')
const me = (cookie) => fetch(`${origin}/me`, { headers: cookie === undefined ? {} : { Cookie: cookie } })

const without = await me()
assert.equal(without.status, 401)
assert.equal(without.headers.get('www-authenticate'), 'Session realm="api"')

const signUp = { email: 'anna@site.example', password: 'a long password', name: 'Anna' }
const cookie = cookieOf(await post('/api/auth/sign-up/email', signUp))
const signedIn = await me(cookie)
assert.equal(signedIn.status, 200)
assert.equal(await signedIn.text(), 'Hello Anna')
assert.match(signedIn.headers.get('cache-control'), /no-store|private/)

const name = cookie.split('=')[0]
assert.equal((await me(`${name}=another.${cookie.slice(-20)}`)).status, 401)
assert.equal((await me(`${name}=`)).status, 401)
assert.equal((await me(`${cookie}; ${cookie}`)).status, 401)

assert.equal((await post('/notes', {}, { Cookie: cookie })).status, 201)
assert.equal((await post('/notes', {}, { Cookie: cookie, Origin: 'https://evil.example' })).status, 403)
assert.equal((await fetch(`${origin}/health`)).status, 200)

assert.equal((await post('/api/auth/sign-out', {}, { Cookie: cookie })).status, 200)
assert.equal((await me(cookie)).status, 401)

console.log('better-auth on Koa: 11 checks hold')
process.exit(0)
