/** The address by which guesses are counted: the part of an address that one client can choose does not count. */
import { describe, expect, it } from 'vitest'
import { mockRequest } from 'koa-with-auth/testing'
import { clientAddress, networkOf } from '../../src/guesses/Guess.js'

describe('T-06 an address', () => {
  it.each<[string, string | undefined]>([
    ['192.0.2.1', '192.0.2.1'],
    ['192.0.2.1:5678', '192.0.2.1'],
    ['192.0.2.1:65535', '192.0.2.1'],
    ['192.000.002.001', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1:5678', '192.0.2.1'],
    ['[::ffff:192.0.2.1]:5678', '192.0.2.1'],
    ['::ffff:c000:201', '192.0.2.1'],
    ['0:0:0:0:0:ffff:c000:0201', '192.0.2.1'],
    ['64:ff9b::192.0.2.1', '192.0.2.1'],
    ['64:ff9b::c000:201', '192.0.2.1'],
    ['64:ff9b::192.168.20.10', '192.168.20.10'],
    ['64:ff9b::192.168.20.10:5678', '192.168.20.10'],
    ['2001:db8:1:2::192.168.20.10', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['2001:DB8:0:0:ffff::1', '2001:db8:0:0::/64'],
    ['2001:0db8:0000:0000:0000:0000:0000:0001', '2001:db8:0:0::/64'],
    ['[2001:db8::1]', '2001:db8:0:0::/64'],
    ['[2001:db8::1]:443', '2001:db8:0:0::/64'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2:3:4:5:6:443', '2001:db8:1:2::/64'],
    ['2001:db8:1:2:3:4:5:6:65535', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::', '2001:db8:1:2::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['[::1]:80', '0:0:0:0::/64'],
    ['::', '0:0:0:0::/64'],
    ['', undefined],
    ['unknown', undefined],
    ['192.0.2.256', undefined],
    ['192.0.2', undefined],
    ['12345::1', undefined],
    ['1::2::3', undefined],
    [':::', undefined],
    ['1:2:3', undefined],
    ['1:2:3:4:5:6:7', undefined],
    ['1:2:3:4:5:6:7:8:9:10', undefined],
    ['1:2:3:4:5:6:7:8:x', undefined],
    ['1:2:3:4:5:6:7:8:65536', undefined],
    ['1z::1', undefined],
    ['1.1::1', undefined],
    ['192.0.2.1::1', undefined],
    ['192.0.2.1:', undefined],
    ['192.0.2.1:x', undefined],
    ['x192.0.2.1', undefined],
    ['192.0.2.1x', undefined],
    ['192.0.2.1111', undefined],
    ['1192.0.2.1', undefined],
    ['::192.0.2.1x', undefined],
    ['::x192.0.2.1', undefined],
    ['[2001:db8::1', undefined],
    ['[2001:db8::1]x', undefined],
    ['[2001:db8::1]:x', undefined],
    ['x[2001:db8::1]', undefined],
    ['[2001:db8::]1]', undefined],
    ['for=192.0.2.1', undefined],
    [`${'1:'.repeat(50)}1`, undefined],
  ])('%s', (written, expected) => {
    expect(networkOf(written)).toBe(expected)
  })

  it('of 100,000 characters is refused without parsing', () => {
    expect(networkOf(':'.repeat(100_000))).toBeUndefined()
  })
})

describe('T-06 the address of a request', () => {
  const from = (forwarded: string | undefined, { proxy = true, maxIpsCount = 0, socket = '10.0.0.1' } = {}) => {
    const request = mockRequest({ fields: forwarded === undefined ? [] : [['X-Forwarded-For', forwarded]] })
    Object.assign(request.ctx.app, { proxy, maxIpsCount })
    Object.defineProperty(request.req.socket, 'remoteAddress', { value: socket })
    return clientAddress(request)
  }

  it.each<[string, string | undefined, Parameters<typeof from>[1], string]>([
    ['without a proxy, X-Forwarded-For does not count', '192.0.2.1', { proxy: false }, '10.0.0.1'],
    ['the last address of X-Forwarded-For, without its port', '1.1.1.1, 192.0.2.1:5678', {}, '192.0.2.1'],
    ['with brackets and port', '[2001:db8::1]:443', {}, '2001:db8:0:0::/64'],
    [
      'with two proxies, the address that the outer one added',
      '9.9.9.9, 192.0.2.1:7, 10.0.0.2:8',
      { maxIpsCount: 2 },
      '192.0.2.1',
    ],
    ['an invalid address counts as missing', 'unknown', {}, '10.0.0.1'],
    ['no X-Forwarded-For', undefined, {}, '10.0.0.1'],
    ['a blank after the last comma', '192.0.2.1, ', {}, '10.0.0.1'],
    ['an IPv6 socket', undefined, { socket: '::ffff:192.0.2.7' }, '192.0.2.7'],
  ])('%s', (_rule, forwarded, options, expected) => {
    expect(from(forwarded, options)).toBe(expected)
  })
})
