/** Levels that add: `also` on routers and operations, and the levels that decided. */
import Router, { type RouterInstance } from '@koa/router'
import { describe, expect, test } from 'vitest'
import { atLevel } from '../../src/koa/levels.js'
import { operationsOf } from '../../src/koa/operations.js'
import { a, alsoA, alsoB, alsoC, b, go, handle, names, on, open } from '../support/models/levelNames.js'

describe('also', () => {
  // Undecided, decided, public and adding operations, one of them mounted
  const base = (): RouterInstance => {
    const mounted = new Router().get('/in', on(alsoC), handle)
    const router = new Router().get('/x', go, handle).get('/own', on(b), handle).get('/open', on(open), handle)
    return router.get('/more', go, on(alsoC), handle).use('/deep', mounted.routes())
  }
  const seen = (router: RouterInstance) => [names(router), operationsOf(router).map(({ levels }) => levels)]

  test('adds to the outer level, and replaces no inner decision', () => {
    expect(names(atLevel(alsoA)(base()))).toEqual([
      'also:a go handle',
      'b handle',
      'open handle',
      'kept also:a+c handle',
      'also:a+c handle',
    ])
    expect(names(atLevel(a)(base()))[3]).toBe('kept a+c handle')
    expect(names(atLevel(open)(base()))[3]).toBe('kept c handle')
  })

  test('adds through every level until one decides', () => {
    const child = atLevel(alsoB)(base())
    expect(names(atLevel(a)(new Router().use('/p', child.routes())))).toEqual([
      'a+b go handle',
      'b handle',
      'open handle',
      'kept a+b+c handle',
      'a+b+c handle',
    ])
    const grandchild = atLevel(a)(new Router().use(atLevel(alsoB)(new Router().use(child.routes())).routes()))
    expect(names(grandchild)[3]).toBe('kept a+b+b+c handle')
  })

  const setters = Object.entries({ a, b, open, alsoA, alsoB })
  test.each(setters.flatMap(([over, first]) => setters.map(([name, second]) => ({ over, first, name, second }))))(
    'put-put: $name over $over is $name alone, also for later routes and for copies of copies',
    ({ first, second }) => {
      const [once, twice] = [atLevel(second)(base()), atLevel(second)(atLevel(first)(base()))]
      expect(seen(twice)).toEqual(seen(once))
      for (const router of [once, twice]) router.get('/later', on(alsoB), handle).put('/later', handle)
      expect(seen(twice)).toEqual(seen(once))
      expect(seen(atLevel(second)(atLevel(first)(twice)))).toEqual(seen(once))
      expect(seen(atLevel(alsoA)(new Router().use(twice.routes())))).toEqual(
        seen(atLevel(alsoA)(new Router().use(once.routes()))),
      )
    },
  )

  test('put-put finds the guard that it inserted by identity, although another function was put before it', () => {
    const router = atLevel(a)(base())
    for (const layer of router.stack) layer.stack.unshift(go)
    // What is before a decision of the operation itself stays before it
    expect(names(atLevel(alsoB)(router))).toEqual([
      'also:b go go handle',
      'kept b handle',
      'kept open handle',
      'kept kept also:b+c handle',
      'kept also:b+c handle',
    ])
  })

  test('the original router keeps its guards', () => {
    const original = base()
    const derived = atLevel(a)(original)
    const before = [names(original), names(derived)]
    atLevel(alsoB)(derived)
    expect([names(original), names(derived)]).toEqual(before)
  })
})

describe('levels of a decision', () => {
  const levelsOf = (router: RouterInstance) => operationsOf(router).map(({ levels }) => levels)
  const operations = () => new Router().get('/x', handle).get('/own', on(b), handle).get('/more', on(alsoC), handle)

  test('are named from the outermost that counts to the innermost', () => {
    expect(levelsOf(operations())).toEqual([[], ['operation'], ['operation']])
    const named = atLevel(alsoA, { name: 'registration' })(operations())
    expect(levelsOf(named)).toEqual([['registration'], ['operation'], ['registration', 'operation']])
    const outer = atLevel(a, { name: 'application' })(new Router().use('/p', named.routes()))
    expect(levelsOf(outer)).toEqual([
      ['application', 'registration'],
      ['operation'],
      ['application', 'registration', 'operation'],
    ])
  })

  test('name a router without a name by its prefix', () => {
    expect(levelsOf(atLevel(a)(new Router().get('/x', handle)))).toEqual([['router']])
    expect(levelsOf(atLevel(a)(new Router({ prefix: '/pets' }).get('/x', handle)))).toEqual([['router /pets']])
  })
})
