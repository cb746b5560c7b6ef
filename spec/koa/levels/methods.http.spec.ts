/** Spec 5.6 for every method: `all`, HEAD, OPTIONS, redirects, and requests that no operation answers. */
import { METHODS } from 'node:http'
import Router from '@koa/router'
import { withAuth } from 'koa-with-auth'
import { describe, expect, test } from 'vitest'
import {
  admitted,
  appOf,
  bearerFor,
  callsOf,
  denied,
  get,
  handler,
  outcome,
  tokenOf,
} from '../../support/models/levels.js'
import { sendRaw, valuesOf } from '../../support/servers/rawSocket.js'
import { serve } from '../../support/servers/server.js'

const [a, b] = [bearerFor('a'), bearerFor('b')]

const served = serve(() => {
  const router = withAuth(a)(new Router())
  router.get('/x', handler('x'))
  router.get('/open', withAuth(null), handler('x'))
  router.head('/head', handler('x'))
  router.get('/head', withAuth(null), handler('x'))
  router.head('/led', withAuth(null), (_ctx, next) => next())
  router.get('/led', handler('x'))
  router.all('/all', handler('all'))
  router.options('/options', handler('x'))
  router.del('/x', withAuth(b), handler('x'))
  router.redirect('/old', '/new')
  router.redirect('/found', 'https://elsewhere.example/', 302)
  const plain = new Router()
  plain.all('/plain-all', withAuth(b), handler('all'))
  plain.redirect('/plain-old', '/new')
  plain.all('/mounted-all', handler('all'))
  router.use('/in', plain.routes())
  return appOf(router.routes(), router.allowedMethods(), withAuth(a)(plain).routes())
})

// Node gives CONNECT to a listener of its event, and closes the connection if there is none
const methods = METHODS.filter((method) => method !== 'CONNECT')

describe('D-R12 router.all', () => {
  test.each([
    ['/all', 'a'],
    ['/in/plain-all', 'b'],
    ['/in/mounted-all', 'a'],
    ['/plain-all', 'b'],
  ])('D-R12 %s is guarded for every method that it answers', async (path, realm) => {
    for (const method of methods) {
      const send = (line: string) =>
        sendRaw(served.port, `${method} ${path} HTTP/1.1\r\nHost: a.example\r\n${line}Connection: close\r\n\r\n`)
      const bare = await send('')
      const refused = [method, bare.status, ...valuesOf(bare, 'www-authenticate'), callsOf('all')]
      expect(refused).toEqual([method, 401, `Bearer realm="${realm}"`, 0])
      const right = await send(`Authorization: Bearer ${tokenOf(realm)}\r\n`)
      expect([method, right.status, callsOf('all')]).toEqual([method, 200, 1])
    }
    expect(methods).toEqual(expect.arrayContaining(['OPTIONS', 'TRACE', 'PROPFIND', 'HEAD']))
  })
})

describe('D-R12 router.redirect', () => {
  test.each(['/old', '/found', '/in/plain-old', '/plain-old'])('D-R12 %s is guarded', async (path) => {
    expect(await outcome(served.port, path, 'x')).toEqual(denied('a'))
    const bare = await get(served.port, path)
    expect(bare.headers['location']).toBeUndefined()
    const right = await get(served.port, path, tokenOf('a'))
    const expected = path === '/found' ? [302, 'https://elsewhere.example/'] : [301, '/new']
    expect([right.status, right.headers['location']]).toEqual(expected)
  })
})

describe('A-04 HEAD', () => {
  // Header fields that could show whether a request passed, or which credential to send
  const fields = ['www-authenticate', 'cache-control', 'vary', 'content-type', 'content-length'] as const

  test.each([
    ['/x', undefined, 401],
    ['/x', tokenOf('b'), 401],
    ['/x', tokenOf('a'), 200],
    ['/open', undefined, 200],
    ['/all', undefined, 401],
    ['/old', undefined, 401],
  ])('A-04 HEAD %s with %s has the status of GET: %i', async (path, token, status) => {
    const asGet = await get(served.port, path, token)
    const ran = callsOf('x')
    const asHead = await get(served.port, path, token, { method: 'HEAD' })
    expect([asHead.status, asHead.text]).toEqual([status, ''])
    expect(asHead.status).toBe(asGet.status)
    expect(fields.map((name) => asHead.headers[name])).toEqual(fields.map((name) => asGet.headers[name]))
    expect(callsOf('x')).toBe(ran)
    expect(ran).toBe(status === 200 ? 1 : 0)
    expect(callsOf('all')).toBe(0)
  })

  test('A-04 a public operation for HEAD that leads on to GET meets its guard', async () => {
    expect(await outcome(served.port, '/led', 'x', undefined, { method: 'HEAD' })).toEqual({ ...denied('a'), says: '' })
    expect(await outcome(served.port, '/led', 'x', tokenOf('a'), { method: 'HEAD' })).toMatchObject({ status: 200 })
  })

  test('A-04 an operation for HEAD keeps its guard, although the GET after it is public', async () => {
    const refused = await outcome(served.port, '/head', 'x', undefined, { method: 'HEAD' })
    expect(refused).toEqual({ ...denied('a'), says: '' })
    expect(await outcome(served.port, '/head', 'x')).toEqual(admitted(null))
  })
})

describe('requests that no operation answers need no credentials', () => {
  test('D-R11 OPTIONS of a guarded path lists its methods and runs nothing', async () => {
    const { status, headers, text, challenge } = await get(served.port, '/x', undefined, { method: 'OPTIONS' })
    expect([status, headers['allow'], text, challenge]).toEqual([200, 'HEAD, GET, DELETE', '', undefined])
    expect(callsOf('x')).toBe(0)
  })

  test('an operation for OPTIONS is guarded', async () => {
    expect(await outcome(served.port, '/options', 'x', undefined, { method: 'OPTIONS' })).toEqual(denied('a'))
  })

  test('D-R11 another method is a 405 with Allow, and an unknown one is a 501', async () => {
    const put = await get(served.port, '/x', undefined, { method: 'PUT' })
    expect([put.status, put.headers['allow'], put.challenge]).toEqual([405, 'HEAD, GET, DELETE', undefined])
    const propfind = await get(served.port, '/x', undefined, { method: 'PROPFIND' })
    expect([propfind.status, propfind.challenge]).toEqual([501, undefined])
    expect(callsOf('x')).toBe(0)
  })

  test('spec 1.1: each method of a path has its own guard', async () => {
    expect(await outcome(served.port, '/x', 'x', tokenOf('a'), { method: 'DELETE' })).toMatchObject({ calls: 0 })
    expect(await outcome(served.port, '/x', 'x', undefined, { method: 'DELETE' })).toEqual(denied('b'))
    expect(await outcome(served.port, '/x', 'x', tokenOf('b'), { method: 'DELETE' })).toEqual(admitted('b'))
  })
})
