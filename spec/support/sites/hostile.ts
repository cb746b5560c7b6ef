/** Bad hooks: they return, throw, resolve to or reject with any value. */
import { either as E, option as O } from 'fp-ts'
import fc, { type Arbitrary } from 'fast-check'
import { AuthError } from 'koa-with-auth'

const raise = (error: unknown): never => {
  throw error
}

const revoked = (): object => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

const throwing = (name: string): object =>
  Object.defineProperty({}, name, { get: () => raise(name), enumerable: true, configurable: true })

const peculiar: Readonly<Record<string, () => unknown>> = {
  'a revoked proxy': revoked,
  'a proxy that throws at every look': () => new Proxy({}, { has: () => raise('has'), get: () => raise('get') }),
  'a function whose properties throw': () => new Proxy(() => 1, { has: () => raise('has'), get: () => raise('get') }),
  'a tag that throws': () => throwing('_tag'),
  'a then that throws when read': () => throwing('then'),
  'a thenable that throws': () => ({ then: () => raise('thenable') }),
  'a thenable that resolves twice': () => ({ then: (go: (u: unknown) => void) => [go(false), go('late')] }),
  'a thenable that resolves to a thenable': () => ({ then: (go: (u: unknown) => void) => go(Promise.reject(null)) }),
  'a then that is no function': () => ({ then: 'soon' }),
  'a Some of nothing': () => ({ _tag: 'Some' }),
  'a Right of a revoked proxy': () => E.right(revoked()),
  'a Left of a revoked proxy': () => E.left(revoked()),
  'a Left of a tag that throws': () => E.left(throwing('_tag')),
  'an insufficient whose scope is no list': () => E.left({ _tag: 'insufficient', scope: 'read' }),
  'an AuthError without its fields': () => E.left({ _tag: 'raised' }),
  'an AuthError whose branches are no list': () => E.left({ _tag: 'invalid', branches: 1 }),
  'a class': () => class {},
  'a generator': () =>
    (function* () {
      yield 1
    })(),
  'a null prototype': () => Object.create(null) as unknown,
  'an object with the name of a method': () => ({ __proto__: null, constructor: 1, _tag: 'None' }),
  'an AuthError': () => E.left(AuthError.expired),
}

const named = fc.constantFrom(...Object.entries(peculiar)).map(([name, hook]) => ({ name, hook }))

const plain = fc
  .anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true })
  .map((value) => ({ name: fc.stringify(value), hook: () => value }))

/** The ways in which a value can reach the layer. */
const ways: Readonly<Record<string, (value: () => unknown) => unknown>> = {
  answered: (value) => value(),
  thrown: (value) => raise(value()),
  resolved: async (value) => value(),
  rejected: (value) => Promise.reject(value()),
  'in a Some': (value) => O.some(value()),
  'in a Right': (value) => E.right(value()),
  'in a Left': (value) => E.left(value()),
  'in a Right, later': async (value) => E.right(value()),
  'in a Left, later': async (value) => E.left(value()),
}

/** Any hook, and how it is printed in a counterexample. */
export const hostile: Arbitrary<{ readonly hook: () => unknown }> = fc
  .tuple(fc.oneof(named, plain), fc.constantFrom(...Object.entries(ways)))
  .map(([{ name, hook }, [way, reach]]) => ({
    hook: () => reach(hook),
    [fc.toStringMethod]: () => `${name}, ${way}`,
  }))
