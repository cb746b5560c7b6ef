/** What the audit says of two paths holds for what the routers of all supported versions match, in every spelling. */
import Router from '@koa/router'
import fc from 'fast-check'
import { httpBearer, withAuth } from 'koa-with-auth'
import { audit, seal } from 'koa-with-auth/audit'
import { createRequire } from 'node:module'
import { describe, expect, it } from 'vitest'
import { relate, routedPath, type RoutedPath } from '../../src/audit/RoutedPath.js'

const load = createRequire(import.meta.url)
// Safe: they are older versions of the same class
const older = (version: string): typeof Router => load(`koa-router-${version}`) as typeof Router
const routers: Record<string, typeof Router> = { 12: older('12'), 13: older('13'), 14: older('14'), 15: Router }

const literal = fc.array(fc.constantFrom('/', 'a', 'B', 'ab', '-', 'ß', '/a'), { minLength: 1, maxLength: 4 })
const modern = fc.array(fc.constantFrom('/', 'a', 'B', '/:p', '{/a}', '{/:p}', '/*w'), { minLength: 1, maxLength: 4 })
const source = fc.oneof(literal, modern).map((all) => `/${all.join('')}`.replace(/\/+/g, '/'))
const atoms = ['a', 'B', 'b', '\\/', '[^a]', '(?!b)', '(?!\\/)', 'a?', '(a|B)', '\\w', '\\W?', '.*', '$', '-', '[A-b]']
const regexp = fc
  .tuple(fc.array(fc.constantFrom(...atoms), { maxLength: 4 }), fc.constantFrom('', 'i', 'iu'))
  .map(([all, flags]) => {
    try {
      return new RegExp(`^\\/${all.join('')}`, flags)
    } catch {
      return /^\/a/
    }
  })
const either = fc.oneof({ weight: 2, arbitrary: source }, { weight: 1, arbitrary: regexp })
const options = fc.record({ sensitive: fc.boolean(), strict: fc.boolean() })

const letters = ['/', 'a', 'A', 'b', 'B', '-', 'ß', 'x']
const upTo = (length: number): ReadonlyArray<string> =>
  length === 0 ? [''] : ['', ...upTo(length - 1).flatMap((rest) => letters.map((one) => one + rest))]
const paths = [...new Set(upTo(4).map((rest) => `/${rest}`))]

type Options = ConstructorParameters<typeof Router>[0]
const pathOf = (version: string, path: string | RegExp, opts: Options): RoutedPath | undefined => {
  try {
    const [layer] = new routers[version]!(opts).get(path as string, () => {}).stack
    return routedPath(layer as never)
  } catch {
    return undefined
  }
}

describe.each(Object.keys(routers))('the relation of two paths of @koa/router %s', (version) => {
  it('is true for every path up to five characters', () => {
    const claims = { subset: 0, superset: 0, apart: 0 }
    fc.assert(
      fc.property(either, either, options, options, (one, other, opts, others) => {
        const [first, second] = [pathOf(version, one, opts), pathOf(version, other, others)]
        if (first === undefined || second === undefined) return
        const { isSubset, isSuperset, overlap, example } = relate(first, second)
        if (example !== undefined)
          expect([example, first.matches(example), second.matches(example)]).toEqual([example, true, true])
        expect(overlap === 'yes').toBe(example !== undefined || String(first.regexp) === String(second.regexp))
        if (!isSubset && !isSuperset && overlap !== 'no') return
        claims.subset += Number(isSubset)
        claims.superset += Number(isSuperset)
        claims.apart += Number(overlap === 'no')
        for (const path of paths) {
          const [a, b] = [first.matches(path), second.matches(path)]
          const wrong = (isSubset && a && !b) || (isSuperset && b && !a) || (overlap === 'no' && a && b)
          if (wrong) expect.unreachable(`${String(one)} and ${String(other)} at ${path}`)
        }
      }),
      { numRuns: 400 },
    )
    expect(Math.min(...Object.values(claims))).toBeGreaterThan(5)
  })
})

it.each(['12', '13'])('a parameter with a pattern of @koa/router %s accepts less than a segment', (version) => {
  const [some, all] = ['/x/:id(\\d+)', '/x/:id'].map((path) => pathOf(version, path, {})!)
  expect(relate(some!, all!)).toMatchObject({ isSubset: true, isSuperset: false })
})

describe('an open path before a guarded RegExp is reported unless it is narrower in every spelling', () => {
  const bearer = httpBearer({ authenticate: () => false })
  const before = (open: string, guarded: RegExp) =>
    new Router().get(open, withAuth(null), () => {}).get(guarded, withAuth(bearer), () => {})

  it.each<[string, RegExp]>([
    ['/report{/all}', /^\/report(?!\/)/],
    ['/A', /^\/a/],
    ['/a', /^\/a$/],
    ['/abcdefghijk', /^\/[a-zA-Z]+\/?$/],
  ])('%s before %s', (open, guarded) => {
    const router = before(open, guarded)
    expect(audit(router).operations[1]?.shadowedBy).toHaveLength(1)
    expect(() => seal(router, { public: [`GET ${open}`] })).toThrow('is guarded, but')
  })

  it('and is none if it is', () => {
    expect(audit(before('/users/me', /^\/users\//i)).operations[1]?.shadowedBy).toEqual([])
    expect(audit(before('/1/2', /^\/\d\//)).operations[1]?.shadowedBy).toEqual([])
    expect(audit(before('/a', /^\/[a-z]/i)).operations[1]?.shadowedBy).toEqual([])
    expect(audit(before('/abcdefghijkl', /^\/[a-z]/iu)).operations[1]?.shadowedBy).toEqual([])
    // with more letters, not every spelling is tried
    expect(audit(before('/abcdefghij', /^\/[a-zA-Z]+\/?$/)).operations[1]?.shadowedBy).toEqual([])
  })
})
