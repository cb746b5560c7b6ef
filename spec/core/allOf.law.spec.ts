/** `allOf`: each member must pass, in order, and their principals are combined. */
import { either as E } from 'fp-ts'
import fc from 'fast-check'
import { allOf, anyOf, apiKeyHeader, AuthError, authorize, optional } from 'koa-with-auth'
import { flatMap } from 'koa-with-auth/fp'
import { mockRequest } from 'koa-with-auth/testing'
import { describe, expect, it } from 'vitest'
import { tree } from '../support/models/trees.js'
import { apart, essence, leaf, run } from '../support/models/treeRuns.js'
import { runs } from '../support/runs/samples.js'

describe('allOf', () => {
  it('of one member is like this member, with its principal in a tuple or in an object', async () => {
    await fc.assert(
      fc.asyncProperty(tree, async (of) => {
        const mapped = await run([of], (a) => flatMap((principal: unknown) => [principal])(a))
        const tuple = await run([of], (a) => allOf([a]))
        expect(essence(tuple.result)).toStrictEqual(essence(mapped.result))
        expect(tuple.calls).toStrictEqual(mapped.calls)
        expect(tuple.description).toStrictEqual({ _tag: 'AllOf', members: [mapped.description] })
        const record = await run([of], (a) => allOf({ k: a }))
        const expected = await run([of], (a) => flatMap((k: unknown) => ({ k }))(a))
        expect(essence(record.result)).toStrictEqual(essence(expected.result))
      }),
    )
  })

  it('nests: [[a, b], c] and [a, [b, c]] are like [a, b, c], except for the form of the principal', async () => {
    await fc.assert(
      fc.asyncProperty(tree, tree, tree, async (...some) => {
        const of = apart(...some)
        const flat = await run(of, (a, b, c) => flatMap(([x, y, z]: unknown[]) => [x, y, z])(allOf([a, b, c])))
        const left = await run(of, (a, b, c) =>
          flatMap(([[x, y], z]: [[unknown, unknown], unknown]) => [x, y, z])(allOf([allOf([a, b]), c])),
        )
        const right = await run(of, (a, b, c) =>
          flatMap(([x, [y, z]]: [unknown, [unknown, unknown]]) => [x, y, z])(allOf([a, allOf([b, c])])),
        )
        for (const nested of [left, right]) {
          expect(nested.calls).toStrictEqual(flat.calls)
          expect(essence(nested.result)).toStrictEqual(essence(flat.result))
        }
      }),
      { numRuns: runs(300) },
    )
  })

  it.each([
    { description: 'none is sent', sent: ['nothing', 'nothing'] as const, expected: 'absent' },
    { description: 'only the first', sent: ['value', 'nothing'] as const, expected: 'invalid' },
    { description: 'only the second', sent: ['nothing', 'value'] as const, expected: 'invalid' },
    { description: 'only the second, and it is empty', sent: ['nothing', 'empty'] as const, expected: 'invalid' },
  ])('a group is absent only when none of its credentials is present: $description', async ({ sent, expected }) => {
    const of = sent.map((one, at) => leaf(`l${at}`, { sent: one, outcome: one === 'value' ? 'pass' : 'absent' }))
    const { result } = await run(of, (a, b) => allOf([a, b]))
    expect(result).toMatchObject(E.left({ _tag: expected }))
    const perhaps = await run(of, (a, b) => optional(allOf([a, b])))
    expect(perhaps.result).toMatchObject(expected === 'absent' ? E.right(undefined) : E.left({ _tag: 'invalid' }))
  })

  it('a failure that ends a list is that of its member, and lists no other', async () => {
    const of = apart(leaf('l0'), leaf('l1', { outcome: 'unavailable' }), leaf('l2'))
    const { result } = await run(of, (a, b, c) => allOf([a, b, c]))
    expect(result).toMatchObject(E.left({ _tag: 'unavailable' }))
    expect(result).not.toHaveProperty('left.branches')
  })

  it('a plain function counts as sent, because it is unknown: half of a group is not anonymous', async () => {
    const absent = leaf('l0', { sent: 'nothing', outcome: 'absent' })
    const signed = () => 'the signature of the request is good'
    const { result } = await run([absent], (a) => optional(allOf([signed, a])), 'GET')
    expect(result).toMatchObject(E.left({ _tag: 'invalid' }))
  })

  const key = apiKeyHeader({ paramName: 'X-Key', authenticate: (_request, sent) => ({ sent }) })
  // it was sent, and its hook says that it counts as none
  const none = apiKeyHeader({ paramName: 'X-Other', authenticate: () => AuthError.absent })

  it('is a principal also of members that admit anonymous callers, so a list lets it in after another member has refused', async () => {
    const refusing = authorize(() => false)(key)
    const listed = anyOf([refusing, allOf([optional(none)])])
    const request = mockRequest({ fields: [['X-Key', 'k'], ['X-Other', 'o']] }) // prettier-ignore
    expect(await listed.evaluate(request)).toStrictEqual(E.right([undefined]))
    // alone, an optional member does not let in who sent a credential that was refused
    expect(await anyOf([refusing, optional(none)]).evaluate(request)).toMatchObject({ _tag: 'Left' })
  })
})
