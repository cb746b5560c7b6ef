/** The cookie name of the session in the document and the audit of a router, when there is no request. */
import Router from '@koa/router'
import Koa from 'koa'
import { audit } from 'koa-with-auth/audit'
import { sessionAuth, sessionLoginAuth, withAuth } from 'koa-with-auth'
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

it('the cookie name is the option cookieName of a kind, if it is set', () => {
  const own = new Router().get('/me', withAuth(sessionAuth({ cookieName: 'mine' })), () => {})
  const { components } = openApi(own, { title: 'Pets', version: '1.0.0' })
  expect(Object.values(components?.securitySchemes ?? {})).toMatchObject([{ in: 'cookie', name: 'mine' }])
})
