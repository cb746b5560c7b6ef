/** `authorize` and `requireScopes`: an authenticated caller may not be allowed. */
import { either as E, option as O } from 'fp-ts'
import { pipe } from 'fp-ts/lib/function.js'
import fc from 'fast-check'
import { AuthError, authorize, httpBearer, requireScopes } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { alternativesOf } from '../../src/core/Alternative.js'
import { welcomes } from '../support/models/evaluator.js'
import { mockRequest } from 'koa-with-auth/testing'
import { tree } from '../support/models/trees.js'
import { essence, leaf, run } from '../support/models/treeRuns.js'
import { occurring, runs } from '../support/runs/samples.js'

const demanding = tree.filter((of) => !welcomes(of))
const late = fc.boolean()
const answer = (allowed: boolean, isLate: boolean) => (isLate ? Promise.resolve(allowed) : allowed)

const raise = (): never => {
  throw new Error('read')
}
class Yes extends Set<string> {
  override has(): boolean {
    return true
  }
}

describe('authorize', () => {
  it('twice is like once with both: the inner function is called first, the outer one only if it allowed', async () => {
    await fc.assert(
      fc.asyncProperty(demanding, fc.func(fc.boolean()), fc.func(fc.boolean()), late, async (of, f, g, isLate) => {
        const asked: unknown[] = []
        const twice = await run([of], (a) =>
          pipe(
            a,
            authorize((p) => answer(f(p), isLate)),
            authorize((p) => asked.push(p) > 0 && g(p)),
          ),
        )
        const once = await run([of], (a) => authorize((p) => answer(f(p) && g(p), isLate))(a))
        expect(essence(twice.result)).toStrictEqual(essence(once.result))
        const { result } = await run([of], (a) => a)
        expect(asked).toStrictEqual(E.isRight(result) && f(result.right) ? [result.right] : [])
      }),
      { numRuns: runs(300) },
    )
  })

  it('calls its function with the principal and the request itself', async () => {
    const asked: unknown[] = []
    const fields = [['Authorization', 'Bearer t']] as const
    const request = mockRequest({ fields })
    const bearer = httpBearer({ authenticate: () => 'anna' })
    void authorize((...args) => asked.push(...args) > 0)(bearer).evaluate(request)
    expect(asked).toHaveLength(2)
    expect(asked[0]).toBe('anna')
    expect(asked[1]).toBe(request)
  })

  it.each([
    ...[false, 0, NaN, '', null, undefined].map((input) => ({ input, expected: 'insufficient' })),
    ...[1, 'false', {}, [], O.none, O.some(true), E.left(false), E.right(true), () => true, new Boolean(true)].map(
      (input) => ({ input, expected: 'raised' }),
    ),
    { input: AuthError.invalid, expected: 'raised' },
    { input: new Proxy({}, { has: raise, get: raise }), expected: 'raised' },
    { input: { then: (resolve: (late: boolean) => void) => resolve(false) }, expected: 'insufficient' },
  ])('allows only true: %# is $expected, sync and async', async ({ input, expected }) => {
    for (const given of [() => input, async () => input]) {
      // Safe: a caller without types could return this
      const { result } = await run([leaf('l0')], (a) => authorize(given as () => boolean)(a))
      expect(result).toMatchObject(E.left({ _tag: expected }))
    }
  })

  it('A-30 an exception or a rejection of its function is raised', async () => {
    const error = new Error('in authorize')
    const raise = (): never => {
      throw error
    }
    for (const f of [raise, () => Promise.reject<boolean>(error)]) {
      const { result } = await run([leaf('l0')], (a) => authorize(f)(a))
      expect(result).toMatchObject(E.left({ _tag: 'raised', error }))
    }
  })
})

