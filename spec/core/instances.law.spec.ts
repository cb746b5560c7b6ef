/** The fp-ts instances of Authenticator: the laws of Alt and Semigroup. Those of Functor are in `map.law`. */
import fc from 'fast-check'
import * as E from 'fp-ts/lib/Either.js'
import type { Alt1 } from 'fp-ts/lib/Alt.js'
import type { URIS, Kind } from 'fp-ts/HKT.js'
import { concatAll } from 'fp-ts/lib/Semigroup.js'
import { anyOf, AuthError } from 'koa-with-auth'
import { Authenticator, fromFunction } from 'koa-with-auth/fp'
import { describe, expect, it } from 'vitest'
import { build, observe, request, shape } from '../support/models/arbitraries.js'
import { mockRequest } from 'koa-with-auth/testing'

const { Alt, getSemigroup, URI } = Authenticator
const change = fc.func(fc.oneof(fc.string({ minLength: 1 }), fc.integer({ min: 1 })))
type Made = (calls: string[]) => Authenticator<unknown>

const same = async (left: Made, right: Made, by: Parameters<typeof observe>[1]): Promise<void> => {
  expect(await observe(left, by)).toStrictEqual(await observe(right, by))
}

describe('Alt', () => {
  it('distributivity: map over alt is alt of maps', async () => {
    await fc.assert(
      fc.asyncProperty(shape, shape, change, request, (a, b, f, by) =>
        same(
          (calls) =>
            Alt.map(
              Alt.alt(build(a, calls), () => build(b, calls)),
              f,
            ),
          (calls) => Alt.alt<unknown>(Alt.map(build(a, calls), f), () => Alt.map(build(b, calls), f)),
          by,
        ),
      ),
    )
  })
})

describe('getSemigroup', () => {
  getSemigroup<string>()

  it('concatAll folds a list like anyOf', async () => {
    await fc.assert(
      fc.asyncProperty(shape, fc.array(shape, { maxLength: 4 }), request, (first, rest, by) =>
        same(
          (calls) => concatAll(getSemigroup<string>())(build(first, calls))(rest.map((one) => build(one, calls))),
          (calls) => anyOf([build(first, calls), ...rest.map((one) => build(one, calls))]),
          by,
        ),
      ),
    )
  })
})

describe('generic code of fp-ts', () => {
  // Written for any Alt
  const firstOf =
    <F extends URIS>(F: Alt1<F>) =>
    <A>(one: Kind<F, A>, other: Kind<F, A>): Kind<F, readonly [A]> =>
      F.map(
        F.alt(one, () => other),
        (a) => [a] as const,
      )

  it('accepts the instances', async () => {
    const never = fromFunction((): false | string => false)
    const result = await firstOf(Alt)(
      never,
      fromFunction(() => 'anna'),
    ).evaluate(mockRequest())
    expect(result).toStrictEqual(E.right(['anna']))
    const [anna, ben] = [fromFunction(() => 'anna'), fromFunction(() => 'ben')]
    expect(Alt.alt(anna, () => ben).evaluate(mockRequest())).toStrictEqual(E.right('anna'))
    expect(URI).toBe('koa-with-auth/Authenticator')
    expect(await firstOf(Alt)(never, never).evaluate(mockRequest())).toMatchObject(E.left({ _tag: 'invalid' }))
    expect(AuthError.is(AuthError.invalid)).toBe(true)
  })
})
