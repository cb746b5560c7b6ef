/** What descriptions call the functions that decide, and what is put around them: for the audit and the policy file. */
import { pipe } from 'fp-ts/lib/function.js'
import {
  allOf,
  anyOf,
  authorize,
  httpBasicAuth,
  httpBearer,
  named,
  optional,
  requireScopes,
  sessionAuthSuperUser,
  throttled,
  type Authenticator,
  type AuthenticatorLike,
} from 'koa-with-auth'
import { flatMap, fromFunction, lenient, map, recoverUnavailable, timeout } from 'koa-with-auth/fp'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { describe, expect, it } from 'vitest'
import { functionName } from '../../src/core/functionName.js'

describe('the name of a function', () => {
  it('is its own, with a digest of its text', () => {
    const isAdmin = () => true
    expect(functionName(isAdmin)).toMatch(/^isAdmin [0-9a-f]{12}$/)
    expect(functionName(function named() {})).toMatch(/^named [0-9a-f]{12}$/)
  })

  const made = (text: string): Function =>
    // Safe: the text is a function
    (0, eval)(`(${text})`) as Function
  const nameless = (text: string): string => functionName(made(text))

  it('is a digest of its text where it has none', () => {
    expect(nameless('() => 1')).toMatch(/^function [0-9a-f]{12}$/)
    expect(nameless('() => 1')).not.toBe(nameless('() => 2'))
  })

  it.each([
    ['(u)=>u.ok', '(u) => u.ok'],
    ['u => u.ok', '(u) => u.ok'],
    ["(u) => u.role === 'admin'", '(u) => u.role === "admin"'],
    ["(u) => u.role === 'an \\'admin\\''", '(u) => u.role === "an \'admin\'"'],
    ['(u) => { return u.ok }', '(u) => {\n  // whom it is for\n  return u.ok; /* his */\n}'],
    ['(u) => f([1, 2], { a, b })', '(u) => f(\n  [\n    1,\n    2,\n  ],\n  {\n    a,\n    b,\n  },\n)'],
    ['(u) => /a b/.test(u)', '(u) =>\n  /a b/.test(u)'],
    ['(u) => u.size / 2 > u / 3', '(u) => u.size/2>u/3'],
    ['(u) => `a  ${u.id}` === u', '(u)=>`a  ${u.id}`===u'],
  ])('does not change with the layout: %s', (one, other) => {
    expect(nameless(one)).toBe(nameless(other))
  })

  it.each([
    ['(u) => u === "a b"', '(u) => u === "a  b"'],
    ['(u) => u === "//a"', '(u) => u === "//b"'],
    ['(u) => u === `a b`', '(u) => u === `a  b`'],
    ['(u) => u === `${`a b`}`', '(u) => u === `${`a  b`}`'],
    ['(u) => /a b/.test(u)', '(u) => /a  b/.test(u)'],
    ['(u) => { if (u) /a b/.test(u) }', '(u) => { if (u) /a  b/.test(u) }'],
    ['(u) => { return\n u }', '(u) => { return u }'],
    ['(a, b) => { a\n++b }', '(a, b) => { a++\nb }'],
    ['(u) => { if (u); return 1 }', '(u) => { if (u) return 1 }'],
    ['() => [1,,]', '() => [1,]'],
    ['(a, b) => a - -b', '(a, b) => a-- - b'],
    ['(a) => "\\\\n" === a', '(a) => "\\n" === a'],
    ['f => typeof f', 'f => typeoff'],
    ['() => f(() => 1)', '() => f(1)'],
  ])('is another one for another text: %s and %s', (one, other) => {
    expect(nameless(one)).not.toBe(nameless(other))
  })

  it('of a bound function says that it is not compared, because all of them have one text', () => {
    const rules = { isFor: () => true, isForAll: () => false }
    expect(functionName(rules.isFor.bind(rules))).toBe('bound isFor (no name, bound, not compared)')
    expect(functionName(rules.isFor.bind(rules), 'the owner')).toBe('the owner (bound, not compared)')
    expect(functionName(new Proxy(rules.isFor, {}))).toContain('not compared')
    expect(functionName(Boolean)).toMatch(/^Boolean [0-9a-f]{12}$/)
  })

  it('is the one that named(name, f) gave it, with its digest', () => {
    const only = (role: string) => (user: { role: string }) => user.role === role
    const [admin, guest] = [named('admins', only('admin')), named('guests', only('guest'))]
    expect(functionName(admin)).toMatch(/^admins [0-9a-f]{12}$/)
    expect(functionName(guest).split(' ')[1]).toBe(functionName(admin).split(' ')[1])
    expect(named('admins', admin)).toBe(admin)
    expect(Object.getOwnPropertyDescriptor(named('only', only), 'name')).toMatchObject({ configurable: false })
    expect(() => named('guests', admin)).toThrow("named('guests', f): f has a name that cannot change")
    expect(() => named('a\nb', only('x'))).toThrow('named(name, f) must be a name')
    expect(() => named('x', Object.freeze(only('x')))).toThrow('f has a name that cannot change')
    expect(() => named('x', 'f' as never)).toThrow('must be a function')
  })

  it.each(['a\nb', 'a\tb', 'a"b', 'x'.repeat(200)])('is one short line, whatever a computed name says (%j)', (name) => {
    const { [name]: f } = { [name]: () => true }
    expect(functionName(f!)).toMatch(/^[^\n\t"]{1,113}$/)
  })
})

describe('authorize(f, { name })', () => {
  const bearer = httpBearer({ authenticate: (_request, token) => token === 'good' && { role: 'admin' } })

  it('is called by its name in the description, else by that of the function', () => {
    const isAdmin = ({ role }: { role: string }) => role === 'admin'
    expect(pipe(bearer, authorize(isAdmin, { name: 'the admin' })).description).toHaveProperty(
      'decidedBy',
      functionName(isAdmin, 'the admin'),
    )
    expect(pipe(bearer, authorize(isAdmin)).description).toHaveProperty('decidedBy', functionName(isAdmin))
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
      flatMap(loadUser),
      timeout(500),
      map((user) => user as object),
    )
    expect(wrappers(a)).toStrictEqual([
      `recoverUnavailable ${functionName(fromCache)}`,
      'throttled 5/900 s',
      `flatMap ${functionName(loadUser)}`,
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

  it('R24 name all that an authenticator which recovers demands', () => {
    const named = (f: AuthenticatorLike) => wrappers(pipe(basic, recoverUnavailable(f)))
    const isAdmin = () => true
    const [admin, words] = [authorize(isAdmin)(bearer), functionName(isAdmin)]
    const granted = () => []
    expect(named(bearer)).toStrictEqual(['recoverUnavailable bearer'])
    expect(named(admin)).toStrictEqual([`recoverUnavailable bearer ${words}`])
    expect(named(requireScopes(['read'], { granted })(bearer))).toStrictEqual(['recoverUnavailable bearer read'])
    expect(named(allOf([bearer, optional(basic)]))).toStrictEqual(['recoverUnavailable bearer and basic or bearer'])
    expect(named(allOf([bearer, lenient(basic)]))).toStrictEqual([
      'recoverUnavailable bearer and basic or bearer and anything',
    ])
    expect(() => named(optional(bearer))).toThrow('f is optional, and an outage makes no caller anonymous')
    expect(named(anyOf([admin, basic]))).toStrictEqual([`recoverUnavailable bearer ${words} or basic`])
    expect(named(allOf([admin, sessionAuthSuperUser()]))).toStrictEqual([
      `recoverUnavailable bearer ${words} and cookie_koa.sess of a superuser`,
    ])
    expect(named(throttled({ limiter: memory(5, 900) })(bearer))).toStrictEqual([
      'recoverUnavailable bearer throttled 5/900 s',
    ])
  })

  it('are on each kind of a list that is throttled, and on the list itself for flatMap', () => {
    const list = anyOf([basic, bearer])
    const each = pipe(list, throttled({ limiter: memory(5, 900) })).description
    expect('members' in each && each.members.map((member) => member.wrappers)).toStrictEqual([
      ['throttled 5/900 s'],
      ['throttled 5/900 s'],
    ])
    const checked = pipe(list, flatMap(loadUser))
    expect(wrappers(checked)).toStrictEqual([`flatMap ${functionName(loadUser)}`])
    for (const { description } of [anyOf([checked, optional(basic)]), allOf([checked, bearer])]) {
      expect(description).toHaveProperty(['members', 0, 'wrappers', 0], `flatMap ${functionName(loadUser)}`)
    }
  })

  it('a plain function is called by its name', () => {
    const local = () => ({ user: 'local' })
    expect(fromFunction(local).description).toHaveProperty('decidedBy', functionName(local))
  })
})
