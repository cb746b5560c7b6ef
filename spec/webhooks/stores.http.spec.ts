/** Deliveries to two sites that share a store. H-06. */
import { oneTimeIds } from 'koa-with-auth/stores'
import { expect, it } from 'vitest'
import { webhookSite } from '../support/sites/webhookSite.js'
import { overEveryStore } from '../support/stores/stores.js'

overEveryStore((store) => {
  it('of ten equal deliveries to two sites, one is handled; after a failure, each may come again', async () => {
    let isDown = true
    const options = {
      handler: (ctx: { status: number }) => {
        if (isDown) ctx.status = 500
      },
    }
    const site = () => webhookSite({ ...options, hook: { spent: oneTimeIds(store()) } })
    const [one, other] = [await site(), await site()]
    const sites = [one, other]
    const body = `delivery ${Math.random()}`
    for (const each of [one, other, one]) expect((await each.send(body)).status).toBe(500)
    isDown = false
    const before = sites.flatMap(({ handled }) => handled).length
    const answers = await Promise.all(Array.from({ length: 10 }, (_, at) => (at % 2 === 0 ? one : other).send(body)))
    // those that came after the handler had ended are accepted
    const others = answers.map(({ status }) => status).filter((status) => status !== 204)
    expect([others.length, others.filter((status) => status !== 200 && status !== 409)]).toStrictEqual([9, []])
    expect(sites.flatMap(({ handled }) => handled).length).toBe(before + 1)
    expect((await other.send(body)).status).toBe(200)
  })
})
