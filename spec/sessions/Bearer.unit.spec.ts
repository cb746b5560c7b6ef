/** Tokens of sessions: which text of the field `Authorization` is one, of this application. */
import { mockRequest } from 'koa-with-auth/testing'
import { expect, it } from 'vitest'
import { fromNow } from '../../src/core/memory.js'
import {
  ANOTHER_SCHEME,
  bearerChallengeOf,
  bearerLike,
  bearerOf,
  newToken,
  tokenIn,
  type Bearer,
} from '../../src/sessions/Bearer.js'
import { hintFor } from '../../src/sessions/SessionRecords.js'

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

it.each([
  ['aa', true],
  ['a'.repeat(32), true],
  ['acme2_l1ve', true],
  ...['a', 'a'.repeat(33), '1a', 'Acme', 'a_', 'a__b', '_ab', 'ab\n'].map((one) => [one, false] as const),
] as const)('%j may begin its tokens: %s', (prefix, isGood) => {
  const check = () => bearerLike('bearer', { prefix })
  if (isGood) expect(check).not.toThrow()
  else expect(check).toThrow('must be words')
})

it('the users of the ten thousand sessions that came last are known', () => {
  const { hints } = bearerOf('shop', true)!
  for (let at = 0; at <= 10_000; at++) hints.set(`${at}`, fromNow(hintFor('shop', { user: 'anna', listed: undefined })))
  expect([hints.get('0'), hints.get('1')?.user]).toEqual([undefined, 'anna'])
})

it('an application has none without the option', () => {
  expect([bearerOf('shop', undefined), bearerOf('shop', false)]).toEqual([undefined, undefined])
})
