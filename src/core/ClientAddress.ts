/**
 * The address that guesses are counted by: an IPv4 address, or the /64 network of an IPv6 address.
 *
 * One household has 2^64 IPv6 addresses, so a single one says nothing. A port says nothing either: each connection has
 * another one, and some proxies write it after the address.
 *
 * Behind a proxy (`app.proxy`) the address is the last one that the nearest proxy wrote, or the one that
 * `app.maxIpsCount` selects. An address that the client could have written does not count. If the value is not an
 * address, the address of the socket counts.
 */
import type { Request } from 'koa'

/** The address of the client. It is `''` if the socket has none: a Unix socket, or one that is already closed. */
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
const MAX_LENGTH = 100

const four = /^(?:::ffff:)?(\d{1,3}(?:\.\d{1,3}){3})(?::\d+)?$/i
const bracketed = /^\[([^\]]*)\](?::\d+)?$/

/** @internal The part of an address that a client cannot choose; `undefined` for a string that is not an address. */
export const networkOf = (written: string): string | undefined => {
  if (written.length > MAX_LENGTH) return undefined
  const address = bracketed.exec(written)?.[1] ?? written
  const plain = four.exec(address)?.[1]
  if (plain !== undefined) return ofOctets(plain.split('.').map(Number))
  return ofGroups(groupsOf(address))
}

const ofOctets = (octets: ReadonlyArray<number>): string | undefined =>
  octets.every((octet) => octet < 256) ? octets.join('.') : undefined

// RFC 4291 §2.2: `::` is as many groups of zeros as are missing
const groupsOf = (address: string): ReadonlyArray<number> => {
  const [text = ''] = address.split('%', 1)
  const [before = '', after, more] = withoutOctets(text).split('::')
  if (more !== undefined) return []
  const [head, tail] = [numbers(before), numbers(after)]
  const zeros = after === undefined ? 0 : Math.max(0, 8 - head.length - tail.length)
  return [...head, ...Array<number>(zeros).fill(0), ...tail]
}

const numbers = (part: string | undefined): ReadonlyArray<number> =>
  part === undefined || part === '' ? [] : part.split(':').map((group) => Number(`0x${group}`))

// RFC 4291 §2.2: the last two groups may be written as an IPv4 address
const withoutOctets = (text: string): string =>
  text.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)(?::\d+)?$/, (_all, a, b, c, d) =>
    [Number(a) * 256 + Number(b), Number(c) * 256 + Number(d)].map((group) => group.toString(16)).join(':'),
  )

// A port without brackets looks like a ninth group. So its digits were read as hexadecimal ones: 65535 as 0x65535
const MAX_GROUP = 0xffff
const MAX_PORT = 0x65535
const ofGroups = (all: ReadonlyArray<number>): string | undefined => {
  if (all.length < 8 || all.length > 9) return undefined
  if (!all.every((group, at) => group <= (at < 8 ? MAX_GROUP : MAX_PORT))) return undefined
  const [, , , , , , high = 0, low = 0] = all
  // RFC 4291 §2.5.5.2 (mapped), RFC 6052 §2.1 (translated): these IPv6 networks hold all IPv4 addresses
  const prefix = all.slice(0, 6).map((group) => group.toString(16)).join(':') // prettier-ignore
  if (prefix === '0:0:0:0:0:ffff' || prefix === '64:ff9b:0:0:0:0') {
    return [high >> 8, high & 255, low >> 8, low & 255].join('.')
  }
  return `${prefix.split(':', 4).join(':')}::/64`
}
