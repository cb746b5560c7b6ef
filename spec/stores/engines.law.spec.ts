/** The laws of a store hold in every engine, by every driver. */
import { laws } from 'koa-with-auth/testing/laws'
import { expect, it } from 'vitest'
import { samples } from '../support/runs/samples.js'
import { describeEveryEngine } from '../support/stores/databases.js'

describeEveryEngine((make) => {
  it('answers about more keys than one statement takes', async () => {
    const store = await make()
    const keys = Array.from({ length: 66_000 }, (_, at) => `key ${at}`)
    const kept = [0, 499, 500, 65_999]
    for (const at of kept) await store.insert(`key ${at}`, `text ${at}`, 60_000)
    const found = (await store.get(keys)).flatMap((text, at) => (text === undefined ? [] : [[at, text]]))
    expect(found).toStrictEqual(kept.map((at) => [at, `text ${at}`]))
  })
  for (const { name, check } of laws.store(make, { runs: samples(60, 15) }).tests) it(name, check)
})
