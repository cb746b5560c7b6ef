/** How long the session of a sign-in lasts, as values or as functions of what has come in. */
import { expect, it } from 'vitest'
import { lifetimesFor } from '../../src/sign-in/Lifetimes.js'

it.each<[object, object]>([
  [{}, {}],
  [
    { idle: 1000, absolute: 2000, persistent: false },
    { idle: 1000, absolute: 2000, persistent: false },
  ],
  [
    { idle: ({ ms }: { ms: number }) => ms, persistent: () => true },
    { idle: 7000, persistent: true },
  ],
  [{ idle: () => false, absolute: () => undefined, persistent: () => undefined }, {}],
])('%s', (options, expected) => {
  expect(lifetimesFor('finish', options, { ms: 7000 })).toStrictEqual(expected)
})

it.each(['idle', 'absolute', 'persistent'])('a function for %s whose promise rejects ends no process', async (name) => {
  const promised = () => Promise.reject(new Error('no'))
  expect(() => lifetimesFor('finish', { [name]: promised }, {})).toThrow(TypeError)
  await new Promise(setImmediate)
})

it.each([
  ['idle', '1000'],
  ['idle', null],
  ['absolute', -1],
  ['absolute', Infinity],
  ['absolute', true],
  ['persistent', 'yes'],
  ['persistent', Promise.resolve(true)],
])('a function for %s that returns %j is a TypeError', (name, value) => {
  expect(() => lifetimesFor('finish', { [name]: () => value }, {})).toThrow(TypeError)
})
