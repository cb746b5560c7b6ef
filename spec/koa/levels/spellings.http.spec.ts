/**
 * guard and handler are one function, so no spelling of a path reaches only one of them.
 *
 * Random spellings of guarded paths are sent as bytes over a socket. Each is refused by the guard, or is a path that
 * the router does not know. The same bytes with a credential show which: what is served then must be refused without
 * the credential.
 */
import Router from '@koa/router'
import fc from 'fast-check'
import { withAuth } from 'koa-with-auth'
import { describe, expect, test } from 'vitest'
import { appOf, bearerFor, callsOf, handler, tokenOf } from '../../support/models/levels.js'
import { sendRaw, valuesOf } from '../../support/servers/rawSocket.js'
import { serve } from '../../support/servers/server.js'

const a = bearerFor('a')

const served = serve(() => {
  const child = new Router({ prefix: '/admin' })
  child.get('/users', handler('spelled'))
  child.all('/users/:id', withAuth(a), handler('spelled'))
  const root = withAuth(a)(new Router())
  root.use((_ctx, next) => next())
  root.use(child.routes())
  root.use('/api/:version', child.routes())
  root.get('/files{/*path}', handler('spelled'))
  root.post('/', handler('spelled'))
  root.get(/^\/re\/(.+)$/, handler('spelled'))
  return appOf(root.routes(), root.allowedMethods())
})

const paths = ['/', '/admin/users', '/admin/users/7', '/api/v1/admin/users/7', '/files/a/b.txt', '/re/x']
const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'REPORT']
const insertions = ['/', '//', '/.', '/..', '%2f', '%2F', '%5c', '\\', ';', ';a=b', '%3b', '%00', '%20', '.json', '..;']
const more = [
  '?',
  '#',
  '%23',
  '%3F',
  '%',
  '%252f',
  '%c0%af',
  '*',
  '@',
  ':',
  '+',
  '&',
  '=',
  '\u00e4',
  '\u00a0',
  '%zz',
  '.',
]

type Mutation = (path: string, at: number) => string

const encoded = (character: string) => `%${character.charCodeAt(0).toString(16).padStart(2, '0')}`
const replacing =
  (f: (character: string) => string): Mutation =>
  (path, at) =>
    path.slice(0, at) + f(path[at] ?? '') + path.slice(at + 1)
const inserting =
  (text: string): Mutation =>
  (path, at) =>
    path.slice(0, at) + text + path.slice(at)

const mutations: ReadonlyArray<Mutation> = [
  ...[...insertions, ...more].map(inserting),
  replacing((character) => (character === '' ? '' : encoded(character))),
  replacing((character) => (character === '' ? '' : encoded(character).toUpperCase())),
  replacing((character) => character.toUpperCase()),
  (path) => path.toUpperCase(),
  (path) => `${path}/`,
  (path) => `http://other.example${path}`,
  (path) => path.replaceAll('/', '//'),
  (path) => path.replaceAll('/', '%2f'),
]

const spellings = fc
  .tuple(
    fc.constantFrom(...paths),
    fc.array(fc.tuple(fc.constantFrom(...mutations), fc.nat(20)), { minLength: 0, maxLength: 3 }),
  )
  .map(([path, applied]) =>
    applied.reduce((spelled, [mutate, at]) => mutate(spelled, Math.min(at, spelled.length)), path),
  )

const send = (method: string, target: string, token = '') =>
  sendRaw(served.port, `${method} ${target} HTTP/1.1\r\nHost: a.example\r\n${token}Connection: close\r\n\r\n`)

describe('A-03 spellings of guarded paths', () => {
  test('A-03 the guard refuses, or the router knows no such operation; the handler never runs', async () => {
    const seen = new Map<unknown, number>()
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...methods), spellings, async (method, target) => {
        callsOf('spelled')
        const bare = await send(method, target)
        expect(callsOf('spelled')).toBe(0)
        const isAllow = method === 'OPTIONS' && bare.status === 200
        if (isAllow) expect([valuesOf(bare, 'allow').length, bare.body]).toEqual([1, ''])
        else expect([400, 401, 404, 405, 501]).toContain(bare.status)
        expect(valuesOf(bare, 'www-authenticate')).toEqual(bare.status === 401 ? ['Bearer realm="a"'] : [])
        const right = await send(method, target, `Authorization: Bearer ${tokenOf('a')}\r\n`)
        const ran = callsOf('spelled')
        expect(ran).toBe(bare.status === 401 ? 1 : 0)
        if (bare.status !== 401) expect(right.status).toBe(bare.status)
        seen.set(bare.status, (seen.get(bare.status) ?? 0) + 1)
      }),
      { seed: 3, numRuns: 600 },
    )
    // Some spellings reached the operation
    expect(seen.get(401)).toBeGreaterThan(100)
    expect(seen.get(404)).toBeGreaterThan(50)
    expect([...seen.keys()]).toEqual(expect.arrayContaining([405, 501]))
  })
})
