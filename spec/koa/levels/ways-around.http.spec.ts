/**
 * Ways around a level: routers that are mounted twice and wrapped again, shared layers, hooks, composed middleware,
 * rare methods.
 */
import Router, { type RouterInstance } from '@koa/router'
import compose from 'koa-compose'
import { allOf, also, anyOf, apiKeyHeader, optional, withAuth } from 'koa-with-auth'
import { firstPresent } from 'koa-with-auth/fp'
import { describe, expect, test } from 'vitest'
import { appOf, callsOf, count, get, guardOf, handler } from '../../support/models/levels.js'
import { sendLines } from '../../support/sites/guardedApp.js'
import { serve } from '../../support/servers/server.js'

const names = ['a', 'b', 'c'] as const
type Name = (typeof names)[number]
const authOf = (name: Name) =>
  apiKeyHeader({ realm: name, paramName: `X-${name}`, authenticate: (_request, key) => key === name && name })
const [a, b, c] = names.map(authOf) as [ReturnType<typeof authOf>, ReturnType<typeof authOf>, ReturnType<typeof authOf>]
const [A, B, C] = [guardOf(a), guardOf(b), guardOf(c)]
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

const all = (router: RouterInstance): RouterInstance =>
  router
    .get('/undecided', handler('x'))
    .get('/own', C, handler('x'))
    .get('/open', open, handler('x'))
    .get('/also', alsoOf(c), handler('x'))
    .get(['/one', '/two/:id'], alsoOf(c), handler('x'))
    .all('/all', alsoOf(c), handler('x'))

describe('the same router under public and guarded parents', () => {
  const shared = all(new Router())
  const levelled = alsoOf(b)(shared)
  const mounts: Readonly<Record<string, readonly [router: RouterInstance, undecided: Name[], adding: Name[]]>> = {
    '/plain': [shared, [], ['c']],
    '/a': [A(shared), ['a'], ['a', 'c']],
    '/null': [open(shared), [], ['c']],
    '/levelled': [levelled, ['b'], ['b', 'c']],
    '/replaced': [A(levelled), ['a'], ['a', 'c']],
    '/opened': [open(levelled), [], ['c']],
    '/again': [alsoOf(b)(A(open(shared))), ['b'], ['b', 'c']],
  }
  const served = serve(() => {
    const [root, guarded, adding] = [
      new Router(),
      A(new Router({ prefix: '/under-a' })),
      alsoOf(a)(new Router({ prefix: '/adds-a' })),
    ]
    for (const [path, [router]] of Object.entries(mounts)) {
      const parents: ReadonlyArray<RouterInstance> = [root, guarded, adding]
      for (const parent of parents) parent.use(path, router.routes())
    }
    // All of it once more, in a router that is public
    const opened = open(new Router({ prefix: '/opened-at-last' }))
    opened.use('/in', guarded.routes())
    opened.use('/add', adding.routes())
    return appOf(root.routes(), guarded.routes(), adding.routes(), opened.routes())
  })
  const added = ['/also', '/one', '/two/1', '/all']

  test.each(Object.entries(mounts))('%s, in a router without a level', async (path, [, undecided, adding]) => {
    await expectDemands(served.port, `${path}/undecided`, 'x', undecided)
    await expectDemands(served.port, `${path}/own`, 'x', ['c'])
    await expectDemands(served.port, `${path}/open`, 'x', [])
    for (const each of added) await expectDemands(served.port, `${path}${each}`, 'x', adding)
  })

  // What is undecided, and what adds, takes the decision of the parent; what is decided does not
  const decided = ['/a', '/null', '/replaced', '/opened']
  test.each(Object.entries(mounts))(
    '%s, under a guarded parent, and under one that adds',
    async (path, [, undecided, adding]) => {
      const above: Name[] = decided.includes(path) ? [] : ['a']
      for (const parent of ['/under-a', '/adds-a', '/opened-at-last/in/under-a', '/opened-at-last/add/adds-a']) {
        await expectDemands(served.port, `${parent}${path}/undecided`, 'x', [...above, ...undecided])
        await expectDemands(served.port, `${parent}${path}/own`, 'x', ['c'])
        await expectDemands(served.port, `${parent}${path}/open`, 'x', [])
        for (const each of added)
          await expectDemands(served.port, `${parent}${path}${each}`, 'x', [...above, ...adding])
      }
    },
  )

  test('every method of `all` demands the keys, HEAD too; OPTIONS admits no request', async () => {
    for (const method of ['POST', 'HEAD', 'OPTIONS', 'DELETE', 'PATCH']) {
      await expectDemands(served.port, '/a/all', 'x', ['a', 'c'], method)
    }
    await expectDemands(served.port, '/under-a/levelled/also', 'x', ['a', 'b', 'c'], 'HEAD')
  })

  test.each([
    '/UNDER-A/levelled/ALSO',
    '/under-a/levelled/also/',
    '/under-a/levelled/%61lso',
    '/under-a//levelled/also',
  ])('another spelling admits no request: %s', async (path) => {
    callsOf('x')
    const { status } = await get(served.port, path)
    expect([401, 404]).toContain(status)
    expect(callsOf('x')).toBe(0)
  })
})

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
    await expectDemands(served.port, '/a/param/1', 'x', ['a', 'b'])
    // Two of the eight sets of keys have both
    expect(callsOf('hook')).toBe(2)
  })
})

