/** How fp-ts's own `alt` differs: it keeps only the last failure, and continues after an outage. */
import { either as E, readerTaskEither as RTE } from 'fp-ts'
import { pipe } from 'fp-ts/lib/function.js'
import { apiKeyHeader, AuthError, httpBearer } from 'koa-with-auth'
import { alt, describedAs, isAuthenticator } from 'koa-with-auth/fp'
import { describe, expect, it } from 'vitest'
import { mockRequest } from 'koa-with-auth/testing'

const strong = httpBearer({ authenticate: (): E.Either<AuthError, string> => E.left(AuthError.unavailable()) })
const expired = httpBearer({ authenticate: (): E.Either<AuthError, string> => E.left(AuthError.expired) })
const weak = apiKeyHeader({ authenticate: (_request, key): string | false => key === 'k1' && 'key' })

const request = mockRequest({
  fields: [
    ['Authorization', 'Bearer token'],
    ['key', 'k1'],
  ],
})
const withoutKey = mockRequest({ fields: [['Authorization', 'Bearer token']] })

describe("fp-ts's RTE.alt and ours", () => {
  it('during an outage, fp-ts admits the weaker key, and ours is unavailable', async () => {
    const theirs = pipe(
      strong,
      RTE.alt(() => weak),
    )
    const ours = pipe(
      strong,
      alt(() => weak),
    )
    expect(await theirs(request)()).toStrictEqual(E.right('key'))
    expect(await ours(request)()).toMatchObject(E.left({ _tag: 'unavailable' }))
  })

  it('if all fail, fp-ts reports the last failure, and ours the strongest with every branch and challenge', async () => {
    const theirs = await pipe(
      expired,
      RTE.alt(() => weak),
    )(withoutKey)()
    const ours = await pipe(
      expired,
      alt(() => weak),
    )(withoutKey)()
    expect(theirs).toMatchObject(E.left({ _tag: 'absent' }))
    expect(theirs).not.toHaveProperty('left.branches')
    expect(ours).toMatchObject(E.left({ _tag: 'expired' }))
    const branches = E.isLeft(ours) ? AuthError.branchesOf(ours.left) : []
    expect(branches.map(({ _tag, challenge }) => [_tag, challenge?.scheme])).toStrictEqual([
      ['expired', 'Bearer'],
      ['absent', 'ApiKey'],
    ])
  })

  it("fp-ts's combinators return a plain function; describedAs adds the description again", () => {
    const bare = pipe(
      weak,
      RTE.map((name) => ({ name })),
    )
    expect(isAuthenticator(bare)).toBe(false)
    const restored = describedAs(weak)(bare)
    expect(isAuthenticator(restored)).toBe(true)
    expect(restored.description).toStrictEqual(weak.description)
  })
})
