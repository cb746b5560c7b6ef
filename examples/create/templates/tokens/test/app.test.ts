import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testIssuer } from 'koa-with-auth/testing'
import { service } from '../src/app.js'
import { serve } from './serve.js'

// a provider on loopback, with discovery and keys
const { issuer, token } = await testIssuer()
const tokenOf = (claims: object) => token({ aud: 'my-api', ...claims })
const { app } = await service(issuer)
const send = await serve(app)
const statusOf = async (method: string, token: string) =>
  (await send('/notes', { method, headers: { authorization: `Bearer ${token}` } })).status

test('notes are read with a token, and written with the scope write', async () => {
  assert.equal((await send('/notes')).status, 401)
  assert.equal(await statusOf('GET', 'wrong'), 401)
  assert.equal(await statusOf('GET', tokenOf({ aud: 'another-api' })), 401)
  assert.equal(await statusOf('GET', tokenOf({ scope: 'read' })), 200)
  assert.equal(await statusOf('POST', tokenOf({ scope: 'read' })), 403)
  assert.equal(await statusOf('POST', tokenOf({ scope: 'write' })), 201)
})
