/** Descriptions: trees are flattened, and the readers of a tree see every leaf. */
import fc from 'fast-check'
import { Challenge, type Description, type Leaf, type SecurityScheme } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import {
  admitsAnonymous,
  anyOf,
  challengesOf,
  withChallenges,
  fieldsOf,
  isAmbient,
  isSent,
  isThrottled,
  leaves,
  readsQuery,
} from '../../src/core/Description.js'
import { description } from '../support/models/arbitraries.js'
import { mockRequest } from 'koa-with-auth/testing'

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
const perhaps: Description = { _tag: 'Optional', member: bearer, lenient: false }
const allOf = (...members: Description[]): Description => ({ _tag: 'AllOf', members })
const scoped = (member: Description, ...scopes: string[]): Description => ({ _tag: 'Scoped', member, scopes })

describe('anyOf', () => {
  it('flattens nested alternatives, so that the description of alt is associative', () => {
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
    { description: 'bearer and Basic read the same field', input: [bearer, basic], expected: ['Authorization'] },
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
      description: 'each field once',
      input: [key('cookie'), key('cookie', 'b'), bearer],
      expected: ['Cookie', 'Authorization'],
    },
    { description: 'a plain function may read anything', input: [bearer, custom], expected: ['*'] },
    {
      description: 'a client certificate is not a field',
      input: [leaf({ type: 'mutualTLS' }), bearer],
      expected: ['*'],
    },
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

describe('admitsAnonymous', () => {
  it.each([
    { description: 'false for a kind', input: bearer, expected: false },
    { description: 'true for optional', input: perhaps, expected: true },
    { description: 'true for alternatives if one does', input: anyOf([basic, perhaps]), expected: true },
    { description: 'false for alternatives without an optional one', input: anyOf([basic, bearer]), expected: false },
    { description: 'false for a group if one does not', input: allOf(perhaps, basic), expected: false },
    { description: 'true for a group if all do', input: allOf(perhaps, perhaps), expected: true },
    { description: 'true for a permission of an optional kind', input: scoped(perhaps), expected: true },
    { description: 'false for a permission of a kind', input: scoped(bearer), expected: false },
  ])('$description', ({ input, expected }) => {
    expect(admitsAnonymous(input)).toBe(expected)
  })
})

describe('isSent', () => {
  const sent = (is: () => boolean): Leaf => ({ ...bearer, isSent: is })
  const absent = sent(() => false)
  const hostile = sent(() => {
    throw new Error('a getter')
  })
  it.each([
    { description: 'true if one leaf is sent', input: [absent, sent(() => true)], expected: true },
    { description: 'false if no leaf is sent', input: [absent, absent], expected: false },
    { description: 'true if it is unknown', input: [absent, custom], expected: true },
    { description: 'true if it throws', input: [absent, hostile], expected: true },
  ])('$description', ({ input, expected }) => {
    expect(isSent(anyOf(input), mockRequest())).toBe(expected)
  })
})

describe('explained', () => {
  it('keeps the challenge of a failure', () => {
    const challenge = Challenge.make('Own')
    expect(withChallenges(bearer, { _tag: 'invalid', challenge })).toStrictEqual({ _tag: 'invalid', challenge })
  })

  it('copies a challenge that is only frozen outside, so that a hook cannot change it later', () => {
    const challenge = Object.freeze({ scheme: 'Own', parameters: { hint: 'ask us' } })
    const failure = withChallenges(bearer, { _tag: 'invalid', challenge })
    challenge.parameters.hint = 'changed later'
    expect(failure.challenge?.parameters).toStrictEqual({ hint: 'ask us' })
  })

  it('A-30 is raised if the kind throws while it makes a challenge', () => {
    const error = new Error('no challenge')
    const hostile: Leaf = {
      ...bearer,
      challenge: () => {
        throw error
      },
    }
    expect(withChallenges(hostile, { _tag: 'invalid' })).toStrictEqual({ _tag: 'raised', error })
  })
})

describe('other readers of a description', () => {
  it('isThrottled is true if one leaf is', () => {
    expect(isThrottled(anyOf([bearer, basic]))).toBe(false)
    expect(isThrottled(allOf(bearer, scoped({ ...basic, throttled: true })))).toBe(true)
  })

  it('RFC 6750 §3 challengesOf names the scopes of a permission, each once', () => {
    const scopesOf = (of: Description) => challengesOf(of)[0]?.parameters['scope']
    expect(scopesOf(scoped(bearer))).toBeUndefined()
    expect(scopesOf(scoped(bearer, 'read', 'write'))).toBe('read write')
    expect(scopesOf(scoped(scoped(bearer, 'read', 'write'), 'admin', 'read'))).toBe('read write admin')
  })

  it('fieldsOf has Origin if the origin decides who may read the challenges', () => {
    expect(fieldsOf({ ...bearer, exposesChallenges: () => true })).toStrictEqual(['Authorization', 'Origin'])
  })

  it('isAmbient is true if one leaf is', () => {
    expect(isAmbient(anyOf([bearer, key('query')]))).toBe(false)
    expect(isAmbient(anyOf([bearer, basic]))).toBe(true)
  })

  it('readsQuery is true if one leaf does (A-28)', () => {
    expect(readsQuery(anyOf([bearer, key('header'), custom]))).toBe(false)
    expect(readsQuery(anyOf([bearer, key('query')]))).toBe(true)
  })

  it('B-06 challengesOf has one for every leaf, in order; a function is called with the failure', () => {
    const asked: Leaf = { ...bearer, challenge: ({ _tag }) => Challenge.make('Asked', { error: _tag }) }
    const tree = anyOf([basic, asked])
    expect(challengesOf(tree)).toStrictEqual([basic.challenge, Challenge.make('Asked', { error: 'absent' })])
    expect(challengesOf(tree, { _tag: 'expired' })[1]?.parameters).toStrictEqual({ error: 'expired' })
  })
})
