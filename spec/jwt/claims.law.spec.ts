/** The claims of a token that is remembered: each reader gets a copy, whatever is in them. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { copierOf } from '../../src/jwt/claims.js'

const flat = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null))
const deep = fc.oneof(
  flat,
  fc.array(flat),
  fc.array(fc.dictionary(fc.string(), flat)),
  fc.dictionary(fc.string(), flat),
)
const claims = fc.dictionary(
  fc.oneof(fc.constant('__proto__'), fc.string()),
  fc.oneof({ weight: 3, arbitrary: flat }, deep),
)

// Changes all that can be changed
const spoil = (value: unknown): void => {
  if (typeof value !== 'object' || value === null) return
  for (const key of Reflect.ownKeys(value)) {
    spoil(Reflect.get(value, key))
    Reflect.deleteProperty(value, key)
  }
  Reflect.set(value, 'spoiled', true)
}

it('each copy of claims is what JSON reads, and shares nothing with another', () => {
  fc.assert(
    fc.property(claims, (given) => {
      const payload = JSON.stringify(given)
      const copy = copierOf(payload)
      for (let reader = 0; reader < 3; reader++) {
        const one = copy()
        expect(JSON.stringify(one)).toBe(payload)
        expect(Object.getPrototypeOf(one)).toBe(Object.prototype)
        spoil(one)
      }
    }),
  )
})
