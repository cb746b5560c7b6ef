/** Results of `authorize` and `requireScopes`, and the scopes that their failures name. */
import { either as E } from 'fp-ts'
import { anyOf, apiKeyHeader, AuthError, authorize, httpBearer, requireScopes } from 'koa-with-auth'
import type { Authenticator } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { mockRequest } from 'koa-with-auth/testing'
import { make } from '../../src/core/Authenticator.js'
import { accept, evidence } from '../../src/core/Evidence.js'
import { sayingScopes } from '../../src/core/granted.js'

const bearer = httpBearer({ authenticate: () => 'anna' })
const failing = (error: AuthError) => apiKeyHeader({ paramName: 'X-Key', authenticate: () => E.left(error) })
const both = mockRequest({
  fields: [
    ['X-Key', 'k'],
    ['Authorization', 'Bearer t'],
  ],
})

describe('authorize and requireScopes', () => {
  it('a result that is truthy but not true is an error that says so', () => {
    // Safe: a caller without types could return this
    const result = authorize((() => 'yes') as unknown as () => boolean)(bearer).evaluate(both)
    const error = new TypeError('authorize(f): f must return true or false, or a promise of it')
    expect(result).toMatchObject(E.left({ _tag: 'raised', error }))
  })

  it('the scopes of the innermost credential count, and one of several members that says none is not enough', () => {
    const said = (...scopes: ReadonlyArray<ReadonlyArray<string>>) => {
      const sources = scopes.map((own) => ({ endFor: () => undefined, scopes: own }))
      return make(bearer.description, () => accept('anna', evidence({ accepted: sources })))
    }
    const reading = (made: Authenticator<unknown>) => requireScopes(['read'])(sayingScopes(made, () => []))
    expect(reading(said(['write'], ['read'])).evaluate(both)).toStrictEqual(E.right('anna'))
    expect(reading(said(['read'], ['write'])).evaluate(both)).toMatchObject({ left: { _tag: 'insufficient' } })
    const list = anyOf([sayingScopes(said(['read']), () => []), failing(AuthError.expired)])
    expect(() => requireScopes(['read'])(list)).toThrow('a does not say which scopes were granted')
  })

  it('a failure inside of requireScopes names the scopes of both; only insufficient has scopes', () => {
    const writing = requireScopes(['write'], { granted: () => [] })
    const reading = requireScopes(['read'], { granted: () => [] })
    const left = (of: object) => ({ _tag: 'Left', left: expect.objectContaining(of) as unknown })
    expect(writing(reading(bearer)).evaluate(both)).toStrictEqual(left({ scope: ['read', 'write'] }))
    expect(writing(failing(AuthError.insufficient())).evaluate(both)).toStrictEqual(left({ scope: ['write'] }))
    expect(writing(failing(AuthError.expired)).evaluate(both)).not.toHaveProperty('left.scope')
    // an outage is answered without a challenge
    const down = failing(AuthError.unavailable())
    expect(writing(down).evaluate(both)).toStrictEqual(down.evaluate(both))
  })

  it('each challenge of a list names the scopes that are required around the list', () => {
    const list = anyOf([failing(AuthError.expired), httpBearer({ authenticate: () => false })])
    const offered = { challenge: { parameters: { scope: 'write' } } }
    expect(requireScopes(['write'], { granted: () => [] })(list).evaluate(both)).toMatchObject({
      left: { branches: [offered, offered] },
    })
  })
})
