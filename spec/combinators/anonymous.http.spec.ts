/** Anonymous callers are admitted, too, over HTTP: `optional`, `lenient` and what is made of an anonymous caller, and what stays refused. */
import {
  allOf,
  anyOf,
  AuthError,
  Challenge,
  describedAs,
  lenient,
  flatMap,
  optional,
  type Authenticator,
} from 'koa-with-auth'
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
} from '../support/combining.js'

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
    ['nothing sent', one, sending({}), passes(undefined)],
    ['a good one', one, sending({ user: 'good' }), passes({ name: 'user' }, 'user')],
    ['another scheme', one, sending({ basic: 'good' }), passes(undefined)],
    ['a wrong one', one, sending({ user: 'bad' }), bad([BAD], 'user')],
    ['an expired one', one, sending({ user: 'old' }), bad([BAD], 'user')],
    ['a malformed one', one, sending({ user: 'a b' }), bad([BAD])],
    ['sent twice', one, { headers: { Authorization: ['Bearer good-user', 'Bearer good-user'] } }, bad([BAD])],
    ['8 KB and more', one, sending({ user: 'a'.repeat(8192) }), bad([BAD])],
    ['a scheme without a token', one, { headers: { Authorization: 'Bearer' } }, bad([BAD])],
    ['who is not allowed', one, sending({ user: 'low' }), refused(403, [LOW], 'user')],
    ['an outage is not anonymous', one, sending({ user: 'down' }), refused(503, [], 'user')],
    ['an exception is not anonymous', one, sending({ user: 'throw' }), refused(500, [], 'user')],
    ['one of two is a refusal', group, sending({ key: 'good' }), bad([USER], 'key')],
    ['the other of two', group, sending({ user: 'good' }), bad([KEY, USER])],
    ['none of two', group, sending({}), passes(undefined)],
    [
      'a write from another site with a good one',
      cookieLike,
      sending({ basic: 'good' }, crossSite),
      refused(403, [], 'basic'),
    ],
    [
      'a write from another site with a wrong one',
      cookieLike,
      sending({ basic: 'bad' }, crossSite),
      bad([BASIC], 'basic'),
    ],
    ['a write from another site without any', cookieLike, crossSite, passes(undefined)],
    [
      'a GET from another site with a wrong one',
      cookieLike,
      sending({ basic: 'bad' }, { headers: { 'Sec-Fetch-Site': 'cross-site' } }),
      bad([BASIC], 'basic'),
    ],
    [
      'in a group, where others must pass',
      allOf([key, one]),
      sending({ key: 'good' }),
      passes([{ name: 'key' }, undefined], 'key'),
    ],
    ['in a group, alone', allOf([key, one]), sending({ user: 'good' }), refused(401, [KEY, USER])],
  ])('%s', async (...row) => check(row))
})

describe('optional, last in a list', () => {
  const list = [user, optional(key)]
  const ambient = [basic, optional(key)]
  test.each<Row>([
    ['nothing sent', list, sending({}), passes(undefined)],
    ['a good one before it', list, sending({ user: 'good' }), passes({ name: 'user' }, 'user')],
    ['a good one in it', list, sending({ key: 'good' }), passes({ name: 'key' }, 'key')],
    [
      'a wrong one before it, a good one in it',
      list,
      sending({ user: 'bad', key: 'good' }),
      passes({ name: 'key' }, 'user', 'key'),
    ],
    ['a wrong one before it', list, sending({ user: 'bad' }), refused(401, [BAD, KEY], 'user')],
    ['a malformed one before it', list, sending({ user: 'a b' }), refused(401, [BAD, KEY])],
    ['who is not allowed, before it', list, sending({ user: 'low' }), refused(403, [LOW], 'user')],
    ['a write from another site', ambient, sending({ basic: 'good' }, crossSite), refused(403, [], 'basic')],
    [
      'both wrong, where a bad one in it counts as none',
      [user, lenient(key)],
      sending({ user: 'bad', key: 'bad' }),
      refused(401, [BAD, KEY], 'user', 'key'),
    ],
    [
      'the same, as a record',
      anyOf({ user, key: lenient(key) }),
      sending({ user: 'bad', key: 'bad' }),
      refused(401, [BAD, KEY], 'user', 'key'),
    ],
    [
      'a guest of an anonymous caller',
      [user, flatMap((p: unknown) => p ?? 'guest')(optional(key))],
      sending({ user: 'bad' }),
      refused(401, [BAD, KEY], 'user'),
    ],
    [
      'a guest, where a bad one counts as none',
      [user, flatMap((p: unknown) => p ?? 'guest')(lenient(key))],
      sending({ user: 'bad', key: 'bad' }),
      refused(401, [BAD, KEY], 'user', 'key'),
    ],
    ['an outage before it', list, sending({ user: 'down' }), refused(503, [], 'user')],
  ])('a bad credential is not anonymous: %s', async (...row) => check(row))
})

// A plain function does not say what it reads, so that it passed is all that can be known of its credential
describe('an optional group with a plain function in it', () => {
  const here = (request: { get: (name: string) => string }) => request.get('X-Here') === '1' && { from: 'here' }
  const group = optional(allOf([here, user]))
  test.each<Row>([
    ['the function has passed, the other was not sent', group, { headers: { 'X-Here': '1' } }, refused(401, [USER])],
    ['the function has not passed', group, sending({ user: 'good' }), refused(401, ['Custom realm="api"', USER])],
    [
      'both',
      group,
      sending({ user: 'good' }, { headers: { 'X-Here': '1' } }),
      passes([{ from: 'here' }, { name: 'user' }], 'user'),
    ],
  ])('one of two is a refusal: %s', async (...row) => check(row))
})

describe('anonymous callers, and what is made of an anonymous caller', () => {
  const anonymous = optional(key)
  const made = (f: (principal: unknown) => unknown) => flatMap(f)(anonymous)
  test.each<Row>([
    ['map: undefined is still anonymous', made(() => undefined), sending({}), passes(undefined)],
    [
      'map: undefined of somebody is a refusal',
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
    ['map: a guest', made((p) => p ?? 'guest'), sending({}), passes('guest')],
    [
      'describedAs: anonymous',
      pipe(
        anonymous,
        RTE.map((p) => p),
        describedAs(anonymous),
      ),
      sending({}),
      passes(undefined),
    ],
    [
      'describedAs: false of an anonymous caller',
      pipe(
        anonymous,
        RTE.map(() => false),
        describedAs(anonymous),
      ),
      sending({}),
      refused(401, [KEY]),
    ],
    [
      'describedAs: null of an anonymous caller',
      pipe(
        anonymous,
        RTE.map(() => null),
        describedAs(anonymous),
      ),
      sending({}),
      refused(401, [KEY]),
    ],
    [
      'describedAs what demands: undefined is a refusal',
      pipe(anonymous, describedAs(key)),
      sending({}),
      refused(401, [KEY]),
    ],
    [
      'a bare RTE of an anonymous caller is no caller’s credential',
      (r: never) => anonymous(r),
      sending({}),
      refused(401, ['Custom realm="api"']),
    ],
  ])('%s', async (...row) => check(row))
})

describe('what a hook says of itself', () => {
  test('a challenge of its own is the one that is offered, behind those before it', async () => {
    const odd = { ...AuthError.invalid, challenge: Challenge.make('Odd', { say: 'a "quoted", word' }) }
    const { ask } = await behind(allOf([key, () => E.left(odd), user]))
    expect((await ask('/x', sending({ key: 'good' }))).challenges).toEqual([
      'Odd realm="api", say="a \\"quoted\\", word"',
      USER,
    ])
  })
})
