/**
 * Every combinator over HTTP: status, challenges in order, body, who is let in, which hooks were asked, and that no denied
 * request ran its handler.
 */
import { allOf, anyOf, firstPresent, optional } from 'koa-with-auth'
import { describe, test } from 'vitest'
import { basic, check, crossSite, key, offers, passes, refused, sending, user, type Row } from '../support/combining.js'

const { key: KEY, user: USER, badUser: BAD, lowUser: LOW, basic: BASIC } = offers
const both = { key: { name: 'key' }, user: { name: 'user' } }

const list = allOf([key, user])
const record = allOf({ key, user })

describe('allOf', () => {
  test.each<Row>([
    ['nothing sent', list, sending({}), refused(401, [KEY, USER])],
    ['the second alone', list, sending({ user: 'good' }), refused(401, [KEY, USER])],
    [
      'the first alone: what had passed is not asked for again',
      list,
      sending({ key: 'good' }),
      refused(401, [USER], 'key'),
    ],
    ['both', list, sending({ key: 'good', user: 'good' }), passes([both.key, both.user], 'key', 'user')],
    ['both, as a record', record, sending({ key: 'good', user: 'good' }), passes(both, 'key', 'user')],
    ['a wrong second', list, sending({ key: 'good', user: 'bad' }), refused(401, [BAD], 'key', 'user')],
    ['a malformed second', list, sending({ key: 'good', user: 'a b' }), refused(401, [BAD], 'key')],
    [
      'a wrong first: the second is not asked',
      list,
      sending({ key: 'bad', user: 'good' }),
      refused(401, [KEY, USER], 'key'),
    ],
    ['both wrong', list, sending({ key: 'bad', user: 'bad' }), refused(401, [KEY, USER], 'key')],
    ['an outage in the second', list, sending({ key: 'good', user: 'down' }), refused(503, [], 'key', 'user')],
    ['an outage in the first', list, sending({ key: 'down', user: 'good' }), refused(503, [], 'key')],
    ['an exception in the second', list, sending({ key: 'good', user: 'throw' }), refused(500, [], 'key', 'user')],
    ['who is not allowed, second', list, sending({ key: 'good', user: 'low' }), refused(403, [LOW], 'key', 'user')],
    ['one of one', allOf([user]), sending({ user: 'good' }), passes([both.user], 'user')],
    ['the same twice offers one challenge', allOf([user, user]), sending({}), refused(401, [USER])],
    [
      'nested, the last missing',
      allOf([list, basic]),
      sending({ key: 'good', user: 'good' }),
      refused(401, [BASIC], 'key', 'user'),
    ],
    ['nested, the first missing', allOf([list, basic]), sending({ basic: 'good' }), refused(401, [KEY, USER, BASIC])],
    [
      'a browser made to send one of them',
      allOf([basic, key]),
      sending({ key: 'good', basic: 'good' }, crossSite),
      refused(403, [], 'basic'),
    ],
  ])('%s', async (...row) => check(row))
})

describe('anyOf and groups in it', () => {
  const either = anyOf([record, basic])
  test.each<Row>([
    ['nothing sent offers all', either, sending({}), refused(401, [KEY, USER, BASIC])],
    [
      'half a group, and the other alternative',
      either,
      sending({ key: 'good', basic: 'good' }),
      passes({ name: 'basic' }, 'key', 'basic'),
    ],
    ['half a group alone', either, sending({ key: 'good' }), refused(401, [USER, BASIC], 'key')],
    [
      'a record tells who won',
      anyOf({ record, basic }),
      sending({ basic: 'good' }),
      passes({ via: 'basic', principal: { name: 'basic' } }, 'basic'),
    ],
    [
      'an outage in a group stops the list',
      anyOf([record, key]),
      sending({ key: 'good', user: 'down' }),
      refused(503, [], 'key', 'user'),
    ],
  ])('%s', async (...row) => check(row))
})

describe('firstPresent', () => {
  const first = firstPresent([user, key])
  test.each<Row>([
    ['nothing sent', first, sending({}), refused(401, [USER, KEY])],
    ['the first', first, sending({ user: 'good' }), passes({ name: 'user' }, 'user')],
    ['the second', first, sending({ key: 'good' }), passes({ name: 'key' }, 'key')],
    [
      'a wrong first is not hidden by a good second',
      first,
      sending({ user: 'bad', key: 'good' }),
      refused(401, [BAD, KEY], 'user'),
    ],
    ['a malformed first is present', first, sending({ user: 'a b', key: 'good' }), refused(401, [BAD, KEY])],
    ['an expired first', first, sending({ user: 'old', key: 'good' }), refused(401, [BAD, KEY], 'user')],
    [
      'a good first beside a wrong second',
      first,
      sending({ user: 'good', key: 'bad' }),
      passes({ name: 'user' }, 'user'),
    ],
    ['who is not allowed', first, sending({ user: 'low', key: 'good' }), refused(403, [LOW], 'user')],
    ['an outage', first, sending({ user: 'down', key: 'good' }), refused(503, [], 'user')],
    ['an exception', first, sending({ user: 'throw', key: 'good' }), refused(500, [], 'user')],
    [
      'another scheme is another credential',
      first,
      sending({ basic: 'good', key: 'good' }),
      passes({ name: 'key' }, 'key'),
    ],
    [
      'half a group is present',
      firstPresent([record, basic]),
      sending({ key: 'good', basic: 'good' }),
      refused(401, [USER, BASIC], 'key'),
    ],
    [
      'a browser made to send the first',
      firstPresent([basic, key]),
      sending({ basic: 'good', key: 'good' }, crossSite),
      refused(403, [], 'basic'),
    ],
    [
      'a record tells who decided',
      firstPresent({ user, key }),
      sending({ key: 'good' }),
      passes({ via: 'key', principal: { name: 'key' } }, 'key'),
    ],
    ['anonymous, where the last is optional', firstPresent([user, optional(key)]), sending({}), passes(undefined)],
    [
      'a wrong one, where the last is optional',
      firstPresent([user, optional(key)]),
      sending({ user: 'bad' }),
      refused(401, [BAD, KEY], 'user'),
    ],
  ])('%s', async (...row) => check(row))
})
