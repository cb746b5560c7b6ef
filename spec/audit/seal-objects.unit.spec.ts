/** What an audit, a policy file and `seal` say of the parameters in the paths of guarded operations. */
import Router from '@koa/router'
import { allOf, anyOf, apiKeyHeader, httpBearer, optional, owned, unchecked, withAuth } from 'koa-with-auth'
import { audit, seal } from 'koa-with-auth/audit'
import { openApi } from 'koa-with-auth/openapi'
import { describe, expect, it } from 'vitest'
import { findingsOf } from '../../src/audit/findings.js'
import { directionsOf, handle, textsFor } from '../support/models/audits.js'
import { policyFile } from '../support/papers/policyFile.js'

const user = httpBearer({ authenticate: (_request, token) => ({ name: token }) })
const { lock, keep } = policyFile()
const allow = () => true
const find = (id: string) => ({ id })
const other = (id: string) => ({ id, other: true })
const note = (f: (id: string) => object = find, refuse: 403 | 404 = 404) =>
  owned('note', { param: 'id', find: f, allow, refuse })
const routes = (condition = note()) => {
  const router = new Router()
  router.get('/notes/:id', withAuth(user, condition), () => {})
  router.get('/notes/:id/:page', withAuth(user, note(), unchecked('page', 'a number of a page')), () => {})
  router.get('/teams/:team/:id', withAuth(user, note()), () => {})
  router.get('/open/:id', withAuth(null), () => {})
  router.get('/perhaps/:id', withAuth(optional(user)), () => {})
  return router
}

describe('an audit of parameters', () => {
  it('names the objects, the reasons, and what no condition reads', () => {
    const { operations } = audit(routes())
    const pages = [{ param: 'page', reason: 'a number of a page' }]
    expect(operations).toMatchObject([
      { protection: 'bearer; note by :id', objects: ['note by :id'], unchecked: [], unread: [] },
      { protection: 'bearer; note by :id', objects: ['note by :id'], unchecked: pages, unread: [] },
      { protection: 'bearer; note by :id', objects: ['note by :id'], unchecked: [], unread: ['team'] },
      { protection: 'public', objects: [], unchecked: [], unread: [] },
      { protection: 'optional bearer', objects: [], unchecked: [], unread: [] },
    ])
    expect(String(audit(routes()))).toContain(':page unchecked: a number of a page')
    const teams = /^GET \/teams\/:team\/:id +bearer; note by :id +operation +no condition reads :team$/m
    expect(String(audit(routes()))).toMatch(teams)
  })

  it('has a finding for each parameter of a guarded operation that no condition reads', () => {
    expect(findingsOf(audit(routes())).filter(({ rule }) => rule === 'unchecked-parameter')).toMatchObject([
      { operation: 'GET /teams/:team/:id', message: 'GET /teams/:team/:id: no condition reads :team', at: [2] },
    ])
  })
})

describe('a policy file', () => {
  it('has the objects with digests of their functions, and the reasons', () => {
    expect(textsFor(routes())[0]).toMatch(
      /^GET \/notes\/:id; who=\[bearer \| object=note by :id find [0-9a-f]{12} allow [0-9a-f]{12}\]; by=operation/,
    )
    expect(textsFor(routes())[1]).toContain('; unchecked=page: a number of a page; ')
  })

  const one = (condition?: ReturnType<typeof unchecked> | ReturnType<typeof note>) =>
    new Router().get('/notes/:id', withAuth(condition?.(user) ?? user), () => {})

  it.each([
    ['an object less', one(note()), one(), ['opened']],
    ['an object more', one(), one(note()), ['closed']],
    ['another function', one(note()), one(note(other)), ['changed']],
    ['another answer', one(note()), one(note(find, 403)), ['changed']],
    ['a reason more', one(), one(unchecked('id', 'all members read it')), ['changed']],
    ['another reason', one(unchecked('id', 'all read it')), one(unchecked('id', 'the handler checks')), ['changed']],
    ['nothing', one(note()), one(note()), []],
  ])('shows a change: %s', (_what, before, after, directions) => {
    expect(directionsOf(before, after)).toStrictEqual(directions)
  })
})

