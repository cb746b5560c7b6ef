/** The export of a module that is audited. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Router from '@koa/router'
import * as E from 'fp-ts/lib/Either.js'
import { pipe } from 'fp-ts/lib/function.js'
import Koa from 'koa'
import { apiApp, withAuth } from 'koa-with-auth'
import { afterAll, describe, expect, it } from 'vitest'
import { auditedOf, chosen } from '../../src/command/Export.js'
import { loadModule } from '../../src/command/load.js'
import { bearer, handle } from '../support/models/audits.js'

const router = () => withAuth(bearer)(new Router()).get('/me', handle)

describe('the export that is audited', () => {
  const app = new Koa().use(router().routes())
  const api = apiApp({ auth: bearer, docs: false })
  const compiled = (exports: object) => ({ default: { __esModule: true, ...exports }, __esModule: true })
  it.each<[name: string, namespace: object, chosen: string]>([
    ['the default export', { default: router(), other: app }, 'default export'],
    ['a function that makes an application', { default: () => app, app }, 'default export'],
    ['the routes of a router', { default: router().routes() }, 'default export'],
    ['an apiApp', { default: api }, 'default export'],
    ['the only export that fits', { port: 3000, start: () => app, api }, 'export api'],
    ['module.exports', { default: { app, port: 1 }, app, port: 1, 'module.exports': { app } }, 'export app'],
    ['that of an ES module that was compiled to CommonJS', compiled({ default: app }), 'default export'],
  ])('is chosen: %s', (_name, namespace, expected) => {
    expect(chosen(namespace, undefined)).toMatchObject(E.right({ name: expected }))
  })

  const nothing = /^exports no router, no apiApp, .* by default; it exports answer: choose with --export$/
  it.each<[namespace: object, name: string | undefined, why: RegExp]>([
    [{ answer: 42 }, undefined, nothing],
    [compiled({ answer: 42 }), undefined, nothing],
    [{ app, api }, undefined, /^exports several that can be audited: api, app; choose with --export$/],
    [{ answer: 42 }, 'app', /^has no export "app"; it exports answer$/],
  ])('is none of %j: %s', (namespace, name, why) => {
    expect(chosen(namespace, name)).toMatchObject(E.left(expect.stringMatching(why)))
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
    ['a method whose name begins like a class', { classic() { return app } }.classic], // prettier-ignore
  ])('may be %s', async (_name, value) => {
    expect(await operations(value)).toStrictEqual(E.right(['GET /me']))
  })

  const two = (a: unknown, b: unknown) => [a, b]
  const none = 'is not a router of @koa/router, an apiApp or a Koa application'
  it.each<[name: string, value: unknown, why: string]>([
    ['a class', class App {}, 'its export x is a class; export a router, an application, or a function that makes one'],
    ['a function of two', two, 'its export x is a function that takes 2 parameters; export a function without'],
    ['a function that makes something else', () => 42, `its export x() ${none}`],
    [
      'an application without a router',
      new Koa(),
      'its export x is a Koa application that mounts no router with app.use(router.routes()), so it cannot be audited',
    ],
    ['null', null, `its export x ${none}`],
  ])('may not be %s', async (_name, value, why) => {
    expect(await operations(value)).toStrictEqual(E.left(why))
  })
})

describe('a program that is loaded', () => {
  const folder = mkdtempSync(join(tmpdir(), 'load-'))
  afterAll(() => rmSync(folder, { recursive: true }))
  const app = `const app = { use: 0 }\nmodule.exports = () => { throw new Error('made') }`
  const made = E.left('its default export throws: Error: made')

  it.each([
    ['parent.cjs', `${app}\nif (!module.parent) throw new Error('listens')`],
    ['main.cjs', `${app}\nif (require.main === module) throw new Error('listens')`],
    ['untyped.js', `${app}\nif (!module.parent) throw new Error('listens')`],
    ['modules.mjs', `export default () => { throw new Error('made') }`],
  ])('%s does not listen', async (name, source) => {
    writeFileSync(join(folder, name), source)
    expect(await loadModule(join(folder, name), undefined)).toStrictEqual(made)
  })

  it('as an ES module is one by the type of its package', async () => {
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
    writeFileSync(join(folder, 'typed.js'), `export default () => { throw new Error('made') }`)
    expect(await loadModule(join(folder, 'typed.js'), undefined)).toStrictEqual(made)
  })

  it('whose code throws says so, once and in 500 characters', async () => {
    const source = `globalThis.loads = (globalThis.loads ?? 0) + 1; throw new Error('no database')`
    writeFileSync(join(folder, 'throws.cjs'), source)
    expect(await loadModule(join(folder, 'throws.cjs'), undefined)).toStrictEqual(E.left('throws: Error: no database'))
    expect(Reflect.get(globalThis, 'loads')).toBe(1)
    Reflect.deleteProperty(globalThis, 'loads')
    writeFileSync(join(folder, 'long.cjs'), `throw new Error('x'.repeat(600))`)
    const cut = E.left(`throws: Error: ${'x'.repeat(493)}`)
    expect(await loadModule(join(folder, 'long.cjs'), undefined)).toStrictEqual(cut)
  })
})
