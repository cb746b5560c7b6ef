// The application's own tests. APP names the version that is tested.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'

const { makeApp } = await import(`../${process.env.APP ?? 'before'}/app.js`)

let server
let url
before(async () => {
  const app = makeApp()
  app.on('error', () => {})
  await new Promise((resolve) => {
    server = app.listen(0, '127.0.0.1', resolve)
  })
  url = `http://127.0.0.1:${server.address().port}`
})
after(() => server.close())

const ask = (method, path, { cookie = '', form } = {}) =>
  fetch(url + path, {
    method,
    redirect: 'manual',
    headers: { Cookie: cookie, Connection: 'close' },
    ...(form && { body: new URLSearchParams(form) }),
  })
const cookieOf = (answer) =>
  answer.headers
    .getSetCookie()
    .map((line) => line.split(';')[0])
    .join('; ')
const signIn = async (username, password) => cookieOf(await ask('POST', '/login', { form: { username, password } }))

test('notes need a session', async () => {
  assert.equal((await ask('GET', '/notes')).status, 401)
  assert.equal((await ask('POST', '/notes', { form: { note: 'x' } })).status, 401)
})

test('a wrong password is refused, and opens no session', async () => {
  const answer = await ask('POST', '/login', { form: { username: 'anna', password: 'wrong' } })
  assert.equal(answer.status, 401)
  assert.equal((await ask('GET', '/notes', { cookie: cookieOf(answer) })).status, 401)
})

test('a user sees and adds notes of their own', async () => {
  const anna = await signIn('anna', 'anna-secret')
  const sue = await signIn('sue', 'sue-secret')
  assert.equal((await ask('POST', '/notes', { cookie: anna, form: { note: 'milk' } })).status, 201)
  assert.deepEqual(await (await ask('GET', '/notes', { cookie: anna })).json(), ['milk'])
  assert.deepEqual(await (await ask('GET', '/notes', { cookie: sue })).json(), [])
})

test('the users are for administrators', async () => {
  assert.equal((await ask('GET', '/users')).status, 401)
  assert.equal((await ask('GET', '/users', { cookie: await signIn('anna', 'anna-secret') })).status, 403)
  const answer = await ask('GET', '/users', { cookie: await signIn('sue', 'sue-secret') })
  assert.deepEqual([answer.status, await answer.json()], [200, ['anna', 'sue']])
})

test('a user who signed out is signed out', async () => {
  const cookie = await signIn('anna', 'anna-secret')
  const out = await ask('POST', '/logout', { cookie })
  assert.equal(out.status, 204)
  assert.equal((await ask('GET', '/notes', { cookie: cookieOf(out) || cookie })).status, 401)
})
