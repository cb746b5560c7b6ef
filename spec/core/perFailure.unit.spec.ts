/** `perFailure`: a mapper for each tag of failure, and one for the others. */
import fc from 'fast-check'
import { AuthError, defaultErrorMapper, perFailure, type AuthResponse, type ErrorMapper } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { authError } from '../support/models/arbitraries.js'
import { outcomes } from '../support/models/trees.js'
import { mockRequest } from 'koa-with-auth/testing'

const request = mockRequest()
const [, ...tags] = outcomes
type Tag = (typeof tags)[number]
const answer = (tag: string): AuthResponse => ({ status: 418, body: tag })
const mappersOf = (some: ReadonlyArray<Tag>) => Object.fromEntries(some.map((tag) => [tag, () => answer(tag)]))

describe('perFailure', () => {
  it('calls the mapper of the failure, or else the default mapper', () => {
    fc.assert(
      fc.property(fc.subarray([...tags]), authError, (some, error) => {
        const expected = some.includes(error._tag) ? answer(error._tag) : defaultErrorMapper(error, request)
        expect(perFailure(mappersOf(some))(error, request)).toStrictEqual(expected)
      }),
    )
  })

  it('calls the other mapper for failures without one, and never both', () => {
    fc.assert(
      fc.property(fc.subarray([...tags]), authError, (some, error) => {
        let asked = 0
        const otherwise: ErrorMapper = () => ({ status: 400 + asked++ })
        const response = perFailure(mappersOf(some), otherwise)(error, request)
        expect(asked).toBe(some.includes(error._tag) ? 0 : 1)
        expect(response.status).toBe(some.includes(error._tag) ? 418 : 400)
      }),
    )
  })

  it('nests: a perFailure can be the other mapper', () => {
    const nested = perFailure(mappersOf(['expired']), perFailure(mappersOf(['expired', 'absent'])))
    expect(nested(AuthError.expired, request)).toStrictEqual(answer('expired'))
    expect(nested(AuthError.absent, request)).toStrictEqual(answer('absent'))
    expect(nested(AuthError.invalid, request)).toStrictEqual(defaultErrorMapper(AuthError.invalid, request))
  })

  it('calls each mapper with the failure itself and the request itself', () => {
    const asked: unknown[] = []
    const error = AuthError.insufficient(['read'])
    const mapper = perFailure({
      insufficient: (...args) => {
        asked.push(...args)
        return answer('seen')
      },
    })
    mapper(error, request)
    expect(asked[0]).toBe(error)
    expect(asked[1]).toBe(request)
  })

  it('without mappers is the other mapper', () => {
    for (const tag of tags) {
      const error = { _tag: tag } as AuthError
      expect(perFailure({})(error, request)).toStrictEqual(defaultErrorMapper(error, request))
    }
  })

  it.each([
    {
      description: 'a tag that does not exist',
      input: [{ expird: () => answer('x') }],
      expected: /no option "expird"/,
    },
    {
      description: 'a property name of every object',
      input: [{ constructor: () => answer('x') }],
      expected: /"constructor"/,
    },
    {
      description: 'a response instead of a mapper',
      input: [{ expired: answer('x') }],
      expected: /perFailure\({ expired }\)/,
    },
    {
      description: 'a mapper with three parameters',
      input: [{ expired: (_a: 1, _b: 2, _c: 3) => 1 }],
      expected: /takes 3/,
    },
    { description: 'perFailure, not called', input: [{ expired: perFailure }], expected: /perFailure itself; call it/ },
    { description: 'nothing', input: [], expected: /takes an object of options, not undefined/ },
    { description: 'a list', input: [[]], expected: /takes an object of options, not an array/ },
    { description: 'only a mapper', input: [defaultErrorMapper], expected: /takes an object of options/ },
    { description: 'null as the other mapper', input: [{}, null], expected: /otherwise must be a function, not null/ },
    {
      description: 'a response as the other mapper',
      input: [{}, answer('x')],
      expected: /otherwise must be a function/,
    },
  ])('is a TypeError that names the place for $description', ({ input, expected }) => {
    const attempt = (): unknown => Reflect.apply(perFailure, undefined, input)
    expect(attempt).toThrow(TypeError)
    expect(attempt).toThrow(expected)
    expect(attempt).toThrow(/perFailure/)
  })
})
