/** What `npm start` reads from the environment. */
import { describe, expect, it } from 'vitest'
import { isLoopback, settingsIn } from '../../examples/api/settings.js'

describe('the settings of npm start', () => {
  it('have defaults, with a random key for each start', () => {
    const [one, two] = [settingsIn({}), settingsIn({})]
    expect(one).toEqual({
      port: 3000,
      host: '127.0.0.1',
      keys: [expect.stringMatching(/^[0-9a-f]{64}$/)],
      databaseUrl: 'file:example.db',
      allowedAddresses: '127.0.0.1,::1',
      redisUrl: '',
    })
    expect(one.keys).not.toEqual(two.keys)
  })

  it.each(['', ' '])('PORT=%j is the default', (blank) => {
    expect(settingsIn({ PORT: blank }).port).toBe(3000)
  })

  it.each(['0', '80', '65535'])('PORT=%s is read', (port) => {
    expect(settingsIn({ PORT: port }).port).toBe(Number(port))
  })

  it.each(['abc', '-1', '65536', '70000', '3000.5', '0x10', '1e3'])(
    'PORT=%s is an error that names the value',
    (wrong) => {
      expect(() => settingsIn({ PORT: wrong })).toThrow(`PORT must be a number from 0 to 65535, not "${wrong}"`)
    },
  )

  it('KEYS is a list separated by commas', () => {
    const [a, b] = ['a'.repeat(32), 'b'.repeat(32)]
    expect(settingsIn({ KEYS: `${a},${b}` }).keys).toEqual([a, b])
  })

  it.each(['short', `${'k'.repeat(32)},short`, `${'k'.repeat(32)},`])(
    'KEYS=%s is an error that does not contain the keys',
    (wrong) => {
      expect(() => settingsIn({ KEYS: wrong })).toThrow(
        /^KEYS must be keys of at least 32 characters each, separated by commas$/,
      )
    },
  )

  it.each([
    ['127.0.0.1', true],
    ['127.0.0.2', true],
    ['::1', true],
    ['::ffff:127.0.0.1', true],
    ['0.0.0.0', false],
    ['::', false],
    ['10.0.0.1', false],
    ['fe80::1', false],
  ])('E3 %s is a loopback address: %s', (address, expected) => {
    expect(isLoopback(address)).toBe(expected)
  })
})
