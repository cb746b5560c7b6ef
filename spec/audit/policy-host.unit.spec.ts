/** A router that answers some hosts only: the audit and the policy file say which. */
import Router from '@koa/router'
import Koa from 'koa'
import { withAuth } from 'koa-with-auth'
import { audit, seal } from 'koa-with-auth/audit'
import { describe, expect, it } from 'vitest'
import { lineText } from '../../src/audit/policy.js'
import { bearer, changesOf, handle, textsFor } from '../support/models/audits.js'
import { lineFrom } from '../support/papers/policyLines.js'

const application = (admin: ConstructorParameters<typeof Router>[0], open: typeof admin) =>
  new Koa()
    .use(new Router(admin).get('/x', withAuth(bearer), handle).routes())
    .use(new Router(open).get('/x', withAuth(null), handle).routes())
const [one, other] = [{ host: 'a.example' }, { host: 'b.example' }]

describe('S04 the host of a router', () => {
  it('is in its lines, which can be read again', () => {
    const lines = textsFor(application(one, other))
    expect(lines).toEqual([
      'GET /x; who=[bearer]; by=operation; csrf=not needed; docs=listed; host=a.example',
      'GET /x; who=public; by=operation; csrf=not needed; docs=listed; host=b.example; first=GET /x',
    ])
    expect(lines.map((line) => lineText(lineFrom(line)!))).toEqual(lines)
    expect(String(audit(application(one, other)))).toContain('only on a.example')
  })

  const [now, gone] = ['is now only on', 'is no longer only on']
  it.each<[string, Parameters<typeof application>, ReadonlyArray<string>]>([
    ['places', [other, one], [`${now} b.example; ${gone} a.example`, `${now} a.example; ${gone} b.example`]],
    ['one that is gone', [one, {}], [`${gone} b.example`]],
    ['a RegExp', [one, { host: /b/ }], [`${now} /b/; ${gone} b.example`]],
    ['one more', [one, { host: ['b.example', 'c.example'] }], [`${now} b.example c.example; ${gone} b.example`]],
  ])('%s: a difference', (_what, changed, expected) => {
    const changes = changesOf(application(one, other), application(...changed))
    expect(changes).toEqual(expected.map((text) => `changed: GET /x: ${text}`))
  })

  it('is kept by levels, and does not hide what answers first', () => {
    const router = withAuth(bearer)(new Router(one))
    router.get('/x', handle)
    expect(audit(router).operations).toMatchObject([{ host: 'a.example' }])
    expect(() => seal(application({}, one))).toThrow('GET /x is public')
  })
})
