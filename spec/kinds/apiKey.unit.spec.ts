/**
 * API keys in their three places (spec 5.2): what reaches the hook, what is refused before it, and what a 401 offers.
 */
import { either as E } from 'fp-ts'
import { apiKeyCookie, apiKeyHeader, apiKeyQuery, Challenge } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { mockRequest, type RequestSpec } from 'koa-with-auth/testing'

const places = {
  query: { kind: apiKeyQuery, ambient: false },
  header: { kind: apiKeyHeader, ambient: false },
  cookie: { kind: apiKeyCookie, ambient: true },
} as const
type Place = keyof typeof places

const query = (...values: string[]): RequestSpec => ({ url: `/?${values.map((value) => `key=${value}`).join('&')}` })
const header = (...values: string[]): RequestSpec => ({ fields: values.map((value) => ['Key', value]) })
const cookie = (...values: string[]): RequestSpec => ({
  fields: [['Cookie', values.map((value) => `key=${value}`).join('; ')]],
})

/** What the hook gets, or the failure if it is not called. */
type Outcome = { readonly key: string } | 'absent' | 'malformed'

const table: ReadonlyArray<readonly [place: Place, description: string, input: RequestSpec, expected: Outcome]> = [
  ['query', '5.2.2 a key', query('k1'), { key: 'k1' }],
  ['query', '5.1.4 no key', {}, 'absent'],
  ['query', '5.1.4 in another place', header('k1'), 'absent'],
  ['query', 'decision "empty key"', query(''), 'malformed'],
  ['query', 'A-22 sent twice', query('k1', 'k1'), 'malformed'],
  ['query', 'percent-decoded once', query('%2541'), { key: '%41' }],
  ['query', 'decision "length of a credential" 8192', query('k'.repeat(8192)), { key: 'k'.repeat(8192) }],
  ['query', 'decision "length of a credential" 8193', query('k'.repeat(8193)), 'malformed'],
  ['header', '5.2.2 a key', header('k1'), { key: 'k1' }],
  ['header', '5.1.4 no key', {}, 'absent'],
  ['header', '5.1.4 in another place', query('k1'), 'absent'],
  ['header', 'decision "empty key"', header(''), 'malformed'],
  ['header', 'only blanks', header(' \t '), 'malformed'],
  ['header', 'A-22 sent twice', header('k1', 'k1'), 'malformed'],
  ['header', 'A-22 two keys that a proxy joined count as one key', header('k1, k1'), { key: 'k1, k1' }],
  ['header', 'decision "length of a credential" 8193', header('k'.repeat(8193)), 'malformed'],
  ['cookie', '5.2.2 a key', cookie('k1'), { key: 'k1' }],
  ['cookie', '5.1.4 no key', {}, 'absent'],
  ['cookie', '5.1.4 in another place', header('k1'), 'absent'],
  ['cookie', 'decision "empty key"', cookie(''), 'malformed'],
  ['cookie', 'decision "cookie values" quotes taken off', cookie('"k1"'), { key: 'k1' }],
  ['cookie', 'decision "cookie values" a lone quote stays', cookie('"k1'), { key: '"k1' }],
  ['cookie', 'A-21 sent twice', cookie('k1', 'k2'), 'malformed'],
  ['cookie', 'decision "length of a credential" 8193', cookie('k'.repeat(8193)), 'malformed'],
]

describe('what reaches the hook of an API key', () => {
  it.each(table)('%s: %s', (place, _description, input, expected) => {
    const asked: string[] = []
    const kind = places[place].kind({ authenticate: (_request, key) => asked.push(key) })
    const result = kind.evaluate(mockRequest(input))
    if (typeof expected === 'string') {
      expect(result).toMatchObject(E.left({ _tag: expected }))
      expect(asked).toStrictEqual([])
    } else {
      expect(result).toStrictEqual(E.right(1))
      expect(asked).toStrictEqual([expected.key])
    }
  })
})

describe.each(Object.entries(places))('apiKey in a %s', (place, { kind, ambient }) => {
  it('describes its place, and offers it in its challenge, never Basic (B-01)', () => {
    const { description } = kind({ paramName: 'X-API-Key', realm: 'pets', authenticate: () => true })
    expect(description).toStrictEqual({
      _tag: 'Leaf',
      scheme: { type: 'apiKey', in: place, name: 'X-API-Key' },
      challenge: Challenge.make('ApiKey', { realm: 'pets', in: place, name: 'X-API-Key' }),
      ambient,
      isSent: expect.any(Function),
    })
  })

  it('2.2 its name is `key` by default', () => {
    expect(kind({ authenticate: () => true }).description).toMatchObject({ scheme: { name: 'key' } })
  })

  it('calls the hook with the whole request, and its result is the principal (5.1.1)', () => {
    const sketch = { query: query('k1'), header: header('k1'), cookie: cookie('k1') }[place as Place]
    const request = mockRequest(sketch)
    const client = { client: 'Acme' }
    expect(kind({ authenticate: (of) => of === request && client }).evaluate(request)).toStrictEqual(E.right(client))
    expect(kind({ authenticate: () => null }).evaluate(request)).toMatchObject(E.left({ _tag: 'invalid' }))
  })

  it('decision "length of a credential": the option maxLength', () => {
    const sketch = { query: query('k12'), header: header('k12'), cookie: cookie('k12') }[place as Place]
    const of = (maxLength: number) => kind({ maxLength, authenticate: () => 1 }).evaluate(mockRequest(sketch))
    expect(of(3)).toStrictEqual(E.right(1))
    expect(of(2)).toMatchObject(E.left({ _tag: 'malformed' }))
  })

  it.each([0, -1, NaN, Infinity, '5', null])('maxLength %j is a TypeError', (maxLength) => {
    expect(() => kind({ maxLength, authenticate: () => 1 } as never)).toThrow(TypeError)
  })
})
