import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import * as apiKey from '../../examples/apiKey.js'
import { application } from '../../examples/app.js'
import * as asynchronous from '../../examples/asynchronous.js'
import * as basic from '../../examples/basic.js'
import * as bearer from '../../examples/bearer.js'
import * as composing from '../../examples/composing.js'
import * as ipAllow from '../../examples/ipAllowList.js'
import * as levels from '../../examples/levels.js'
import * as multiple from '../../examples/multiple.js'
import * as ownKind from '../../examples/ownKind.js'
import * as session from '../../examples/session.js'
import * as stream from '../../examples/stream.js'
import { countHandlers, exampleFiles, exampleText, pathsOf, readmeRows } from '../support/papers/examples.js'
import { asRequests, hasCurl, requestIn, withCurl } from '../support/papers/examplesCurl.js'
import { ask, serve } from '../support/servers/server.js'

const examples = {
  'apiKey.ts': apiKey,
  'asynchronous.ts': asynchronous,
  'basic.ts': basic,
  'bearer.ts': bearer,
  'composing.ts': composing,
  'ipAllowList.ts': ipAllow,
  'levels.ts': levels,
  'multiple.ts': multiple,
  'ownKind.ts': ownKind,
  'session.ts': session,
  'stream.ts': stream,
}
const routers = Object.values(examples).map(({ router }) => router)

// Before the application mounts the routers, because mounting copies their functions
const handlers = countHandlers(routers)
const served = serve(() => application(['k'.repeat(32)]))

beforeEach(() => {
  handlers.calls = 0
})

const unauthorized = { type: 'about:blank', title: 'Unauthorized', status: 401, detail: 'Unauthorized' }

const request = (path: string, headers: Record<string, string> = {}) => ask(`${served.url}${path}`, { headers })

const expectRefusal = (answer: Awaited<ReturnType<typeof ask>>, challenge: string) => {
  expect(answer.status).toBe(401)
  expect(answer.challenge).toContain(challenge)
  expect(answer.headers.get('Content-Type')).toBe('application/problem+json')
  expect(JSON.parse(answer.text)).toEqual(unauthorized)
  expect(handlers.calls).toBe(0)
}

// What a row of examples/README.md sends, and the challenge that names it
const credentials: ReadonlyArray<readonly [sent: RegExp, challenge: string]> = [
  [/-H 'Authorization: Bearer \w+' /, 'Bearer realm="api"'],
  [/-u \S+ /, 'Basic realm="'],
  [/-H 'X-API-Key: \w+' /, 'ApiKey realm="api", in="header", name="X-API-Key"'],
  [/-b 'X-API-KEY=\w+' /, 'ApiKey realm="api", in="cookie", name="X-API-KEY"'],
  [/-H 'X-Signature: \S+' /, 'Signature realm="api", name="X-Signature", algorithm="hmac-sha256"'],
  [/\?(?:api_)?key=supersecret/, 'ApiKey realm="api", in="query", name="'],
]
const guarded = readmeRows()
  .filter(({ status }) => status === 200)
  .flatMap((row) => {
    const found = credentials.find(([sent]) => sent.test(row.curl))
    return found === undefined ? [] : [{ ...row, sent: found[0], challenge: found[1] }]
  })
const pathIn = (curl: string) => /http:\/\/127\.0\.0\.1:3000([\w/-]+)/.exec(curl)?.[1]

