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

  it('5.2.2 calls the hook with the whole request, and its result is the principal (5.1.1)', () => {
    const sketch = { query: query('k1'), header: header('k1'), cookie: cookie('k1') }[place as Place]
    const request = mockRequest(sketch)
    const client = { client: 'Acme' }
    expect(kind({ authenticate: (of) => of === request && client }).evaluate(request)).toStrictEqual(E.right(client))
    expect(kind({ authenticate: () => null }).evaluate(request)).toMatchObject(E.left({ _tag: 'invalid' }))
  })

  it('takes no name that cannot be sent there', () => {
    expect(() => kind({ paramName: 'a b', authenticate: () => 1 })).toThrow(TypeError)
  })

  it('decision "length of a credential": the option maxLength', () => {
    const sketch = { query: query('k12'), header: header('k12'), cookie: cookie('k12') }[place as Place]
    const of = (maxLength: number) => kind({ maxLength, authenticate: () => 1 }).evaluate(mockRequest(sketch))
    expect(of(3)).toStrictEqual(E.right(1))
    expect(of(2)).toMatchObject(E.left({ _tag: 'malformed' }))
  })
})
