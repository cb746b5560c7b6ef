/** The level that decided, as the audit reports it: each of the six places, and levels that add. */
import Router, { type RouterInstance } from '@koa/router'
import { also, apiApp, httpBearer, withAuth, type Guard } from 'koa-with-auth'
import { audit, type AuditedOperation } from 'koa-with-auth/audit'
import { describe, expect, it } from 'vitest'
import { handle } from '../support/models/audits.js'
import { demandedBy, mountingsOf, programsOf } from '../support/models/levelModel.js'
import { routersOf } from '../support/models/levelRouters.js'

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

  const own = () => withAuth(b)(new Router({ prefix: '/child' })).get('/o', withAuth(a), handle)
  it.each<readonly [what: string, make: () => Parameters<typeof audit>[0], by: string]>([
    ['the operation, if it has a guard', () => application(mounted(own()), b), 'operation'],
    ['the registration call', () => application(mounted(withAuth(a)(withAuth(b)(child()))), b), 'router /child'],
    ['the router', () => application(mounted(withAuth(a)(child())), b), 'router /child'],
    ["the parent's call", () => application(withAuth(a)(withAuth(b)(mounted(child()))), b), 'router /parent'],
    ['the parent', () => application(withAuth(a)(mounted(child())), b), 'router /parent'],
    ['the application', () => application(mounted(child())), 'application'],
  ])('is %s, if the levels inside of it do not decide', (_what, make, by) => {
    expect(protectedBy(make())).toEqual(['guarded', 'bearer "a"', [by]])
  })

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
    const [all, both] = [
      'all of (all of (bearer "a", and bearer "b"), and bearer "c")',
      'all of (bearer "b", and bearer "c")',
    ]
    const levels = ['application', 'router /child', 'operation']
    expect(protectedBy(application(inner(own)))).toEqual(['guarded', all, levels])
    expect(protectedBy(application(inner(own), null))).toEqual(['guarded', both, levels])
    expect(protectedBy(inner(own))).toEqual(['guarded', both, levels.slice(1)])
  })

  it('is right for each program of two routers, in each mounting', () => {
    for (const program of programsOf(2)) {
      const isUnset = program.every((decision) => decision === 'unset')
      const expected = demandedBy(program).length > 0 ? 'guarded' : isUnset ? 'undecided' : 'public'
      for (const mounting of mountingsOf(2)) {
        const { router } = routersOf(program, mounting, handle) as unknown as { router: RouterInstance }
        expect([program, mounting, only(router).access]).toEqual([program, mounting, expected])
      }
    }
  })
})
