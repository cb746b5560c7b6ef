/** B-20 to B-23: how Basic credentials are read (RFC 7617, RFC 4648). */
import { httpBasicAuth } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { expectAccepted, expectDenied, guardedApp, sendCounted } from '../support/sites/guardedApp.js'
import { serve } from '../support/servers/server.js'

const accounts = new Map([
  ['admin', 'secret'],
  ['user', 'pass:with:colons'],
  ['jürgen', 'pässwörd'],
  ['percent', '100%25'],
])
let asked: unknown[] = []
const basic = httpBasicAuth({
  authenticate: (_request, username, password) => {
    asked.push([username, password])
    return accounts.get(username) === password && { username }
  },
})
const under = guardedApp({ '/basic': basic })
const served = serve(() => under.app)
const request = (target: string, lines: ReadonlyArray<string>) => {
  asked = []
  return sendCounted(under, served.port, target, lines)
}
const encoded = (pair: string, encoding: BufferEncoding = 'utf8') => Buffer.from(pair, encoding).toString('base64')

describe('Basic (RFC 7617)', () => {
  it.each([
    ['admin:secret', 'admin'],
    ['user:pass:with:colons', 'user'],
    ['jürgen:pässwörd', 'jürgen'],
    ['percent:100%25', 'percent'],
  ])('B-20 B-21 %s passes: it is split at the first colon, and read as UTF-8', async (pair, username) => {
    const answer = await request('GET /basic', [`Authorization: Basic ${encoded(pair)}`])
    expectAccepted(answer)
    expect(JSON.parse(Buffer.from(answer.body, 'latin1').toString('utf8'))).toEqual({ auth: { username } })
  })

  it('B-20 an empty user name or password reaches the hook', async () => {
    for (const [pair, seen] of [
      [':', ['', '']],
      ['admin:', ['admin', '']],
      [':secret', ['', 'secret']],
    ] as const) {
      expectDenied(await request('GET /basic', [`Authorization: Basic ${encoded(pair)}`]))
      expect(asked).toEqual([seen])
    }
  })

  it.each([
    'admin',
    '',
    'ad\0min:secret',
    'admin:sec\0ret',
    'admin:secret\n',
    '\radmin:secret',
    'admin:secret\x7f',
    '\x1badmin:secret',
  ])('B-20 %j is malformed', async (pair) => {
    expectDenied(await request('GET /basic', [`Authorization: Basic ${encoded(pair)}`]))
    expect(asked).toEqual([])
  })

  it('B-21 a byte order mark is not dropped', async () => {
    expectDenied(await request('GET /basic', [`Authorization: Basic ${encoded('\ufeffadmin:secret')}`]))
    expect(asked).toEqual([['\ufeffadmin', 'secret']])
  })

  it('B-21 nothing is normalized', async () => {
    expectDenied(await request('GET /basic', [`Authorization: Basic ${encoded('ju\u0308rgen:pa\u0308sswo\u0308rd')}`]))
    expect(asked).toEqual([['ju\u0308rgen', 'pa\u0308sswo\u0308rd']])
  })

  it.each(['jürgen:pässwörd', '\xff\xfeadmin:secret', 'admin:\xc0\xaf', '\xed\xa0\x80:secret', 'admin:secret\xf0\x9f'])(
    'B-21 bytes that are not UTF-8 are malformed: %j',
    async (pair) => {
      expectDenied(await request('GET /basic', [`Authorization: Basic ${encoded(pair, 'latin1')}`]))
      expect(asked).toEqual([])
    },
  )

  it.each([
    ['no padding', 'YWRtaW46c2VjcmV0MQ'],
    ['too much padding', 'YWRtaW46c2VjcmV0===='],
    ['padding inside', 'YWRt=aW46c2VjcmV0'],
    ['url alphabet', encoded('???:>>>').replace(/\+/g, '-').replace(/\//g, '_')],
    ['stray bits', 'YWRtaW46c2VjcmV0MR=='],
    ['a blank inside', 'YWRtaW46 c2VjcmV0'],
    ['a dot inside', 'YWRtaW46.c2VjcmV0'],
    ['quotes', '"YWRtaW46c2VjcmV0"'],
    ['hex', Buffer.from('admin:secret').toString('hex')],
    ['nothing', ''],
  ])('B-22 base64 is read strictly: %s', async (_what, payload) => {
    expectDenied(await request('GET /basic', [`Authorization: Basic ${payload}`]))
    // Hex digits are valid base64, of another string
    expect(asked.filter((pair) => JSON.stringify(pair).includes('admin'))).toEqual([])
  })

  it.each(['percent:100%', 'admin:%73ecret', '%61dmin:secret', 'admin%3Asecret'])(
    'B-23 %s is not percent-decoded',
    async (pair) => {
      expectDenied(await request('GET /basic', [`Authorization: Basic ${encoded(pair)}`]))
    },
  )

  it.each([
    encoded('admin:secret'),
    'admin:secret',
    `Basic,${encoded('admin:secret')}`,
    `Basic="${encoded('admin:secret')}"`,
  ])('B-23 %s has no scheme', async (value) => {
    expectDenied(await request('GET /basic', [`Authorization: ${value}`]))
    expect(asked).toEqual([])
  })
})
