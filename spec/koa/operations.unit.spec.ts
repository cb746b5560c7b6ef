/** What OpenAPI and the audit read from a router. */
import { METHODS } from 'node:http'
import Router from '@koa/router'
import { withAuth } from 'koa-with-auth'
import { fromFunction } from 'koa-with-auth/fp'
import { expect, it } from 'vitest'
import * as Requirement from '../../src/core/Requirement.js'
import { operationsOf } from '../../src/koa/operations.js'
import { providersOf, upstreamsOf } from '../../src/koa/upstreams.js'

const handle = () => {}
const a = fromFunction(() => 'anna')

it('operations are listed in order, each with its decision and its levels; `use` middleware is not listed', () => {
  const inner = withAuth(a)(new Router({ prefix: '/in' }))
  inner.use((_ctx, next) => next())
  inner.get('/x', handle).post('/y', withAuth(null), handle)
  const router = new Router()
  router.use('/p', inner.routes())
  router.get('/bare', handle)
  expect(
    operationsOf(router).map((one) => [one.name, one.requirement, one.levels, one.functions.length]),
  ).toStrictEqual([
    ['GET /p/in/x', Requirement.guardedBy(a), ['router /in'], 2],
    ['POST /p/in/y', Requirement.open, ['operation'], 2],
    ['GET /bare', Requirement.inherit, [], 1],
  ])
})

it('an operation has one name for each method, GET with its HEAD; ALL is every method of Node; a RegExp is as it was written', () => {
  const router = new Router().get('/x', handle).head('/h', handle)
  router.all('/all', handle).get(/^\/re$/i, handle)
  router.register('/two', ['GET', 'POST'], handle)
  router.register('/many', METHODS.slice(0, 11), handle)
  const operations = operationsOf(router)
  const named = operations.filter(({ path }) => path !== '/many')
  expect(named.map(({ name, methods }) => [name, methods.slice(0, 2)])).toEqual([
    ['GET /x', ['GET', 'HEAD']],
    ['HEAD /h', ['HEAD']],
    ['ALL /all', ['GET', 'HEAD']],
    ['GET /^\\/re$/i', ['GET', 'HEAD']],
    ['GET /two', ['GET', 'HEAD']],
    ['POST /two', ['POST']],
  ])
  expect(operations.filter(({ path }) => path === '/many').some(({ method }) => method === 'ALL')).toBe(false)
  expect(operations.find(({ method }) => method === 'ALL')?.methods.toSorted()).toEqual(METHODS.toSorted())
})

it('the providers of an application are kept, and their resource servers are listed in order', () => {
  const app = {}
  const upstream = (resource: string) => ({ resource, provider: 'p', scope: [], per: 'user' as const })
  providersOf(app).set({}, { upstreams: [upstream('a')] })
  providersOf(app).set({}, { upstreams: [upstream('b')] })
  expect(upstreamsOf(app).map(({ resource }) => resource)).toEqual(['a', 'b'])
  expect(Object.keys(app)).toEqual([])
})
