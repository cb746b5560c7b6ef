/**
 * Where a request comes from, as guesses are counted by: an IPv4 address, or the /64 network of an IPv6 address.
 *
 * One household has 2^64 IPv6 addresses, so a single one means nothing. Behind a proxy (`app.proxy`) it is the address that
 * the nearest proxy wrote last, or the one that `app.maxIpsCount` names; never one that the client could have written first.
 */
import type { Request } from 'koa'

const mapped = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/i

/** The address of the client, `''` where the socket has none. */
export const clientAddress = (request: Request): string => {
  const { app, socket } = request
  return networkOf((app.proxy ? forwarded(request) : undefined) ?? socket.remoteAddress ?? '')
}

// Koa cuts `ips` down to `maxIpsCount`; without one, all but the last are hearsay
const forwarded = ({ app, ips }: Request): string | undefined => (app.maxIpsCount > 0 ? ips[0] : ips.at(-1))

/** An address without what one client can choose of it. */
export const networkOf = (address: string): string => {
  const four = mapped.exec(address)?.[1]
  if (four !== undefined) return four
  return address.includes(':') ? sixtyFour(address) : address
}

// RFC 4291 §2.2: `::` stands for as many groups of zeros as are missing
const sixtyFour = (address: string): string => {
  const [before = '', after] = address.toLowerCase().split('%', 1).join('').split('::', 2)
  const groups = (part: string | undefined) => (part === undefined || part === '' ? [] : part.split(':'))
  const head = groups(before)
  const missing = after === undefined ? 0 : Math.max(0, 8 - head.length - groups(after).length)
  const all = [...head, ...Array<string>(missing).fill('0'), ...groups(after)]
  return `${all
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':')}::/64`
}
