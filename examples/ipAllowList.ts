/**
 * Any function of the request is an authenticator. This one recognizes clients by their address.
 *
 * It reads the address of the connection. Behind a proxy that is the address of the proxy, and clients can write
 * `X-Forwarded-For` themselves. Set `app.proxy` and `maxIpsCount`, and read `request.ip`, only if a proxy of yours sets
 * the field.
 */
import { BlockList, isIP, isIPv6 } from 'node:net'
import Router from '@koa/router'
import type { Request } from 'koa'
import { withAuth } from 'koa-with-auth'

// A dual-stack socket reports 127.0.0.1 as `::ffff:127.0.0.1`
const plain = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '')
const family = (address: string) => (isIPv6(address) ? 'ipv6' : 'ipv4')

/** Accepts the addresses of a list, separated by commas. Throws for an entry that is not an address. */
export const ipAllowList = (list: string) => {
  // Node's class for a set of addresses, for any purpose
  const allowed = new BlockList()
  for (const entry of list.split(',')) {
    const address = plain(entry.trim())
    if (address === '') continue
    if (isIP(address) === 0) throw new TypeError(`IP allow list: ${JSON.stringify(entry)} is no address`)
    allowed.addAddress(address, family(address))
  }
  return function allowedAddress({ socket }: Request): string | false {
    const address = plain(socket.remoteAddress ?? '')
    return allowed.check(address, family(address)) && address
  }
}

export const router = new Router()

// Replace this with your own list, or set it in the environment.
const fromHere = ipAllowList(process.env['IP_ALLOW_LIST'] ?? '127.0.0.1,::1')

router.get('/ipwhitelist', withAuth(fromHere), (ctx) => {
  ctx.body = `Authenticated client, ${ctx.request.auth}`
})
