/** How two paths overlap: the automaton agrees with the RegExps that the router runs. */
import Router from '@koa/router'
import fc from 'fast-check'
import { pathToRegexp } from 'path-to-regexp-6'
import { describe, expect, it } from 'vitest'
import { behind, findPath, pathPattern, type PathPattern } from '../../src/audit/paths.js'
import { relate, routedPath, type RoutedPath } from '../../src/audit/RoutedPath.js'
import { stepsOf } from '../support/runs/steps.js'
import { occurring, runs } from '../support/runs/samples.js'

const options = fc.record({ sensitive: fc.boolean(), strict: fc.boolean() })
const token = fc.constantFrom('/', '/', 'a', 'B', 'ab', '-', '.', ':p', '*w', '{/:p}', '{/a}', '{-:p}', '{/*w}')
const pattern = fc.array(token, { minLength: 1, maxLength: 6 }).map((tokens) => `/${tokens.join('')}`)
const path = fc
  .array(fc.constantFrom('/', '/', 'a', 'A', 'b', 'B', '-', '.', 'x', 'ab'), { maxLength: 7 })
  .map((parts) => `/${parts.join('')}`)

interface Case {
  readonly pattern: PathPattern
  readonly routed: RoutedPath
}

/** The router's layer for a path; `undefined` if the router refuses the path. */
const routed = (source: string, opts: { sensitive?: boolean; strict?: boolean } = {}): Case | undefined => {
  try {
    const layer = new Router(opts).get(source, () => {}).stack[0]!
    const own = pathPattern(source, opts)
    return own && { pattern: own, routed: routedPath(layer) }
  } catch {
    return undefined
  }
}

const accepted = (automaton: PathPattern, candidate: string): boolean =>
  candidate
    .split('')
    .reduce((texts, char) => behind(automaton, texts, char), automaton.texts)
    .includes('')

describe('the automaton of a path', () => {
  it('accepts what the RegExp of the router accepts, and nothing else if it is exact', () => {
    const count = { accepted: 0, exact: 0, inexact: 0 }
    fc.assert(
      fc.property(pattern, options, fc.array(path, { minLength: 20, maxLength: 20 }), (source, opts, candidates) => {
        const it = routed(source, opts)
        if (it === undefined) return
        count[it.pattern.isExact ? 'exact' : 'inexact']++
        for (const candidate of [...candidates, ...it.pattern.samples]) {
          const [said, is] = [accepted(it.pattern, candidate), it.routed.matches(candidate)]
          if (is) count.accepted++
          if (is || it.pattern.isExact) expect([source, candidate, said]).toEqual([source, candidate, is])
        }
      }),
      { numRuns: runs(2_000) },
    )
    expect(count.accepted).toBeGreaterThan(occurring(2_000))
    expect(count.exact).toBeGreaterThan(occurring(200))
    expect(count.inexact).toBeGreaterThan(occurring(50))
  })

  it.each(['/x', '/:a', '/:a/:b', '/*rest', '/a/{:b}', '/:a.json', '/:a/*b', '{/*rest}'])('of %s is exact', (source) =>
    expect(pathPattern(source, {})?.isExact).toBe(true),
  )

  it.each(['/:a-:b', '/*a/*b', '/:a{-:b}'])('of %s is not exact', (source) =>
    expect(pathPattern(source, {})?.isExact).toBe(false),
  )

  it.each(['/(x)', '/:', '/{x', '/x?'])('does not exist for %s, which path-to-regexp refuses', (source) =>
    expect(pathPattern(source, {})).toBeUndefined(),
  )

  it('does not exist for more than 256 alternatives', () => {
    expect(pathPattern(`/a${'{/b}'.repeat(8)}`, {})?.texts).toHaveLength(2 * 256)
    expect(pathPattern(`/a${'{/b}'.repeat(9)}`, {})).toBeUndefined()
  })
})

describe('the relation of two paths', () => {
  it('is unknown if only several captures in one segment keep them apart', () => {
    const [one, other] = [routed('/:a-:b')!.routed, routed('/x-y-', { strict: true })!.routed]
    expect([one.matches('/x-y-'), other.matches('/x-y-')]).toEqual([false, true])
    const nothing = { isSubset: false, isSuperset: false, hasPathsOfItsOwn: false }
    expect(relate(one, other)).toEqual({ overlap: 'unknown', ...nothing })
  })

  it('is found if the router refuses one of two alternatives that end alike', () => {
    const [one, other] = [pathPattern('/a{/*p}/ab', {})!, pathPattern('/:p/{-:q}/a/ab', {})!]
    expect(findPath('of both', one, other, (path) => !path.includes('//'))).toBe('/a/-x/a/ab')
  })

  it.each([
    ['/ä', '/Ä', 'yes'],
    ['/ſ', '/s', 'no'],
    ['/ß', '/SS', 'no'],
  ])('of %s and %s: %s, as letter case is compared by RegExps', (one, other, overlap) => {
    expect(relate(routed(one)!.routed, routed(other)!.routed).overlap).toBe(overlap)
  })

  it('of characters of two code units is known', () => {
    const relation = relate(routed('/\u{1f600}/:id')!.routed, routed('/:a/x')!.routed)
    expect(relation).toMatchObject({ overlap: 'yes', example: '/\u{1f600}/x' })
  })

  it.each([
    ['/*a-*b-*c-*d-*e-*f', '/*a.*b.*c.*d.*e.*f'],
    ['/*a-b-*c-d-*e-f-*g', '/*a.b.*c.d.*e.f.*g/x'],
    [`/*a/${'xyxyxyxyxy/'.repeat(8)}*b`, `/*c/${'yxyxyxyx/'.repeat(8)}*d`],
    ['/a{/:b}{/:c}{/:d}{/:e}{/:f}{/:g}', '/a{/:b}{/:c}{/:d}{/:e}{/:f}{/:g}/x'],
  ])('of %s and %s is found in few steps', async (one, other) => {
    let relation: unknown
    const steps = await stepsOf(() => (relation = relate(routed(one)!.routed, routed(other)!.routed)))
    expect(relation).toMatchObject({ overlap: 'yes', hasPathsOfItsOwn: true })
    // a bound several times the longest of these, and far below a search without memory
    expect(steps).toBeLessThan(20_000_000)
  })

  it.each(['/', '/a/'])('of %s in use of @koa/router 12 and a path below is an overlap', (prefix) => {
    const used = { path: prefix, regexp: pathToRegexp(prefix, [], { end: false }), opts: { end: false } }
    const { routed: below } = routed('/a/b')!
    expect(routedPath(used).matches('/a/b')).toBe(true)
    expect(relate(routedPath(used), below)).toMatchObject({ overlap: 'yes', isSuperset: true })
    expect(relate(routedPath(used), routed('/b/:c')!.routed).overlap).toBe(prefix === '/' ? 'yes' : 'no')
  })
})
