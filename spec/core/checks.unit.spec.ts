/** The checks of options, at the edge of what they accept. */
import { describe, expect, it } from 'vitest'
import * as is from '../../src/core/checks.js'
import { bare, checkOptions, checkHook, type Check } from '../../src/core/options.js'

const DAYS = 86_400_000
const checks: ReadonlyArray<readonly [string, Check, good: ReadonlyArray<unknown>, bad: ReadonlyArray<unknown>]> = [
  ['secrets', is.secrets, [['k'.repeat(32)], [new Uint8Array(32)]], [[], ['k'.repeat(31)], [new Uint8Array(31)], [32]]],
  ['positive', is.positive, [1, 2 ** 31 - 1], [0, 0.5, 2 ** 31, NaN, Infinity, '1', undefined]],
  ['milliseconds', is.milliseconds, [1000, Number.MAX_SAFE_INTEGER], [999, Infinity, NaN, '1000']],
  ['millisecondsOrNone', is.millisecondsOrNone, [0, 1000], [999, undefined]],
  ['duration', is.duration, [1, 400 * DAYS], [0, 400 * DAYS + 1, NaN, '1']],
  ['listOf', is.listOf(is.isFilled, 'is bad', 1), [['a']], [[], ['a', ''], 'a', undefined]],
  ['oneOf', is.oneOf('a', 'b'), ['a', 'b'], ['c', '', undefined]],
  ['maybe', is.maybe(is.flag), [undefined, true, false], [null, 0]],
  ['nonEmpty', is.nonEmpty, ['a'], ['', 1]],
  ['realm', is.realm, ['a b', ''], ['a\n', 'ä', 1]],
  ['schemeName', is.schemeName, ['a.B-1_'], ['', 'a b', 'ä', 'a/b']],
  ['withMethods', is.withMethods(['get', 'set'], 'fix'), [{ get() {}, set() {} }], [{ get() {} }, null, () => 1]],
  ['hook of one', is.hook(1), [() => 1, (_a: 1) => 1], [(_a: 1, _b: 2) => 1, class {}, function* () {}, 'f']],
]

describe.each(checks)('%s', (_name, check, good, bad) => {
  it.each(good.map((value) => ({ value })))('accepts $value', ({ value }) =>
    expect(() => check('here', value)).not.toThrow(),
  )
  it.each(bad.map((value) => ({ value })))('refuses $value, and names the place', ({ value }) => {
    expect(() => check('here', value)).toThrow(TypeError)
    expect(() => check('here', value)).toThrow(/here/)
  })
})

describe('checkOptions', () => {
  const checks = { a: is.maybe(is.flag), auth: is.unchecked }

  it('refuses an option that is not there, and keeps an `auth` that is undefined', () => {
    expect(() => checkOptions('f', { b: 1 } as object as { a: true; auth: 1 }, checks)).toThrow('no option "b"')
    const given = checkOptions<{ a?: boolean | undefined; auth?: unknown }>(
      'f',
      { a: undefined, auth: undefined },
      checks,
    )
    expect(given).toStrictEqual(bare({ auth: undefined }))
  })

  it('a hook that takes more than it gets is refused', () => {
    expect(() => checkHook('f', (_a: 1, _b: 2, _c: 3) => 1, 2)).toThrow('takes 3 parameters, but is called with 2')
  })
})
