import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { hash } from 'koa-with-auth/passwords'
import { openAccounts } from '../src/accounts.js'
import { site } from '../src/app.js'
import { settingsIn } from '../src/settings.js'
import { openDatabase } from '../src/store.js'

const email = 'anna@example.com'
const password = 'four words of some length'

const serve = async (t: TestContext) => {
  const database = await openDatabase('file::memory:')
  const app = await site(settingsIn({}), database, async () => {})
  await (await openAccounts(database.run)).add(email, await hash(password), 'member')
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => Promise.all([server.close().closeAllConnections(), database.close()]))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return async (path: string, body?: Record<string, string>, headers: Record<string, string> = {}) => {
    const sent = body && { method: 'POST', body: new URLSearchParams(body) }
    const answer = await fetch(origin + path, { ...sent, headers, redirect: 'manual' })
    const text = await answer.text()
    return {
      status: answer.status,
      cookies: answer.headers.getSetCookie(),
      ...(text.startsWith('{') && JSON.parse(text)),
    }
  }
}

test('an app signs in by a token, which no cookie comes with', async (t) => {
  const send = await serve(t)
  assert.equal((await send('/device/sign-in', { email, password: 'wrong' })).status, 403)
  const { access_token, cookies } = await send('/device/sign-in', { email, password })
  assert.deepEqual(cookies, [])
  assert.equal((await send('/device/me', undefined, { Authorization: `Bearer ${access_token}` })).email, email)
  assert.equal((await send('/device/me', undefined, { Authorization: 'Bearer wrong' })).status, 401)
})

test('a command line gets one token, once its user has typed the code', async (t) => {
  const send = await serve(t)
  const { device_code, user_code } = await send('/device/code', {})
  const token = () => send('/device/token', { device_code })
  assert.equal((await token()).error, 'authorization_pending')
  const { cookies } = await send('/sign-in', { email, password })
  const Cookie = cookies.map((line: string) => line.split(';', 1)[0]).join('; ')
  assert.equal((await send('/device', { userCode: 'BBBB-BBBB' }, { Cookie })).status, 403)
  assert.equal((await send('/device', { userCode: user_code.toLowerCase() }, { Cookie })).status, 302)
  assert.equal((await send('/device/token', { device_code: `${device_code}x` })).error, 'invalid_grant')
  const made = await Promise.all([token(), token()])
  const [{ access_token }] = made.filter(({ status }) => status === 200)
  assert.equal(made.filter(({ status }) => status === 200).length, 1)
  assert.equal((await send('/device/me', undefined, { Authorization: `Bearer ${access_token}` })).email, email)
  assert.equal((await token()).error, 'invalid_grant')
})
