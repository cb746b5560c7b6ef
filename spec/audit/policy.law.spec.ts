/**
 * Laws of the policy file: what is written is what is read, and what opens is listed first, for all trees of
 * authenticators.
 */
import fc, { type Arbitrary } from 'fast-check'
import * as E from 'fp-ts/lib/Either.js'
import { pipe } from 'fp-ts/lib/function.js'
import { allOf, anyOf, apiKeyHeader, authorize, httpBearer, requireScopes, type Authenticator } from 'koa-with-auth'
import { audit } from 'koa-with-auth/audit'
import { describe, expect, it } from 'vitest'
import { isVisible } from '../../src/audit/Audit.js'
import { differencesOf, directions } from '../../src/audit/Difference.js'
import { linesOf, lineText, policyText, readPolicy } from '../../src/audit/policy.js'
import { publicAccess, waysOf, type AccessPath } from '../../src/audit/Way.js'
import { audited, auditWith, wayOf } from '../support/models/auditedOperation.js'
import { grow, tree } from '../support/models/auditTrees.js'

type Lines = ReturnType<typeof linesOf>

const again = (lines: Lines): Lines => {
  const read = readPolicy(new TextEncoder().encode(policyText(lines)))
  if (E.isLeft(read)) throw new Error(read.left)
  return read.right
}

describe('a policy file that was written and is read again', () => {
  it('has no difference, for any tree of routers', () => {
    fc.assert(
      fc.property(tree, (root) => {
        const lines = linesOf(audit(grow(root)))
        expect(differencesOf(again(lines), lines)).toStrictEqual([])
        expect(again(lines).map(lineText)).toStrictEqual(lines.map(lineText))
      }),
    )
  })

  const hostile = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ unit: fc.constantFrom(...'\n\r\u001b\u202e\u2028\u00a0; \\u{},#\ud800', 'or') }),
  )
  it('has no difference, whatever characters are in paths and names, and contains no invisible character', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(hostile, hostile, hostile)), (operations) => {
        const written = operations.map(([path, name, scope]) =>
          audited({ path, ways: [wayOf(name, [scope])], decidedBy: [name], beforeGuard: [name], behindGuard: [name] }),
        )
        const names = operations.map(([, name]) => name)
        const lines = linesOf(auditWith(written, names))
        expect(differencesOf(again(lines), lines)).toStrictEqual([])
        for (const line of policyText(lines).split('\n')) expect(isVisible(line)).toBe(true)
      }),
    )
  })

  it('has two different lines for two different paths', () => {
    fc.assert(
      fc.property(hostile, hostile, (one, other) => {
        const [first, second] = [one, other].map((path) => linesOf(auditWith([audited({ path })])).map(lineText))
        expect(first?.[0] === second?.[0]).toBe(one === other)
      }),
    )
  })
})

// -------------------------------------------------------------------------------------
// who gets in, modelled apart from ways: every caller is tried on the tree
// -------------------------------------------------------------------------------------

