/** The failure of a group, where it is not only a challenge of a 401. */
import { either as E } from 'fp-ts'
import { allOf, anyOf, apiKeyHeader, AuthError, authorize, httpBearer, requireScopes } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { mockRequest } from 'koa-with-auth/testing'

const bearer = httpBearer({ authenticate: () => 'anna' })
const failing = (error: AuthError) => apiKeyHeader({ paramName: 'X-Key', authenticate: () => E.left(error) })
const both = mockRequest({
  fields: [
    ['X-Key', 'k'],
    ['Authorization', 'Bearer t'],
  ],
})

describe('allOf', () => {
  it('an outage has no branch for later members, which were not tried', () => {
    const down = failing(AuthError.unavailable(7))
    expect(allOf([down, bearer]).evaluate(both)).toStrictEqual(down.evaluate(both))
  })

  it('a hook that returns absent counts as absent, if no other credential was sent', () => {
    const alone = mockRequest({ fields: [['X-Key', 'k']] })
    const list = allOf([failing(AuthError.absent), bearer])
    expect(list.evaluate(alone)).toMatchObject({ left: { _tag: 'absent' } })
    expect(list.evaluate(both)).toMatchObject({ left: { _tag: 'invalid' } })
  })

  it.each([AuthError.expired, AuthError.forged, AuthError.insufficient()])(
    '$_tag stays the failure if another credential was sent, too',
    (error) => {
      expect(allOf([failing(error), bearer]).evaluate(both)).toMatchObject({ left: { _tag: error._tag } })
    },
  )
})

describe('authorize and requireScopes', () => {
  const messageOf = (authenticator: ReturnType<typeof anyOf>) => {
    const result = authenticator.evaluate(both)
    return '_tag' in result && E.isLeft(result) && result.left._tag === 'raised' ? String(result.left.error) : result
  }

  it('a result that is truthy but not true is an error that says so', () => {
    expect(messageOf(authorize((() => 'yes') as never)(bearer) as never)).toBe(
      'TypeError: authorize(f): f must return true or false, or a promise of it',
    )
  })

  it('a failure inside of requireScopes names the scopes of both; only insufficient has scopes', () => {
    const writing = requireScopes(['write'], { granted: () => [] })
    const reading = requireScopes(['read'], { granted: () => [] })
    const left = (of: object) => ({ _tag: 'Left', left: expect.objectContaining(of) as unknown })
    expect(writing(reading(bearer)).evaluate(both)).toStrictEqual(left({ scope: ['read', 'write'] }))
    expect(writing(failing(AuthError.insufficient())).evaluate(both)).toStrictEqual(left({ scope: ['write'] }))
    expect(writing(failing(AuthError.expired)).evaluate(both)).not.toHaveProperty('left.scope')
  })

  it('each challenge of a list names the scopes that are required around the list', () => {
    const list = anyOf([failing(AuthError.expired), httpBearer({ authenticate: () => false })])
    const offered = { challenge: { parameters: { scope: 'write' } } }
    expect(requireScopes(['write'], { granted: () => [] })(list).evaluate(both)).toMatchObject({
      left: { branches: [offered, offered] },
    })
  })

  it('granted scopes may be a list, a set or a string', () => {
    const granted = (answer: unknown) => requireScopes(['read'], { granted: () => answer as never })(bearer)
    for (const answer of [['read'], new Set(['read']), 'write read']) {
      expect(granted(answer).evaluate(both)).toStrictEqual(E.right('anna'))
    }
    for (const answer of [[], new Set(), '', 'reading', undefined, null]) {
      expect(granted(answer).evaluate(both)).toMatchObject({ left: { _tag: 'insufficient', scope: ['read'] } })
    }
    for (const answer of [1, true, {}, { read: true }]) {
      expect(messageOf(granted(answer) as never)).toBe(
        'TypeError: requireScopes: granted must return an array, a set or a string of scopes',
      )
    }
  })
})

it('allOf of an object keeps the order of its keys, whatever their names', () => {
  const asked: string[] = []
  const asking = (id: string) => () => asked.push(id)
  const made = allOf({ zeta: asking('z'), constructor: asking('c'), '01a': asking('0'), a1: asking('t') })
  const expected = { zeta: 1, constructor: 2, '01a': 3, a1: 4 }
  expect(made.evaluate(mockRequest())).toStrictEqual({ _tag: 'Right', right: expected })
  expect(asked).toStrictEqual(['z', 'c', '0', 't'])
})
