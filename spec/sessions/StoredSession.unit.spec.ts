/** What is known of the ids of a session in one request. */
import { expect, it } from 'vitest'
import { StoredSession } from '../../src/sessions/StoredSession.js'

const untouched = { isWritten: false, isEnded: false }

it('an id that was read is known by what was read, also if another one is read, written or ended later', () => {
  const stored = new StoredSession()
  expect([...stored.ids]).toStrictEqual([])
  stored.read('one', 'text of one')
  stored.read('two', 'text of two')
  stored.wrote('two')
  stored.wrote('three')
  stored.ended('one')
  stored.ended('nothing is known of it')
  expect([...stored.ids]).toStrictEqual([
    ['one', { textRead: 'text of one', isWritten: false, isEnded: true }],
    ['two', { textRead: 'text of two', isWritten: true, isEnded: false }],
    ['three', { textRead: undefined, isWritten: true, isEnded: false }],
  ])
})

it('an id that is read again is known by what was read last', () => {
  const stored = new StoredSession()
  stored.wrote('one')
  stored.read('one', 'first')
  stored.read('one', 'second')
  expect([...stored.ids]).toStrictEqual([['one', { textRead: 'second', ...untouched }]])
})
