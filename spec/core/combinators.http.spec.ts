/**
 * Every combinator over HTTP: status, challenges in order, body, the principal, which hooks were called, and that no
 * refused request ran its handler.
 */
import { allOf, anyOf, optional } from 'koa-with-auth'
import { firstPresent } from 'koa-with-auth/fp'
import { describe, test } from 'vitest'
import {
  basic,
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
const both = { key: { name: 'key' }, user: { name: 'user' } }

const list = allOf([key, user])
const record = allOf({ key, user })

describe('allOf', () => {
  test.each<Row>([
    ['no credential', list, sending({}), refused(401, [KEY, USER])],
    ['only the second credential', list, sending({ user: 'good' }), refused(401, [KEY, USER])],
    [
      'only the first credential, whose challenge is not offered',
      list,
      sending({ key: 'good' }),
      refused(401, [USER], 'key'),
    ],
    ['both', list, sending({ key: 'good', user: 'good' }), passes([both.key, both.user], 'key', 'user')],
    ['both credentials, in an object', record, sending({ key: 'good', user: 'good' }), passes(both, 'key', 'user')],
    ['a wrong second credential', list, sending({ key: 'good', user: 'bad' }), refused(401, [BAD], 'key', 'user')],
    ['a malformed second credential', list, sending({ key: 'good', user: 'a b' }), refused(401, [BAD], 'key')],
    [
      'a wrong first credential: the second hook is not called',
      list,
      sending({ key: 'bad', user: 'good' }),
      refused(401, [KEY, USER], 'key'),
    ],
    ['two wrong credentials', list, sending({ key: 'bad', user: 'bad' }), refused(401, [KEY, USER], 'key')],
    ['an outage in the second', list, sending({ key: 'good', user: 'down' }), refused(503, [], 'key', 'user')],
    ['an outage in the first', list, sending({ key: 'down', user: 'good' }), refused(503, [], 'key')],
    ['an exception in the second', list, sending({ key: 'good', user: 'throw' }), refused(500, [], 'key', 'user')],
    [
      'a second principal that is not allowed',
      list,
      sending({ key: 'good', user: 'low' }),
      refused(403, [LOW], 'key', 'user'),
    ],
    ['a group of one', allOf([user]), sending({ user: 'good' }), passes([both.user], 'user')],
    ['a member that occurs twice offers one challenge', allOf([user, user]), sending({}), refused(401, [USER])],
    [
      'a nested group without the last credential',
      allOf([list, basic]),
      sending({ key: 'good', user: 'good' }),
      refused(401, [BASIC], 'key', 'user'),
    ],
    [
      'a nested group without the first credential',
      allOf([list, basic]),
      sending({ basic: 'good' }),
      refused(401, [KEY, USER, BASIC]),
    ],
    [
      'a write from another site with a credential that browsers send',
      allOf([basic, key]),
      sending({ key: 'good', basic: 'good' }, crossSite),
      refused(403, [], 'basic'),
    ],
  ])('%s', async (...row) => check(row))
})

describe('anyOf with groups', () => {
  const either = anyOf([record, basic])
  test.each<Row>([
    ['no credential: all challenges are offered', either, sending({}), refused(401, [KEY, USER, BASIC])],
    [
      'half of a group, and the credential of the other alternative',
      either,
      sending({ key: 'good', basic: 'good' }),
      passes({ name: 'basic' }, 'key', 'basic'),
    ],
    ['only half of a group', either, sending({ key: 'good' }), refused(401, [USER, BASIC], 'key')],
    [
      'an object reports who passed',
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
    ['no credential', first, sending({}), refused(401, [USER, KEY])],
    ['the first credential', first, sending({ user: 'good' }), passes({ name: 'user' }, 'user')],
    ['the second credential', first, sending({ key: 'good' }), passes({ name: 'key' }, 'key')],
    [
      'a wrong first credential refuses, even with a valid second one',
      first,
      sending({ user: 'bad', key: 'good' }),
      refused(401, [BAD, KEY], 'user'),
    ],
    ['a malformed first credential is present', first, sending({ user: 'a b', key: 'good' }), refused(401, [BAD, KEY])],
    ['an expired first credential', first, sending({ user: 'old', key: 'good' }), refused(401, [BAD, KEY], 'user')],
    [
      'a valid first credential, and a wrong second one',
      first,
      sending({ user: 'good', key: 'bad' }),
      passes({ name: 'user' }, 'user'),
    ],
    ['a principal that is not allowed', first, sending({ user: 'low', key: 'good' }), refused(403, [LOW], 'user')],
    ['an outage', first, sending({ user: 'down', key: 'good' }), refused(503, [], 'user')],
    ['an exception', first, sending({ user: 'throw', key: 'good' }), refused(500, [], 'user')],
    [
      'the credential of another scheme counts as absent',
      first,
      sending({ basic: 'good', key: 'good' }),
      passes({ name: 'key' }, 'key'),
    ],
    [
      'half of a group is present',
      firstPresent([record, basic]),
      sending({ key: 'good', basic: 'good' }),
      refused(401, [USER, BASIC], 'key'),
    ],
    [
      'a write from another site with a first credential that browsers send',
      firstPresent([basic, key]),
      sending({ basic: 'good', key: 'good' }, crossSite),
      refused(403, [], 'basic'),
    ],
    [
      'an object reports who decided',
      firstPresent({ user, key }),
      sending({ key: 'good' }),
      passes({ via: 'key', principal: { name: 'key' } }, 'key'),
    ],
    [
      'no credential, and the last member is optional',
      firstPresent([user, optional(key)]),
      sending({}),
      passes(undefined),
    ],
    [
      'a wrong credential, and the last member is optional',
      firstPresent([user, optional(key)]),
      sending({ user: 'bad' }),
      refused(401, [BAD, KEY], 'user'),
    ],
  ])('%s', async (...row) => check(row))
})
