/** The failures and challenges of groups, where they are not only challenges of a 401. */
import { either as E } from 'fp-ts'
import { allOf, anyOf, apiKeyHeader, AuthError, httpBearer, optional, type Authenticator } from 'koa-with-auth'
import { altW, firstPresent } from 'koa-with-auth/fp'
import { describe, expect, it } from 'vitest'
import { mockRequest } from 'koa-with-auth/testing'

const bearer = httpBearer({ authenticate: () => 'anna' })
const failing = (error: AuthError) => apiKeyHeader({ paramName: 'X-Key', authenticate: () => E.left(error) })
const both = mockRequest({
  fields: [
    ['X-Key', 'k'],
    ['Authorization', 'Bearer t'],
  ],
})

describe('allOf', () => {
  it('an outage has no branch for later members, which were not tried', () => {
    const down = failing(AuthError.unavailable(7))
    expect(allOf([down, bearer]).evaluate(both)).toStrictEqual(down.evaluate(both))
  })

  it('a missing credential is a part if another one was sent, and else absent, also beside its own', () => {
    const missing = apiKeyHeader({ paramName: 'X-Missing', authenticate: () => 'anna' })
    const refusing = httpBearer({ authenticate: () => E.left(AuthError.absent) })
    expect(allOf([missing, bearer]).evaluate(both)).toMatchObject(E.left({ _tag: 'invalid', why: 'partial' }))
    expect(allOf([refusing, missing]).evaluate(both)).toMatchObject(E.left({ _tag: 'absent' }))
  })
})

it('allOf of an object keeps the order of its keys, whatever their names', () => {
  const asked: string[] = []
  const asking = (id: string) => () => asked.push(id)
  const made = allOf({ zeta: asking('z'), constructor: asking('c'), '01a': asking('0'), a1: asking('t') })
  const expected = { zeta: 1, constructor: 2, '01a': 3, a1: 4 }
  expect(made.evaluate(mockRequest())).toStrictEqual({ _tag: 'Right', right: expected })
  expect(asked).toStrictEqual(['z', 'c', '0', 't'])
})

it.each([
  ['alt', (a, b) => altW(() => b)(a)],
  ['anyOf', (a, b) => anyOf([a, b])],
  ['firstPresent', (a, b) => firstPresent([a, b])],
] as const satisfies ReadonlyArray<
  readonly [string, (a: Authenticator<unknown>, b: Authenticator<unknown>) => Authenticator<unknown>]
>)('%s takes an optional member last alone', (_name, group) => {
  expect(() => group(optional(bearer), bearer)).toThrow('alternative 1 is optional')
  expect(() => group(bearer, optional(bearer))).not.toThrow()
})

const refused = (error: AuthError) => httpBearer({ authenticate: () => E.left(error) })
const request = mockRequest({ fields: [['Authorization', 'Bearer t']] })
const branchesOf = (authenticator: Authenticator<unknown>) => {
  const result = authenticator.evaluate(request)
  if (!('_tag' in result) || E.isRight(result)) throw new Error('it is to fail at once')
  return AuthError.branchesOf(result.left).map(({ _tag, skipped }) => [_tag, skipped ?? false])
}

describe('firstPresent', () => {
  const [absent, other] = [AuthError.absent, AuthError.expired].map(refused)

  it('offers nothing after an outage', () => {
    expect(branchesOf(firstPresent([absent!, refused(AuthError.unavailable()), other!]))).toStrictEqual([
      ['absent', false],
      ['unavailable', false],
    ])
  })
})