type Caller = Readonly<Record<'bearer' | 'key' | 'read' | 'write' | 'allowed', boolean>>
interface Modelled {
  readonly authenticator: Authenticator<unknown>
  readonly admits: (caller: Caller) => boolean
}
const bearer: Modelled = { authenticator: httpBearer({ authenticate: () => true }), admits: (caller) => caller.bearer }
const byKey = apiKeyHeader({ paramName: 'X-Key', authenticate: () => true })
const key: Modelled = { authenticator: byKey, admits: (caller) => caller.key }
const granted = () => []
const scoped = (scope: 'read' | 'write', { authenticator, admits }: Modelled): Modelled => ({
  authenticator: pipe(authenticator, requireScopes([scope], { granted })),
  admits: (caller) => caller[scope] && admits(caller),
})
const { modelled } = fc.letrec<{ modelled: Modelled }>((tie) => ({
  modelled: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    fc.constantFrom(bearer, key),
    fc.tuple(tie('modelled'), tie('modelled')).map(([one, other]) => ({
      authenticator: anyOf([one.authenticator, other.authenticator]),
      admits: (caller: Caller) => one.admits(caller) || other.admits(caller),
    })),
    fc.tuple(tie('modelled'), tie('modelled')).map(([one, other]) => ({
      authenticator: allOf({ one: one.authenticator, other: other.authenticator }),
      admits: (caller: Caller) => one.admits(caller) && other.admits(caller),
    })),
    fc
      .tuple(fc.constantFrom<'read' | 'write'>('read', 'write'), tie('modelled'))
      .map(([scope, one]) => scoped(scope, one)),
    tie('modelled').map((one) => ({
      authenticator: authorize<unknown>(() => true)(one.authenticator),
      admits: (caller: Caller) => caller.allowed && one.admits(caller),
    })),
  ),
}))
const callers: ReadonlyArray<Caller> = Array.from({ length: 32 }, (_, bits) => {
  const has = (at: number) => (bits & (1 << at)) !== 0
  return { bearer: has(0), key: has(1), read: has(2), write: has(3), allowed: has(4) }
})

const guard: Arbitrary<{ readonly ways: ReadonlyArray<AccessPath>; readonly admits: (caller: Caller) => boolean }> =
  fc.oneof(
    { weight: 6, arbitrary: modelled.map((one) => ({ ...one, ways: waysOf(one.authenticator.description) })) },
    { weight: 1, arbitrary: fc.constant({ ways: [publicAccess], admits: () => true }) },
  )

describe('a change of who may call', () => {
  it('that lets more callers in is an opening, or a change that also keeps callers out; it is never a closing, and never unnoticed', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(guard, guard), { minLength: 1, maxLength: 5 }), (pairs) => {
        const linesAt = (at: 0 | 1) =>
          linesOf(auditWith(pairs.map((pair, index) => audited({ path: `/${index}`, ways: pair[at].ways }))))
        const differences = differencesOf(linesAt(0), linesAt(1))
        const directionOf = (index: number) =>
          differences.find(({ operation }) => operation === `GET /${index}`)?.direction
        for (const [index, [was, is]] of pairs.entries()) {
          const [before, after] = [callers.filter(was.admits), callers.filter(is.admits)]
          const gained = after.some((caller) => !before.includes(caller))
          const lost = before.some((caller) => !after.includes(caller))
          if (gained && !lost) expect(['opened', 'changed']).toContain(directionOf(index))
          if (lost) expect(['closed', 'changed']).toContain(directionOf(index))
          if (gained) expect(directionOf(index)).not.toBe('closed')
        }
        const order = differences.map(({ direction }) => directions.indexOf(direction))
        expect(order).toStrictEqual([...order].sort())
      }),
    )
  })

  it('that adds an alternative or removes a demand is an opening, and is listed first', () => {
    const line = (ways: ReadonlyArray<AccessPath>, path: string) => audited({ path, ways })
    fc.assert(
      fc.property(modelled, modelled, fc.constantFrom<'read' | 'write'>('read', 'write'), (one, other, scope) => {
        const [a, b] = [waysOf(one.authenticator.description), waysOf(other.authenticator.description)]
        const narrow = waysOf(scoped(scope, one).authenticator.description)
        const gains = callers.some((caller) => other.admits(caller) && !one.admits(caller))
        const before = linesOf(auditWith([line(a, '/z'), line(narrow, '/y'), line([...a, ...b], '/a')]))
        const after = linesOf(auditWith([line([...a, ...b], '/z'), line(a, '/y'), line(a, '/a')]))
        const found = differencesOf(before, after).map(({ operation, direction }) => `${direction} ${operation}`)
        if (gains) expect(found).toContain('opened GET /z')
        if (gains) expect(found.at(-1)).toBe('closed GET /a')
        const narrows = callers.some((caller) => one.admits(caller) && !scoped(scope, one).admits(caller))
        if (narrows) expect(found).toContain('opened GET /y')
      }),
    )
  })
})
