/** C-01: the path that follows, where a request names it, and mistakes with `begin` and `finish`. */
import { begin, finish, localPath, normalizeEmail, type Kind } from 'koa-with-auth/sign-in'
import { describe, expect, it } from 'vitest'
import { memoryStore } from 'koa-with-auth/stores'
import { typedCode } from '../../src/sign-in/Kind.js'
import { finishedHere, returnToIn, type Visit } from '../../src/sign-in/request.js'
import { stoppedClock } from '../support/runs/clock.js'

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

it('what is typed has at most 128 characters, and a mail address 254, without ten blanks', () => {
  expect([typedCode('1'.repeat(128))?.length, typedCode('1'.repeat(129))]).toEqual([128, undefined])
  const longest = `${'a'.repeat(64)}@${'b'.repeat(189)}`
  const tried = [longest.padStart(264), longest.padStart(265), `${longest}b`, `a${longest.slice(0, -1)}`]
  expect(tried.map(normalizeEmail)).toEqual([longest, undefined, undefined, undefined])
})

it('a session holds the last thirty of the ceremonies that it finished, and a process each for five seconds', async () => {
  const clock = stoppedClock()
  const finished = Array.from({ length: 30 }, (_, at) => String(at))
  const bound: unknown[] = []
  const session = { details: () => ({ finished }), bindAnew: (_ctx: unknown, next: unknown) => bound.push(next) }
  // Safe: nothing else of a visit is read
  const visit = { session, host: { finished: new Map(), store: memoryStore(), name: 'shop' } } as object as Visit
  const here = finishedHere(visit, { lifetime: 1 })
  await here.add('the newest', 'anna')
  clock.move(4999)
  expect([await here.has('the newest'), await here.has('0'), await here.has('another')]).toEqual([true, true, false])
  clock.move(1)
  expect(await here.has('the newest')).toBe(false)
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
