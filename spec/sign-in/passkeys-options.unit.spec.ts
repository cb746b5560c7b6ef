/** The options of `passkeys`: what cannot work is a TypeError that names the place and the fix. */
import { passkeys, type PasskeysOptions } from 'koa-with-auth/sign-in/passkeys'
import { memoryStore } from 'koa-with-auth/stores'
import { describe, expect, it } from 'vitest'

const options: PasskeysOptions<{ readonly username: string }> = {
  rp: { id: 'shop.example', name: 'Shop' },
  origins: ['https://shop.example'],
  store: memoryStore(),
  nameOf: ({ username }) => username,
}
const making = (more: object) => () => passkeys({ ...options, ...more })

describe('passkeys', () => {
  const wrong: ReadonlyArray<readonly [string, object, RegExp]> = [
    ['no rp', { rp: undefined }, /passkeys\(\{ rp \}\) takes an object/],
    ['no id', { rp: { name: 'Shop' } }, /passkeys\(\{ rp: \{ id \} \}\) must be a domain/],
    ['an id with a scheme', { rp: { id: 'https://shop.example', name: 'Shop' } }, /without scheme and port/],
    ['an id with a port', { rp: { id: 'localhost:3000', name: 'Shop' } }, /without scheme and port/],
    ['an address', { rp: { id: '127.0.0.1', name: 'Shop' } }, /localhost can/],
    ['upper case', { rp: { id: 'Shop.example', name: 'Shop' } }, /in lower case/],
    ['a public suffix', { rp: { id: 'example', name: 'Shop' } }, /must be a domain/],
    [
      'no name',
      { rp: { id: 'shop.example', name: '' } },
      /passkeys\(\{ rp: \{ name \} \}\) must be a string that is not empty/,
    ],
    ['another member', { rp: { id: 'shop.example', name: 'Shop', icon: 'x' } }, /no option "icon"/],
    ['no origins', { origins: [] }, /passkeys\(\{ origins \}\) must be an array of at least one origin/],
    ['a string of origins', { origins: 'https://shop.example' }, /must be an array/],
    ['an origin with a slash', { origins: ['https://shop.example/'] }, /no slash at the end/],
    ['an origin over http', { origins: ['http://shop.example'] }, /https but for localhost/],
    [
      'only related origins',
      { origins: ['https://shop.de'] },
      /has no origin of shop.example; add https:\/\/shop.example/,
    ],
    ['an origin that ends alike', { origins: ['https://myshop.example'] }, /has no origin of shop.example/],
    ['outer pages', { topOrigins: ['*'] }, /passkeys\(\{ topOrigins \}\) must be an array/],
    ['no store', { store: {} }, /passkeys\(\{ store \}\) has no method get; see Store/],
    ['no name of a user', { nameOf: 'email' }, /passkeys\(\{ nameOf \}\) must be a function/],
    ['a verification that is none', { userVerification: 'discouraged' }, /'required' or 'preferred'/],
    ['a lifetime of 0', { lifetime: 0 }, /passkeys\(\{ lifetime \}\) must be a number/],
    ['an unknown option', { origin: 'https://shop.example' }, /passkeys: no option "origin"/],
  ]
  it.each(wrong)('refuses %s', (_name, more, message) => {
    expect(making(more)).toThrow(TypeError)
    expect(making(more)).toThrow(message)
  })

  it.each([
    ['a subdomain', { origins: ['https://www.shop.example'] }],
    ['a related origin', { origins: ['https://shop.example', 'https://shop.de'] }],
    ['an application of Android', { origins: ['https://shop.example', `android:apk-key-hash:${'a'.repeat(43)}`] }],
    ['labels of one letter', { rp: { id: 's.e', name: 'Shop' }, origins: ['https://s.e'] }],
    ['localhost', { rp: { id: 'localhost', name: 'Shop' }, origins: ['http://localhost:3000'] }],
    ['a name under localhost', { rp: { id: 'app.localhost', name: 'Shop' }, origins: ['http://app.localhost:3000'] }],
  ])('accepts %s', (_name, more) => {
    expect(making(more)).not.toThrow()
  })

  it('a change of the arrays afterwards changes nothing', async () => {
    const origins = ['https://shop.example', 'https://shop.de']
    const { related } = making({ origins })()
    origins.push('https://evil.example')
    const ctx = { path: '/.well-known/webauthn', method: 'GET', hostname: 'shop.example', status: 404, body: undefined }
    await related(ctx as never, () => Promise.resolve())
    expect(JSON.parse(String(ctx.body))).toStrictEqual({ origins: ['https://shop.de'] })
  })

  it('makes kinds whose names differ, and contain the RP id', () => {
    const passkey = making({})()
    const names = [passkey.name, passkey.register.name, passkey.stepUp.name]
    expect(new Set(names).size).toBe(3)
    expect(names.every((name) => name.endsWith(':shop.example'))).toBe(true)
    const other = making({ rp: { id: 'example.org', name: 'Other' }, origins: ['https://example.org'] })()
    expect(other.name).not.toBe(passkey.name)
  })

  it('refuses a name of a user that is no string, when a registration begins', async () => {
    const { register } = making({ nameOf: () => undefined })()
    const incoming = { principal: { username: 'anna' } }
    await expect(async () =>
      register.begin(incoming as never, { subject: 'anna' } as never, undefined, {} as never),
    ).rejects.toThrow(/passkeys\(\{ nameOf \}\) must return a string/)
  })
})
