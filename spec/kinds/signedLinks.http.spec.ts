/** K-14 Links that are signed and expire: good for one method, path, query and subject, until their end. */
import Router from '@koa/router'
import fc from 'fast-check'
import Koa from 'koa'
import mount from 'koa-mount'
import { allOf, apiKeyHeader, apiApp, authorize, authSettings, guardApp, signedLinks, withAuth } from 'koa-with-auth'
import { audit, seal } from 'koa-with-auth/audit'
import { linesOf, lineText } from '../../src/audit/policy.js'
import { on, type Decision } from 'koa-with-auth/events'
import { openApi } from 'koa-with-auth/openapi'
import { memoryStore, oneTimeIds } from 'koa-with-auth/stores'
import { expectGuarded } from 'koa-with-auth/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { stoppedClock } from '../support/runs/clock.js'
import { recordsOf } from '../support/runs/eventRecords.js'
import { ask, listen } from '../support/servers/server.js'
import { authOf } from '../support/sites/guardedApp.js'

const NEW = 'n'.repeat(32)
const OLD = 'o'.repeat(32)
const MINUTE = 60_000
const links = signedLinks({ secret: NEW, maxAge: 10 * MINUTE })

const site = async (
  guard: unknown = withAuth(links),
  routes: (router: Router) => object = (router) => new Koa().use(router.routes()),
) => {
  let calls = 0
  const router = new Router()
  router.all(['/files/:id', '/other', '/a'], guard as never, (ctx) => {
    calls += 1
    ctx.body = authOf(ctx)
  })
  // Safe: an application
  const app = routes(router) as Koa
  app.silent = true
  const { url } = await listen(app)
  const send = async (target: string, init: RequestInit = {}) => {
    const before = calls
    const answer = await ask(url + target, init)
    return { ...answer, ran: calls - before }
  }
  const outcome = async (target: string, init: RequestInit = {}) => {
    const { status, ran } = await send(target, init)
    return [status, ran]
  }
  return { app, router, send, outcome }
}

// Records of other files can come late
const isOwn = ({ route }: Decision): boolean => ['/files/:id', '/other', '/a'].includes(route)

const IN = [200, 1]
const OUT = [401, 0]

