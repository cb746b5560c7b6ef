import assert from 'node:assert/strict'
import { test } from 'node:test'
import { service } from '../src/app.js'
import { serve } from './serve.js'

const send = await serve((await service('file::memory:')).app)
const signIn = (email: string, password: string) =>
  send('/sign-in', { method: 'POST', body: new URLSearchParams({ email, password }) })
const cookieOf = async (name: string) => {
  const { headers } = await signIn(`${name}@example.com`, `${name}-secret`)
  return { headers: { cookie: headers.getSetCookie().join('; ') } }
}

test('a session begins with the right password and ends at the sign-out', async () => {
  assert.equal((await signIn('sam@example.com', 'wrong')).status, 401)
  const sam = await cookieOf('sam')
  assert.equal((await send('/me', sam)).status, 200)
  assert.equal((await send('/sign-out', { method: 'POST', ...sam })).status, 204)
  assert.equal((await send('/me', sam)).status, 401)
})

test('only admins list the users', async () => {
  assert.equal((await send('/users', await cookieOf('sam'))).status, 403)
  assert.equal((await send('/users', await cookieOf('anna'))).status, 200)
})

test('after five wrong passwords the answer is 429', async () => {
  for (let guess = 0; guess < 5; guess += 1) await signIn('anna@example.com', 'wrong')
  assert.equal((await signIn('anna@example.com', 'anna-secret')).status, 429)
})
