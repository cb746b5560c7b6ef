/** Every hostile request of `spec/data/bad-inputs.json`, over raw sockets. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  brokenBy,
  corpus,
  isExpected,
  violationsOf,
  type CorpusCase,
  type Ground,
  type Macros,
} from '../support/models/corpus.js'
import { corpusApp, macrosFor } from '../support/sites/corpusApp.js'
import { listen } from '../support/servers/server.js'

const documents = ['21', '22', '23', '28', '29', '30', '31', '32', '33'].map((id) => `doc-0${id}`)

// spec/requirements.md decides where the file allows several statuses
const decided: Readonly<Record<string, { readonly expect: string; readonly row: string }>> = {
  'bas-171': { expect: '401', row: 'credential sent twice: malformed' },
  'brr-106': { expect: '401', row: 'credential sent twice: malformed' },
  'brr-130': { expect: '200', row: 'an authenticator reads its own field' },
  'brr-138': { expect: '431', row: 'as many header lines as Node keeps' },
  'akq-088': { expect: '401', row: 'credential sent twice: malformed' },
  'akq-094': { expect: '200', row: 'query parameters: getAll(name)' },
  'akq-110': { expect: '401', row: 'credential sent twice: malformed' },
  'akq-123': { expect: '200', row: 'a malformed alternative fails, the list goes on' },
  'akc-010': { expect: '200', row: 'cookie values' },
  'akc-014': { expect: '200', row: 'cookie values' },
  'akc-065': { expect: '401', row: 'credential sent twice: malformed' },
  'akc-078': { expect: '200', row: 'cookie values' },
  'csr-065': { expect: '403', row: 'csrf: Origin against Host' },
  'csr-077': { expect: '200', row: 'csrf: a request with neither header passes' },
  'csr-083': { expect: '200', row: 'csrf: Origin against Host' },
  'frm-072': { expect: '415', row: 'one look at the media type' },
  'frm-073': { expect: '200', row: 'Node keeps the first Content-Type' },
  'pth-160': { expect: '404', row: 'unknown path 404' },
  'pth-162': { expect: '404', row: 'unknown path 404' },
  ...Object.fromEntries(
    documents.map((id) => [id, { expect: '200', row: 'docs and openapi.json: public by default' }]),
  ),
}

const asDecided = (kase: CorpusCase): CorpusCase => ({ ...kase, expect: decided[kase.id]?.expect ?? kase.expect })
const run = corpus.cases.map(asDecided)

const { app, calls } = corpusApp()
let served: Awaited<ReturnType<typeof listen>>
let macros: Macros

beforeAll(async () => {
  served = await listen(app)
  macros = await macrosFor(served.url)
})
afterAll(() => served.close())

const ground = (): Ground => ({ port: served.port, macros, calls })

describe('the file of hostile requests', () => {
  it('holds 410 requests', () => {
    expect(run.length).toBe(410)
  })

  it('allows several statuses only where spec/requirements.md decides', () => {
    const ofFile = new Map(corpus.cases.map(({ id, expect: of }) => [id, of]))
    for (const [id, { expect: status }] of Object.entries(decided)) {
      expect(isExpected(ofFile.get(id) ?? '', Number(status)), id).toBe(true)
    }
    expect(run.filter((kase) => kase.expect === 'either').map(({ id }) => id)).toEqual([])
  })
})

describe.each([...new Set(run.map(({ target }) => target))])('hostile requests: %s', (target) => {
  const cases = run.filter((kase) => kase.target === target)

  it.each(cases.map((kase) => [kase.id, kase.why, kase] as const))('%s %s', async (_id, _why, kase) => {
    expect(await violationsOf(ground(), kase)).toEqual([])
    expect(served.errors).toEqual([])
  })
})

describe('the checks of hostile requests', () => {
  const request = {
    method: 'GET',
    path: '/x?k=supersecret',
    rawHeaders: [['Authorization', 'Basic YWRtaW46c2VjcmV0']],
  } as const
  const answer = (status: number, headers: ReadonlyArray<readonly [string, string]> = [], body = '') => ({
    status,
    headers,
    body,
    milliseconds: 1,
  })

  it.each([
    ['a 5xx', answer(500), 0, 'it answers 500'],
    ['a 401 without a challenge', answer(401, [['cache-control', 'no-store']]), 0, '401 without a challenge'],
    ['a 403 that caches may store', answer(403), 0, 'caches may store it'],
    ['an accepted response that caches may store', answer(200), 1, 'caches may store it'],
    [
      'a refused request whose handler ran',
      answer(403, [['cache-control', 'no-store']]),
      1,
      'the operation of a denied request ran 1 times',
    ],
    [
      'a session cookie',
      answer(404, [['set-cookie', 'koa.sess.sig=; path=/']]),
      0,
      'a denied request sets a session cookie',
    ],
    ['a query value', answer(404, [], 'no supersecret here'), 0, 'the answer repeats supersecret'],
    ['a decoded password', answer(404, [['x', 'secret']]), 0, 'the answer repeats secret'],
  ])('notice %s', (_what, given, ran, broken) => {
    expect(brokenBy(request, {}, given, ran)).toContain(broken)
  })
})