describe('K-14 a link', () => {
  it('lets in whom it was made for, with its query; responses are not cached, and pass no Referer on', async () => {
    const { send } = await site()
    const answer = await send(links.url('/files/7?page=2&size=a%20b', { subject: 'anna ü/&=' }))
    expect([answer.status, answer.ran]).toEqual(IN)
    const { subject, expiresAt } = JSON.parse(answer.text) as { subject: string; expiresAt: string }
    expect(subject).toBe('anna ü/&=')
    expect(Date.parse(expiresAt)).toBeGreaterThan(Date.now())
    expect(answer.headers.get('cache-control')).toBe('private, no-store')
    expect(answer.headers.get('referrer-policy')).toBe('same-origin')
  })

  it('has an id that is its own, without its signature, by which its handler counts it once', async () => {
    const { send } = await site()
    const urls = ['/files/7', '/files/8', '/files/7?a'].map((path) => links.url(path, { subject: 'anna' }))
    const idOf = async (url: string) => (JSON.parse((await send(url)).text) as { id: string }).id
    const ids = [...(await Promise.all(urls.map(idOf))), await idOf(links.url('/files/7', { subject: 'bert' }))]
    expect(new Set(ids).size).toBe(4)
    expect(await idOf(urls[0]!)).toBe(ids[0])
    for (const [at, url] of urls.entries()) {
      expect(ids[at]).toMatch(/^[\w-]{43}$/)
      expect(url).not.toContain(ids[at])
    }
    const { use } = oneTimeIds(memoryStore())
    expect([await use(ids[0]!, 60_000), await use(ids[1]!, 60_000), await use(ids[0]!, 60_000)]).toEqual([
      true,
      true,
      false,
    ])
  })

  it('without a signature is a 401 with a challenge; one that cannot be read is a 401, too', async () => {
    const { send } = await site()
    const absent = await send('/files/7')
    expect([absent.status, absent.ran]).toEqual(OUT)
    expect(absent.challenge).toBe('ApiKey realm="api", in="query", name="signed"')
    for (const value of [
      '',
      'x',
      'a.b.c',
      '1.YQ',
      `1.YQ.${'x'.repeat(42)}`,
      `-1.YQ.${'x'.repeat(43)}`,
      '%00',
      'a'.repeat(9000),
    ]) {
      expect(await send(`/files/7?signed=${value}`).then(({ status, ran }) => [status, ran])).toEqual(OUT)
    }
  })

  it.each<[string, (url: string) => string]>([
    ['another path', (url) => url.replace('/files/7', '/files/8')],
    ['another spelling of the path', (url) => url.replace('/files/7', '/files/%37')],
    ['another letter case', (url) => url.replace('/files', '/FILES')],
    ['a slash at the end', (url) => url.replace('/7?', '/7/?')],
    ['a doubled slash', (url) => url.replace('/files', '//files')],
    ['a parameter before', (url) => url.replace('?', '?x=1&')],
    ['a parameter behind', (url) => `${url}&x=1`],
    ['an empty parameter behind', (url) => `${url}&`],
    ['another value', (url) => url.replace('a=1', 'a=2')],
    ['another order', (url) => url.replace('a=1&b=2', 'b=2&a=1')],
    ['another spelling of a value', (url) => url.replace('a=1', 'a=%31')],
    ['a parameter less', (url) => url.replace('&b=2', '')],
    ['no parameters', (url) => url.replace('a=1&b=2&', '')],
    ['the signature first', (url) => url.replace(/(a=1&b=2)&(signed=.*)/, '$2&$1')],
    ['the signature twice', (url) => `${url}&${/signed=.*/.exec(url)?.[0]}`],
    ['an empty signature beside it', (url) => url.replace('?', '?signed=&')],
    ['a later end', (url) => url.replace(/signed=(\d)/, 'signed=9$1')],
    ['another subject', (url) => url.replace(/(signed=\d+\.)[\w-]+/, `$1${Buffer.from('bert').toString('base64url')}`)],
    ['a subject with stray bits', (url) => url.replace(/(signed=\d+\.)[\w-]+/, '$1YW5uYR')],
    ['padding', (url) => `${url}=`],
    ['something before its end', (url) => url.replace('signed=', 'signed=x')],
    ['an encoded dot', (url) => url.replace(/(signed=\d+)\./, '$1%2E')],
    ['a signature of upper case', (url) => url.replace(/[\w-]{43}$/, (mac) => mac.toUpperCase())],
    ['another name of the parameter', (url) => url.replace('signed=', 'Signed=')],
  ])('with %s is a 401, and the operation does not run', async (_case, changed) => {
    const { outcome } = await site()
    const url = links.url('/files/7?a=1&b=2', { subject: 'anna' })
    expect(changed(url)).not.toBe(url)
    expect(await outcome(url)).toEqual(IN)
    const status = (await outcome(changed(url)))[0]
    expect(await outcome(changed(url))).toEqual([status === 404 ? 404 : 401, 0])
  })

  it('is good for its method alone; one for GET also for HEAD, and a write of another site passes (RFC 8058)', async () => {
    const { outcome } = await site()
    const get = links.url('/other', { subject: 'anna' })
    expect(await outcome(get, { method: 'HEAD' })).toEqual(IN)
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) expect(await outcome(get, { method })).toEqual(OUT)
    const post = links.url('/other', { subject: 'anna', method: 'post' })
    const headers = { 'content-type': 'application/x-www-form-urlencoded', origin: 'https://mail.example' }
    expect(await outcome(post, { method: 'POST', headers, body: 'List-Unsubscribe=One-Click' })).toEqual(IN)
    for (const method of ['GET', 'HEAD', 'PUT']) expect(await outcome(post, { method })).toEqual(OUT)
  })

  it('ends at its time, and says so only if its signature is good', async () => {
    const clock = stoppedClock()
    const { send } = await site()
    const records = recordsOf('decision', isOwn)
    const url = links.url('/other', { subject: 'anna' })
    const whyOf = async (target: string) => {
      const { status, ran } = await send(target)
      return [status, ran, records.at(-1)?.why]
    }
    clock.move(10 * MINUTE - 1)
    expect(await whyOf(url)).toEqual([200, 1, undefined])
    clock.move(1)
    expect(await whyOf(url)).toEqual([401, 0, 'expired'])
    expect(await whyOf(url.replace('/other', '/files/7'))).toEqual([401, 0, 'signature'])
  })

  it('of an older secret is good while that is listed; the first one signs', async () => {
    const older = signedLinks({ secret: OLD, maxAge: MINUTE })
    const both = signedLinks({ secret: [NEW, Buffer.from(OLD)], maxAge: MINUTE })
    const [before, during] = await Promise.all([site(withAuth(older)), site(withAuth(both))])
    const after = await site(withAuth(signedLinks({ secret: [NEW], maxAge: MINUTE })))
    const [ofOld, ofBoth] = [older, both].map((one) => one.url('/other', { subject: 'anna' }))
    expect(await Promise.all([before, during, after].map(({ outcome }) => outcome(ofOld!)))).toEqual([IN, IN, OUT])
    expect(await Promise.all([before, during, after].map(({ outcome }) => outcome(ofBoth!)))).toEqual([OUT, IN, IN])
  })

  it('has the prefixes of routers and of koa-mount in it, and is for no other place of the same route', async () => {
    const { outcome } = await site(undefined, (router) => {
      const outer = new Router({ prefix: '/v1' })
      outer.use('/team', router.routes())
      const inner = new Koa().use(outer.routes())
      return new Koa().use(mount('/svc', inner)).use(mount('/else', inner))
    })
    const url = links.url('/svc/v1/team/files/7', { subject: 'anna' })
    expect(await outcome(url)).toEqual(IN)
    expect(await outcome(url.replace('/svc', '/else'))).toEqual(OUT)
    expect(await outcome(links.url('/files/7', { subject: 'anna' }).replace('/files', '/svc/v1/team/files'))).toEqual(
      OUT,
    )
  })

  it('law: exactly the link that was made is good, whatever the path, the query and the subject are', async () => {
    const { outcome } = await site(undefined, () => guardApp(links)(new Koa()).use((ctx) => void (ctx.body = 'in')))
    const text = fc
      .string({ unit: 'binary', minLength: 1, maxLength: 8 })
      .filter((one) => one.isWellFormed() && !/^\.{1,2}$/.test(one))
    await fc.assert(
      fc.asyncProperty(
        fc.array(text, { minLength: 1, maxLength: 3 }),
        fc.dictionary(text, text, { maxKeys: 3 }),
        text,
        fc.nat(),
        async (parts, query, subject, at) => {
          const path = `/${parts.map(encodeURIComponent).join('/')}?${new URLSearchParams(query).toString()}`
          const url = links.url(path, { subject })
          expect((await outcome(url))[0]).toBe(200)
          const place = 1 + (at % (url.length - 1))
          const changed = url.slice(0, place) + (url[place] === 'a' ? 'b' : 'a') + url.slice(place + 1)
          expect((await outcome(changed))[0]).toBe(401)
        },
      ),
      { numRuns: 60 },
    )
  })
})

