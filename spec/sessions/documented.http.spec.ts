/** The cookie name of the session in the document and the audit of a router, when there is no request. */
import Router from '@koa/router'
import Koa from 'koa'
import { audit } from 'koa-with-auth/audit'
import { sessionAuth, sessionAuthIsStaff, sessionAuthSuperUser, sessionLoginAuth, withAuth } from 'koa-with-auth'
import { openApi } from 'koa-with-auth/openapi'
import { sessions } from 'koa-with-auth/sessions'
import { expect, it } from 'vitest'

const loadUser = (username: string) => ({ username })
const router = new Router()
  .get('/me', withAuth(sessionAuth()), () => {})
  .get('/own', withAuth(sessionLoginAuth), () => {})
const named = () => {
  const { components } = openApi(router, { title: 'Pets', version: '1.0.0' })
  return {
    audit: audit(router).operations.map(({ protection }) => protection),
    document: Object.values(components?.securitySchemes ?? {}),
  }
}

it('the cookie name is that of koa-session until sessions(app, options) sets another', () => {
  expect(JSON.stringify(named())).toContain('koa.sess')
  for (const [options, name] of [
    [{}, 'session'],
    [{ cookieName: 'sid' }, 'sid'],
    [{ https: true }, '__Host-session'],
  ] as const) {
    sessions(new Koa({ keys: ['k'.repeat(40)] }), { loadUser, ...options })
    const text = JSON.stringify(named())
    expect(text).toContain(`"${name}"`)
    expect(text).toContain(`session in cookie ${name}`)
    expect(text).not.toContain('koa.sess')
  }
})

it.each([
  ['sessionAuth', sessionAuth, 'a user', {}],
  ['sessionAuthIsStaff', sessionAuthIsStaff, 'a superuser or staff member', {}],
  ['sessionAuthSuperUser', sessionAuthSuperUser, 'a superuser', {}],
  ['sessionAuthSuperUser with 403', sessionAuthSuperUser, 'a superuser', { refuse: 'insufficient' }],
] as const)('the audit names the proof, OpenAPI its members: %s', (_name, kind, who, more) => {
  const guard = kind({ proof: { methods: ['passkey', 'totp'], maxAge: 300_000 }, ...more })
  const proven = new Router().get('/vault', withAuth(guard), () => {})
  const { components } = openApi(proven, { title: 'Pets', version: '1.0.0' })
  expect(components?.schemas?.['Problem']).toMatchObject({
    properties: { proof: { properties: { methods: { type: 'array' }, maxAge: { type: 'number' } } } },
  })
  const [line] = audit(proven).operations
  expect(line?.protection).toContain(`of ${who} with a proof by passkey or totp, at most 5 min old`)
})
