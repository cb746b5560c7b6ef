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

interface Row {
  readonly place: Place
  readonly description: string
  readonly input: RequestSpec
  /** What the hook gets, or the failure if it is not called. */
  readonly expected: { readonly key: string } | 'absent' | 'malformed'
}

const table: ReadonlyArray<Row> = [
  { place: 'query', description: '5.2.2 a key', input: query('k1'), expected: { key: 'k1' } },
  { place: 'query', description: '5.1.4 no key', input: {}, expected: 'absent' },
  { place: 'query', description: '5.1.4 in another place', input: header('k1'), expected: 'absent' },
  { place: 'query', description: 'decision "empty key"', input: query(''), expected: 'malformed' },
  { place: 'query', description: 'A-22 sent twice', input: query('k1', 'k1'), expected: 'malformed' },
  { place: 'query', description: 'percent-decoded once', input: query('%2541'), expected: { key: '%41' } },
  {
    place: 'query',
    description: 'decision "length of a credential" 8192',
    input: query('k'.repeat(8192)),
    expected: { key: 'k'.repeat(8192) },
  },
  {
    place: 'query',
    description: 'decision "length of a credential" 8193',
    input: query('k'.repeat(8193)),
    expected: 'malformed',
  },
  { place: 'header', description: '5.2.2 a key', input: header('k1'), expected: { key: 'k1' } },
  { place: 'header', description: '5.1.4 no key', input: {}, expected: 'absent' },
  { place: 'header', description: '5.1.4 in another place', input: query('k1'), expected: 'absent' },
  { place: 'header', description: 'decision "empty key"', input: header(''), expected: 'malformed' },
  { place: 'header', description: 'only blanks', input: header(' \t '), expected: 'malformed' },
  { place: 'header', description: 'A-22 sent twice', input: header('k1', 'k1'), expected: 'malformed' },
  {
    place: 'header',
    description: 'A-22 two keys that a proxy joined count as one key',
    input: header('k1, k1'),
    expected: { key: 'k1, k1' },
  },
  {
    place: 'header',
    description: 'decision "length of a credential" 8193',
    input: header('k'.repeat(8193)),
    expected: 'malformed',
  },
  { place: 'cookie', description: '5.2.2 a key', input: cookie('k1'), expected: { key: 'k1' } },
  { place: 'cookie', description: '5.1.4 no key', input: {}, expected: 'absent' },
  { place: 'cookie', description: '5.1.4 in another place', input: header('k1'), expected: 'absent' },
  { place: 'cookie', description: 'decision "empty key"', input: cookie(''), expected: 'malformed' },
  {
    place: 'cookie',
    description: 'decision "cookie values" quotes taken off',
    input: cookie('"k1"'),
    expected: { key: 'k1' },
  },
  {
    place: 'cookie',
    description: 'decision "cookie values" a lone quote stays',
    input: cookie('"k1'),
    expected: { key: '"k1' },
  },
  { place: 'cookie', description: 'A-21 sent twice', input: cookie('k1', 'k2'), expected: 'malformed' },
  {
    place: 'cookie',
    description: 'decision "length of a credential" 8193',
    input: cookie('k'.repeat(8193)),
    expected: 'malformed',
  },
]

describe('what reaches the hook of an API key', () => {
  it.each(table)('$place: $description', ({ place, input, expected }) => {
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
