/** The docs page over HTTP: what it serves, what it does not serve, and that a request cannot change it; for whom it is. */
import Router from '@koa/router'
import { apiApp, httpBearer, withAuth, httpBasicAuth } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { docs } from '../../src/openapi/docs.js'
import { docsPaths, listed, serve } from '../support/sites/docsSites.js'
import { sendRaw, valuesOf } from '../support/servers/rawSocket.js'
import { ask } from '../support/servers/server.js'

const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })

const pets = async () => {
  const api = apiApp({ title: 'Pets', version: '2.3.4', prefix: '/api', docs: { description: 'All about pets' } })
  api.get('/me', withAuth(bearer), () => {})
  return { api, ...(await serve(api.routes(), api.allowedMethods())) }
}

const raw = (port: number, path: string, headers = '', host = 'h') =>
  sendRaw(port, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${headers}Connection: close\r\n\r\n`)

describe('the docs page serves', () => {
  it('the page, with its content policy', async () => {
    const { url } = await pets()
    const { status, headers, text } = await ask(`${url}/api/docs`)
    expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect(text).toContain('<title>Pets</title>')
    expect(headers.get('content-security-policy')).toContain("script-src 'self'; style-src 'self'")
    expect(headers.get('content-security-policy')).not.toMatch(/unsafe|\*|https?:/)
    expect(headers.get('referrer-policy')).toBe('same-origin')
    expect(headers.get('cross-origin-opener-policy')).toBe('same-origin')
  })

  it('the document, without its own operations', async () => {
    const { url } = await pets()
    const { headers, text } = await ask(`${url}/api/openapi.json`)
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8')
    const info = { title: 'Pets', version: '2.3.4', description: 'All about pets' }
    expect(JSON.parse(text)).toMatchObject({ openapi: '3.1.0', info })
    expect(await listed(`${url}/api/openapi.json`)).toEqual({ 'GET /api/me': [{ bearer: [] }] })
  })

  it.each(docsPaths)('%s: with a media type, without sniffing, and validated again after an update', async (path) => {
    const { url } = await pets()
    const first = await ask(`${url}/api${path}`)
    expect(first.status).toBe(200)
    expect(first.headers.get('x-content-type-options')).toBe('nosniff')
    expect(first.headers.get('cache-control')).toBe('private, no-cache')
    const etag = first.headers.get('etag') ?? ''
    expect(etag).toMatch(/^"[\w-]{43}"$/)
    const again = await ask(`${url}/api${path}`, { headers: { 'If-None-Match': etag, 'Cache-Control': 'max-age=0' } })
    expect([again.status, again.text, again.headers.get('etag')]).toEqual([304, '', etag])
    expect(again.headers.get('content-security-policy')).toBe(first.headers.get('content-security-policy'))
    const other = await ask(`${url}/api${path}`, { headers: { 'If-None-Match': '"other"' } })
    expect([other.status, other.text.length]).toEqual([200, first.text.length])
    const head = await ask(`${url}/api${path}`, { method: 'HEAD' })
    const length = first.headers.get('content-length')
    expect([head.status, head.text, head.headers.get('content-length')]).toEqual([200, '', length])
  })

  it('/docs/ as a redirect to /docs, wherever it is mounted', async () => {
    const { url } = await pets()
    for (const path of ['/api/docs/', '/API/Docs/', '/api/docs/?url=//evil.example']) {
      const { status, headers } = await ask(url + path)
      const to = new URL(headers.get('location')!, url + path).href.toLowerCase()
      expect([status, to]).toEqual([308, `${url}/api/docs`])
    }
  })

  it('a route that is added later in the document, with another validator', async () => {
    const { api, url } = await pets()
    const before = await ask(`${url}/api/openapi.json`)
    api.delete('/me', withAuth(null), () => {})
    const after = await ask(`${url}/api/openapi.json`)
    expect(after.headers.get('etag')).not.toBe(before.headers.get('etag'))
    expect(await listed(`${url}/api/openapi.json`)).toEqual({ 'GET /api/me': [{ bearer: [] }], 'DELETE /api/me': [] })
  })
})

describe('the docs page does not serve', () => {
  const near = 'package.json index.html swagger-ui.js swagger-ui-bundle.js.map LICENSE page.js%00.png __proto__'
  const above = '../package.json %2e%2e/package.json page.js/../package.json ..%2fpackage.json ..%5cpackage.json'
  const names = [...near.split(' '), ...above.split(' '), '/etc/passwd', '']
  it.each([...names.map((name) => `/docs/${name}`), '/docsx', '/xdocs'])(
    'A-27 a file next to its own, by any name: %s',
    async (path) => {
      const { port } = await pets()
      const { status, body } = await raw(port, `/api${path}`)
      expect([308, 404]).toContain(status)
      expect(body).not.toMatch(/dependencies|root:|function/)
    },
  )

  it.each(['POST', 'PUT', 'PATCH', 'DELETE'])('another method: %s', async (method) => {
    const { url } = await pets()
    for (const path of docsPaths) expect((await ask(`${url}/api${path}`, { method })).status).toBe(405)
  })
})

describe('A-27 a request changes no byte of the response', () => {
  const queries = [
    '?url=https://evil.example/api.json',
    '?configUrl=//evil.example',
    '?queryConfigEnabled=true&url=data:,x',
    '?title=%3Cscript%3Ealert(1)%3C/script%3E',
    '?persistAuthorization=true',
    '?%00',
    `?${'a=b&'.repeat(1000)}`,
  ]
  const headers = [
    'X-Forwarded-Host: evil.example\r\n',
    'X-Forwarded-Prefix: /"><script>alert(1)</script>\r\n',
    'X-Forwarded-Proto: javascript\r\n',
    'Forwarded: host=evil.example\r\n',
    'Accept-Language: "><script>\r\n',
    'Cookie: theme="><script>alert(1)</script>\r\n',
    'Authorization: Bearer wrong\r\n',
    'Accept: text/plain\r\n',
    'Origin: https://evil.example\r\n',
  ]
  // Except the date
  const reported = ({ status, headers, body }: Awaited<ReturnType<typeof raw>>) => ({
    status,
    headers: headers.filter(([name]) => name !== 'date'),
    body,
  })

  it.each(docsPaths.filter((path) => !path.endsWith('bundle.js')))('%s', async (path) => {
    const { port } = await pets()
    const plain = reported(await raw(port, `/api${path}`))
    expect(plain.status).toBe(200)
    for (const query of queries) expect(reported(await raw(port, `/api${path}${query}`)), query).toEqual(plain)
    for (const line of headers) expect(reported(await raw(port, `/api${path}`, line)), line).toEqual(plain)
    const hostile = await raw(port, `/api${path}`, '', 'evil.example"><script>')
    expect(reported(hostile)).toEqual(plain)
    expect(valuesOf(hostile, 'set-cookie')).toEqual([])
  })
})

it('the paths can be chosen, and the page links to them', async () => {
  const router = new Router()
  router.get('/me', withAuth(bearer), () => {})
  const page = docs(router, { title: 'T', version: '1', path: '/internal/api-docs', documentPath: '/spec/v1.json' })
  const { url } = await serve(page, router.routes())
  const { text } = await ask(`${url}/internal/api-docs`)
  const references = [...text.matchAll(/(?:src|href|data-document)="([^"]+)"/g)].map(([, to = '']) => to)
  expect(references.length).toBe(8)
  for (const to of references) expect((await ask(new URL(to, `${url}/internal/api-docs`).href)).status, to).toBe(200)
  expect((await ask(`${url}/docs`)).status).toBe(404)
})

const about = { title: 'Pets', version: '1.0.0' }
let asked = 0
const basic = httpBasicAuth({
  authenticate: (_request, user, password) => {
    asked++
    return user === 'dev' && password === 's3cret'
  },
})
const developer = { headers: { Authorization: `Basic ${btoa('dev:s3cret')}` } }
const stranger = { headers: { Authorization: `Basic ${btoa('dev:wrong')}` } }
const challenge = 'Basic realm="api", charset="UTF-8"'

const isRefused = async (url: string, init?: RequestInit) => {
  const { status, challenge: reported, text, headers } = await ask(url, init)
  expect([url, status, reported, headers.get('cache-control')]).toEqual([url, 401, challenge, 'no-store'])
  expect(JSON.parse(text)).toEqual({ type: 'about:blank', title: 'Unauthorized', status: 401, detail: 'Unauthorized' })
  expect([headers.get('etag'), headers.get('content-security-policy')]).toEqual([null, null])
}

describe('apiApp', () => {
  it.each(docsPaths)('docs: { auth: basic } demands its credentials for %s, and no others', async (path) => {
    const api = apiApp({ prefix: '/api', auth: bearer, docs: { auth: basic } })
    const { url } = await serve(api.routes(), api.allowedMethods())
    for (const spelling of [`/api${path}`, `/API${path.toUpperCase()}`, `/api${path}/`, `/api${path}?url=x`]) {
      await isRefused(url + spelling)
      await isRefused(url + spelling, stranger)
    }
    const { status, headers } = await ask(`${url}/api${path}`, developer)
    expect([status, headers.get('vary')]).toEqual([200, 'Authorization'])
    const isStored = !['/docs', '/openapi.json'].includes(path)
    expect(headers.get('cache-control')).toBe(`private, no-${isStored ? 'cache' : 'store'}`)
    // A credential of the application is not one of its docs page
    await isRefused(`${url}/api${path}`, { headers: { Authorization: 'Bearer supersecret' } })
  })

  it.each(docsPaths)('%s is public by default, whatever the application requires', async (path) => {
    const api = apiApp({ auth: basic })
    for (const routes of [api.routes(), withAuth(basic)(api).routes()]) {
      const { url } = await serve(routes)
      const before = asked
      for (const init of [{}, stranger, developer]) {
        const { status, challenge: reported } = await ask(url + path, init)
        expect([status, reported]).toEqual([200, null])
      }
      expect(asked).toBe(before)
    }
  })

  it.each(docsPaths)('docs: false removes %s', async (path) => {
    const api = apiApp({ auth: bearer, docs: false })
    api.get('/me', () => {})
    const { url } = await serve(api.routes(), api.allowedMethods())
    expect((await ask(url + path)).status).toBe(404)
  })
})

describe('docs(router)', () => {
  const router = new Router()
  router.get('/me', withAuth(bearer), () => {})

  it.each(docsPaths)('%s is public on the application, and guarded with the option auth', async (path) => {
    const open = await serve(docs(router, about))
    expect((await ask(open.url + path)).status).toBe(200)
    const guarded = await serve(docs(router, { ...about, auth: basic }))
    await isRefused(guarded.url + path)
    expect((await ask(guarded.url + path, developer)).status).toBe(200)
  })

  it.each(docsPaths)('%s is an operation like others: the router that it is mounted on guards it', async (path) => {
    const outer = withAuth(basic)(new Router())
    outer.use('/inherits', docs(router, about))
    outer.use('/public', docs(router, { ...about, auth: null }))
    const { url } = await serve(outer.routes())
    await isRefused(`${url}/inherits${path}`)
    expect((await ask(`${url}/inherits${path}`, developer)).status).toBe(200)
    expect((await ask(`${url}/public${path}`)).status).toBe(200)
  })
})
