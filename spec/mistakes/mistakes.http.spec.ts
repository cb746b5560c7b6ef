/**
 * Mistakes in configuration over HTTP: a function that this package exports admits no request as an authenticator, and
 * a mistake that is caught opens nothing.
 */
import Router from '@koa/router'
import * as api from 'koa-with-auth'
import { withAuth } from 'koa-with-auth'
import { isAuthenticator } from 'koa-with-auth/fp'
import { expect, test } from 'vitest'
import { bearer, bearerOf, expectDenied, expectPassed, running } from '../support/models/behavior.js'
import { appOf, callsOf, get, guardOf, handler } from '../support/models/levels.js'
import { untyped } from '../support/projects/mistakes.js'
import { listen } from '../support/servers/server.js'

const refusing = <A>(make: () => A): A | undefined => {
  try {
    return make()
  } catch {
    return undefined
  }
}

test('no request passes a guard that is made of an exported function of this package', async () => {
  const functions = Object.entries(api).filter(([, value]) => typeof value === 'function' && !isAuthenticator(value))
  expect(functions.length).toBeGreaterThan(30)
  const asked: string[] = []
  for (const [name, value] of functions) {
    const guard = refusing(() => guardOf(value))
    if (guard === undefined) continue
    asked.push(name)
    const own = await listen(appOf(new Router().get('/x', untyped(guard), handler('misuse')).routes()))
    expect([name, (await get(own.port, '/x')).status >= 400, callsOf('misuse')]).toEqual([name, true, 0])
  }
  expect(asked).not.toStrictEqual([])
})

test('a mistake that is caught leaves the operations guarded', async () => {
  const good = bearerOf('t')
  const { ask } = await running((app, answering) => {
    const router = withAuth(good)(new Router()).get('/x', answering)
    expect(() => withAuth(untyped(undefined))(router)).toThrow(TypeError)
    expect(() => router.get('/y', withAuth(untyped([])), answering)).toThrow(TypeError)
    app.use(router.routes())
  })
  expectPassed(await ask('/x', bearer('t')), { via: 't' })
  expectDenied(await ask('/x'), 401, ['Bearer realm="t"'])
  expect(await ask('/y', bearer('t'))).toMatchObject({ status: 404, seen: [] })
})
