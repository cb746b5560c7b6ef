/**
 * Anonymous callers over HTTP: `optional` and `lenient`, functions that get an anonymous principal, and what is still
 * refused.
 */
import { allOf, anyOf, AuthError, Challenge, optional, type Authenticator } from 'koa-with-auth'
import { describedAs, lenient, flatMap } from 'koa-with-auth/fp'
import { either as E, readerTaskEither as RTE } from 'fp-ts'
import { pipe } from 'fp-ts/lib/function.js'
import { describe, expect, test } from 'vitest'
import {
  basic,
  behind,
  check,
  crossSite,
  key,
  offers,
  passes,
  refused,
  sending,
  user,
  type Row,
} from '../support/models/combining.js'

const { key: KEY, user: USER, badUser: BAD, lowUser: LOW, basic: BASIC } = offers
const record = allOf({ key, user })

const perhaps = (a: Authenticator<unknown>) => [optional(a), lenient(a)] as const

describe.each([
  ['optional', 0, false],
  ['lenient', 1, true],
] as const)('%s', (_name, at, excuses) => {
  const one = perhaps(user)[at]
  const group = perhaps(record)[at]
  const cookieLike = perhaps(basic)[at]
  const bad = (challenges: ReadonlyArray<string>, ...asking: string[]) =>
    excuses ? passes(undefined, ...asking) : refused(401, challenges, ...asking)
  test.each<Row>([
    ['no credential', one, sending({}), passes(undefined)],
    ['a valid credential', one, sending({ user: 'good' }), passes({ name: 'user' }, 'user')],
    ['the credential of another scheme', one, sending({ basic: 'good' }), passes(undefined)],
    ['a wrong credential', one, sending({ user: 'bad' }), bad([BAD], 'user')],
    ['an expired credential', one, sending({ user: 'old' }), bad([BAD], 'user')],
    ['a malformed credential', one, sending({ user: 'a b' }), bad([BAD])],
    [
      'a credential that is sent twice',
      one,
      { headers: { Authorization: ['Bearer good-user', 'Bearer good-user'] } },
      bad([BAD]),
    ],
    ['a credential of 8 KB and more', one, sending({ user: 'a'.repeat(8192) }), bad([BAD])],
    ['a scheme without a token', one, { headers: { Authorization: 'Bearer' } }, bad([BAD])],
    ['a principal that is not allowed', one, sending({ user: 'low' }), refused(403, [LOW], 'user')],
    ['an outage is a 503', one, sending({ user: 'down' }), refused(503, [], 'user')],
    ['an exception is a 500', one, sending({ user: 'throw' }), refused(500, [], 'user')],
    ['the first of two credentials', group, sending({ key: 'good' }), bad([USER], 'key')],
    ['the second of two credentials', group, sending({ user: 'good' }), bad([KEY, USER])],
    ['none of two credentials', group, sending({}), passes(undefined)],
    [
      'a write from another site with a valid credential',
      cookieLike,
      sending({ basic: 'good' }, crossSite),
      refused(403, [], 'basic'),
    ],
    [
      'a write from another site with a wrong credential',
      cookieLike,
      sending({ basic: 'bad' }, crossSite),
      bad([BASIC], 'basic'),
    ],
    ['a write from another site without a credential', cookieLike, crossSite, passes(undefined)],
    [
      'a GET from another site with a wrong credential',
      cookieLike,
      sending({ basic: 'bad' }, { headers: { 'Sec-Fetch-Site': 'cross-site' } }),
      bad([BASIC], 'basic'),
    ],
    [
      'in a group, only the other credential',
      allOf([key, one]),
      sending({ key: 'good' }),
      passes([{ name: 'key' }, undefined], 'key'),
    ],
    ['in a group, only its own credential', allOf([key, one]), sending({ user: 'good' }), refused(401, [KEY, USER])],
  ])('%s', async (...row) => check(row))
})

