/** The challenges of a failure of firstPresent. */
import { either as E } from 'fp-ts'
import { AuthError, firstPresent, httpBearer, type Authenticator } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { mockRequest } from 'koa-with-auth/testing'

const failing = (error: AuthError) => httpBearer({ authenticate: () => E.left(error) })
const request = mockRequest({ fields: [['Authorization', 'Bearer t']] })
const branchesOf = (authenticator: Authenticator<unknown>) => {
  const result = authenticator.evaluate(request)
  if (!('_tag' in result) || E.isRight(result)) throw new Error('it is to fail at once')
  return AuthError.branchesOf(result.left).map(({ _tag, skipped }) => [_tag, skipped ?? false])
}

describe('firstPresent', () => {
  const [absent, invalid, other] = [AuthError.absent, AuthError.invalid, AuthError.expired].map(failing)

  it('offers what was absent, what decided, and what was not tried', () => {
    expect(branchesOf(firstPresent([absent!, invalid!, other!]))).toStrictEqual([
      ['absent', false],
      ['invalid', false],
      ['absent', true],
    ])
    expect(branchesOf(firstPresent([absent!, invalid!]))).toStrictEqual([
      ['absent', false],
      ['invalid', false],
    ])
    expect(branchesOf(firstPresent([absent!, absent!]))).toStrictEqual([
      ['absent', false],
      ['absent', false],
    ])
  })

  it('offers nothing after an outage', () => {
    expect(branchesOf(firstPresent([absent!, failing(AuthError.unavailable()), other!]))).toStrictEqual([
      ['absent', false],
      ['unavailable', false],
    ])
  })
})
