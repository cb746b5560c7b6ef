/** Descriptions: trees flatten, and the readers of a tree see every leaf. */
import fc from 'fast-check'
import { Challenge, type Description, type Leaf, type SecurityScheme } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { anyOf, challengesOf, fieldsOf, isAmbient, leaves, readsQuery } from '../../src/core/Description.js'
import { description } from '../support/arbitraries.js'

const leaf = (scheme: SecurityScheme | undefined, ambient = false): Leaf => ({
  _tag: 'Leaf',
  scheme,
  challenge: Challenge.make('Test'),
  ambient,
})
const key = (place: 'query' | 'header' | 'cookie', name = 'key') => leaf({ type: 'apiKey', in: place, name })
const bearer = leaf({ type: 'http', scheme: 'bearer' })
const basic = leaf({ type: 'http', scheme: 'basic' }, true)
const custom = leaf(undefined, true)

describe('anyOf', () => {
  it('flattens nested alternatives, so that alt is associative in its description', () => {
    const nested = anyOf([anyOf([bearer, basic]), anyOf([key('query'), anyOf([custom])])])
    expect(nested).toStrictEqual({ _tag: 'AnyOf', members: [bearer, basic, key('query'), custom] })
  })

  it('keeps the leaves, in order', () => {
    fc.assert(
      fc.property(description, description, (a, b) => {
        expect(leaves(anyOf([a, b]))).toStrictEqual([...leaves(a), ...leaves(b)])
      }),
    )
  })
})

describe('fieldsOf', () => {
  const table: ReadonlyArray<{ description: string; input: ReadonlyArray<Description>; expected: string[] }> = [
    { description: 'bearer', input: [bearer], expected: ['Authorization'] },
    { description: 'bearer and Basic read one field', input: [bearer, basic], expected: ['Authorization'] },
    { description: 'OAuth 2.0', input: [leaf({ type: 'oauth2', flows: {} })], expected: ['Authorization'] },
    {
      description: 'OpenID Connect',
      input: [leaf({ type: 'openIdConnect', openIdConnectUrl: 'https://a.example' })],
      expected: ['Authorization'],
    },
    { description: 'a header key', input: [key('header', 'X-API-Key')], expected: ['X-API-Key'] },
    { description: 'a cookie key', input: [key('cookie')], expected: ['Cookie'] },
    { description: 'a query key is part of the URL', input: [key('query')], expected: [] },
    {
      description: 'each once',
      input: [key('cookie'), key('cookie', 'b'), bearer],
      expected: ['Cookie', 'Authorization'],
    },
    { description: 'a plain function reads who knows what', input: [bearer, custom], expected: ['*'] },
    { description: 'a client certificate is no field', input: [leaf({ type: 'mutualTLS' }), bearer], expected: ['*'] },
  ]
  it.each(table)('$description', ({ input, expected }) => {
    expect(fieldsOf(anyOf(input))).toStrictEqual(expected)
  })

  it('RFC 9110 §5.1 names that differ in letter case are one field', () => {
    const fields = fieldsOf(
      anyOf([key('header', 'X-Key'), key('header', 'x-key'), key('header', 'authorization'), bearer]),
    )
    expect(fields.map((field) => field.toLowerCase())).toStrictEqual(['x-key', 'authorization'])
  })

  it('names every field once, or only *', () => {
    fc.assert(
      fc.property(description, (tree) => {
        const fields = fieldsOf(tree).map((field) => field.toLowerCase())
        expect(new Set(fields).size).toBe(fields.length)
        if (fields.includes('*')) expect(fields).toStrictEqual(['*'])
      }),
    )
  })
})

describe('the other readers', () => {
  it('isAmbient: one leaf is enough', () => {
    expect(isAmbient(anyOf([bearer, key('query')]))).toBe(false)
    expect(isAmbient(anyOf([bearer, basic]))).toBe(true)
  })

  it('readsQuery: one leaf is enough (A-28)', () => {
    expect(readsQuery(anyOf([bearer, key('header'), custom]))).toBe(false)
    expect(readsQuery(anyOf([bearer, key('query')]))).toBe(true)
  })

  it('B-06 challengesOf: one for every leaf, in order; a function is asked about the failure', () => {
    const asked: Leaf = { ...bearer, challenge: ({ _tag }) => Challenge.make('Asked', { error: _tag }) }
    const tree = anyOf([basic, asked])
    expect(challengesOf(tree)).toStrictEqual([basic.challenge, Challenge.make('Asked', { error: 'absent' })])
    expect(challengesOf(tree, { _tag: 'expired' })[1]?.parameters).toStrictEqual({ error: 'expired' })
  })
})