describe('requests as bytes', () => {
  const served = serve(() =>
    appOf(
      A(new Router())
        .get('/x', alsoOf(b), handler('x'))
        .get('/o', guardOf(optional(allOf([b, c]))), handler('o'))
        .routes(),
    ),
  )
  const tried = async (lines: ReadonlyArray<string>, target = 'GET /x', id = 'x') => {
    const { status, body } = await sendLines(served.port, target, lines)
    return { status, calls: callsOf(id), body }
  }

  test.each<[string, string[]]>([
    ['one key twice', ['X-a: a', 'X-a: a', 'X-b: b']],
    ['one key twice, one of them empty', ['X-a: a', 'X-a:', 'X-b: b']],
    ['both keys in one field', ['X-a: a, b']],
    ['the second folded into the first line', ['X-a: a', ' X-b: b']],
    ['a key with a control character', ['X-a: a\x01', 'X-b: b']],
    ['a key with a no-break space', ['X-a: \xa0a', 'X-b: b']],
    ['the second key in a trailer', ['X-a: a', 'Transfer-Encoding: chunked', 'Trailer: X-b']],
    ['names with underscores', ['X_a: a', 'X_b: b']],
    ['8 KB of a', [`X-a: ${'a'.repeat(8193)}`, 'X-b: b']],
  ])('%s is refused', async (_what, lines) => {
    const { status, calls } = await tried(lines, 'GET /x')
    expect([400, 401, 408, 431, 'closed', 'hang']).toContain(status)
    expect(calls).toBe(0)
  })

  test('blanks around a key are not a part of it, and this is the only other spelling', async () => {
    expect(await tried(['X-a: \ta \t', 'X-B:b'])).toMatchObject({ status: 200, calls: 1 })
  })

  test.each<[string, string[]]>([
    ['one key of two', ['X-b: b']],
    ['one key of two, and the other empty', ['X-b: b', 'X-c:']],
    ['one key of two, and the other twice', ['X-b: b', 'X-c: c', 'X-c: c']],
    ['both keys empty', ['X-b:', 'X-c:']],
    ['only the second key', ['X-c: c']],
    ['both keys wrong', ['X-b: c', 'X-c: b']],
  ])('an optional group: %s does not make the caller anonymous', async (_what, lines) => {
    expect(await tried(lines, 'GET /o', 'o')).toMatchObject({ status: 401, calls: 0 })
  })

  test('an optional group: no key and both keys pass', async () => {
    expect(await tried([], 'GET /o', 'o')).toMatchObject({ status: 200, calls: 1 })
    expect(await tried(['X-b: b', 'X-c: c'], 'GET /o', 'o')).toMatchObject({ status: 200, calls: 1 })
  })
})

test('a value that could be misunderstood as demanding less is refused when it is written', () => {
  const wrong: ReadonlyArray<() => unknown> = [
    () => also(null as never),
    () => also(undefined as never),
    () => also([] as never),
    () => also(also(a) as never),
    () => withAuth([also(a)] as never),
    () => optional(also(a) as never),
    () => also(A as never),
    () => allOf([A] as never),
    () => A(new Router()).get('/x', B, alsoOf(c) as never, handler('x')),
  ]
  for (const each of wrong) expect(each, String(each)).toThrow(TypeError)
})

test('an Also without authenticators, which would be public, is refused when it is written', () => {
  expect(() => withAuth({ _tag: 'Also', authenticators: [] } as never)).toThrow(TypeError)
})

// A literal `__proto__` is not a key of the object: the group would demand only `b`
test('a group that is an object with its own prototype is refused when it is written', () => {
  for (const group of [
    () => allOf({ __proto__: a, b }),
    () => anyOf({ __proto__: a, b }),
    () => firstPresent({ __proto__: a, b }),
  ]) {
    expect(group).toThrow(TypeError)
  }
})
