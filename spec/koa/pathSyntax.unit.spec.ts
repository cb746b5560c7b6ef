/** Paths of older routers, translated to the syntax of later ones: never narrower than what the router matches. */
import type Router from '@koa/router'
import fc from 'fast-check'
import { pathToRegexp } from 'path-to-regexp'
import { pathToRegexp as pathToRegexp6 } from 'path-to-regexp-6'
import { describe, expect, it } from 'vitest'
import { modernPath } from '../../src/koa/pathSyntax.js'

const accepts = (path: string, candidate: string) => pathToRegexp(path).regexp.test(candidate)

const old: string = 'koa-router-12'
const { default: OldRouter } = (await import(old)) as { default: typeof Router }
const translated = (path: string) => modernPath(new OldRouter().get(path, () => {}).stack[0]!)!

describe('a path of path-to-regexp 6 in the syntax of 8', () => {
  it.each([
    { path: '/users', expected: { path: '/users', isExact: true } },
    { path: '/users/:id', expected: { path: '/users/:id', isExact: true } },
    { path: '/users/:id?', expected: { path: '/users{/:id}', isExact: true } },
    { path: '/users/:id(\\d+)', expected: { path: '/users/:id', isExact: false } },
    { path: '/files/:path*', expected: { path: '/files{/*path}', isExact: false } },
    { path: '/files/:path+', expected: { path: '/files/*path', isExact: false } },
    { path: '/files/(.*)', expected: { path: '/files/{*"0"}', isExact: true } },
    { path: '(.*)', expected: { path: '{*"0"}', isExact: true } },
    { path: '/a{/b}?', expected: { path: '/a{/b}', isExact: true } },
    { path: '/:a-:b', expected: { path: '/:a-:b', isExact: false } },
    { path: '/odd/:x([^a]*)', expected: { path: '/odd/{*x}', isExact: false } },
    { path: '/o/:n(\\d{0,2})', expected: { path: '/o/{*n}', isExact: false } },
  ])('$path is $expected.path', ({ path, expected }) => {
    expect(translated(path)).toStrictEqual(expected)
  })

  const parts = ['/a', '/b', '/:x', '/:y?', '/:z(\\d+)', '/:r*', '/:s+', '/(.*)', '/:w([a-z]{2})', '{/c}?']
  // After a wildcard, path-to-regexp 8 does not let the next capture match what the wildcard could match, so one
  // wildcard is the most
  const isWild = (one: string) => /\(\.\*\)|[*+]$/.test(one)
  const path = fc
    .array(fc.constantFrom(...parts), { minLength: 1, maxLength: 3 })
    .filter((parts) => parts.filter(isWild).length <= 1)
    .map((parts) => parts.map((one, at) => one.replace(/:(\w)/, `:$1${at}`)).join(''))
  const segment = fc.constantFrom('a', 'b', 'c', '1', 'ab', '', 'xyz')
  const requested = fc.array(segment, { maxLength: 4 }).map((segments) => `/${segments.join('/')}`)

  it('law: it accepts everything that the original accepts, and no more if it says that it is exact', () => {
    fc.assert(
      fc.property(path, requested, (original, candidate) => {
        const { path: modern, isExact } = translated(original)
        const before = pathToRegexp6(original).test(candidate)
        if (before) expect(accepts(modern, candidate)).toBe(true)
        // An empty segment is a segment for path-to-regexp 8 only after a wildcard
        else if (isExact && !candidate.includes('//')) expect(accepts(modern, candidate)).toBe(false)
      }),
      { numRuns: 5000 },
    )
  })
})

describe('the path of a layer', () => {
  const layerOf = async (name: string, path: string | RegExp) => {
    const { default: Old } = (await import(name)) as { default: typeof Router }
    return new Old().get(path, () => {}).stack[0]!
  }
  it.each([
    { router: 'koa-router-12', path: '/u/:id(\\d+)', expected: { path: '/u/:id', isExact: false } },
    { router: 'koa-router-13', path: '/u/(.*)', expected: { path: '/u/{*"0"}', isExact: true } },
    { router: 'koa-router-14', path: '/u/*rest', expected: { path: '/u/*rest', isExact: true } },
    { router: '@koa/router', path: '/u{/:id}', expected: { path: '/u{/:id}', isExact: true } },
    { router: '@koa/router', path: /^\/u/, expected: undefined },
  ])('of $router at $path', async ({ router, path, expected }) => {
    expect(modernPath(await layerOf(router, path))).toStrictEqual(expected)
  })
})
