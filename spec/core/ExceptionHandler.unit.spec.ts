/**
 * Exception handlers: the handler of the nearest class answers, and a level has one for each class (spec 5.1.5, 7.1).
 */
import { onError } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { addHandlers, handlerOf } from '../../src/core/Settings.js'

class Base extends Error {}
class Derived extends Base {}
class Other {}
const answers = (status: number) => () => ({ status })

const none = new Map<unknown, never>()
const handlers = addHandlers(none, [onError(Base, answers(400)), onError(Other, answers(401))])
const statusOf = (error: unknown, among = handlers) => {
  const answer = handlerOf(among, error)
  // Safe: `answers` reads neither of its arguments
  return answer?.(undefined as never, error)
}

describe('handlerOf', () => {
  it.each([
    { description: 'the class itself', input: new Base(), expected: { status: 400 } },
    { description: 'the nearest ancestor', input: new Derived(), expected: { status: 400 } },
    { description: 'a class that is not an Error', input: new Other(), expected: { status: 401 } },
    { description: 'an unregistered ancestor', input: new Error(), expected: undefined },
    { description: 'a primitive', input: 'Base', expected: undefined },
    { description: 'null', input: null, expected: undefined },
    { description: 'undefined', input: undefined, expected: undefined },
    { description: 'an object without a prototype', input: Object.create(null) as unknown, expected: undefined },
  ])('7.1 $description', ({ input, expected }) => {
    expect(statusOf(input)).toStrictEqual(expected)
  })

  it('7.1 a nearer class wins, wherever it was registered', () => {
    const nearer = addHandlers(handlers, [onError(Derived, answers(403))])
    expect(statusOf(new Derived(), nearer)).toStrictEqual({ status: 403 })
    expect(statusOf(new Base(), nearer)).toStrictEqual({ status: 400 })
  })

  it('7.1 a primitive is an instance of no class, not of Object either', () => {
    const all = addHandlers(none, [onError(Object, answers(400))])
    expect([statusOf({}, all), statusOf('text', all)]).toStrictEqual([{ status: 400 }, undefined])
  })

  it('an inner level replaces the handler of an outer one, which does not change', () => {
    const inner = addHandlers(handlers, [onError(Base, answers(418))])
    expect(statusOf(new Base(), inner)).toStrictEqual({ status: 418 })
    expect(statusOf(new Base())).toStrictEqual({ status: 400 })
  })
})

describe('onError', () => {
  // Safe: a caller without types could write this
  const untyped = (value: unknown) => value as never
  it.each([
    { description: 'no class', input: () => onError(untyped('Base'), answers(400)) },
    {
      description: 'an arrow function',
      input: () =>
        onError(
          untyped(() => 1),
          answers(400),
        ),
    },
    { description: 'null', input: () => onError(untyped(null), answers(400)) },
    {
      description: 'a function without a prototype',
      input: () => onError(untyped(Object.assign(function none() {}, { prototype: null })), answers(400)),
    },
    { description: 'no handler', input: () => onError(Base, untyped(undefined)) },
    { description: 'a response instead of a handler', input: () => onError(Base, untyped({ status: 400 })) },
    {
      description: 'a handler with three parameters',
      input: () =>
        onError(
          Base,
          untyped((_a: 1, _b: 2, _c: 3) => ({ status: 400 })),
        ),
    },
    {
      description: 'two handlers of one class in one level',
      input: () => addHandlers(none, [onError(Base, answers(400)), onError(Base, answers(401))]),
    },
  ])('is a TypeError for $description', ({ input }) => {
    expect(input).toThrow(TypeError)
  })
})
