/** A site of several hosts: `origin` of `sessions` is a list, or a function of the request that chooses out of one. */
import { request } from 'node:http'
import Router from '@koa/router'
import Koa from 'koa'
import { withAuth } from 'koa-with-auth'
import { sessions, type SessionsOptions } from 'koa-with-auth/sessions'
import { begin, emailSignIn } from 'koa-with-auth/sign-in'
import { oauth2 } from 'koa-with-auth/sign-in/oidc'
import { describe, expect, it } from 'vitest'
import { listen } from '../support/servers/server.js'
import { strongKey } from '../support/sites/sessionsApp.js'

type Origin = SessionsOptions<unknown>['origin']

const hosts = ['acme.example', 'beta.example:8443'] as const
const origins = hosts.map((host) => `https://${host}`)

const provider = oauth2({
  name: 'hub',
  client: { id: 'shop', secret: 'a secret of the client' },
  authorize: 'https://hub.example/authorize',
  token: 'https://hub.example/token',
  callback: '/callback',
  subject: () => 'anna',
})

const site = async (origin: Origin) => {
  const app = new Koa({ keys: [strongKey] })
  app.silent = true
  sessions(app, { loadUser: (username) => ({ username }), origin })
  const links: string[] = []
  const mail = emailSignIn({ path: '/link', send: ({ link }) => void links.push(new URL(link).origin) })
  const router = new Router()
  router.get('/sign-in', withAuth(null), begin(provider))
  router.post('/mail', withAuth(null), begin(mail))
  app.use(router.routes())
  const { port, errors } = await listen(app)
  /** What is answered at a host: the status, and where it leads. */
  const ask = (host: string, path: string, body?: string) =>
    new Promise<readonly [number | undefined, string | undefined]>((resolve, reject) => {
      const headers = { Host: host, ...(body !== undefined && { 'Content-Type': 'application/x-www-form-urlencoded' }) }
      const method = body === undefined ? 'GET' : 'POST'
      const sent = request({ host: '127.0.0.1', port, path, method, headers }, (response) => {
        response.resume().once('end', () => resolve([response.statusCode, response.headers.location]))
      })
      sent.once('error', reject).end(body)
    })
  return { ask, errors, links }
}

const callbackIn = (location: string | undefined) => new URL(location ?? '').searchParams.get('redirect_uri')

describe.each<[string, Origin]>([
  ['a list', origins],
  ['a function over a list', ({ host }) => origins.find((one) => new URL(one).host === host.toLowerCase())],
])('an origin that is %s', (_name, origin) => {
  it('is that of the host which is asked, in redirects and in mails', async () => {
    const { ask, links } = await site(origin)
    for (const host of [...hosts, hosts[0].toUpperCase()]) {
      const [status, location] = await ask(host, '/sign-in')
      expect([status, callbackIn(location)]).toEqual([303, `https://${host.toLowerCase()}/callback`])
      expect((await ask(host, '/mail', 'address=anna@shop.example'))[0]).toBe(200)
    }
    await expect.poll(() => links).toEqual([...origins, origins[0]])
  })

  it.each(['evil.example', 'acme.example:81', 'acme.example.evil.example', '', 'localhost'])(
    'is a 421 at the host %j, and nothing is sent',
    async (host) => {
      const { ask, links, errors } = await site(origin)
      expect((await ask(host, '/sign-in'))[0]).toBe(421)
      expect((await ask(host, '/mail', 'address=anna@shop.example'))[0]).toBe(421)
      expect([links, errors.map(String)]).toEqual([[], expect.arrayContaining([])])
    },
  )
})

it.each(['shop.example', 'https://shop.example/', 7, null])(
  'a function that returns %j is a 500 which says what it must return',
  async (wrong) => {
    const { ask, errors } = await site(() => wrong as never)
    expect((await ask('acme.example', '/sign-in'))[0]).toBe(500)
    expect(errors).toMatchObject([{ message: expect.stringContaining('must return a public origin') as string }])
  },
)

it.each([[[]], [['shop.example']], [[...origins, 7]], ['shop.example'], [{}]])('%j is a TypeError', (wrong) => {
  expect(() => sessions(new Koa({ keys: [strongKey] }), { loadUser: () => undefined, origin: wrong as never })).toThrow(
    'sessions(app, { origin }) must be the public origin',
  )
})
