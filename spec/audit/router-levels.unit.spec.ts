/** The level that decided, as the audit reports it: each of the six places, and levels that add. */
import Router, { type RouterInstance } from '@koa/router'
import { also, apiApp, httpBearer, withAuth, type Guard } from 'koa-with-auth'
import { audit, type AuditedOperation } from 'koa-with-auth/audit'
import { describe, expect, it } from 'vitest'
import { build, canonical, combinations, orders, winner } from '../support/models/levels.js'

const handle = (): void => {}
const named = (schemeName: string) => httpBearer({ schemeName, authenticate: () => true })
const [a, b] = [named('a'), named('b')]

const only = (router: Parameters<typeof audit>[0]): AuditedOperation => {
  const { operations } = audit(router)
  expect(operations).toHaveLength(1)
  return operations[0]!
}
const protectedBy = (router: Parameters<typeof audit>[0]) => {
  const { access, protection, decidedBy } = only(router)
  return [access, protection, decidedBy]
}

describe('spec 5.6: the level that decided', () => {
  const child = () => new Router({ prefix: '/child' }).get('/o', handle)
  const mounted = (inner: RouterInstance, parent = new Router({ prefix: '/parent' })) =>
    parent.use(inner.routes()) as RouterInstance
  const application = (inner: RouterInstance, auth: unknown = a) =>
    apiApp({ prefix: '/api', auth: auth as null, docs: false }).use(inner.routes())

  it('is the operation, if it has a guard', () => {
    const router = withAuth(b)(new Router({ prefix: '/child' })).get('/o', withAuth(a), handle)
    expect(protectedBy(application(mounted(router), b))).toEqual(['guarded', 'bearer "a"', ['operation']])
  })

  it('is the registration call, if the operation has no guard', () => {
    const router = mounted(withAuth(a)(withAuth(b)(child())))
    expect(protectedBy(application(router, b))).toEqual(['guarded', 'bearer "a"', ['router /child']])
  })

  it('is the router, if the levels inside of it do not decide', () =>
    expect(protectedBy(application(mounted(withAuth(a)(child())), b))).toEqual([
      'guarded',
      'bearer "a"',
      ['router /child'],
    ]))

  it("is the parent's registration call, if the levels inside of it do not decide", () => {
    const router = withAuth(a)(withAuth(b)(mounted(child())))
    expect(protectedBy(application(router, b))).toEqual(['guarded', 'bearer "a"', ['router /parent']])
  })

  it('is the parent, if the levels inside of it do not decide', () =>
    expect(protectedBy(application(withAuth(a)(mounted(child())), b))).toEqual([
      'guarded',
      'bearer "a"',
      ['router /parent'],
    ]))

  it('is the application, if the levels inside of it do not decide', () =>
    expect(protectedBy(application(mounted(child())))).toEqual(['guarded', 'bearer "a"', ['application']]))

  it('is none, if no level decides', () =>
    expect(protectedBy(mounted(child()))).toEqual(['undecided', 'undecided (public)', []]))

  it('is also named if its decision is null', () => {
    const open = withAuth(null)
    expect([
      only(application(new Router().get('/o', open, handle))),
      only(application(open(child()))),
      only(application(open(mounted(child())))),
      only(application(child(), null)),
    ]).toMatchObject([
      { access: 'public', protection: 'public', decidedBy: ['operation'] },
      { access: 'public', protection: 'public', decidedBy: ['router /child'] },
      { access: 'public', protection: 'public', decidedBy: ['router /parent'] },
      { access: 'public', protection: 'public', decidedBy: ['application'] },
    ])
  })

  it('with also: all levels that add are named, the outermost first', () => {
    const inner = (guard: Guard<never>) => withAuth(also(b))(new Router({ prefix: '/child' }).get('/o', guard, handle))
    const own = withAuth(also(named('c'))) as unknown as Guard<never>
    expect(protectedBy(application(inner(own)))).toEqual([
      'guarded',
      'all of (all of (bearer "a", and bearer "b"), and bearer "c")',
      ['application', 'router /child', 'operation'],
    ])
    expect(protectedBy(application(inner(own), null))).toEqual([
      'guarded',
      'all of (bearer "b", and bearer "c")',
      ['application', 'router /child', 'operation'],
    ])
    expect(protectedBy(inner(own))).toEqual([
      'guarded',
      'all of (bearer "b", and bearer "c")',
      ['router /child', 'operation'],
    ])
  })

  it('is right for each of 729 combinations in one order, and for two of them in all 48 orders', () => {
    const tried = [
      ...combinations.map((combination) => [combination, canonical] as const),
      ...orders.flatMap((order) => [combinations[364]!, combinations[40]!].map((one) => [one, order] as const)),
    ]
    for (const [combination, order] of tried) {
      const { router } = build('x', combination, order) as unknown as { router: RouterInstance }
      const isUnset = Object.values(combination).every((decision) => decision === 'unset')
      const expected = winner(combination) !== undefined ? 'guarded' : isUnset ? 'undecided' : 'public'
      expect([combination, order, only(router).access]).toEqual([combination, order, expected])
    }
  })
})
