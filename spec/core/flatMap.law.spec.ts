/**
 * `flatMap` keeps identity and composition while `f` returns plain principals. A falsy result is refused (spec 5.1.2).
 */
import { either as E } from 'fp-ts'
import { identity, pipe } from 'fp-ts/lib/function.js'
import fc from 'fast-check'
import { AuthError } from 'koa-with-auth'
import { fromFunction, flatMap } from 'koa-with-auth/fp'
import { describe, expect, it } from 'vitest'
import { build, observe, readable, request, shape } from '../support/models/arbitraries.js'
import { mockRequest } from 'koa-with-auth/testing'

const change = fc.func(fc.oneof(fc.string({ minLength: 1 }), fc.integer({ min: 1 }), fc.record({ user: fc.string() })))

describe('flatMap', () => {
  it('of identity is identity, description included', async () => {
    await fc.assert(
      fc.asyncProperty(shape, request, async (a, by) => {
        const mapped = await observe((into) => flatMap((principal: string) => identity(principal))(build(a, into)), by)
        expect(mapped).toStrictEqual(await observe((into) => build(a, into), by))
      }),
    )
  })

  it('of a composition is the composition of flatMaps', async () => {
    await fc.assert(
      fc.asyncProperty(shape, change, change, request, async (a, f, g, by) => {
        const once = (calls: string[]) => flatMap((principal: string) => g(f(principal)))(build(a, calls))
        const twice = (calls: string[]) =>
          pipe(
            build(a, calls),
            flatMap((principal) => f(principal)),
            flatMap((principal) => g(principal)),
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
        const after = flatMap(() => {
          throw new Error('called')
        })(build(a))
        expect(await after.evaluate(by)).toStrictEqual(before)
        expect(readable(after.description)).toStrictEqual(readable(build(a).description))
      }),
    )
  })

  it.each([false, 0, -0, 0n, NaN, '', null, undefined, []])('5.1.2 refuses %o', async (falsy) => {
    const refused = flatMap(() => falsy)(fromFunction(() => 'anna'))
    for (const mapped of [refused, flatMap(() => Promise.resolve(falsy))(fromFunction(() => 'anna'))]) {
      expect(await mapped.evaluate(mockRequest())).toMatchObject(E.left({ _tag: 'invalid' }))
    }
  })

  it('A-30 an exception of `f` is raised', async () => {
    const error = new Error('in flatMap')
    const throwing = flatMap(() => {
      throw error
    })(fromFunction(() => 'anna'))
    expect(await throwing.evaluate(mockRequest())).toMatchObject(E.left(AuthError.raised(error)))
  })
})
