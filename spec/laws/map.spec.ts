/** `map` keeps identity and composition, as far as principals are truthy; what is falsy is refused (spec 5.1.2). */
import { either as E } from 'fp-ts'
import { identity, pipe } from 'fp-ts/lib/function.js'
import fc from 'fast-check'
import { AuthError, fromFunction, map } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { build, observe, readable, request, shape } from '../support/arbitraries.js'
import { plainRequest } from '../support/plainRequest.js'

const change = fc.func(fc.oneof(fc.string({ minLength: 1 }), fc.integer({ min: 1 }), fc.record({ user: fc.string() })))

describe('map', () => {
  it('of identity is identity, description included', async () => {
    await fc.assert(
      fc.asyncProperty(shape, request, async (a, by) => {
        const mapped = await observe((into) => map((principal: string) => identity(principal))(build(a, into)), by)
        expect(mapped).toStrictEqual(await observe((into) => build(a, into), by))
      }),
    )
  })

  it('of a composition is the composition of maps', async () => {
    await fc.assert(
      fc.asyncProperty(shape, change, change, request, async (a, f, g, by) => {
        const once = (calls: string[]) => map((principal: string) => g(f(principal)))(build(a, calls))
        const twice = (calls: string[]) =>
          pipe(
            build(a, calls),
            map((principal) => f(principal)),
            map((principal) => g(principal)),
          )
        expect(await observe(once, by)).toStrictEqual(await observe(twice, by))
      }),
    )
  })

  it('changes no failure, and is not called for one', async () => {
    await fc.assert(
      fc.asyncProperty(shape, request, async (a, by) => {
        const before = await build(a).evaluate(by)
        fc.pre(E.isLeft(before))
        const after = map(() => {
          throw new Error('called')
        })(build(a))
        expect(await after.evaluate(by)).toStrictEqual(before)
        expect(readable(after.description)).toStrictEqual(readable(build(a).description))
      }),
    )
  })

  it.each([false, 0, -0, 0n, NaN, '', null, undefined, []])('5.1.2 refuses %o', async (falsy) => {
    const refused = map(() => falsy)(fromFunction(() => 'anna'))
    for (const mapped of [refused, map(() => Promise.resolve(falsy))(fromFunction(() => 'anna'))]) {
      expect(await mapped.evaluate(plainRequest())).toMatchObject(E.left(AuthError.invalid))
    }
  })

  it('A-30 what it throws is raised', async () => {
    const error = new Error('in map')
    const throwing = map(() => {
      throw error
    })(fromFunction(() => 'anna'))
    expect(await throwing.evaluate(plainRequest())).toMatchObject(E.left(AuthError.raised(error)))
  })
})
