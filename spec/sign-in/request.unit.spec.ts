/** C-01: the path that follows, where a request names it, and mistakes with `begin` and `finish`. */
import { begin, finish, localPath, type Kind } from 'koa-with-auth/sign-in'
import { describe, expect, it } from 'vitest'
import { memoryStore } from 'koa-with-auth/stores'
import { finishedHere, returnToIn, type Visit } from '../../src/sign-in/request.js'

it.each([
  ['/a', undefined, '/a'],
  [undefined, '/a', '/a'],
  ['/a', '/a', '/a'],
  ['/a', '/b', undefined],
  ['/a&returnTo=/a', undefined, undefined],
  ['/a&returnTo=/b', '/a', undefined],
  [undefined, ['/a', '/b'], ['/a', '/b']],
  [undefined, undefined, undefined],
  ['/a', null, '/a'],
])('a path that follows, %j in the query and %j in the body, is %j', (inQuery, inBody, expected) => {
  const query = new URLSearchParams(inQuery === undefined ? '' : `returnTo=${inQuery}`)
  expect(returnToIn(inBody === undefined ? {} : { returnTo: inBody }, query)).toEqual(expected)
})

it('a session holds the last thirty of the ceremonies that it finished', async () => {
  const finished = Array.from({ length: 30 }, (_, at) => String(at))
  const bound: unknown[] = []
  const session = { details: () => ({ finished }), bindAnew: (_ctx: unknown, next: unknown) => bound.push(next) }
  // Safe: nothing else of a visit is read
  const visit = { session, host: { finished: new Map(), store: memoryStore(), name: 'shop' } } as object as Visit
  await finishedHere(visit, { lifetime: 1 }).add('the newest', 'anna')
  expect(bound).toEqual([{ finished: [...finished.slice(1), 'the newest'] }])
})

describe('C-01 mistakes', () => {
  it('an intent that the kind is not good for, and what is no kind, are TypeErrors', () => {
    // Safe: nothing of it is asked
    const kind = { name: 'op', lifetime: 1, begin: localPath, read: localPath, check: localPath } as unknown as Kind<
      never,
      null,
      string
    >
    expect(() => begin(kind, { intent: 'reset' })).toThrow('op has the intents signIn, link, stepUp, not reset')
    expect(() => begin({} as typeof kind)).toThrow('must be a kind')
    expect(() => finish(kind, undefined as never)).toThrow('must be a function')
    expect(() => begin(kind, { intnt: 'link' } as never)).toThrow('no option "intnt"')
  })
})
