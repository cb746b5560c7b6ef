/**
 * An authenticated caller may not be allowed: `authorize` and `requireScopes` over HTTP, whatever their functions
 * return.
 */
import { either as E, option as O, taskEither as TE } from 'fp-ts'
import { pipe } from 'fp-ts/lib/function.js'
import {
  allOf,
  anyOf,
  authorize,
  AuthError,
  httpBearer,
  optional,
  requireScopes,
  type Authenticator,
} from 'koa-with-auth'
import { describe, expect, test } from 'vitest'
import { bearer, expectCrashed, expectDenied, expectPassed } from '../support/models/behavior.js'
import { behind, crossSite, key, basic, offers, sending, user } from '../support/models/combining.js'

const LOW = 'Bearer realm="api", error="insufficient_scope"'
// Safe: a program without types could write this
const deciding = (f: unknown) => pipe(user, authorize<unknown>(f as () => boolean))
const good = sending({ user: 'good' })
const raise = (error: unknown): never => {
  throw error
}

describe('authorize', () => {
  test.each<[string, unknown]>([
    ['true', () => true],
    ['a promise of true', async () => true],
    ['a thenable of true', () => ({ then: (go: (u: unknown) => void) => go(true) })],
  ])('%s: allowed, and the principal stays the same', async (_what, f) => {
    expectPassed(await (await behind(deciding(f))).ask('/x', good), { name: 'user' })
  })

  test.each<[string, unknown]>([
    ['false', () => false],
    ['a promise of false', async () => false],
    ['undefined', () => undefined],
    ['null', () => null],
    ['0', () => 0],
    ['an empty string', () => ''],
    ['a promise of undefined', async () => undefined],
  ])('%s: 403, and no handler ran', async (_what, f) => {
    expectDenied(await (await behind(deciding(f))).ask('/x', good), 403, [LOW])
  })

  test.each<[string, unknown]>([
    ['Option.none', () => O.none],
    ['Option.some(true)', () => O.some(true)],
    ['a Left', () => E.left('no')],
    ['a Right', () => E.right(true)],
    ['a TaskEither', () => TE.right(true)],
    ['a function that is not called', () => () => true],
    ['1', () => 1],
    ['the text "false"', () => 'false'],
    ['an empty object', () => ({})],
    ['an empty list', () => []],
    ['a Boolean object', () => new Boolean(true)],
    ['a promise of an Option', async () => O.none],
    ['a promise of a promise of 1', async () => Promise.resolve(1)],
    ['an AuthError', () => AuthError.invalid],
    [
      'a proxy that throws whenever it is read',
      () => new Proxy({}, { has: () => raise('has'), get: () => raise('get') }),
    ],
    ['a then that throws', () => ({ then: () => raise(new Error('then')) })],
    ['an error that is thrown', () => raise(new Error('hidden'))],
    ['null that is thrown', () => raise(null)],
    ['a Right that is thrown', () => raise(Object.assign(new Error('hidden'), { status: 200, expose: true }))],
    ['a rejection', () => Promise.reject(new Error('hidden'))],
    ['a rejection with undefined', () => Promise.reject()],
  ])('%s is not a decision: 500, and no handler ran', async (_what, f) => {
    expectCrashed(await (await behind(deciding(f))).ask('/x', good))
  })

  test('it is not called for an anonymous caller or a refused principal', async () => {
    const asked: unknown[] = []
    const { ask } = await behind(optional(deciding((principal: unknown) => asked.push(principal) > 99)))
    expectPassed(await ask('/x'), undefined)
    expectDenied(await ask('/x', sending({ user: 'bad' })), 401, [offers.badUser])
    expectDenied(await ask('/x', sending({ user: 'down' })), 503, [])
    expect(asked).toEqual([])
    expectDenied(await ask('/x', good), 403, [LOW])
    expect(asked).toEqual([{ name: 'user' }])
  })

  test('it is called with the request', async () => {
    const { ask } = await behind(deciding((_principal: unknown, request: { path: string }) => request.path === '/x'))
    expectPassed(await ask('/x', good), { name: 'user' })
  })

  test('in a list the next member is tried, and 403 is the strongest failure', async () => {
    const { ask } = await behind([deciding(() => false), key])
    expectPassed(await ask('/x', sending({ user: 'good', key: 'good' })), { name: 'key' })
    expectDenied(await ask('/x', good), 403, [LOW])
    expectDenied(await ask('/x', sending({ user: 'good', key: 'bad' })), 403, [LOW])
    expectDenied(await ask('/x'), 401, [offers.user, offers.key])
  })

  test('around a group, every credential is named; a write from another site is refused before the function is called', async () => {
    const { ask } = await behind(
      pipe(
        allOf([basic, key]),
        authorize(() => raise(new Error('asked'))),
      ),
    )
    expectDenied(await ask('/x', sending({ basic: 'good', key: 'good' }, crossSite)), 403, [], 'CSRF check Failed')
    expectCrashed(await ask('/x', sending({ basic: 'good', key: 'good' })))
  })
})

