/** The addresses of clients, as far as a client cannot choose them. */
import { isIPv6 } from 'node:net'
import type { Request } from '../core/Request.js'

/**
 * The address of the client. It is `''` if the socket has none: a Unix socket, or one that is already closed.
 *
 * Guesses are counted by an IPv4 address, or by the /64 network of an IPv6 address. One household has 2^64 IPv6 addresses, so a single one
 * says nothing. A port says nothing either: each connection has another port, and some proxies write it after the address.
 *
 * Behind a proxy (`app.proxy`) the address is the last address that the nearest proxy wrote, or the address that `app.maxIpsCount` selects. An
 * address that the client could have written does not count. If the value is not an address, the address of the socket counts.
 */
export const clientAddress = (request: Request): string => {
  const { app, socket } = request
  const written = app.proxy ? forwarded(request) : undefined
  return (written === undefined ? undefined : networkOf(written)) ?? ofSocket(socket.remoteAddress ?? '')
}

// An IPv4 address needs no parsing, because the operating system always writes it in the same way
const ofSocket = (address: string): string => (address.includes(':') ? (networkOf(address) ?? address) : address)

// Koa cuts `ips` down to the last `maxIpsCount`. Without it, a client could have written all but the last
const forwarded = ({ app, ips }: Request): string | undefined => (app.maxIpsCount > 0 ? ips[0] : ips.at(-1))

// A longer string is not an address, and is not parsed
const MAX_ADDRESS_LENGTH = 100

const four = /^(?:::(?:ffff:)?)?(\d{1,3}(?:\.\d{1,3}){3})(?::\d+)?$/i
const bracketed = /^\[([^\]]*)\](?::\d+)?$/
// Without brackets, a port can be recognized only after eight groups or an IPv4 address
const port = /^((?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}|.*\.\d{1,3}):(\d{1,5})$/i
const MAX_PORT = 65535

/** The part of an address that a client cannot choose; `undefined` for a string that is not an address. */
export const networkOf = (written: string): string | undefined => {
  if (written.length > MAX_ADDRESS_LENGTH) return undefined
  const address = bracketed.exec(written)?.[1] ?? written
  const plain = four.exec(address)?.[1]
  if (plain !== undefined) return ofOctets(plain.split('.').map(Number))
  const [, before = address, after = '0'] = port.exec(address) ?? []
  return Number(after) <= MAX_PORT && isIPv6(before) ? ofGroups(groupsOf(before)) : undefined
}

const ofOctets = (octets: ReadonlyArray<number>): string | undefined =>
  octets.every((octet) => octet < 256) ? octets.join('.') : undefined

// Eight numbers, as `URL` writes an address in one way (RFC 5952). It reads no zone, which is of the own network (RFC 4007 §11)
const groupsOf = (six: string): ReadonlyArray<number> => {
  const [address = ''] = six.split('%', 1)
  const text = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const [first = [], last = []] = text
    .split('::')
    .map((part) => part.split(':').flatMap((group) => (group === '' ? [] : Number.parseInt(group, 16))))
  return [...first, ...Array<number>(8 - first.length - last.length).fill(0), ...last]
}

// RFC 4291 §2.5.5.2 (mapped), RFC 6052 §2.1 (translated): these IPv6 networks hold all IPv4 addresses
const ofFour = ['0,0,0,0,0,65535', '100,65435,0,0,0,0']

const ofGroups = (groups: ReadonlyArray<number>): string => {
  if (ofFour.includes(groups.slice(0, 6).join()))
    return ofOctets(groups.slice(6).flatMap((group) => [group >> 8, group & 255])) ?? ''
  return `${groups.slice(0, 4).map((group) => group.toString(16)).join(':')}::/64` // prettier-ignore
}

/**
 * The /48 network around a /64 network; `undefined` for anything else, such as an IPv4 address. Providers give a household a
 * /56 or a /48 (RFC 6177), and a rented server often a /48.
 */
export const widerNetwork = (address: string): string | undefined => {
  const [, start] = /^((?:[0-9a-f]{1,4}:){3})[0-9a-f]{1,4}::\/64$/.exec(address) ?? []
  return start === undefined ? undefined : `${start}:/48`
}