describe('K-14 a signed link in an application', () => {
  it('is in the audit and in OpenAPI; expectGuarded and seal know it', async () => {
    const { app, router } = await site()
    expect(lineText(linesOf(audit(router))[0]!)).toContain('links for 10 min')
    const document = openApi(router, { title: 'x', version: '1' })
    expect(Object.values(document.components?.securitySchemes ?? {})).toEqual([
      { type: 'apiKey', in: 'query', name: 'signed' },
    ])
    await expectGuarded(app, router)
    expect(() => seal(app)).not.toThrow()
  })

  it('works beside other conditions, at every level', async () => {
    const key = apiKeyHeader({ paramName: 'X-Key', authenticate: (_request, value) => value === 'k' })
    const { outcome } = await site(
      withAuth(
        allOf([links, key]),
        authorize(([{ subject }]) => subject === 'anna'),
      ),
    )
    const headers = { 'x-key': 'k' }
    expect(await outcome(links.url('/other', { subject: 'anna' }), { headers })).toEqual(IN)
    expect(await outcome(links.url('/other', { subject: 'bert' }), { headers })).toEqual([403, 0])
    expect(await outcome(links.url('/other', { subject: 'anna' }))).toEqual(OUT)
    const api = apiApp({ title: 'x', version: '1', auth: links })
    api.get('/other', (ctx) => void (ctx.body = ctx.request.auth.subject))
    const whole = await site(undefined, () => new Koa().use(api.routes()))
    expect((await whole.send(links.url('/other', { subject: 'anna' }))).text).toBe('anna')
  })

  it('is in no record and in no explained body', async () => {
    const { app, send } = await site(undefined, (router) =>
      new Koa().use(authSettings({ explain: true })).use(router.routes()),
    )
    app.silent = false
    const url = links.url('/other', { subject: 'anna' })
    const seen: unknown[] = []
    app.on('error', (error) => seen.push(error))
    onTestFinished(on('decision', (record) => void (isOwn(record) && seen.push(record))))
    await send(url)
    const refused = [await send(`${url}x`), await send(url.replace('/other', '/a'))]
    expect(refused.map(({ text }) => (JSON.parse(text) as { tried: unknown }).tried)).toMatchObject([
      [{ why: 'syntax' }],
      [{ why: 'signature' }],
    ])
    const [secret = ''] = /[\w-]{43}$/.exec(url) ?? []
    expect(secret).toHaveLength(43)
    expect(JSON.stringify([seen, refused])).not.toContain(secret)
    expect(seen).toHaveLength(3)
  })
})

