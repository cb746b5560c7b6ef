/** A guard that cannot work where it stands is refused before a request comes; so is a condition about a parameter that the path cannot have. */
import Router from '@koa/router'
import Koa from 'koa'
import { pipe } from 'fp-ts/lib/function.js'
import { also, guardApp, httpBearer, owned, unchecked, withAuth } from 'koa-with-auth'
import { expect, it } from 'vitest'
import { isGuardLate } from '../../src/koa/layer.js'
import { atLevel } from '../../src/koa/levels.js'
import { listedName } from '../../src/koa/operations.js'
import { docsOperation } from '../../src/openapi/operation.js'

const token = httpBearer({ authenticate: () => ({ user: 'anna' }) })
const note = owned('note', { param: 'id', find: () => 'milk' })
const guard = withAuth(token, note)
const handle = () => {}
const asRegExp = { pathAsRegExp: true }
const mounted = (router: Router) => new Koa().use(router.routes())
const used = () => {
  const router = new Router()
  mounted(router)
  return router
}
const at = (path: string, ...functions: ReadonlyArray<unknown>) =>
  // Safe: these are guards and handlers
  mounted(new Router().get(path, ...(functions as [() => void])))
const reading = (param: string) => withAuth(token, unchecked(param, 'all members read all'))

it.each<[what: string, write: () => unknown, message: string]>([
  ['a path without it', () => at('/x', guard, handle), 'which the path does not have'],
  ['a path that has it twice', () => at('/:id/x/:id', guard, handle), 'which the path has twice'],
  ['a RegExp', () => new Router().get(/^\/x$/, guard, handle), 'the path is a RegExp'],
  ['a RegExp below a level', () => guard(new Router().get(/^\/x$/, handle)), 'the path is a RegExp'],
  ['its string below a level', () => guard(new Router()).register('^/.*$', ['get'], handle, asRegExp), 'is a RegExp'],
  ['one path of several', () => mounted(guard(new Router().get('/:id', handle).get('/x', handle))), 'GET /x: '],
  ['two objects of one name', () => withAuth(token, note, note), "owned('note') is in one operation twice"],
  ['a reason for another one', () => at('/:id', reading('other'), handle), 'is about the parameter :other'],
  ['a route after the router is used', () => used().get('/x', guard, handle), 'which the path does not have'],
  ['an object at a whole application', () => guardApp(pipe(token, note)), "guardApp(a): owned('note') reads"],
  ['a function behind no guard', () => withAuth(null as never, { then: [handle] }), 'a public operation has no guard'],
  ['a guard behind a guard', () => withAuth(token, { then: [guard as never] }), 'then })[0] is a guard'],
  ['a guard of a guard', () => withAuth(guard as never), 'it is a guard already'],
  ['a guard around an application', () => guard(new Koa() as never), 'takes a router of @koa/router, not an app'],
  ['also of none', () => withAuth({ ...also(token), authenticators: [] } as never), 'holds no authenticator'],
  ['a public application', () => guardApp(null as never), 'guardApp(a): a must be an authenticator'],
])('%s is a TypeError', (_what, write, message) => {
  expect(write).toThrow(TypeError)
  expect(write).toThrow(message)
})

it('a path that has the parameter is accepted', () => {
  expect(() => at('/:id', guard, handle)).not.toThrow()
  expect(() => at('/:id/:other', reading('other'), handle)).not.toThrow()
})

it('a level refuses a layer that a guard names, and reads no pattern that remembers its last match', () => {
  const requirement = withAuth(token).requirement
  const named = new Router().get('/x', handle)
  // as a router of another copy of its class would have kept it
  Object.assign(named.stack[0]!, { name: withAuth(token) })
  expect(() => atLevel(requirement)(named)).toThrow('comes before the path')
  const stateful = new Router().get('/x', handle)
  for (const flags of ['g', 'y', 'giy']) {
    Object.assign(stateful.stack[0]!, { regexp: new RegExp('^/x$', flags) })
    expect(atLevel(requirement)(stateful).stack[0]!.regexp.flags).toBe(flags === 'giy' ? 'i' : '')
  }
})

it('a guard is late behind a handler, not behind what describes the operation or reads a parameter', () => {
  const hook = Object.assign(() => {}, { param: 'id' })
  const late = [[handle], [hook], [docsOperation('file')], [hook, handle]].map((some) => isGuardLate([...some, guard]))
  expect(late).toStrictEqual([true, false, false, true])
  expect(isGuardLate([handle, guard, handle])).toBe(false)
})

it('the files of a docs page are listed under its path', () => {
  expect(listedName({ name: 'GET /docs/a/page.js', functions: [docsOperation('file')] })).toBe('GET /docs/a')
})
