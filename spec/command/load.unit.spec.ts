/** The export of a module that is audited. */
import Router from '@koa/router'
import * as E from 'fp-ts/lib/Either.js'
import { pipe } from 'fp-ts/lib/function.js'
import Koa from 'koa'
import { apiApp, httpBearer, withAuth } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { auditedOf, chosen } from '../../src/command/Export.js'

const handle = (): void => {}
const bearer = httpBearer({ authenticate: () => true })
const router = () => withAuth(bearer)(new Router()).get('/me', handle)

describe('the export that is audited', () => {
  const app = new Koa().use(router().routes())
  const api = apiApp({ auth: bearer, docs: false })
  it.each<[name: string, namespace: object, chosen: string]>([
    ['the default export', { default: router(), other: app }, 'default export'],
    ['a function that makes an application', { default: () => app, app }, 'default export'],
    ['the routes of a router', { default: router().routes() }, 'default export'],
    ['an apiApp', { default: api }, 'default export'],
    ['the only export that fits', { port: 3000, start: () => app, api }, 'export api'],
    ['module.exports', { default: { app, port: 1 }, app, port: 1, 'module.exports': { app } }, 'export app'],
    [
      'the default export of an ES module that was compiled to CommonJS',
      { default: { __esModule: true, default: app }, __esModule: true },
      'default export',
    ],
  ])('is chosen: %s', (_name, namespace, expected) => {
    expect(
      pipe(
        chosen(namespace, undefined),
        E.map(({ name }) => name),
      ),
    ).toStrictEqual(E.right(expected))
  })

  const operations = async (value: unknown) =>
    pipe(
      await auditedOf({ name: 'export x', value }),
      E.map((audited) => audited.audit.operations.map((one) => one.operation)),
    )
  it.each<[name: string, value: unknown]>([
    ['a router', router()],
    ['its routes', router().routes()],
    ['an application', app],
    ['an async function', async () => app],
    ['a promise', Promise.resolve(router())],
  ])('may be %s', async (_name, value) => {
    expect(await operations(value)).toStrictEqual(E.right(['GET /me']))
  })

  it.each<[name: string, value: unknown, why: string]>([
    ['a class', class App {}, 'its export x is a class; export a router, an application, or a function that makes one'],
    [
      'a function with parameters',
      (a: unknown, b: unknown) => [a, b],
      'its export x is a function that takes 2 parameters; export one without',
    ],
    [
      'a function that makes something else',
      () => 42,
      'its export x() is not a router of @koa/router, an apiApp or a Koa application',
    ],
    ['null', null, 'its export x is not a router of @koa/router, an apiApp or a Koa application'],
  ])('may not be %s', async (_name, value, why) => {
    expect(await operations(value)).toStrictEqual(E.left(why))
  })
})
