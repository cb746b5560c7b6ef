/** C-02: an authenticator that asks for a proof, at each level and in each combination (T16); what the audit and OpenAPI say. */
import Router from '@koa/router'
import {
  also,
  httpBearer,
  optional,
  sessionAuth,
  sessionAuthIsStaff,
  sessionAuthSuperUser,
  withAuth,
} from 'koa-with-auth'
import { audit } from 'koa-with-auth/audit'
import { openApi } from 'koa-with-auth/openapi'
import { describe, expect, it } from 'vitest'
import { linesOf, lineText } from '../../src/audit/policy.js'
import { sessionsApp } from '../support/sites/sessionsApp.js'
import { describeEveryOther } from '../support/stores/sessionStores.js'

const proof = { methods: ['totp', 'passkey'], maxAge: 300_000 }
const proven = sessionAuth({ proof })
const bearer = httpBearer({ authenticate: (_request, token) => token === 'a-token' && { username: 'a service' } })

// The operations that ask for a proof
const asking = ['/proven', '/list', '/turned', '/optional', '/staff', '/super', '/inner/also']

const routes = () => {
  const router = new Router()
  const answer = (ctx: { body: unknown }) => {
    ctx.body = 'done'
  }
  router.get('/proven', withAuth(proven), answer)
  router.get('/list', withAuth([proven, bearer]), answer)
  router.get('/turned', withAuth([bearer, proven]), answer)
  router.get('/optional', withAuth(optional(proven)), answer)
  router.get('/staff', withAuth(sessionAuthIsStaff({ proof })), answer)
  router.get('/super', withAuth(sessionAuthSuperUser({ proof, refuse: 'insufficient' })), answer)
  const inner = withAuth(sessionAuth())(new Router())
  inner.get('/also', withAuth(also(proven)), answer)
  inner.get('/plain', answer)
  router.use('/inner', inner.routes())
  return router
}

describeEveryOther((store) => {
  it('T16 in a list, optional, with also, for staff and superusers, it lets in whoever proved it', async () => {
    const site = await sessionsApp(store, {
      below: (app, { addProof }) => {
        const router = routes()
        router.post('/prove/:method', withAuth(sessionAuth()), async (ctx) => {
          await addProof(ctx, { method: String(ctx.params['method']) })
          ctx.body = 'done'
        })
        app.use(router.routes())
      },
    })
    const statuses = async (visitor: ReturnType<typeof site.visitor>, headers = {}) => {
      const found: number[] = []
      for (const path of [...asking, '/inner/plain']) found.push((await visitor.ask(path, { headers })).status)
      return found
    }
    const token = { Authorization: 'Bearer a-token' }
    const stranger = site.visitor()
    expect(await statuses(stranger)).toEqual([401, 401, 401, 200, 401, 401, 401, 401])
    expect(await statuses(stranger, token)).toEqual([401, 200, 200, 200, 401, 401, 401, 401])

    const root = site.visitor()
    await root.post('/login?user=root')
    expect(await statuses(root)).toEqual([403, 403, 403, 403, 403, 403, 403, 200])
    for (const path of asking) {
      expect((await root.ask(path)).body).toMatchObject({ proof: { methods: ['totp', 'passkey'], maxAge: 300 } })
    }
    // another alternative of the list lets in
    expect(await statuses(root, token)).toEqual([403, 200, 200, 403, 403, 403, 403, 200])
    await root.post('/prove/password')
    expect(await statuses(root)).toEqual([403, 403, 403, 403, 403, 403, 403, 200])
    await root.post('/prove/totp')
    expect(await statuses(root)).toEqual([200, 200, 200, 200, 200, 200, 200, 200])

    // a proof is no right
    const anna = site.visitor()
    await anna.post('/login')
    await anna.post('/prove/passkey')
    expect(await statuses(anna)).toEqual([200, 200, 200, 200, 401, 403, 200, 200])
  })
})

describe('C-02 what is asked', () => {
  it('T16 is in the policy file', () => {
    const lines = linesOf(audit(routes())).map(lineText)
    const who = 'with a proof by totp or passkey, at most 5 min old'
    const said = lines.map((line) => line.replaceAll('\\u{20}', ' ')).filter((line) => line.includes(who))
    expect(said.map((line) => /^GET (\S+);/.exec(line)?.[1]).sort()).toEqual([...asking].sort())
  })

  it('T16 is in the OpenAPI document, with its 403', () => {
    const { paths = {} } = openApi(routes(), { title: 'Proofs', version: '1' })
    const said =
      'The user must have given a proof by `totp` or `passkey`, at most 5 min ago. Otherwise the answer is 403, and its member `proof` says which one is needed.'
    for (const path of asking) {
      const { description, responses } = paths[path]?.get ?? {}
      expect([path, description, Object.keys(responses ?? {})]).toEqual([
        path,
        expect.stringContaining(said),
        ['200', '401', '403', '503'],
      ])
    }
    const { description, responses } = paths['/inner/plain']?.get ?? {}
    expect([description, Object.keys(responses ?? {})]).toEqual([undefined, ['200', '401', '503']])
  })
})
