/** The methods of a layer that OpenAPI can list. */
import { METHODS } from 'node:http'
import Router from '@koa/router'
import { expect, it } from 'vitest'
import { listed } from '../../src/openapi/paths.js'
import { methodsOf } from '../../src/openapi/routes.js'

const of = (fill: (router: Router) => unknown) => {
  const router = new Router()
  fill(router)
  return methodsOf(router.stack[0]!.methods)
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
  ['all: every method of OpenAPI is listed', (r: Router) => r.all('/x', none), [...listed]],
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