describe('what cannot work is a TypeError', () => {
  it.each<[object, RegExp]>([
    [{}, /secret/],
    [{ secret: 'short', maxAge: MINUTE }, /signedLinks\({ secret }\) must be .* 32 bytes/],
    [{ secret: [], maxAge: MINUTE }, /32 bytes/],
    [{ secret: [NEW, 'short'], maxAge: MINUTE }, /32 bytes/],
    [{ secret: NEW }, /maxAge/],
    [{ secret: NEW, maxAge: 60 }, /a minute is 60_000/],
    [{ secret: NEW, maxAge: MINUTE, paramName: 'a b' }, /paramName/],
    [{ secret: NEW, maxAge: MINUTE, expires: 5 }, /no option "expires"/],
  ])('%j', (options, message) => {
    expect(() => signedLinks(options as never)).toThrow(TypeError)
    expect(() => signedLinks(options as never)).toThrow(message)
  })

  it.each<[unknown, object]>([
    ['files/7', { subject: 'a' }],
    ['//evil.example/x', { subject: 'a' }],
    ['https://shop.example/x', { subject: 'a' }],
    ['/a/../admin', { subject: 'a' }],
    ['/a/%2e%2e/admin', { subject: 'a' }],
    ['/a\\b', { subject: 'a' }],
    ['/a b', { subject: 'a' }],
    ['/a\nb', { subject: 'a' }],
    ['/a#b', { subject: 'a' }],
    ['/a?signed=x', { subject: 'a' }],
    [undefined, { subject: 'a' }],
    ['/a', {}],
    ['/a', { subject: '' }],
    ['/a', { subject: 7 }],
    ['/a', { subject: 'a', method: 'GE T' }],
  ])('a link for %j of %j', (path, about) => {
    expect(() => links.url(path as string, about as never)).toThrow(TypeError)
  })
})
