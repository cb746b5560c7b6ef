/** The records of a request and of a decision: what nothing wrote is not there, and what a hook is told, charges or uses counts once. */
import { either as E } from 'fp-ts'
import { anyOf, AuthError, type Authenticator } from 'koa-with-auth'
import { fromFunction } from 'koa-with-auth/fp'
import { mockRequest } from 'koa-with-auth/testing'
import { describe, expect, it } from 'vitest'
import { make } from '../../src/core/Authenticator.js'
import { accept, evidence, evidenceOf, restsOn, type Charge } from '../../src/core/Evidence.js'
import {
  askHook,
  Attempt,
  attemptOf,
  charged,
  Exchange,
  exchangeOf,
  showObjects,
  shownObjects,
  tell,
} from '../../src/core/Exchange.js'
import { usedFor } from '../../src/core/OneTimeIds.js'
import { pollute } from '../support/runs/pollute.js'

it.each([
  ['request', () => new Exchange()],
  ['decision', () => new Attempt(mockRequest())],
])('a field that every object inherits is not in the record of a %s', (_what, make) => {
  pollute({ isUncounted: true })
  expect(Boolean(Reflect.get(make(), 'isUncounted'))).toBe(false)
})

describe('what a hook is told', () => {
  const source = () => ({ endFor: () => undefined })
  const [ofAnna, ofBob] = [source(), source()]
  const { description } = fromFunction(() => 'anna')
  const anna = make(description, ({ request }) => {
    showObjects(request, { note: 1 })
    return accept('anna', restsOn(ofAnna))
  })
  const bob = make(description, () => accept('bob', restsOn(ofBob)))
  const decided = async (member: Authenticator<unknown>, request = mockRequest()) => {
    const attempt = new Attempt(request)
    exchangeOf(request.ctx).attempt = attempt
    const result = await member.evaluate(request, attempt)
    return [result, evidenceOf(result).accepted, shownObjects(request)] as const
  }

  it('of the authenticators that it calls, those count that let in its principal, and none shows its objects', async () => {
    const asking = fromFunction(async (request) => {
      for (const one of [anna, bob]) await one.evaluate(request)
      return 'anna'
    })
    expect(await decided(asking)).toStrictEqual([E.right('anna'), [ofAnna], undefined])
  })

  it('ends with its own answer: another hook was not told, nor is one that is asked after a time limit', async () => {
    const refusing = fromFunction(async (request) => (await anna.evaluate(request), false))
    const list = anyOf([refusing, fromFunction(() => 'anna')])
    expect(await decided(list)).toStrictEqual([E.right('anna'), [], undefined])
    const attempt = new Attempt(mockRequest())
    askHook(attempt)
    const { asked } = attempt
    askHook(attempt)
    tell(attempt, asked, accept('anna', restsOn(ofAnna)))
    expect(attempt.told).toBe(undefined)
  })

  it.each([
    ['itself', (user: object) => user],
    ['in a promise', async (user: object) => user],
    ['as a Right', (user: object) => E.right(user)],
    ['as a task', (user: object) => async () => E.right(user)],
  ])('a principal that says when it ends does so, if the hook returns it %s', async (_how, given) => {
    const [, accepted] = await decided(fromFunction(() => given({ expiresAt: 1000 })))
    expect(accepted.map((one) => one.endFor(mockRequest())?.at)).toEqual([1000])
  })

  it('a decision of another request is not asked for', async () => {
    const request = mockRequest()
    // middleware made another request for the same context
    exchangeOf(request.ctx).attempt = new Attempt(mockRequest())
    expect(attemptOf(request)).toBe(undefined)
    expect(await anna.evaluate(request, new Attempt(mockRequest()))).toStrictEqual(E.right('anna'))
    expect(shownObjects(request)).toBe(undefined)
  })
})

describe('charges', () => {
  const taken: string[] = []
  const charge =
    (name: string, refusal?: AuthError): Charge =>
    async () => {
      taken.push(name)
      return { refusal, takeBack: () => taken.push(`${name} back`) }
    }
  const of = (...charges: ReadonlyArray<Charge>) => accept('anna', evidence({ charges }))

  it.each([
    ['each is charged once', [charge('a'), charge('b')], ['a', 'b'], E.right('anna')],
    [
      'none is charged after the first that refuses, and those before are given back',
      [charge('a'), charge('b', AuthError.throttled(1)), charge('c')],
      ['a', 'b', 'a back'],
      E.left(AuthError.throttled(1)),
    ],
  ])('%s; without counting, none is', async (_rule, charges, asked, expected) => {
    taken.length = 0
    const result = await charged(of(...charges), new Attempt(mockRequest()))
    expect([result, taken]).toStrictEqual([expected, asked])
    expect(await charged(result, new Attempt(mockRequest()))).toBe(result)
    const uncounted = new Attempt(mockRequest())
    uncounted.isUncounted = true
    const given = of(...charges)
    expect([charged(given, uncounted), taken]).toStrictEqual([given, asked])
  })
})

describe('an id that is used once', () => {
  const { req } = mockRequest()
  const ids = { use: async (id: string) => id !== 'used' }

  it('counts once for a request, and nothing but true is a first use', async () => {
    const first = usedFor(req, ids, 'a', 1)
    expect(usedFor(req, ids, 'a', 1)).toBe(first)
    expect(await first).toStrictEqual(E.right(true))
    expect(await usedFor(req, ids, 'used', 1)).toBe(undefined)
    // Safe: a store of the application may answer this
    expect(await usedFor(req, { use: (async () => 1) as never }, 'a', 1)).toBe(undefined)
  })

  it('is an outage if the store fails', async () => {
    const failing = { use: () => Promise.reject(new Error('down')) }
    expect(await usedFor(req, failing, 'a', 1)).toStrictEqual(E.left(AuthError.unavailable()))
  })
})
