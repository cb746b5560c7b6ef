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
  [
    'HEAD that is registered beside GET is listed',
    (r: Router) => r.register('/x', ['head', 'get'], none),
    ['get', 'head'],
  ],
  ['a single method is listed', (r: Router) => r.delete('/x', none), ['delete']],
  ['all: every method of OpenAPI is listed', (r: Router) => r.all('/x', none), [...pathItemMethods]],
])('%s', (_, fill, expected) => {
  expect(of(fill).listed).toEqual(expected)
})

it('methods that OpenAPI 3.1 does not have are listed separately', () => {
  expect(of((r) => r.register('/x', ['PROPFIND', 'get'], none))).toEqual({ listed: ['get'], others: ['PROPFIND'] })
  const { others } = of((r) => r.all('/x', none))
  expect([...others].sort()).toEqual(
    METHODS.filter((method) => !/^(GET|PUT|POST|DELETE|OPTIONS|HEAD|PATCH|TRACE)$/.test(method)),
  )
})

// The path templates of OpenAPI for the patterns of a router.

const pathsOf = (pattern: string | RegExp) =>
  templatesOf(pattern).map(
    E.fold(
      (reason) => `! ${reason}`,
      ({ path }) => path,
    ),
  )

describe('templatesOf', () => {
  it.each([
    { description: 'plain characters', pattern: '/pets', paths: ['/pets'] },
    { description: 'the root', pattern: '/', paths: ['/'] },
    { description: 'a trailing slash', pattern: '/pets/', paths: ['/pets/'] },
    { description: 'a parameter', pattern: '/pets/:id', paths: ['/pets/{id}'] },
    { description: 'several parameters in one segment', pattern: '/:from-:to.:ext', paths: ['/{from}-{to}.{ext}'] },
    { description: 'a wildcard', pattern: '/files/*rest', paths: ['/files/{rest}'] },
    { description: 'a quoted name', pattern: '/:"pet id"', paths: ['/{pet id}'] },
    { description: 'a quoted name that contains a brace', pattern: '/:"a}/b"', paths: ['/{a__b}'] },
    { description: 'an escaped special character', pattern: '/a\\:b\\*', paths: ['/a:b*'] },
    { description: 'an optional group', pattern: '/pets{/:id}', paths: ['/pets/{id}', '/pets'] },
    { description: 'two optional groups', pattern: '/a{/:b}{/c}', paths: ['/a/{b}/c', '/a/{b}', '/a/c', '/a'] },
    { description: 'an optional group in another', pattern: '/a{/:b{/:c}}', paths: ['/a/{b}/{c}', '/a/{b}', '/a'] },
    { description: 'only an optional group', pattern: '{/*rest}', paths: ['/{rest}', '/'] },
    { description: 'a name twice: the handler gets the last', pattern: '/u/:id/p/:id', paths: ['/u/{id_1}/p/{id}'] },
    { description: 'a name three times', pattern: '/:id/:id/:id', paths: ['/{id_2}/{id_1}/{id}'] },
    {
      description: 'a name twice, beside a name with a number',
      pattern: '/:id_1/:id/:id',
      paths: ['/{id_1_1}/{id_1}/{id}'],
    },
  ])('$description: $pattern', ({ pattern, paths }) => {
    expect(pathsOf(pattern)).toEqual(paths)
    // The router accepts the same pattern
    expect(() => new Router().get(pattern, () => {})).not.toThrow()
  })

  it.each([
    { description: 'a RegExp', pattern: /^\/x(\d+)$/, reason: 'a regular expression is not a path template' },
    { description: 'a path without a leading slash', pattern: 'pets', reason: 'a path begins with a slash' },
    { description: 'a wildcard without a leading slash', pattern: '*rest', reason: 'a path begins with a slash' },
    { description: 'an empty path', pattern: '', reason: 'a path begins with a slash' },
    {
      description: 'a brace as a plain character',
      pattern: '/a\\{b',
      reason: 'a path template cannot contain { } ? or # as plain characters',
    },
    {
      description: 'a question mark as a plain character',
      pattern: '/a\\?b',
      reason: 'a path template cannot contain { } ? or # as plain characters',
    },
    { description: 'an invalid pattern', pattern: '/a(b', reason: 'not a pattern that path-to-regexp reads' },
  ])('has a reason why $description is not a template', ({ pattern, reason }) => {
    expect(pathsOf(pattern)).toEqual([`! ${reason}`])
  })

  it('distinguishes wildcards from parameters of the same outline', () => {
    const [one, all] = ['/a/:x', '/a/*y'].map((pattern) => E.toUnion(templatesOf(pattern)[0]!))
    expect(one).toEqual({
      path: '/a/{x}',
      outline: '/a/{}',
      shape: '/a/{}',
      parameters: [{ name: 'x', wildcard: false }],
    })
    expect(all).toEqual({
      path: '/a/{y}',
      outline: '/a/{}',
      shape: '/a/{*}',
      parameters: [{ name: 'y', wildcard: true }],
    })
  })
})
