import assert from 'node:assert/strict'
import { test } from 'node:test'
import { service } from '../src/app.js'
import { serve } from './serve.js'

const { app, keys } = await service('file::memory:')
const send = await serve(app)
const statusOf = async (method: string, path: string, key: string) =>
  (await send(path, { method, headers: { 'x-api-key': key } })).status

test('a key works until it is revoked', async () => {
  const { id, key } = await keys.issue({ owner: 'acme' })
  assert.equal((await send('/reports')).status, 401)
  assert.equal(await statusOf('GET', '/reports', key), 200)
  await keys.revoke(id)
  assert.equal(await statusOf('GET', '/reports', key), 401)
})

test('a client revokes its own keys alone', async () => {
  const [acme, other] = [await keys.issue({ owner: 'acme' }), await keys.issue({ owner: 'other' })]
  assert.equal(await statusOf('DELETE', `/keys/${other.id}`, acme.key), 404)
  assert.equal(await statusOf('DELETE', `/keys/${acme.id}`, acme.key), 204)
  assert.equal(await statusOf('GET', '/reports', acme.key), 401)
})

test('only the scope admin issues keys', async () => {
  const admin = await keys.issue({ owner: 'admin', scopes: ['admin'] })
  assert.equal(await statusOf('POST', '/keys/acme', (await keys.issue({ owner: 'acme' })).key), 403)
  assert.equal(await statusOf('POST', '/keys/acme', admin.key), 201)
})
