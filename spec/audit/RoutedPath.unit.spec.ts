/**
 * R10, R21: RegExp paths. What the audit cannot prove is `unknown`, and `seal` refuses it. No RegExp keeps its
 * lastIndex.
 */
import Router, { type RouterInstance } from '@koa/router'
import { audit, seal } from 'koa-with-auth/audit'
import { describe, expect, it } from 'vitest'
import { refusesInEveryCase } from '../../src/audit/paths.js'
import { relate, routedPath } from '../../src/audit/RoutedPath.js'
import { closed, guard, handle, open } from '../support/models/audits.js'

const leaks = (): void => {}

const overlap = (one: string | RegExp, other: string | RegExp, opts = {}) => {
  const [first, second] = [one, other].map((path) => routedPath(new Router(opts).get(path, handle).stack[0]!))
  return relate(first!, second!).overlap
}

describe('R10 a RegExp and a path are disjoint only if that is proven', () => {
  it.each<[string, RegExp, string]>([
    ['letters in another case than the path', /^\/reports\/byUser/, '/reports/byuser'],
    ['letters in another case than both spellings', /^\/reports\/by(?=User)(?!user|USER)/, '/reports/byuser'],
    ['a class that excludes a letter', /^\/reports\/by[^u]ser$/, '/reports/byuser'],
    ['a negative lookbehind', /^\/reports\/\w+(?<!r)$/, '/reports/byuser'],
    ['letters in the middle', /User$/, '/reports/byuser'],
    ['an optional letter', /^\/reports\/byU?s/, '/reports/byuser'],
    ['an alternation', /^\/x|byUser/, '/reports/byuser'],
    ['the beginning of any line', /^\/x/m, '/reports/:id'],
    ['a set that leaves letters out', new RegExp('^\\/reports\\/[\\w--[a-k]]yuser$', 'v'), '/reports/byuser'],
  ])('%s: %s', (_what, regexp, path) => {
    expect(overlap(regexp, path)).toBe('unknown')
    const router = closed().use(regexp, leaks).get(path, handle)
    expect(audit(router).middleware).toMatchObject([{ guarded: 'no' }])
    expect(() => seal(router)).toThrow(/no guard covers leaks/)
    expect(() => seal(router, { middleware: [leaks] })).not.toThrow()
    const beside = closed().get(regexp, open, handle).get(path, handle)
    expect(() => seal(beside, { public: [`GET ${regexp}`] })).toThrow(/it is not known whether/)
  })

  it.each<[string, RegExp, string]>([
    ['a different beginning', /^\/admin\/(?!x)/, '/reports/:id'],
    ['a different beginning, with escapes', /^\/a\.b\//i, '/a-b/*rest'],
    ['refused in every letter case', /^\/\d{4}$/, '/users/me'],
    ['refused by a RegExp without letter case', /^\/[^a]\d$/i, '/users/me'],
    ['refused by one with more letters alike', /^\/[^a]\d$/iu, '/users/me'],
    ['a shorter path', /^\/reports\/(\w+)$/, '/reports'],
  ])('%s is proven to be disjoint: %s', (_what, regexp, path) => {
    expect(overlap(regexp, path)).toBe('no')
  })

  it('different letter case is a proof if the router is case-sensitive', () => {
    expect(overlap(/^\/reports\/byUser/, '/reports/byuser', { sensitive: true })).toBe('no')
  })

  // Node 20 has no such groups. Safe, both: nothing else of a RegExp is read
  it('a group that has letter case again is no proof', () => {
    const regexp = { source: '^\\/(?-i:User)$', flags: 'i' } as RegExp
    expect(refusesInEveryCase(regexp, ['/user', '/USER'])).toBe(false)
    expect(refusesInEveryCase({ source: '^\\/(?s-i:User)$', flags: '' } as RegExp, ['/user'])).toBe(false)
  })

  it('two RegExps are disjoint if they begin differently, and unknown if they begin alike', () => {
    expect(overlap(/^\/x\//, /^\/y\//)).toBe('no')
    expect(overlap(/^\/x\/a/, /^\/x\/b/)).toBe('no')
    expect(overlap(/^\/xy{0}z$/, '/xz')).toBe('yes')
    expect(overlap(/^\/x\/\d{3}$/, /^\/x\/[a-f]{3}$/)).toBe('unknown')
  })
})

const statuses = (router: RouterInstance, path: string, methods: ReadonlyArray<string>): ReadonlyArray<unknown> =>
  methods.map((method) => router.match(path, method).pathAndMethod.map(({ path: matched }) => String(matched)))

describe('R21 a RegExp with the flags g and y does not keep its lastIndex', () => {
  const asked = ['GET', 'GET', 'POST', 'GET', 'GET']
  const files = (router: RouterInstance, flags: string) =>
    router.get(new RegExp('^\\/files\\/salaries$', flags), guard, handle).get('/files/:name', open, handle)
  const expected = asked.map((method) => (method === 'GET' ? ['/^\\/files\\/salaries$/FLAGS', '/files/:name'] : []))

  it.each(['g', 'y', 'gy', 'giy'])('in a sealed router, and where it is mounted: %s', (flags) => {
    const router = seal(files(new Router(), flags), { public: ['GET /files/:name'] })
    const mounted = new Router().use(router.routes())
    const matched = JSON.parse(JSON.stringify(expected).replaceAll('FLAGS', new RegExp('', flags).flags)) as unknown
    expect(statuses(router, '/files/salaries', asked)).toEqual(matched)
    expect(statuses(mounted, '/files/salaries', asked)).toEqual(matched)
  })

  it('in middleware; and the RegExp of the user keeps its flags', () => {
    const own = /^\/x/g
    const router = closed().use(own, leaks).get('/x', handle)
    expect(router.stack.map(({ regexp }) => regexp.flags)).toEqual(['', 'i'])
    expect(own.flags).toBe('g')
  })
})