describe('requireScopes', () => {
  const grants = async (granted: unknown, ...scopes: [string, ...string[]]) => {
    const token = httpBearer({ authenticate: () => ({ granted }) })
    const running = await behind(
      pipe(
        token,
        // Safe: a program without types could return this
        requireScopes(scopes, { granted: (principal) => principal.granted as string }),
      ),
    )
    return running.ask('/x', bearer('t'))
  }
  const insufficient = (scope: string) => [`${LOW}, scope="${scope}"`]

  test.each<[string, unknown]>([
    ['a list', ['read', 'write']],
    ['a list with others', ['admin', 'write', 'read']],
    ['a Set', new Set(['write', 'read'])],
    ['a string', 'read write'],
    ['a string with additional blanks', ' write   read '],
    ['a promise of a list', Promise.resolve(['read', 'write'])],
  ])('%s that has all scopes: allowed', async (_what, granted) => {
    expectPassed(await grants(granted, 'read', 'write'), { granted })
  })

  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['an empty string', ''],
    ['an empty list', []],
    ['one of two', ['read']],
    ['a promise of one of two', Promise.resolve('read')],
    ['a promise of undefined', Promise.resolve()],
    ['one of two, as a string', 'read'],
    ['the beginning of a scope', 'read writ'],
    ['a longer scope', 'read write:all'],
    ['both scopes in one string of a list', ['read write']],
    ['other letter case', ['READ', 'WRITE']],
    ['commas', 'read,write'],
    ['a line break', 'read\nwrite'],
    ['a tab', 'read\twrite'],
    ['a no-break space', 'read\u00a0write'],
    ['a list of lists', [['read'], ['write']]],
    ['objects that print as scopes', [{ toString: () => 'read' }, { toString: () => 'write' }]],
    ['String objects', [new String('read'), new String('write')]],
    ['numbers and holes', [1, , true, null, undefined]],
    ['an object with scopes as keys', Object.assign([], { read: true, write: true })],
  ])('%s: 403 with the required scopes', async (_what, granted) => {
    expectDenied(await grants(granted, 'read', 'write'), 403, insufficient('read write'))
  })

  test.each<[string, unknown]>([
    ['a number', 1],
    ['true', true],
    ['an object', { read: true, write: true }],
    ['a String object', new String('read write')],
    ['a promise of a number', Promise.resolve(1)],
    ['a function', () => ['read', 'write']],
    ['a Map', new Map([['read', 'write']])],
    ['an object with a method `has`', { has: () => true }],
    ['an Option', O.some(['read', 'write'])],
  ])('%s is not a list of scopes: 500, and no handler ran', async (_what, granted) => {
    expectCrashed(await grants(granted, 'read', 'write'))
  })

  test('a Set whose `has` always returns true grants only its members', async () => {
    class Yes extends Set<string> {
      override has(): boolean {
        return true
      }
    }
    expectDenied(await grants(new Yes(['read']), 'write'), 403, insufficient('write'))
  })

  test('the scopes of several calls add up, and a 403 and a 401 name all of them', async () => {
    const token = httpBearer({ authenticate: (_request, sent) => ({ scopes: sent.split('.') }) })
    const granted = ({ scopes }: { scopes: string[] }) => scopes
    const { ask } = await behind(
      pipe(token, requireScopes(['read'], { granted }), requireScopes(['write', 'list'], { granted })),
    )
    expectPassed(await ask('/x', bearer('read.write.list')), { scopes: ['read', 'write', 'list'] })
    expectDenied(await ask('/x', bearer('read.list')), 403, insufficient('read write list'))
    expectDenied(await ask('/x', bearer('write.list')), 403, insufficient('read write list'))
    expectDenied(await ask('/x'), 401, ['Bearer realm="api", scope="read write list"'])
    const refused = await ask('/x', { headers: { Authorization: 'Bearer ,' } })
    expectDenied(refused, 401, ['Bearer realm="api", error="invalid_token", scope="read write list"'])
  })

  test('B-16 in a list, only an authenticated caller gets a 403, and each challenge names its scopes', async () => {
    const scoped = <P>(a: Authenticator<P>) => requireScopes<P>(['read'], { granted: () => [] })(a)
    const { ask } = await behind(anyOf([scoped(user), scoped(basic)]))
    expectDenied(await ask('/x', good), 403, insufficient('read'))
    const read = (challenge: string) => `${challenge}, scope="read"`
    expectDenied(await ask('/x', sending({ basic: 'good' })), 403, [read(offers.basic)])
    expectDenied(await ask('/x'), 401, [read(offers.user), read(offers.basic)])
  })

  test('a 401 that the handler answers names the scopes, too', async () => {
    const token = httpBearer({ authenticate: () => ({ scopes: ['read'] }) })
    const reading = pipe(token, requireScopes(['read'], { granted: ({ scopes }) => scopes }))
    const { ask } = await behind(reading, (app) => {
      app.use(async (ctx, next) => {
        await next()
        ctx.status = 401
      })
    })
    const { challenges } = await ask('/x', bearer('t'))
    expect(challenges).toEqual(['Bearer realm="api", scope="read"'])
  })
})
