'use strict'
// The application's own tests. APP names the version that is tested.
const jsonwebtoken = require('jsonwebtoken')
const { makeApp, secret } = require(`../${process.env.APP ?? 'before'}/app.js`)

let server
let url
beforeAll((done) => {
  server = makeApp()
    .on('error', () => {})
    .listen(0, '127.0.0.1', () => {
      url = `http://127.0.0.1:${server.address().port}`
      done()
    })
})
afterAll(() => server.close())

const post = (path, body, headers = {}) =>
  fetch(url + path, { method: 'POST', body: JSON.stringify(body), headers: { ...headers, Connection: 'close' } })
const get = (path, headers = {}) => fetch(url + path, { headers: { ...headers, Connection: 'close' } })
const signedIn = async (username, password) => {
  const { token } = await (await post('/login', { username, password })).json()
  return { Authorization: `Bearer ${token}` }
}

test('health needs no token', async () => {
  const answer = await get('/health')
  expect([answer.status, await answer.json()]).toEqual([200, { ok: true }])
})

test('tasks need a token', async () => {
  expect((await get('/tasks')).status).toBe(401)
  expect((await post('/tasks', { task: 'x' })).status).toBe(401)
})

test('a wrong password is refused', async () => {
  expect((await post('/login', { username: 'anna', password: 'wrong' })).status).toBe(401)
  expect((await post('/login', { username: 'nobody', password: 'anna-secret' })).status).toBe(401)
})

test('a user sees and adds tasks of their own', async () => {
  const anna = await signedIn('anna', 'anna-secret')
  const sam = await signedIn('sam', 'sam-secret')
  expect(await (await get('/tasks', anna)).json()).toEqual(['water the plants'])
  const added = await post('/tasks', { task: 'call sam' }, anna)
  expect([added.status, await added.json()]).toEqual([201, ['water the plants', 'call sam']])
  expect(await (await get('/tasks', sam)).json()).toEqual([])
})

test('tokens of others, expired tokens and unsigned tokens are refused', async () => {
  const tokens = [
    jsonwebtoken.sign({ name: 'anna' }, 'another secret of thirty-two bytes!!'),
    jsonwebtoken.sign({ name: 'anna' }, secret, { expiresIn: -10 }),
    jsonwebtoken.sign({ name: 'anna' }, null, { algorithm: 'none' }),
  ]
  for (const token of tokens) expect((await get('/tasks', { Authorization: `Bearer ${token}` })).status).toBe(401)
})

test('a path without a route is 404 for a signed-in user', async () => {
  expect((await get('/none', await signedIn('anna', 'anna-secret'))).status).toBe(404)
})
