/** Calling an authenticator and evaluating it agree, for every combinator; neither ever throws. */
import { either as E, option as O, readerTaskEither as RTE } from 'fp-ts'
import { pipe } from 'fp-ts/lib/function.js'
import fc from 'fast-check'
import { allOf, also, anyOf, AuthError, authenticator, authorize, Challenge } from 'koa-with-auth'
import { altW, describedAs, firstPresent, fromFunction } from 'koa-with-auth/fp'
import { optional, requireScopes } from 'koa-with-auth'
import { isAuthenticator, lenient, flatMap, recoverUnavailable, timeout } from 'koa-with-auth/fp'
import type { Authenticator } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import * as Requirement from '../../src/core/Requirement.js'
import { welcomes } from '../support/models/evaluator.js'
import { hostile } from '../support/sites/hostile.js'
import { mockRequest } from 'koa-with-auth/testing'
import { build, tree } from '../support/models/trees.js'
import { leaf, requestOf, run } from '../support/models/treeRuns.js'
import { runs } from '../support/runs/samples.js'

type Make = (a: Authenticator<unknown>) => Authenticator<unknown>

const other = build(leaf('other', { outcome: 'expired' }))
const below = (requirement: Requirement.Requirement): Authenticator<unknown> =>
  Requirement.effective(requirement) ?? fromFunction(() => 'anyone')

/** Every combinator, around an authenticator that demands something. */
const combinators: Readonly<Record<string, Make>> = {
  itself: (a) => a,
  map: flatMap((x) => ({ x })),
  altW: altW(() => other),
  'anyOf of a list': (a) => anyOf([a, other]),
  'anyOf of a record': (a) => anyOf({ a, other }),
  'allOf of a list': (a) => allOf([a, other]),
  'allOf of a record': (a) => allOf({ a }),
  'firstPresent of a list': (a) => firstPresent([other, a]),
  'firstPresent of a record': (a) => firstPresent({ a }),
  optional,
  lenient,
  authorize: authorize(() => true),
  'authorize, denied': authorize(() => Promise.resolve(false)),
  requireScopes: requireScopes(['read'], { granted: () => 'read write' }),
  timeout: timeout(10_000),
  recoverUnavailable: recoverUnavailable(() => Promise.resolve('cached')),
  describedAs: (a) => pipe(a, RTE.map(String), describedAs(a)),
  'also under nothing': (a) => below(also(a)),
  'also under require': (a) => below(Requirement.Monoid.concat(Requirement.guardedBy(other), also(a))),
}

const requestOfTree = tree.filter((of) => !welcomes(of))

describe.each(Object.entries(combinators))('%s', (_name, make) => {
  it('calling and evaluating agree: the result and the calls of hooks; no hook is called before the Task runs', async () => {
    await fc.assert(
      fc.asyncProperty(requestOfTree, async (of) => {
        const evaluated = await run([of], make)
        const calls: string[] = []
        const made = make(build(of, calls))
        expect(isAuthenticator(made)).toBe(true)
        const task = made(requestOf([of]))
        expect(calls).toStrictEqual([])
        expect(await task()).toStrictEqual(evaluated.result)
        expect(calls).toStrictEqual(evaluated.calls)
      }),
      { numRuns: 60 },
    )
  })

  it('A-30 A-31 never throws or rejects, and admits no falsy principal except an anonymous caller, whatever the hook does', async () => {
    await fc.assert(
      fc.asyncProperty(hostile, async ({ hook }) => {
        const made = make(fromFunction(() => hook()))
        for (const result of [await made.evaluate(mockRequest()), await made(mockRequest())()]) {
          if (E.isLeft(result)) expect(AuthError.is(result.left)).toBe(true)
          else if (make !== optional && make !== lenient) expect(Boolean(result.right)).toBe(true)
        }
      }),
      { numRuns: 60 },
    )
  })
})

describe('functions that are given to combinators', () => {
  const anna = fromFunction(() => 'anna')
  const down = fromFunction(() => E.left(AuthError.unavailable()))
  const sent = { challenge: Challenge.make('Test'), ambient: true, extract: () => O.some('sent') }
  const places: Readonly<Record<string, (hook: () => unknown) => Authenticator<unknown>>> = {
    'a kind': (hook) => authenticator({ ...sent, authenticate: () => hook() }),
    map: (hook) => flatMap(() => hook())(anna),
    'map of a promise': (hook) => flatMap(() => hook())(fromFunction(() => Promise.resolve('anna'))),
    // Safe: a caller without types could pass this
    describedAs: (hook) => describedAs(anna)((() => hook()) as never),
    'describedAs, later': (hook) => describedAs(anna)((() => () => hook()) as never),
    authorize: (hook) => authorize(() => hook() as boolean)(anna),
    recoverUnavailable: (hook) => recoverUnavailable(() => hook())(down),
    'map of an anonymous caller': (hook) =>
      flatMap(() => hook())(optional(fromFunction(() => E.left(AuthError.absent)))),
  }
  it.each(Object.entries(places))(
    'A-30 A-31 whatever %s gets as a result, or from a Task of its result, it never throws or rejects',
    async (name, make) => {
      await fc.assert(
        fc.asyncProperty(hostile, fc.constantFrom('itself', 'Task', 'late Task'), async ({ hook }, as) => {
          const task = () => () => (as === 'late Task' ? Promise.resolve().then(hook) : hook())
          const made = make(as === 'itself' ? hook : task)
          for (const result of [await made.evaluate(mockRequest()), await made(mockRequest())()]) {
            if (E.isLeft(result)) expect(AuthError.is(result.left)).toBe(true)
            else if (name === 'authorize') expect(result.right).toBe('anna')
            else if (name === 'map of an anonymous caller')
              expect(result.right === undefined || Boolean(result.right)).toBe(true)
            else expect(Boolean(result.right)).toBe(true)
          }
        }),
        { numRuns: runs(300) },
      )
    },
  )
})