describe('an optional member, last in a list', () => {
  const list = [user, optional(key)]
  const ambient = [basic, optional(key)]
  test.each<Row>([
    ['no credential', list, sending({}), passes(undefined)],
    ['a valid credential of an earlier member', list, sending({ user: 'good' }), passes({ name: 'user' }, 'user')],
    ['a valid credential of the optional member', list, sending({ key: 'good' }), passes({ name: 'key' }, 'key')],
    [
      'a wrong credential of an earlier member, and a valid one of the optional member',
      list,
      sending({ user: 'bad', key: 'good' }),
      passes({ name: 'key' }, 'user', 'key'),
    ],
    ['a wrong credential of an earlier member', list, sending({ user: 'bad' }), refused(401, [BAD, KEY], 'user')],
    ['a malformed credential of an earlier member', list, sending({ user: 'a b' }), refused(401, [BAD, KEY])],
    [
      'a principal of an earlier member that is not allowed',
      list,
      sending({ user: 'low' }),
      refused(403, [LOW], 'user'),
    ],
    ['a write from another site', ambient, sending({ basic: 'good' }, crossSite), refused(403, [], 'basic')],
    [
      'two wrong credentials, and the last member is lenient',
      [user, lenient(key)],
      sending({ user: 'bad', key: 'bad' }),
      refused(401, [BAD, KEY], 'user', 'key'),
    ],
    [
      'two wrong credentials, and the last member of an object is lenient',
      anyOf({ user, key: lenient(key) }),
      sending({ user: 'bad', key: 'bad' }),
      refused(401, [BAD, KEY], 'user', 'key'),
    ],
    [
      'a wrong credential, and a function that makes a guest of an anonymous caller',
      [user, flatMap((p: unknown) => p ?? 'guest')(optional(key))],
      sending({ user: 'bad' }),
      refused(401, [BAD, KEY], 'user'),
    ],
    [
      'two wrong credentials, and a function that makes a guest behind lenient',
      [user, flatMap((p: unknown) => p ?? 'guest')(lenient(key))],
      sending({ user: 'bad', key: 'bad' }),
      refused(401, [BAD, KEY], 'user', 'key'),
    ],
    ['an outage of an earlier member', list, sending({ user: 'down' }), refused(503, [], 'user')],
  ])('a bad credential does not make the caller anonymous: %s', async (...row) => check(row))
})

// A plain function does not say what it reads. If it passes, its credential counts as sent.
describe('an optional group that has a plain function', () => {
  const here = (request: { get: (name: string) => string }) => request.get('X-Here') === '1' && { from: 'here' }
  const group = optional(allOf([here, user]))
  test.each<Row>([
    [
      'the function passes, and the other credential was not sent',
      group,
      { headers: { 'X-Here': '1' } },
      refused(401, [USER]),
    ],
    ['the function does not pass', group, sending({ user: 'good' }), refused(401, ['Custom realm="api"', USER])],
    [
      'both',
      group,
      sending({ user: 'good' }, { headers: { 'X-Here': '1' } }),
      passes([{ from: 'here' }, { name: 'user' }], 'user'),
    ],
  ])('one credential of two is a refusal: %s', async (...row) => check(row))
})

describe('functions of an anonymous principal', () => {
  const anonymous = optional(key)
  const made = (f: (principal: unknown) => unknown) => flatMap(f)(anonymous)
  test.each<Row>([
    ['map: undefined is still anonymous', made(() => undefined), sending({}), passes(undefined)],
    [
      'map: undefined of a known principal is a refusal',
      made(() => undefined),
      sending({ key: 'good' }),
      refused(401, [KEY], 'key'),
    ],
    ...[false, null, 0, '', NaN, []].map((falsy): Row => [
      `map: ${JSON.stringify(falsy)} is a refusal`,
      made(() => falsy),
      sending({}),
      refused(401, [KEY]),
    ]),
    ['map: a promise of undefined is still anonymous', made(async () => undefined), sending({}), passes(undefined)],
    ['map: a promise of null is a refusal', made(async () => null), sending({}), refused(401, [KEY])],
    ['map: a guest passes', made((p) => p ?? 'guest'), sending({}), passes('guest')],
    [
      'describedAs: undefined is still anonymous',
      pipe(
        anonymous,
        RTE.map((p) => p),
        describedAs(anonymous),
      ),
      sending({}),
      passes(undefined),
    ],
    [
      'describedAs: false is a refusal',
      pipe(
        anonymous,
        RTE.map(() => false),
        describedAs(anonymous),
      ),
      sending({}),
      refused(401, [KEY]),
    ],
    [
      'describedAs: null is a refusal',
      pipe(
        anonymous,
        RTE.map(() => null),
        describedAs(anonymous),
      ),
      sending({}),
      refused(401, [KEY]),
    ],
    [
      'describedAs with a demand: undefined is a refusal',
      pipe(anonymous, describedAs(key)),
      sending({}),
      refused(401, [KEY]),
    ],
    [
      'a bare RTE: undefined is a refusal',
      (r: never) => anonymous(r),
      sending({}),
      refused(401, ['Custom realm="api"']),
    ],
  ])('%s', async (...row) => check(row))
})

describe('a failure that a hook returns', () => {
  test('offers its own challenge after those of earlier members', async () => {
    const odd = { ...AuthError.invalid, challenge: Challenge.make('Odd', { say: 'a "quoted", word' }) }
    const { ask } = await behind(allOf([key, () => E.left(odd), user]))
    expect((await ask('/x', sending({ key: 'good' }))).challenges).toEqual([
      'Odd realm="api", say="a \\"quoted\\", word"',
      USER,
    ])
  })
})
