/**
 * `map` and `flatMap` keep identity and composition. For `map`, the result of `f` is the principal, unchanged; `flatMap` judges it.
 */
import * as E from 'fp-ts/lib/Either.js'
import { identity, pipe } from 'fp-ts/lib/function.js'
import * as O from 'fp-ts/lib/Option.js'
import fc from 'fast-check'
import { AuthError, httpBearer, optional, type Authenticator } from 'koa-with-auth'
import { Authenticator as instances, flatMap, fromFunction, lenient, map } from 'koa-with-auth/fp'
import { describe, expect, it } from 'vitest'
import { build, observe, readable, request, shape } from '../support/models/arbitraries.js'
import { mockRequest } from 'koa-with-auth/testing'

const principal = fc.oneof(
  fc.string({ minLength: 1 }),
  fc.integer({ min: 1 }),
  fc.constant(true as const),
  fc.record({ user: fc.string() }),
  fc.constantFrom({}, [] as object, O.none, O.some(1), E.left('a'), E.right({}), Object.prototype, new Error('data')),
  fc.record({ _tag: fc.constantFrom('Right', 'absent'), right: fc.string() }),
)
const { Functor } = instances
const change = fc.func(principal)
const bare = mockRequest()
const anna = fromFunction(() => 'anna')

// `flatMap` keeps the laws while `f` returns plain principals
const plain = fc.func(fc.oneof(fc.string({ minLength: 1 }), fc.integer({ min: 1 }), fc.record({ user: fc.string() })))
type Mapping = (f: (principal: never) => unknown) => (a: Authenticator<unknown>) => Authenticator<unknown>

describe.each<[string, Mapping, typeof change]>([
  ['map', map as Mapping, change],
  ['Authenticator.Functor.map', (f) => (a) => Functor.map(a, f as (principal: unknown) => unknown), change],
  ['flatMap', flatMap as Mapping, plain as typeof change],
])('%s', (_name, mapping, functions) => {
  it('of identity is identity, description included', async () => {
    await fc.assert(
      fc.asyncProperty(shape, request, fc.boolean(), async (a, by, isOptional) => {
        const made = (into: string[]): Authenticator<unknown> => (isOptional ? lenient(build(a, into)) : build(a, into))
        const mapped = await observe((into) => mapping((who) => identity(who))(made(into)), by)
        expect(mapped).toStrictEqual(await observe(made, by))
      }),
    )
  })

  it('of a composition is the composition of both', async () => {
    await fc.assert(
      fc.asyncProperty(shape, functions, functions, request, async (a, f, g, by) => {
        const once = (calls: string[]) => mapping((who) => g(f(who)))(build(a, calls))
        const twice = (calls: string[]) => mapping((who) => g(who))(mapping((who) => f(who))(build(a, calls)))
        expect(await observe(once, by)).toStrictEqual(await observe(twice, by))
      }),
    )
  })

  it('changes no failure, and is not called for one', async () => {
    await fc.assert(
      fc.asyncProperty(shape, request, async (a, by) => {
        const before = await build(a).evaluate(by)
        fc.pre(E.isLeft(before))
        const after = mapping(() => expect.unreachable())(build(a))
        expect(await after.evaluate(by)).toStrictEqual(before)
        expect(readable(after.description)).toStrictEqual(readable(build(a).description))
      }),
    )
  })

  it('A-30 an exception of `f` is raised, with the challenge', async () => {
    const error = new Error('in map')
    const throwing = mapping(() => {
      throw error
    })(httpBearer({ authenticate: () => 'anna' }))
    const result = await throwing.evaluate(mockRequest({ fields: [['Authorization', 'Bearer t']] }))
    expect(result).toMatchObject(E.left({ ...AuthError.raised(error), challenge: { scheme: 'Bearer' } }))
  })
})

describe('map', () => {
  it('makes the result of `f` the principal, unchanged', async () => {
    await fc.assert(
      fc.asyncProperty(principal, async (returned) => {
        const result = await map(() => returned)(anna).evaluate(bare)
        expect(E.isRight(result) && result.right).toBe(returned)
      }),
    )
  })

  it('is not called for an anonymous caller, who stays anonymous', async () => {
    const bearer = httpBearer({ authenticate: () => 'anna' })
    let calls = 0
    const mapped = pipe(
      optional(bearer),
      map((who) => {
        calls++
        return who.length
      }),
    )
    expect(await mapped.evaluate(bare)).toStrictEqual(E.right(undefined))
    expect(calls).toBe(0)
    expect(await mapped.evaluate(mockRequest({ fields: [['Authorization', 'Bearer t']] }))).toStrictEqual(E.right(4))
    expect(calls).toBe(1)
  })

  it('is called for a principal that `flatMap` made for an anonymous caller', async () => {
    const guest = pipe(
      optional(httpBearer({ authenticate: () => 'anna' })),
      flatMap((who) => who ?? 'guest'),
      map((who) => who.length),
    )
    expect(await guest.evaluate(bare)).toStrictEqual(E.right(5))
  })

  const returning = (returned: unknown) => map(() => returned as string)(anna)

  it.each([false, 0, -0, 0n, NaN, '', null, undefined, Promise.resolve('anna')])('%o is raised', async (returned) => {
    const result = await returning(returned).evaluate(bare)
    const error = E.isLeft(result) && result.left._tag === 'raised' ? result.left.error : undefined
    const kind = returned instanceof Promise ? 'a promise' : 'a falsy value'
    expect(error).toStrictEqual(
      new TypeError(`map(f): f returned ${kind}, not a principal; to wait for one or to refuse, use flatMap(f)`),
    )
  })
})

it.each([false, 0, -0, 0n, NaN, '', null, undefined, []])('5.1.2 flatMap refuses %o, sync and async', async (falsy) => {
  for (const f of [() => falsy, async () => falsy] as ReadonlyArray<() => unknown>) {
    expect(await flatMap(f)(anna).evaluate(bare)).toMatchObject(E.left({ _tag: 'invalid' }))
  }
})
