/**
 * Planted bugs: a suite of twenty lines fails for each wrong authenticator, by the law that it breaks, and passes for
 * the right ones.
 */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { mistakes } from '../../../examples/testing/mistakes.js'
import { right } from '../../../examples/testing/right.js'
import { suite, type Subject } from '../../../examples/testing/suite.js'
import { linesOfCode } from '../../support/papers/importGraph.js'
import { repository } from '../../support/projects/typecheck.js'

/** Runs the suite of the examples like a runner. Returns the titles of the tests that failed. */
const failing = async (subject: Subject): Promise<ReadonlyArray<string>> => {
  const tests: Array<readonly [title: string, body: () => Promise<void>]> = []
  suite((title, body) => tests.push([title, body]), { a: subject })
  expect(tests.length).toBeGreaterThan(8)
  const verdicts = await Promise.all(
    tests.map(async ([title, body]) => {
      const passed = await body().then(
        () => true,
        (error: unknown) => {
          expect(error).toBeInstanceOf(Error)
          return false
        },
      )
      return passed ? [] : [title.replace(/^a /, '')]
    }),
  )
  return verdicts.flat()
}

/** The law that each mistake must break; it may break others, too. */
const foundBy: Readonly<Record<string, RegExp>> = {
  emptyToken: /^fails closed/,
  unsetKey: /^fails closed/,
  looseEquality: /^refuses wrong/,
  leakyFailure: /^leaks nothing/,
  unawaitedPromise: /^lets in valid requests/,
  noneAsTruthy: /^refuses wrong/,
  otherHeader: /^its description is true/,
  notDeterministic: /^is deterministic/,
  throwing: /^is total/,
  neverSettles: /^is total/,
  prefixMatch: /^refuses wrong/,
  anyLetterCase: /^refuses wrong/,
  firstOfTwo: /^refuses wrong/,
  notAmbient: /^refuses writes/,
}

describe('the kit and planted bugs', () => {
  it('there are at least ten bugs, and each has a law that must find it', () => {
    expect(Object.keys(mistakes).sort()).toStrictEqual(Object.keys(foundBy).sort())
    expect(Object.keys(mistakes).length).toBeGreaterThanOrEqual(10)
  })

  it.each(Object.entries(foundBy))('%s is found: %s', async (name, law) => {
    expect(await failing(mistakes[name]!)).toEqual(expect.arrayContaining([expect.stringMatching(law)]))
  })

  it.each([
    'looseEquality',
    'leakyFailure',
    'otherHeader',
    'notDeterministic',
    'prefixMatch',
    'firstOfTwo',
    'notAmbient',
  ])('%s breaks only one law, so the report shows the mistake', async (name) => {
    expect(await failing(mistakes[name]!)).toHaveLength(1)
  })

  it.each(Object.entries(right))('a right authenticator passes: %s', async (_name, subject) => {
    expect(await failing(subject)).toStrictEqual([])
  })

  it('the suite has at most thirteen lines of code beside its imports', () => {
    expect(linesOfCode('examples/testing/suite.ts')).toBeLessThanOrEqual(13)
    expect(readFileSync(`${repository}examples/testing/suite.ts`, 'utf8')).toContain('laws.authenticator(authenticator')
  })
})
