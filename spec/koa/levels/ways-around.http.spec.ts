/**
 * Ways around a level: hooks, composed middleware, requests as bytes.
 */
import Router from '@koa/router'
import compose from 'koa-compose'
import { also, apiKeyHeader } from 'koa-with-auth'
import { describe, expect, test } from 'vitest'
import { appOf, callsOf, count, get, guardOf, handler } from '../../support/models/levels.js'
import { serve } from '../../support/servers/server.js'

const names = ['a', 'b', 'c'] as const
type Name = (typeof names)[number]
const authOf = (name: Name) =>
  apiKeyHeader({ realm: name, paramName: `X-${name}`, authenticate: (_request, key) => key === name && name })
const [a, b] = names.map(authOf) as [ReturnType<typeof authOf>, ReturnType<typeof authOf>, ReturnType<typeof authOf>]
const [A, B] = [guardOf(a), guardOf(b)]
const open = guardOf(null)
const alsoOf = (auth: unknown) => guardOf(also(auth as typeof a))

const subsets: ReadonlyArray<ReadonlyArray<Name>> = names.reduce<ReadonlyArray<ReadonlyArray<Name>>>(
  (some, name) => some.flatMap((subset) => [subset, [...subset, name]]),
  [[]],
)

/** Sends every set of keys: those with all demanded keys pass, and no other runs a handler. */
const expectDemands = async (port: number, path: string, id: string, demanded: ReadonlyArray<Name>, method = 'GET') => {
  for (const sent of subsets) {
    callsOf(id)
    const headers = Object.fromEntries(sent.map((name) => [`x-${name}`, name]))
    const { status } = await get(port, path, undefined, { method, headers })
    const admitted = demanded.every((name) => sent.includes(name))
    expect({ status, calls: callsOf(id) }, `${method} ${path} with ${sent.join('+') || 'nothing'}`).toEqual({
      status: admitted ? 200 : 401,
      calls: admitted ? 1 : 0,
    })
  }
}

describe('hooks and composed middleware', () => {
  const hook = (_value: string, _ctx: unknown, next: () => Promise<unknown>) => {
    count('hook')
    return next()
  }
  const composed = (...functions: unknown[]) => compose(functions as never[]) as never
  const served = serve(() => {
    const plain = new Router({ prefix: '/plain' })
    plain.get('/composed', composed(A, handler('x')))
    plain.get('/ahead', composed(A), handler('x'))
    plain.get('/twice', composed(A), B, handler('x'))
    plain
      .get('/hooked/:guarded', handler('x'))
      .param('guarded', (value, ctx, next) => Reflect.apply(A, undefined, [value, ctx, next]))
    plain.use('/used', composed(A)).get('/used', handler('x'))
    const levelled = A(new Router({ prefix: '/a' }))
    levelled.get('/composed', composed(B, handler('x'))).get('/open', composed(open, handler('x')))
    levelled.get('/also', composed(alsoOf(b), handler('x')))
    levelled.get('/param/:id', alsoOf(b), handler('x')).param('id', hook)
    const guarded = A(new Router({ prefix: '/g' }))
    guarded.use('/in', plain.routes())
    return appOf(plain.routes(), levelled.routes(), guarded.routes())
  })

  test('a guard in composed middleware guards', async () => {
    await expectDemands(served.port, '/plain/composed', 'x', ['a'])
    await expectDemands(served.port, '/plain/ahead', 'x', ['a'])
  })

  test.each(['/plain/twice', '/plain/hooked/1', '/a/composed', '/a/open', '/a/also', '/g/in/plain/composed'])(
    'two guards that levels cannot see are a mistake that admits no request: %s',
    async (path) => {
      for (const sent of subsets) {
        const { status } = await get(served.port, path, undefined, {
          headers: Object.fromEntries(sent.map((name) => [`x-${name}`, name])),
        })
        expect([401, 500]).toContain(status)
        expect(callsOf('x')).toBe(0)
      }
    },
  )

  test('D-R10 `param` hooks run only for requests with all keys', async () => {
    callsOf('hook')
    await expectDemands(served.port, '/a/param/1', 'x', ['a', 'b'])
    // Two of the eight sets of keys have both
    expect(callsOf('hook')).toBe(2)
  })
})