describe('requireScopes', () => {
  const some = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 1 })
  // Safe: the arbitrary makes no empty list
  const demand = (scopes: string[], granted: unknown) =>
    requireScopes(scopes as [string], { granted: () => granted as string[] })

  it('with a union of scopes is like both: the verdict, and the scopes in OpenAPI', async () => {
    const allowed = { yes: 0 }
    await fc.assert(
      fc.asyncProperty(some, some, some, async (first, second, granted) => {
        const union = [...new Set([...first, ...second])]
        const [both, once] = [
          await run([leaf('l0')], (a) => pipe(a, demand(first, granted), demand(second, granted))),
          await run([leaf('l0')], (a) => demand(union, granted)(a)),
        ]
        expect(E.isRight(both.result)).toBe(union.every((scope) => granted.includes(scope)))
        expect(E.isRight(once.result)).toBe(E.isRight(both.result))
        if (E.isRight(once.result)) allowed.yes++
        const bearer = httpBearer({ authenticate: () => 'anna' })
        const scopesOf = (made: typeof bearer) =>
          alternativesOf(made.description).map(({ demands: [one] }) => one!.scopes)
        expect(scopesOf(pipe(bearer, demand(first, granted), demand(second, granted)) as typeof bearer)).toStrictEqual(
          scopesOf(demand(union, granted)(bearer) as typeof bearer),
        )
      }),
      { numRuns: runs(300) },
    )
    expect(allowed.yes).toBeGreaterThan(occurring(10))
  })

  it.each([
    { input: ['read', 'write'], expected: 'Right' },
    { input: new Set(['write', 'read', 'more']), expected: 'Right' },
    { input: 'read write', expected: 'Right' },
    { input: ['read'], expected: 'insufficient' },
    { input: ['read write'], expected: 'insufficient' },
    { input: 'read,write', expected: 'insufficient' },
    { input: 'READ WRITE', expected: 'insufficient' },
    { input: [], expected: 'insufficient' },
    { input: undefined, expected: 'insufficient' },
    { input: null, expected: 'insufficient' },
    ...['read writ', 'read write:all', 'read\nwrite', 'read\twrite', 'read\u00a0write', new Yes(['read'])].map(
      (input) => ({ input, expected: 'insufficient' }),
    ),
    { input: [['read'], ['write']], expected: 'insufficient' },
    { input: [{ toString: () => 'read' }, new String('write')], expected: 'insufficient' },
    { input: [1, , true, null, undefined], expected: 'insufficient' },
    { input: Object.assign([], { read: true, write: true }), expected: 'insufficient' },
    { input: ' write   read ', expected: 'Right' },
    ...[
      {},
      1,
      true,
      { read: true },
      new String('read write'),
      () => ['read', 'write'],
      new Map([['read', 'write']]),
    ].map((input) => ({ input, expected: 'raised' })),
    ...[{ has: () => true }, O.some(['read', 'write'])].map((input) => ({ input, expected: 'raised' })),
  ])('RFC 6749 §3.3 with $input granted, sync and async: $expected', async ({ input, expected }) => {
    for (const granted of [input, Promise.resolve(input)]) {
      const { result } = await run([leaf('l0')], (a) => demand(['read', 'write'], granted)(a))
      expect(E.isRight(result) ? 'Right' : result.left._tag).toBe(expected)
    }
  })

  // A rejection that is not awaited ends the process
  it('A-30 decision "promise-like answers": a thenable is awaited', async () => {
    let waiting = false
    const later = {
      then: (resolve: (granted: string[]) => void) => {
        waiting = true
        resolve(['read', 'write'])
      },
    }
    await run([leaf('l0')], (a) => demand(['read', 'write'], later)(a))
    expect(waiting).toBe(true)
  })

  it('RFC 6750 §3.1 the challenge of a bearer names the required scopes; the list is copied', () => {
    const scopes: [string, ...string[]] = ['read', 'write']
    const bearer = requireScopes(scopes, { granted: () => [] })(httpBearer({ authenticate: () => 'anna' }))
    scopes.push('later')
    const result = bearer.evaluate(mockRequest({ fields: [['Authorization', 'Bearer t']] }))
    const challenge = { scheme: 'Bearer', parameters: { error: 'insufficient_scope', scope: 'read write' } }
    expect(result).toMatchObject(E.left({ ...AuthError.insufficient(['read', 'write']), challenge }))
  })
})
