/** Tokens of sessions: which text of the field `Authorization` is one, of this application. */
import { mockRequest } from 'koa-with-auth/testing'
import { expect, it } from 'vitest'
import {
  ANOTHER_SCHEME,
  bearerChallengeOf,
  bearerOf,
  newToken,
  tokenIn,
  type Bearer,
} from '../../src/sessions/Bearer.js'

const bearer: Bearer = bearerOf('shop', true)!
const token = newToken(bearer)
const foreign = newToken(bearerOf('another', true)!)
const prefixed = newToken(bearerOf('shop', { prefix: 'shop_live' })!)

it.each<[ReadonlyArray<string>, string | undefined]>([
  [[], undefined],
  [[`Bearer ${token}`], token],
  [[`bEARER   ${token}`], token],
  [[`Bearer ${token}`, `Bearer ${token}`], ''],
  [['Bearer'], ''],
  [['bearer'], ''],
  [['Bearer '], ''],
  [[`Bearer ${token}x`], ''],
  [[`Bearer ${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`], ''],
  [[`Bearer ${foreign}`], ''],
  [[`Bearer ${prefixed}`], ''],
  [[`DPoP ${token}`], ANOTHER_SCHEME],
  [['Basic eDp5'], ANOTHER_SCHEME],
  [['Bearers'], ANOTHER_SCHEME],
])('the token in %j is %j', (lines, expected) => {
  const fields = lines.map((line) => ['Authorization', line] as const)
  expect(tokenIn(bearer, mockRequest({ fields }))).toBe(expected)
})

it('a challenge says that a token was refused only if one was sent (RFC 6750 §3.1)', () => {
  expect(bearerChallengeOf(bearer, true)).toMatchObject({ scheme: 'Bearer', parameters: { error: 'invalid_token' } })
  expect(bearerChallengeOf(bearer, false)).toMatchObject({ scheme: 'Bearer', parameters: {} })
})

it('an application has none without the option', () => {
  expect([bearerOf('shop', undefined), bearerOf('shop', false)]).toEqual([undefined, undefined])
})
