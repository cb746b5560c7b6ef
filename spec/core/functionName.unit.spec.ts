/** What descriptions call the functions that decide, and what is put around them: for the audit and the policy file. */
import { pipe } from 'fp-ts/lib/function.js'
import {
  allOf,
  anyOf,
  authorize,
  httpBasicAuth,
  httpBearer,
  optional,
  remembered,
  throttled,
  type Authenticator,
} from 'koa-with-auth'
import { flatMap, fromFunction, map, recoverUnavailable, timeout } from 'koa-with-auth/fp'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { describe, expect, it } from 'vitest'
import { functionName } from '../../src/core/functionName.js'

describe('the name of a function', () => {
  it('is its own', () => {
    const isAdmin = () => true
    expect(functionName(isAdmin)).toBe('isAdmin')
    expect(functionName(function named() {})).toBe('named')
  })

  const nameless = (text: string): string =>
    // Safe: the text is a function
    functionName((0, eval)(`(${text})`) as Function)

  it('is a digest of its text where it has none', () => {
    expect(nameless('() => 1')).toMatch(/^function [0-9a-f]{12}$/)
    expect(nameless('() => 1')).not.toBe(nameless('() => 2'))
  })

  it('is another one if the text is written in another way: no text of a function is taken apart', () => {
    expect(nameless('(u) => u.ok')).not.toBe(nameless('(u)=>u.ok'))
    expect(nameless('(u) => u === "a b"')).not.toBe(nameless('(u) => u === "a  b"'))
  })

  it.each(['a\nb', 'a\tb', 'a"b', 'x'.repeat(200)])('is one short line, whatever a computed name says (%j)', (name) => {
    const { [name]: f } = { [name]: () => true }
    expect(functionName(f!)).toMatch(/^[^\n\t"]{1,100}$/)
  })
})

describe('authorize(f, { name })', () => {
  const bearer = httpBearer({ authenticate: (_request, token) => token === 'good' && { role: 'admin' } })

  it('is called by its name in the description, else by that of the function', () => {
    const isAdmin = ({ role }: { role: string }) => role === 'admin'
    expect(pipe(bearer, authorize(isAdmin, { name: 'the admin' })).description).toHaveProperty('decidedBy', 'the admin')
    expect(pipe(bearer, authorize(isAdmin)).description).toHaveProperty('decidedBy', 'isAdmin')
  })

  it.each([
    ['an unknown option', { nam: 'admin' }, /authorize\(f, \{ \.\.\. \}\)|authorize\(f, options\): no option "nam"/],
    ['a number', { name: 1 }, /authorize\(f, \{ name \}\) must be a name/],
    ['a line break', { name: 'a\nb' }, /authorize\(f, \{ name \}\) must be a name/],
    ['an empty name', { name: '' }, /authorize\(f, \{ name \}\) must be a name/],
    ['a comma', { name: 'a, b' }, /authorize\(f, \{ name \}\) must be a name/],
    ['a string', 'admin', /authorize\(f, options\) takes an object/],
  ])('refuses %s', (_what, options, message) => {
    // Safe: the types refuse it
    const attempt = (): unknown => authorize(() => true, options as { name: string })
    expect(attempt).toThrow(TypeError)
    expect(attempt).toThrow(message)
  })
})

describe('the wrappers of a description', () => {
  const basic = httpBasicAuth({ authenticate: (_request, user) => ({ user }) })
  const bearer = httpBearer({ authenticate: (_request, token) => ({ user: token }) })
  const memory = (points: number, duration: number) => new RateLimiterMemory({ points, duration })
  const loadUser = (principal: unknown) => principal
  const fromCache = () => ({ user: 'cached' })
  const wrappers = (a: Authenticator<unknown>) => a.description.wrappers

  it('name what is around a kind, the innermost first', () => {
    const a = pipe(
      basic,
      recoverUnavailable(fromCache),
      throttled({ limiter: memory(5, 900) }),
      remembered({ maxAge: 60_000 }),
      flatMap(loadUser),
      timeout(500),
      map((user) => user as object),
    )
    expect(wrappers(a)).toStrictEqual([
      'recoverUnavailable fromCache',
      'throttled 5/900 s',
      'remembered 60 s',
      'flatMap loadUser',
    ])
  })

  it('name each limiter', () => {
    const limiter = { accountAndAddress: memory(5, 900), account: memory(100, 86_400), address: memory(50, 900) }
    expect(wrappers(pipe(basic, throttled({ limiter })))).toStrictEqual([
      'throttled 5/900 s (account 100/86400 s, address 50/900 s)',
    ])
    const bare = { consume: async () => {}, reward: async () => {} }
    expect(wrappers(pipe(basic, throttled({ limiter: bare })))).toStrictEqual(['throttled'])
  })

  it('name an authenticator that recovers by its scheme', () => {
    expect(wrappers(pipe(basic, recoverUnavailable(bearer)))).toStrictEqual(['recoverUnavailable bearer'])
  })

  it('are on each kind of a list that is throttled, and on the list itself for flatMap', () => {
    const list = anyOf([basic, bearer])
    const each = pipe(list, throttled({ limiter: memory(5, 900) })).description
    expect('members' in each && each.members.map((member) => member.wrappers)).toStrictEqual([
      ['throttled 5/900 s'],
      ['throttled 5/900 s'],
    ])
    const checked = pipe(list, flatMap(loadUser))
    expect(wrappers(checked)).toStrictEqual(['flatMap loadUser'])
    expect(anyOf([checked, optional(basic)]).description).toHaveProperty(
      ['members', 0, 'wrappers', 0],
      'flatMap loadUser',
    )
    expect(allOf([checked, bearer]).description).toHaveProperty(['members', 0, 'wrappers', 0], 'flatMap loadUser')
  })

  it('a plain function is called by its name', () => {
    const local = () => ({ user: 'local' })
    expect(fromFunction(local).description).toHaveProperty('decidedBy', 'local')
  })
})