describe('seal', () => {
  const open = ['GET /open/:id', 'GET /perhaps/:id']

  it('with objects, refuses a parameter that no condition reads', () => {
    expect(() => seal(routes(), { public: open, objects: true })).toThrow(
      "seal(router): 1 finding\n- GET /teams/:team/:id: no condition reads :team: add owned(...) with param: 'team', or unchecked('team', 'why')",
    )
    expect(() => seal(routes(), { public: open })).not.toThrow()
    expect(() => seal(routes(), { public: open, objects: false })).not.toThrow()
  })

  it('with objects, refuses an alternative whose callers no condition asks about a parameter', () => {
    const key = apiKeyHeader({ authenticate: (_request, key) => ({ name: key }) })
    const of = (auth: Parameters<typeof withAuth>[0]) =>
      seal(new Router().get('/notes/:id', withAuth(auth), handle), { objects: true })
    const asked = note()(user)
    expect(() => of(anyOf([asked, key]))).toThrow(
      "seal(router): 1 finding\n- GET /notes/:id: not every way in has a condition that reads :id: add owned(...) with param: 'id', or unchecked('id', 'why')",
    )
    expect(() => of(anyOf([asked, unchecked('id', 'keys read all notes')(key)]))).not.toThrow()
    expect(() => of(note()(anyOf([user, key])))).not.toThrow()
    expect(() => of(allOf([asked, key]))).not.toThrow()
    expect(() => of(anyOf([allOf([asked, key]), key]))).toThrow(/not every way in has a condition that reads :id/)
  })

  it.each(['@koa/router', 'koa-router-12', 'koa-router-13', 'koa-router-14'])(
    'with objects, refuses a group that has no name, which handlers of %s can read',
    async (name) => {
      // Safe: it is a constructor with the methods that this spec calls
      const { default: Tried } = (await import(name)) as { default: typeof Router }
      const of = (path: RegExp, ...conditions: ReadonlyArray<ReturnType<typeof unchecked>>) => {
        const guarded = conditions.reduce((self, condition) => condition(self), user)
        return seal(new Tried().get(path, withAuth(guarded), handle), { objects: true })
      }
      expect(() => of(/^\/notes\/(\d+)\/(?:x|(y))$/)).toThrow(
        /2 findings\n.*: no condition reads :0: give it a name, for owned\(\.\.\.\), or unchecked\('0', 'why'\)\n.*:1: /,
      )
      const pages = unchecked('0', 'a number of a page')
      expect(() => of(/^\/notes\/(\d+)$/, pages)).not.toThrow()
      expect(() => of(/^\/notes\/(?:\d+)$/)).not.toThrow()
    },
  )

  it('with a policy file, too', () => {
    keep(audit(routes()))
    expect(() => seal(routes(), { lock })).not.toThrow()
    expect(() => seal(routes(), { lock, objects: true })).toThrow(/no condition reads :team/)
  })

  it('refuses an operation without the parameter that its guard reads', () => {
    const router = new Router()
    router.get('/notes', withAuth(user, note()), () => {})
    expect(() => seal(router)).toThrow(/GET \/notes: owned\('note'\) reads the parameter :id/)
  })
})

describe('the OpenAPI document', () => {
  it('lists the 404, and the 403 of refuse', () => {
    const document = openApi(routes(note(find, 403)), { title: 'x', version: '1' })
    const statusesOf = (path: string) => Object.keys(document.paths?.[path]?.get?.responses ?? {})
    expect(statusesOf('/notes/{id}')).toStrictEqual(['200', '401', '403', '404', '503'])
    expect(statusesOf('/notes/{id}/{page}')).toStrictEqual(['200', '401', '404', '503'])
    expect(statusesOf('/perhaps/{id}')).toStrictEqual(['200', '401', '503'])
    const description = 'There is no such object, or it is not for the caller'
    expect(document.components?.responses?.['NotFound']).toMatchObject({ description })
  })
})
