/**
 * Any function of the request is an authenticator, as this one that knows clients by their address.
 *
 * It reads the address of the connection. Behind a proxy that is the proxy's, and `X-Forwarded-For` can be written by the
 * client: set `app.proxy` and `maxIpsCount`, and read `request.ip`, only where a proxy of yours sets the field.
 */
import { BlockList, isIP, isIPv6 } from 'node:net'
import Router from '@koa/router'
import type { Request } from 'koa'
import { withAuth } from 'koa-with-auth'

// `::ffff:127.0.0.1` is how a socket of both families writes 127.0.0.1
const plain = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '')
const family = (address: string) => (isIPv6(address) ? 'ipv6' : 'ipv4')

/** Lets in the addresses of a list, separated by commas. Throws for one that is no address. */
export const ipAllowList = (list: string) => {
  // Node's name for a set of addresses, whatever they are for
  const allowed = new BlockList()
  for (const entry of list.split(',')) {
    const address = plain(entry.trim())
    if (address === '') continue
    if (isIP(address) === 0) throw new TypeError(`IP allow list: ${JSON.stringify(entry)} is no address`)
    allowed.addAddress(address, family(address))
  }
  return ({ socket }: Request): string | false => {
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
