/**
 * The work for a name that a stranger chose grows with its length, not with the square of it. Steps are counted: sorting marks costs the
 * square of the longest row of marks that `normalize` gets, and everything else walks over the name.
 */
import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { accountNames } from '../../src/guesses/accountNames.js'

const rowsOf = (text: string): ReadonlyArray<number> =>
  text.split(/[^\p{M}\uff9e\uff9f]|\u034f/u).map((row) => row.length)

// Not through the spy, which keeps every call
const normalize = String.prototype.normalize
const form = (text: string, which: string): string => Reflect.apply(normalize, text, [which])
const normalized = vi.spyOn(String.prototype, 'normalize')
afterEach(() => normalized.mockReset())

/** The lengths of what was normalized, and the longest row of marks in what came of it. */
const workFor = (name: string) => {
  normalized.mockClear()
  accountNames(name)
  const given = normalized.mock.contexts.map(String)
  const made = normalized.mock.results.map(({ value }) => String(value))
  return { given, longest: [...given, ...made].flatMap(rowsOf).reduce((most, row) => Math.max(most, row), 0) }
}

// Of several classes: 230, 220, 1, 9, 8 and 27, a letter that NFKD makes a mark of, one that becomes two, blanks and letters
const units = [...'\u0300\u0323\u0334\u094d\u3099\u064b\uff9e\u0344\u0f73a \u200d\ufdfa\u{1d165}']
const rows = fc.array(fc.tuple(fc.constantFrom(...units), fc.integer({ min: 1, max: 1000 })), {
  minLength: 1,
  maxLength: 6,
})
const name = fc.oneof(
  rows.map((all) => all.map(([unit, count]) => unit.repeat(count)).join('')),
  fc.array(fc.constantFrom(...units), { minLength: 100, maxLength: 3000 }).map((all) => all.join('')),
  fc.string({ unit: 'binary', maxLength: 500 }),
)

// Whether Unicode changes the order of such a mark and others: those of class 230 come after it, or those of class 1 before it
const isSorted = (mark: string): boolean =>
  form(`\u0300${mark}`, 'NFD').startsWith(mark) || form(`${mark}\u0334`, 'NFD').startsWith('\u0334')

describe('a name', () => {
  it('is normalized a few times, and never with a long row of marks', () => {
    fc.assert(
      fc.property(name, (text) => {
        const { given, longest } = workFor(text)
        expect(given.length).toBeLessThanOrEqual(3)
        // NFKD makes at most 18 characters of one
        for (const one of given) expect(one.length).toBeLessThanOrEqual(text.length * 18 * 1.1 + 1)
        expect(longest).toBeLessThanOrEqual(30 * 4)
      }),
    )
  })

  it('law: every character that becomes a mark counts as one', () => {
    for (let code = 0; code <= 0x10ffff; code++) {
      if (code >= 0xd800 && code < 0xe000) continue
      const character = String.fromCodePoint(code)
      if (/[\p{M}\uff9e\uff9f]/u.test(character)) continue
      if (isSorted(form(character, 'NFKD')[0]!)) expect.unreachable(`U+${code.toString(16)} becomes a mark`)
    }
  })

  it('has the same form, however many marks are in it', () => {
    for (const count of [1, 29, 30, 31, 61, 5000]) {
      expect(accountNames(`an${'\u0300'.repeat(count)}${'\u0334'.repeat(count)}na`)).toEqual(['anna'])
    }
  })
})
