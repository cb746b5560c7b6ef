/** `audit(app)` has the rows of the command. */
import Router from '@koa/router'
import * as E from 'fp-ts/lib/Either.js'
import Koa from 'koa'
import { authSettings, withAuth } from 'koa-with-auth'
import { audit } from 'koa-with-auth/audit'
import { oidc, upstream, type UpstreamOptions } from 'koa-with-auth/sign-in/oidc'
import { expect, it } from 'vitest'
import { differencesOf } from '../../src/audit/Difference.js'
import { policyText, readPolicy, lineText } from '../../src/audit/policy.js'
import { auditedOf } from '../../src/command/Export.js'
import { cookie, guard, handle, linesFor, open } from '../support/models/audits.js'

const make = () =>
  new Koa()
    .use(authSettings({ csrf: false }) as never)
    .use(new Router().get('/:any', open, handle).routes() as never)
    .use(new Router().get('/x', guard, handle).post('/x', withAuth(cookie), handle).routes() as never)

it('26.5 audit(app) reports all routers with the settings above them, as the command does', async () => {
  const app = make()
  const read = await auditedOf({ name: 'app', value: app })
  if (E.isLeft(read)) throw new Error(read.left)
  expect(JSON.stringify(audit(app))).toBe(JSON.stringify(read.right.audit))
  const checks = audit(app).operations.map(({ operation, csrf }) => `${operation} ${csrf}`)
  expect(checks).toEqual(['GET /:any not needed', 'GET /x not needed', 'POST /x off'])
  expect(audit(app).operations[1]?.shadowedBy).toMatchObject([{ operation: 'GET /:any', access: 'public' }])
})

it('26.5 an application without a router is a TypeError', () => {
  const why = 'audit(app): the application mounts no router; write app.use(router.routes()) first'
  expect(() => audit(new Koa())).toThrow(new TypeError(why))
})

const provider = oidc({ issuer: 'https://login.example', client: { id: 'shop' }, callback: '/callback' })
const calling = (...all: ReadonlyArray<Partial<UpstreamOptions>>) => {
  const app = make()
  for (const one of all) upstream(app, { provider, resource: 'https://api.example', scope: ['read'], ...one })
  return linesFor(app)
}
const line = 'UPSTREAM https://api.example; tokens=https://login.example, for each session; scope=read'

it('an upstream is in the table, and a line of the policy file, with its resource and scopes', () => {
  const app = make()
  upstream(app, { provider, resource: 'https://api.example', scope: ['read', 'write'] })
  expect(String(audit(app)).split('\n\n').at(-1)).toBe(
    'UPSTREAM             SCOPE       TOKENS OF\nhttps://api.example  read write  https://login.example, for each session',
  )
  expect(audit(app).upstreams).toEqual([
    { resource: 'https://api.example', provider: 'https://login.example', scope: ['read', 'write'], per: 'session' },
  ])
  expect(calling({}).map(lineText)).toContain(line)
  expect(audit(make())).not.toHaveProperty('upstreams')
  const read = readPolicy(new TextEncoder().encode(policyText(calling({}))))
  expect(E.isRight(read) && differencesOf(read.right, calling({}))).toEqual([])
})

const [tokens, of] = ['tokens of', 'https://login.example, for each']
it.each<
  [is: string, was: Partial<UpstreamOptions> | undefined, is: Partial<UpstreamOptions> | undefined, said: string]
>([
  ['new', undefined, {}, `opened: was absent, is ${tokens} ${of} session, scope read`],
  ['gone', {}, undefined, `closed: was ${tokens} ${of} session, scope read, is gone`],
  ['with another scope', {}, { scope: ['read', 'admin'] }, 'opened: is now with scope admin'],
  ['with fewer scopes', {}, { scope: [] }, 'closed: is no longer with scope read'],
  ['for each user', {}, { per: 'user' }, `changed: ${tokens} was ${of} session, is ${of} user`],
])('an upstream that is %s is a difference', (_name, was, is, said) => {
  const [before, after] = [was, is].map((one) => (one === undefined ? calling() : calling(one)))
  const [one, ...more] = differencesOf(before!, after!)
  expect([`${one?.direction}: ${one?.text.replace(`${one.operation}: `, '')}`, more]).toEqual([said, []])
})

const wrongs = [`${line}; who=public`, 'UPSTREAM https://api.example; scope=read', line.replace('UPSTREAM', 'GET')]
it.each(wrongs)('%s is no line of a policy file', (wrong) => {
  const text = policyText(calling({})).replace(line, wrong)
  expect(readPolicy(new TextEncoder().encode(text))).toMatchObject({ _tag: 'Left' })
})
