/**
 * Levels, lists and `also` as a specification that is enumerated completely: every program of one or two routers in
 * every mounting, on real routers. The slow tier has three routers, on `@koa/router` 12 to 15.
 */
import { describe, expect, test } from 'vitest'
import { demandedBy, mountingsOf, outcomeOf, programsOf, requestsOf } from '../../support/models/levelModel.js'
import type { Program } from '../../support/models/levelModel.js'
import { differences } from '../../support/models/levelRouters.js'

describe('the specification of levels', () => {
  test.each<readonly [Program, ReturnType<typeof demandedBy>]>([
    [['unset', 'unset', 'unset', 'unset'], []],
    [['one', 'unset', 'unset', 'unset'], [['0a']]],
    [['one', 'unset', 'null', 'unset'], []],
    [['one', 'list', 'unset', 'unset'], [['1a', '1b']]],
    [
      ['list', 'also', 'unset', 'also'],
      [['0a', '0b'], ['1a'], ['3a']],
    ],
    [['also', 'null', 'also', 'unset'], [['2a']]],
  ])('of %j demands %j', (program, demanded) => {
    expect(demandedBy(program)).toStrictEqual(demanded)
  })

  test('two programs that demand other keys have a request with another outcome', () => {
    const seen = new Map<string, string>()
    for (const program of programsOf(2)) {
      const demanded = JSON.stringify(demandedBy(program))
      const outcomes = programsOf(2)
        .flatMap(requestsOf)
        .filter((_, at) => at % 7 === 0)
        .map(({ right }) => outcomeOf(program, right).passes)
        .join()
      if (!seen.has(demanded)) expect([...seen.values()]).not.toContain(outcomes)
      seen.set(demanded, outcomes)
    }
  })
})

test.each([1, 2])('real routers agree with it: every program of depth %i, in every mounting', async (depth) => {
  for (const program of programsOf(depth)) {
    for (const mounting of mountingsOf(depth)) expect(await differences(program, mounting)).toStrictEqual([])
  }
})
