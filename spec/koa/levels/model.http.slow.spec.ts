/** Every program of three routers inside each other, in every mounting, on real routers: model.http says what that is. */
import { expect, test } from 'vitest'
import { decisions, mountingsOf, programsOf } from '../../support/models/levelModel.js'
import { differences } from '../../support/models/levelRouters.js'

test.each(decisions)('real routers agree with the specification: programs of depth 3, %s outside', async (outer) => {
  const programs = programsOf(3).filter(([first]) => first === outer)
  expect(programs.length).toBe(125)
  for (const program of programs) {
    for (const mounting of mountingsOf(3)) expect(await differences(program, mounting)).toStrictEqual([])
  }
})
