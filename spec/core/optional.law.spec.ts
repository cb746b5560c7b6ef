/**
 * `optional`, `lenient` and `firstPresent`: a caller without credentials is anonymous, and the credential that was sent
 * decides.
 */
import { either as E, readerTaskEither as RTE } from 'fp-ts'
import { pipe } from 'fp-ts/lib/function.js'
import fc from 'fast-check'
import { AuthError, optional } from 'koa-with-auth'
import { describedAs, firstPresent, fromFunction, lenient, flatMap } from 'koa-with-auth/fp'
import { mockRequest } from 'koa-with-auth/testing'
import { describe, expect, it } from 'vitest'
import { make } from '../../src/core/Authenticator.js'
import { Attempt, showObjects } from '../../src/core/Exchange.js'
import { tree } from '../support/models/trees.js'
import { essence, leaf, run } from '../support/models/treeRuns.js'
import { runs } from '../support/runs/samples.js'
import { row } from '../support/models/row.js'

describe('optional', () => {
  const both = { optional, lenient }
  it.each([
    ['optional', 'optional', 'optional'],
    ['lenient', 'lenient', 'lenient'],
    ['optional', 'lenient', 'lenient'],
    ['lenient', 'optional', 'lenient'],
  ] as const)('%s of %s is %s: idempotent, and lenient wins', async (outer, inner, same) => {
    await fc.assert(
      fc.asyncProperty(tree, async (of) => {
        const twice = await run([of], (a) => both[outer](both[inner](a)))
        const once = await run([of], (a) => both[same](a))
        expect([twice.result, twice.calls]).toStrictEqual([once.result, once.calls])
      }),
    )
  })
})

it.each([
  ['absent', true, true],
  ['malformed', false, true],
  ['invalid', false, true],
  ['expired', false, true],
  ['forged', false, false],
  ['insufficient', false, false],
  ['unavailable', false, false],
] as const)('a credential that is %s leaves anonymous: optional %s, lenient %s', async (outcome, ...expected) => {
  const sent = outcome === 'absent' ? 'nothing' : 'value'
  const of = [optional, lenient].map((around) => run([leaf('l0', { sent, outcome })], (a) => around(a)))
  expect((await Promise.all(of)).map(({ result }) => E.isRight(result))).toStrictEqual(expected)
})

it('an anonymous caller has no objects, also if some were found', async () => {
  const request = mockRequest()
  const finding = make(fromFunction(() => 1).description, () => {
    showObjects(request, { note: 1 })
    return E.left(AuthError.absent)
  })
  // within a decision, which no other restores
  expect(await optional(finding).evaluate(request, new Attempt(request))).toStrictEqual(E.right(undefined))
  expect(request).not.toHaveProperty('objects', { note: 1 })
})

const raise = (): never => {
  throw new Error('bug')
}

describe('an anonymous principal', () => {
  const absent = leaf('l0', { sent: 'nothing', outcome: 'absent' })
  it.each([
    row('anonymous', () => undefined, E.right(undefined)),
    row('a promise of an anonymous caller', async () => undefined, E.right(undefined)),
    // `then` makes it a promise: decision "promise-like answers"
    row('a thenable of it', () => ({ then: (go: (none: undefined) => void) => go(undefined) }), E.right(undefined)),
    row('somebody', () => 'a guest', E.right('a guest')),
    row('a promise of null', async () => null, { left: { _tag: 'invalid' } }),
    ...[false, null, 0, '', NaN, []].map((falsy) => row(String(falsy), () => falsy, { left: { _tag: 'invalid' } })),
  ])('flatMap that returns $description for an anonymous caller', async ({ input, expected }) => {
    const make: () => unknown = input
    const { result } = await run([absent], (a) => flatMap(make)(optional(a)))
    expect(result).toMatchObject(expected)
  })

  it('flatMap that returns undefined for a known principal is refused', async () => {
    const { result } = await run([leaf('l0')], (a) => flatMap(() => undefined)(optional(a)))
    expect(result).toMatchObject(E.left({ _tag: 'invalid' }))
  })

  it('describedAs(a)(RTE.map(identity)(a)) is a, also if anonymous callers are admitted', async () => {
    await fc.assert(
      fc.asyncProperty(tree, async (of) => {
        // A read, because the check for CSRF does not concern it
        const plain = await run([of], (a) => a, 'GET')
        const identically = RTE.map((x: unknown) => x)
        const restored = await run([of], (a) => pipe(a, identically, describedAs(a)), 'GET')
        expect(essence(restored.result)).toStrictEqual(essence(plain.result))
        expect([restored.calls, restored.description]).toStrictEqual([plain.calls, plain.description])
      }),
      { numRuns: runs(300) },
    )
  })

  it('describedAs(a) of a Right of undefined is refused, except if a is optional', async () => {
    const nothing = RTE.of(undefined)
    const [strict, kind] = await Promise.all([
      run([leaf('l0')], (a) => describedAs(a)(nothing), 'GET'),
      run([leaf('l0')], (a) => describedAs(optional(a))(nothing), 'GET'),
    ])
    expect(strict.result).toMatchObject(E.left({ _tag: 'invalid' }))
    expect(kind.result).toStrictEqual(E.right(undefined))
  })

  it.each<[string, () => () => Promise<never>]>([
    ['throws', raise],
    ['returns a task that throws', () => raise],
    ['rejects', () => () => Promise.reject(new Error('bug'))],
  ])('A-30 describedAs(optional(a)) of an RTE that %s is an exception: the caller is not anonymous', async (_, rte) => {
    const { result } = await run([absent], (a) => describedAs(optional(a))(rte))
    expect(result).toMatchObject(E.left({ _tag: 'raised' }))
  })

  it('an anonymous caller is not forged, because the request has no credential', async () => {
    const cookie = leaf('l0', { sent: 'nothing', outcome: 'forged' })
    const { result } = await run([cookie], (a) => describedAs(optional(a))(RTE.of(undefined)))
    expect(result).toStrictEqual(E.right(undefined))
  })
})

describe('firstPresent', () => {
  it('a bad credential is never hidden by a valid one of a later member', async () => {
    for (const outcome of ['malformed', 'invalid', 'expired', 'insufficient'] as const) {
      const { result, calls } = await run([leaf('bad', { outcome }), leaf('good')], (a, b) => firstPresent([a, b]))
      expect(result).toMatchObject(E.left({ _tag: outcome }))
      expect(calls).toStrictEqual(['bad'])
    }
  })
})
