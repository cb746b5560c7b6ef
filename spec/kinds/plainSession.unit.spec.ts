/** Sessions of plain koa-session: what is weak in its options, and which keys sign. */
import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import Keygrip from 'keygrip'
import Koa from 'koa'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import {
  macBy,
  weaknessesOf,
  keysFix,
  signed,
  isMac,
  signedBy,
  strengthOf,
  warnOfShortKey,
} from '../../src/kinds/plainSession.js'

// Each weakness of a plain koa-session is reported, and nothing else.

const strong = { store: {}, sameSite: 'lax', secure: true }

describe('weaknessesOf', () => {
  it.each<[object]>([
    [{}],
    [{ store: undefined, ContextStore: class {} }],
    [{ sameSite: true }],
    [{ sameSite: 'Strict' }],
    [{ signed: true, httpOnly: true, maxAge: 1000, valid: () => true }],
    [{ maxAge: undefined, valid: 'async' }],
  ])('finds nothing in %o', (options) => {
    expect(weaknessesOf({ ...strong, ...options }, true)).toStrictEqual([])
  })

  const storing = 'without a store the session is in the cookie, readable, and signing out cannot end it; set `store`'
  const site = "browsers send the cookie along from other sites; set `sameSite: 'lax'`"
  const bare = 'the cookie can travel unencrypted; set `secure: true`'

  it.each<[object, string]>([
    [{ store: undefined }, storing],
    [{ signed: false }, 'unsigned cookies can be written by anybody; remove `signed: false`'],
    [{ httpOnly: false }, 'scripts can read the cookie; remove `httpOnly: false`'],
    [{ sameSite: undefined }, site],
    [{ sameSite: 'none' }, site],
    [{ sameSite: 'laxer' }, site],
    [{ sameSite: 'relax' }, site],
    [{ sameSite: false }, site],
    [{ secure: undefined }, bare],
    [{ secure: false }, bare],
    [{ maxAge: 'session' }, 'a stolen cookie works for ever; set `maxAge` to milliseconds'],
    [
      { valid: async () => false },
      '`valid` is async, so every session counts as valid; make it sync, or use `loadUser`',
    ],
  ])('finds one in %o', (options, warning) => {
    expect(weaknessesOf({ ...strong, ...options }, true)).toStrictEqual([warning])
  })

  it('finds a cookie that can be sent unencrypted only in production', () => {
    expect(weaknessesOf({ ...strong, secure: false }, false)).toStrictEqual([])
  })

  it('finds several together', () => {
    const weak = { signed: false, httpOnly: false, maxAge: 'session', valid: async () => true }
    expect(weaknessesOf(weak, true)).toHaveLength(7)
  })
})

// signing keys that could be guessed, and which key made a signature.

const long = 'k'.repeat(32)

describe('strengthOf', () => {
  it.each<[unknown]>([[[long]], [[long, `${long}k`]], [new Keygrip(['a'])]])('of %o is strong', (keys) => {
    expect(strengthOf(keys)).toBe('strong')
  })

  it.each<[unknown]>([[[long, 'short']], [[long, 's', long]], [[long, long, 'k'.repeat(31)]]])(
    'of %o is "older short"',
    (keys) => {
      expect(strengthOf(keys)).toBe('older short')
    },
  )

  it.each<[unknown]>([
    [undefined],
    [null],
    [[]],
    [['k'.repeat(31)]],
    [[long, '']],
    [[long, 'short', undefined]],
    [['short', long]],
    [[{ length: 32 }]],
    [[Buffer.alloc(32)]],
    [long],
    [{}],
    [{ sign: () => '' }],
    [{ verify: () => true }],
    [{ sign: 'a', verify: () => true }],
    [{ sign: () => '', verify: 'a' }],
    [Object.assign(() => 1, { verify: () => true })],
  ])('of %o is weak', (keys) => {
    expect(strengthOf(keys)).toBe('weak')
  })

  it('has a fix that names the length', () => {
    expect(keysFix).toBe(
      "app.keys must hold strings, and the first, which signs, at least 32 characters; app.keys = [randomBytes(32).toString('hex')], kept outside the code",
    )
    const warn = vi.spyOn(process, 'emitWarning').mockReturnValue()
    onTestFinished(() => warn.mockRestore())
    const app = new Koa()
    warnOfShortKey(app)
    warnOfShortKey(app)
    const warning = /^app\.keys: an older key has fewer than 32 characters\. .* take it out/
    expect(warn.mock.calls).toStrictEqual([[expect.stringMatching(warning), 'SessionWarning']])
  })
})

