/** The paths and methods of a document. */
import { METHODS } from 'node:http'
import Router from '@koa/router'
import { expect, it, describe } from 'vitest'
import { either as E } from 'fp-ts'
import { openApi } from 'koa-with-auth/openapi'
import { pathItemMethods, templatesOf } from '../../src/openapi/paths.js'

// The methods of a layer that OpenAPI can list.

const of = (fill: (router: Router) => unknown) => {
  const router = new Router()
  fill(router)
  const document = openApi(router, { title: 'Pets', version: '1' })
  const others = document['x-undescribed'] ?? []
  return { listed: Object.keys(document.paths['/x'] ?? {}), others: others.flatMap(({ methods }) => methods) }
}
const none = () => {}

it.each([
  ['HEAD that the router adds to GET is left out', (r: Router) => r.get('/x', none), ['get']],
  ['HEAD alone is listed', (r: Router) => r.head('/x', none), ['head']],
  ['HEAD beside GET is listed', (r: Router) => r.register('/x', ['head', 'get'], none), ['get', 'head']],
  ['a single method is listed', (r: Router) => r.delete('/x', none), ['delete']],
  ['all: every method of OpenAPI is listed', (r: Router) => r.all('/x', none), [...pathItemMethods]],
])('%s', (_, fill, expected) => {
  expect(of(fill).listed).toEqual(expected)
})

it('methods that OpenAPI 3.1 does not have are listed separately', () => {
  expect(of((r) => r.register('/x', ['PROPFIND', 'get'], none))).toEqual({ listed: ['get'], others: ['PROPFIND'] })
  const { others } = of((r) => r.all('/x', none))
  const listed = /^(GET|PUT|POST|DELETE|OPTIONS|HEAD|PATCH|TRACE)$/
  expect([...others].sort()).toEqual(METHODS.filter((method) => !listed.test(method)))
})

// The path templates of OpenAPI for the patterns of a router.

const pathsOf = (pattern: string | RegExp) =>
  templatesOf(pattern).map((one) => (E.isLeft(one) ? `! ${one.left}` : one.right.path))

describe('templatesOf', () => {
  it.each([
    ['/pets', '/pets'],
    ['/', '/'],
    ['/pets/', '/pets/'],
    ['/pets/:id', '/pets/{id}'],
    ['/:from-:to.:ext', '/{from}-{to}.{ext}'],
    ['/files/*rest', '/files/{rest}'],
    ['/:"pet id"', '/{pet id}'],
    ['/:"a}/b"', '/{a__b}'],
    ['/a\\:b\\*', '/a:b*'],
    ['/pets{/:id}', '/pets/{id}', '/pets'],
    ['/a{/:b}{/c}', '/a/{b}/c', '/a/{b}', '/a/c', '/a'],
    ['/a{/:b{/:c}}', '/a/{b}/{c}', '/a/{b}', '/a'],
    ['{/*rest}', '/{rest}', '/'],
    // a name twice: the handler gets the last
    ['/u/:id/p/:id', '/u/{id_1}/p/{id}'],
    ['/:id/:id/:id', '/{id_2}/{id_1}/{id}'],
    ['/:id_1/:id/:id', '/{id_1_1}/{id_1}/{id}'],
  ])('%s is %s', (pattern, ...paths) => {
    expect(pathsOf(pattern)).toEqual(paths)
    // The router accepts the same pattern
    expect(() => new Router().get(pattern, () => {})).not.toThrow()
  })

  const plain = 'a path template cannot contain { } ? or # as plain characters'
  it.each<[pattern: string | RegExp, reason: string]>([
    [/^\/x(\d+)$/, 'a regular expression is not a path template'],
    ['pets', 'a path begins with a slash'],
    ['*rest', 'a path begins with a slash'],
    ['', 'a path begins with a slash'],
    ['/a\\{b', plain],
    ['/a\\?b', plain],
    ['/a#b', plain],
    ['/a\\}b', plain],
    ['/a(b', 'not a pattern that path-to-regexp reads'],
  ])('has a reason why %s is not a template', (pattern, reason) => {
    expect(pathsOf(pattern)).toEqual([`! ${reason}`])
  })

  it('distinguishes wildcards from parameters of the same outline', () => {
    const [one, all] = ['/a/:x', '/a/*y'].map((pattern) => E.toUnion(templatesOf(pattern)[0]!))
    expect(one).toMatchObject({ outline: '/a/{}', shape: '/a/{}', parameters: [{ name: 'x', wildcard: false }] })
    expect(all).toMatchObject({ outline: '/a/{}', shape: '/a/{*}', parameters: [{ name: 'y', wildcard: true }] })
  })
})
