/** The laws of a store hold in every engine, by every driver. */
import { laws } from 'koa-with-auth/testing/laws'
import { it } from 'vitest'
import { samples } from '../support/runs/samples.js'
import { describeEveryEngine } from '../support/stores/databases.js'

describeEveryEngine((make) => {
  for (const { name, check } of laws.store(make, { runs: samples(60, 15) }).tests) it(name, check)
})