describe.each(guarded)('spec 4: $file, $curl', ({ curl, body, sent, challenge }) => {
  const send = (line: string) => {
    const { url, init } = requestIn(line)
    return ask(url.replace('http://127.0.0.1:3000', served.url), init)
  }

  it('accepts a valid credential', async () => {
    const answer = await send(curl)
    expect([answer.status, answer.text]).toEqual([200, body])
    expect(answer.headers.get('Cache-Control')).toBe('private, no-store')
    expect(handlers.calls).toBe(1)
  })

  it('B-01 refuses a request without credentials, with a challenge', async () => {
    expectRefusal(await send(curl.replace(sent, '')), challenge)
  })

  it('refuses a wrong credential, with a challenge', async () => {
    const wrong = (found: string) => found.replace(/secret|partnerkey/, 'wrong').replace(/8(?=' $)/, '9')
    expect(curl.replace(sent, wrong)).not.toBe(curl)
    expectRefusal(await send(curl.replace(sent, wrong)), challenge)
  })
})

describe('more that the examples do', () => {
  it('spec 5.1.3: ipAllowList.ts admits loopback by default, and answers with its address', async () => {
    const answer = await request('/examples/ipwhitelist')
    expect(answer).toMatchObject({ status: 200, text: 'Authenticated client, 127.0.0.1' })
    expect(handlers.calls).toBe(1)
  })

  it('spec 5.6.4: the public operation of levels.ts needs no credentials', async () => {
    const answer = await request('/examples/levels/health')
    expect(answer).toMatchObject({ status: 200, text: 'ok', challenge: null })
    expect(handlers.calls).toBe(1)
  })

  const bearer = (token: string) => ({ Authorization: `Bearer ${token}` })
  it.each([
    // an expired token
    ...['option', 'either', 'taskEither'].map((name) => [`asynchronous/${name}`, bearer('oldsecret')] as const),
    // the credential of another level
    ['levels/staff', { 'X-API-Key': 'partnerkey' }],
    ['levels/partner', bearer('supersecret')],
    ['levels/inside/reports', { 'X-API-Key': 'partnerkey' }],
    ['levels/outside/reports', bearer('supersecret')],
    ['basic', { Authorization: `Basic ${btoa('__proto__:secret')}` }],
  ] as const)('%s refuses %j', async (path, headers) => {
    expectRefusal(await request(`/examples/${path}`, headers), 'realm="')
  })

  it('composing.ts names the missing scope for a known caller', async () => {
    const answer = await request('/examples/composing/admin', { Authorization: 'Bearer supersecret' })
    expect(answer.status).toBe(403)
    expect(answer.challenge).toBe('Bearer realm="api", error="insufficient_scope", scope="admin"')
    expect(JSON.parse(answer.text)).toMatchObject({ detail: 'Forbidden' })
    expect(handlers.calls).toBe(0)
  })

  it.each(['', 'x', '1.2', 'supersecret', `4102444800.${'A'.repeat(64)}`])(
    'ownKind.ts refuses %j, which is not a signature',
    async (signature) => {
      expectRefusal(
        await request('/examples/signed', { 'X-Signature': signature }),
        'Signature realm="api", name="X-Signature", algorithm="hmac-sha256"',
      )
    },
  )

  it('ownKind.ts refuses a signature for another time, method or URL', async () => {
    const key = 'a shared key of thirty-two bytes'
    const until = Math.floor(Date.now() / 1000) + 60
    const sent = (at: number, method: string, url: string) => {
      const signature = ownKind.sign(key, at, method, url)
      return request('/examples/signed', { 'X-Signature': `${signature.until}.${signature.mac}` })
    }
    for (const answer of [
      await sent(until - 120, 'GET', '/examples/signed'),
      await sent(until, 'POST', '/examples/signed'),
      await sent(until, 'GET', '/examples/other'),
    ]) {
      expectRefusal(answer, 'Signature realm="api", name="X-Signature", algorithm="hmac-sha256"')
    }
    expect((await sent(until, 'GET', '/examples/signed')).status).toBe(200)
  })
})

describe('a new example is listed, mounted and tested', () => {
  it('is imported by this spec', () => {
    expect(Object.keys(examples)).toEqual(exampleFiles())
  })

  it('has a row in examples/README.md', () => {
    expect([...new Set(readmeRows().map(({ file }) => file))].sort()).toEqual(exampleFiles())
  })

  it('has a row for each of its operations, and each is tested', () => {
    const rows = readmeRows().map(({ curl }) => pathIn(curl))
    const tested = [...guarded.map(({ curl }) => pathIn(curl)), ...elsewhere]
    const paths = routers.flatMap(pathsOf)
    expect(new Set(rows)).toEqual(new Set(paths))
    expect(new Set(tested)).toEqual(new Set(paths))
  })

  it('begins with what to know, says what to replace, and does not listen', () => {
    for (const file of exampleFiles()) {
      const text = exampleText(file)
      expect(text.startsWith('/**\n * '), file).toBe(true)
      expect(text, file).toMatch(/\/\/ Replace th(is|ese) with /)
      expect(text, file).not.toContain('.listen(')
    }
  })
})

// Tested above, in ipAllowList.http.spec.ts and in session.http.spec.ts
const elsewhere = [
  '/examples/levels/health',
  '/examples/ipwhitelist',
  ...['sign-in', 'sign-out', 'pets', 'protected', 'admin-only', 'staff-area'].map((name) => `/examples/${name}`),
]

describe.each(['requests of this spec', ...(hasCurl() ? ['curl itself'] : [])])('examples/README.md, by %s', (by) => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'koa-with-auth-curl-'))
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  it('the response to each line is what its row says', async () => {
    const run = by === 'curl itself' ? withCurl(folder) : asRequests()
    const rows = readmeRows()
    expect(rows.length).toBeGreaterThan(20)
    for (const { curl, status, body } of rows) {
      const answer = await run(curl.replace('http://127.0.0.1:3000', served.url))
      expect({ curl, ...answer }).toEqual({ curl, status, body })
    }
  })
})