describe('macBy', () => {
  it('is the HMAC-SHA256 of node:crypto, for keys, starts and texts of any length', () => {
    const text = fc.string({ unit: 'binary', maxLength: 200 })
    const bytes = fc.uint8Array({ maxLength: 200 }).map((one) => Buffer.from(one))
    const long = fc.integer({ min: 2700, max: 2800 }).map((length) => 'é'.repeat(length))
    fc.assert(
      fc.property(fc.oneof(text, bytes), fc.oneof(text, long), (key, message) => {
        expect(macBy(key)(message)).toBe(createHmac('sha256', key).update(message).digest('base64url'))
      }),
    )
    const starts = fc.oneof(text, long, fc.constant('s'.repeat(10_000)))
    fc.assert(
      fc.property(
        text,
        starts,
        fc.array(fc.oneof(text, long), { minLength: 1, maxLength: 3 }),
        (key, start, messages) => {
          const mac = macBy(key, `${start}\n`)
          for (const message of messages) {
            const all = `${start}\n${message}`
            expect(mac(message)).toBe(createHmac('sha256', key).update(all).digest('base64url'))
          }
        },
      ),
    )
  })
})

describe('isMac', () => {
  const mac = macBy('k'.repeat(32))('anna')

  it('is true for the same characters alone: another one, fewer, more, or of another plane are none', () => {
    expect(isMac([...mac].join(''), mac)).toBe(true)
    const others = [...mac].flatMap((character, at) => {
      const changed = (other: string) => `${mac.slice(0, at)}${other}${mac.slice(at + 1)}`
      return [
        changed('*'),
        changed(''),
        changed(character + character),
        changed(String.fromCharCode(character.charCodeAt(0) + 256)),
      ]
    })
    expect([...others, '', `${mac}\0`].filter((one) => isMac(one, mac))).toEqual([])
  })
})

describe('signedBy', () => {
  const [old, fresh] = ['o'.repeat(32), 'n'.repeat(32)]

  it.each<[string, (...keys: string[]) => unknown]>([
    ['an array', (...keys) => keys],
    ['a Keygrip', (...keys) => new Keygrip(keys)],
  ])('%s: the first key signs, every key verifies, and nothing else is a signature', (_, make) => {
    const signature = signed(make(old, fresh), 'anna')
    expect(signedBy(make(old, fresh), 'anna', signature)).toBe('first')
    expect(signedBy(make(fresh, old), 'anna', signature)).toBe('older')
    expect(signedBy(make(fresh), 'anna', signature)).toBe('none')
    for (const forged of ['', 'anna', signature.slice(1), signed(make(old), 'root')]) {
      expect(signedBy(make(old, fresh), 'anna', forged)).toBe('none')
    }
  })

  it.each([[undefined], [old], [[]], [[undefined]]])('%o signs and verifies nothing', (keys) => {
    expect(() => signed(keys, 'anna')).toThrow(new TypeError(keysFix))
    expect(signedBy(keys, 'anna', signed([old], 'anna'))).toBe('none')
  })

  it('ignores older keys that are not strings', () => {
    expect(signedBy([fresh, undefined, old], 'anna', signed([old], 'anna'))).toBe('older')
  })
})
