import { createServer, type AddressInfo, type Server } from 'node:net'
import Router from '@koa/router'
import Koa from 'koa'
import { withAuth } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { ipAllowList } from '../../examples/ipAllowList.js'
import { ask } from '../support/servers/server.js'

const ipv6 = await new Promise<boolean>((resolve) => {
  const probe = createServer()
  probe.once('error', () => resolve(false))
  probe.listen(0, '::', () => probe.close(() => resolve(true)))
})

describe('ipAllowList.ts', () => {
  const connecting = async (list: string, host: string, address: string) => {
    const router = new Router()
    let calls = 0
    router.get('/', withAuth(ipAllowList(list)), (ctx) => {
      calls++
      ctx.body = ctx.request.auth
    })
    const app = new Koa().use(router.routes())
    const server = await new Promise<Server>((resolve) => {
      const starting = app.listen(0, host, () => resolve(starting))
    })
    const answer = await ask(`http://${address}:${(server.address() as AddressInfo).port}/`, {
      headers: { 'X-Forwarded-For': '10.0.0.1' },
    })
    server.close()
    return { answer, calls }
  }

  it.each([
    { description: 'another address', list: '10.0.0.1', expected: 401 },
    { description: 'an address with the same beginning', list: '127.0.0.11', expected: 401 },
    { description: 'stranger', list: '', expected: 401 },
    { description: 'another address, then this one', list: '10.0.0.1, 127.0.0.1', expected: 200 },
    { description: 'the IPv4-mapped spelling', list: '::FFFF:127.0.0.1', expected: 200 },
  ])('A-24 A-25 a list of $description: $expected, whatever X-Forwarded-For says', async ({ list, expected }) => {
    const { answer, calls } = await connecting(list, '127.0.0.1', '127.0.0.1')
    expect(answer.status).toBe(expected)
    expect(answer.challenge).toBe(expected === 401 ? 'Custom realm="api"' : null)
    expect(calls).toBe(expected === 200 ? 1 : 0)
  })

  it('A-25 ::ffff:127.0.0.1, which a dual-stack socket reports, is 127.0.0.1', async ({ skip }) => {
    skip(!ipv6, 'no IPv6 on this machine')
    const { answer } = await connecting('127.0.0.1', '::', '127.0.0.1')
    expect(answer).toMatchObject({ status: 200, text: '127.0.0.1' })
  })

  it('A-25 every spelling of ::1 is ::1', async ({ skip }) => {
    skip(!ipv6, 'no IPv6 on this machine')
    const { answer } = await connecting('0:0:0:0:0:0:0:1', '::1', '[::1]')
    expect(answer).toMatchObject({ status: 200, text: '::1' })
  })

  it('an entry that is not an address is an error at start that names it', () => {
    expect(() => ipAllowList('127.0.0.1,localhost')).toThrow('"localhost" is no address')
  })
})
