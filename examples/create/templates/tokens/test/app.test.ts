import assert from 'node:assert/strict'
import { test } from 'node:test'
import { service } from '../src/app.js'
import { serve } from './serve.js'

const { app, tokenOf } = await service()
const send = await serve(app)
const statusOf = async (method: string, token: string) =>
  (await send('/notes', { method, headers: { authorization: `Bearer ${token}` } })).status

test('notes are read with a token, and written with the scope write', async () => {
  assert.equal((await send('/notes')).status, 401)
  assert.equal(await statusOf('GET', 'wrong'), 401)
  assert.equal(await statusOf('GET', await tokenOf('read')), 200)
  assert.equal(await statusOf('POST', await tokenOf('read')), 403)
  assert.equal(await statusOf('POST', await tokenOf('write')), 201)
})
