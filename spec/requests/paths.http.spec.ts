/** spellings of a path, and mounts. */
import Router from '@koa/router'
import fc from 'fast-check'
import Koa from 'koa'
import mount from 'koa-mount'
import { constantTimeEqual, httpBearer, withAuth } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { expectAccepted, expectDenied, sendCounted } from '../support/sites/guardedApp.js'
import { serve } from '../support/servers/server.js'

const SECRET = 'supersecret'
const bearer = httpBearer({ authenticate: (_request, token) => constantTimeEqual(token, SECRET) && { user: 'anna' } })

let calls = 0
const operation = (ctx: { body?: unknown }) => {
  calls++
  ctx.body = 'in'
}
const under = { app: new Koa(), calls: () => calls }

const inner = new Router({ prefix: '/:tenant' })
inner.get('/users/:id', operation)
const outer = new Router()
outer.use('/admin', withAuth(bearer)(inner).routes())
outer.all('/one', withAuth(bearer), operation)
outer.use(withAuth(bearer)(new Router().get('/files{/*path}', operation).get(/^\/re\/(.+)$/, operation)).routes())
under.app.use(outer.routes()).use(outer.allowedMethods())
const mounted = new Koa()
const below = new Router()
below.get('/pets', withAuth(bearer), operation)
mounted.use(below.routes())
under.app.use(mount('/mounted', mounted))

const served = serve(() => under.app)
const request = (target: string, lines: ReadonlyArray<string> = []) => sendCounted(under, served.port, target, lines)
const right = [`Authorization: Bearer ${SECRET}`]

describe('A-03 spellings of a path', () => {
  const percent = (char: string) => `%${char.charCodeAt(0).toString(16).padStart(2, '0')}`
  const changes: ReadonlyArray<(path: string, at: number) => string> = [
    (path, at) => path.slice(0, at) + percent(path[at] ?? '/') + path.slice(at + 1),
    (path, at) => path.slice(0, at) + (path[at] ?? '').toUpperCase() + path.slice(at + 1),
    ...'/ // /./ /../ ; ;x=1 %2f %5c \\ %00 %0a %2e . ? # % %25 %3b \u00e9'
      .split(' ')
      .map((text) => (path: string, at: number) => path.slice(0, at) + text + path.slice(at)),
    (path) => `${path}/`,
    (path) => `${path}.json`,
    (path) => `http://evil.example${path}`,
    (path) => `//evil.example${path}`,
  ]
  const spelling = fc
    .tuple(
      fc.constantFrom<string[]>('/admin/acme/users/7', '/one', '/mounted/pets', '/files/a/b.txt', '/re/x'),
      fc.array(fc.tuple(fc.constantFrom(...changes), fc.nat(18)), { maxLength: 3 }),
    )
    .map(([path, steps]) => steps.reduce((changed, [change, at]) => change(changed, at % (changed.length + 1)), path))
  const method = fc.constantFrom(...'GET HEAD POST PUT PATCH DELETE OPTIONS TRACE PROPFIND LINK'.split(' '))

  it('A-03 without credentials no spelling and no method runs the operation: each is a 401 or unknown', async () => {
    await fc.assert(
      fc.asyncProperty(spelling, method, async (path, verb) => {
        const bare = await request(`${verb} ${path}`)
        const known = await request(`${verb} ${path}`, right)
        expect(bare.ran).toBe(0)
        // Guard and operation are one function: if the operation can run, the request without credentials was refused
        expect(bare.status === 401).toBe(known.ran === 1)
        if (bare.status === 200) expect([verb, bare.body]).toEqual(['OPTIONS', ''])
      }),
      { numRuns: 400 },
    )
  })

  it.each([
    '/admin/acme/users/7',
    '/ADMIN/acme/USERS/7',
    '/admin/a%2fb/users/%2e%2e',
    '/admin/acme/users/7/',
    '/one/',
    '/One',
  ])('A-03 %s is found and guarded', async (path) => {
    expectDenied(await request(`GET ${path}`))
    expectDenied({ ...(await request(`HEAD ${path}`)), body: (await request(`GET ${path}`)).body })
    expectAccepted(await request(`GET ${path}`, right))
  })
})

describe('A-06 the form of the target', () => {
  it.each(['http://evil.example/one', 'https://127.0.0.1/admin/acme/users/7', 'http://user:pass@evil.example/one?x=1'])(
    'A-06 B-12 an absolute form is guarded like its path: %s',
    async (target) => {
      expectDenied(await request(`GET ${target}`))
      expectAccepted(await request(`GET ${target}`, right))
    },
  )

  it.each(['/mounted/pets', '/mounted/PETS', '/mounted/pets/', 'http://evil.example/mounted/pets'])(
    'A-06 koa-mount does not change the outcome: %s',
    async (target) => {
      expectDenied(await request(`GET ${target}`))
      expectAccepted(await request(`GET ${target}`, right))
    },
  )

  it.each(['/admin%2facme%2fusers%2f7', '/mounted%2fpets', '/%6fne%2f', '/mounted\\pets'])(
    'A-06 an encoded slash or a backslash is not a separator: %s',
    async (target) => {
      for (const lines of [[], right]) {
        const { status, ran } = await request(`GET ${target}`, lines)
        expect([status === 404 || status === 401, ran]).toEqual([true, 0])
      }
    },
  )
})
