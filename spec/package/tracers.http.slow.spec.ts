/**
 * R06 and R18: with the real dd-trace and the real Koa instrumentation of OpenTelemetry, a site behaves as without
 * them: levels, the audit, OpenAPI, `seal` and the docs page, before and after `app.use`.
 */
import { KoaInstrumentation } from '@opentelemetry/instrumentation-koa'
import { authSettings, httpBearer, operation, withAuth } from 'koa-with-auth'
import { beforeAll, describe, expect, it } from 'vitest'
import { siteUnder, type Site, type Sites } from '../support/sites/tracedSite.js'

let plainly: Sites
beforeAll(async () => {
  plainly = await siteUnder()
})

const views = ['before', 'after', 'answers', 'answersThen', 'answersSealed', 'remounted', 'mounted'] as const

describe('without a tracer', () => {
  it('the site has guarded, replaced, documented and sealed operations to compare with', () => {
    const { api, plain, listed } = plainly
    const statuses = (answers: Site['answers']) =>
      Object.fromEntries(Object.entries(answers).map(([k, v]) => [k, v[0]]))
    expect(statuses(api.answers)).toMatchObject({
      '/api/me/1 anonymous': 401,
      '/api/me/1 staff': 200,
      '/api/health anonymous': 200,
      '/api/again anonymous': 401,
      '/api/reports anonymous': 401,
      '/api/reports partner': 200,
      '/api/own/1 staff': 401,
      '/api/both staff': 401,
      '/api/docs anonymous': 200,
      '/api/openapi.json anonymous': 200,
    })
    expect(api.answersSealed).toEqual(api.answers)
    for (const site of [api, plain, listed]) {
      for (const view of [site.before, site.after]) {
        expect(view).toMatchObject({
          seal: 'sealed',
          late: expect.stringContaining('comes after seal(router)') as string,
        })
      }
      expect(site).toMatchObject({ mounted: 'mounted', traced: [] })
    }
    expect(JSON.stringify(plain.before.openApi)).toBe('[["/plain/{id}",[{"bearer":[]}]],["/open",[]]]')
    // No hook runs for a refused request
    expect(plain.answers['/plain/1 anonymous']).toEqual([401, '', 0])
    expect(plain.answers['/plain/1 staff']).toEqual([200, '{"user":"anna"}', 1])
  })
})

describe('R18 under the Koa instrumentation of OpenTelemetry', () => {
  let traced: Sites
  beforeAll(async () => {
    traced = await siteUnder('./spec/support/sites/traced/openTelemetry.mjs')
  })

  it('handlers have spans', () => {
    expect(traced.api.traced).toContain('router - /api/me/:id')
    expect(traced.plain.traced).toContain('router - /plain/:id')
  })

  it.each(views)('an application and a plain router behave as without it: %s', (view) => {
    expect(traced.api[view]).toEqual(plainly.api[view])
    expect(traced.plain[view]).toEqual(plainly.plain[view])
  })

  it('a plain router with listed middleware can be sealed before app.use; after it, the middleware is unknown', () => {
    const { before, after, answers, answersSealed, mounted } = traced.listed
    expect({ before, answers, answersSealed, mounted }).toEqual({
      before: plainly.listed.before,
      answers: plainly.listed.answers,
      answersSealed: plainly.listed.answersSealed,
      mounted: 'mounted',
    })
    expect(after.seal).toContain('use /*: no guard covers function without a name')
  })

  it.each([
    ['a guard', withAuth(httpBearer({ authenticate: () => true }))],
    ['a guard of a public operation', withAuth(null)],
    ['a description', operation({ summary: 's' })],
    ['settings', authSettings({})],
  ])('it does not wrap %s, which says that it was wrapped already, also after its first request', (_what, f) => {
    const patch = (given: unknown): unknown =>
      Reflect.apply(Reflect.get(KoaInstrumentation.prototype, '_patchLayer') as Function, new KoaInstrumentation(), [
        given,
        true,
        '/x',
      ])
    expect(patch(f)).toBe(f)
    // what the guard does at its first request
    Object.setPrototypeOf(f, Function.prototype)
    expect(patch(f)).toBe(f)
    const plain = () => {}
    expect(patch(plain)).not.toBe(plain)
  })
})

describe('R06, R18 under dd-trace', () => {
  let traced: Sites
  beforeAll(async () => {
    traced = await siteUnder('dd-trace/initialize.mjs', './spec/support/sites/traced/ddTrace.mjs')
  })

  it('it wraps the functions of layers', () => {
    expect(traced.api.traced).toContain('/api/me/:id')
    expect(traced.plain.traced).toContain('/plain/:id')
  })

  it.each(views)('everything behaves as without it: %s', (view) => {
    expect(traced.api[view]).toEqual(plainly.api[view])
    expect(traced.plain[view]).toEqual(plainly.plain[view])
    expect(traced.listed[view]).toEqual(plainly.listed[view])
  })
})

describe('a guard is a function like any other', () => {
  const guard = withAuth(httpBearer({ authenticate: () => false }))
  it.each([
    ['for routers that refuse generator functions, such as koa-joi-router', guard],
    ['also what is mounted with app.use', authSettings({})],
    ['also a description', operation({ summary: 'one' })],
  ])('%s', (_case, f) => {
    expect(f.constructor).toBe(Function)
    expect(f).toBeInstanceOf(Function)
    expect(Object.prototype.toString.call(f)).toBe('[object Function]')
  })
})
