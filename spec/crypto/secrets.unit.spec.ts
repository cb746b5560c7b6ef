/** Comparison, digests, MACs, derived keys and encryption: as their sources say, and nothing else opens what was encrypted. */
import { createHash, createHmac } from 'node:crypto'
import fc from 'fast-check'
import { constantTimeEqual } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { decrypt, derive, digest, encrypt, hiding, isMac, mac, macBy, randomId } from '../../src/crypto/secrets.js'
import { row } from '../support/models/row.js'

// Comparing secrets: correct for any strings, without an exception, whatever their lengths.

describe('A-15 constantTimeEqual', () => {
  it.each([
    row('equal strings', ['supersecret', 'supersecret'], true),
    row('both empty', ['', ''], true),
    row('the beginning of the other', ['supersecret', 'super'], false),
    row('one empty', ['', 'a'], false),
    row('another letter case', ['Secret', 'secret'], false),
    row('a trailing NUL', ['a', 'a\0'], false),
    row('256 characters, equal', ['a'.repeat(256), 'a'.repeat(256)], true),
    row('256 characters, the last one different', ['a'.repeat(256), `${'a'.repeat(255)}b`], false),
    row('256 and 257 characters', ['a'.repeat(256), 'a'.repeat(257)], false),
    row('257 characters, equal', ['a'.repeat(257), 'a'.repeat(257)], true),
    row('257 characters, the last one different', ['a'.repeat(257), `${'a'.repeat(256)}b`], false),
    row('long, the last one different', [`${'ab'.repeat(50_000)}a`, `${'ab'.repeat(50_000)}b`], false),
    row('shorter than the one that was compared before', ['a', 'aaaa'], false),
    row('lengths that differ by 100 000', ['a', 'a'.repeat(100_001)], false),
    row('long, equal', ['ab'.repeat(50_000), 'ab'.repeat(50_000)], true),
    row('outside of ASCII', ['пароль', 'пароль'], true),
    row('composed and decomposed: nothing is normalized (B-21)', ['é', 'e\u0301'], false),
    row('equal lone surrogates', ['\ud800', '\ud800'], true),
    row('two lone surrogates that are equal in UTF-8', ['\ud800', '\udfff'], false),
    row('a lone surrogate and its replacement', ['\ud800', '\ufffd'], false),
    row('a character and the Latin-1 character of its low byte', ['\u0161', '\u0061'], false),
  ])('$description: $expected', ({ input: [a = '', b = ''], expected }) => {
    expect(constantTimeEqual(a, b)).toBe(expected)
    expect(constantTimeEqual(b, a)).toBe(expected)
  })

  it.each([undefined, null, 0, NaN, true, {}, [], ['a'], Symbol('a'), () => 'a', Buffer.from('a'), new String('a')])(
    'a value that is not a string equals nothing, itself included, without an exception: %o',
    (other) => {
      // Safe: a caller without types could pass this
      const value = other as string
      expect(constantTimeEqual(value, value)).toBe(false)
      expect(constantTimeEqual('a', value)).toBe(false)
      expect(constantTimeEqual(value, 'a')).toBe(false)
      expect(constantTimeEqual(value, '')).toBe(false)
    },
  )
})

const text = fc.string({ unit: 'binary', maxLength: 200 })
const key = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((one) => Buffer.from(one))

describe('digest and mac', () => {
  it('are SHA-256 and HMAC-SHA256 (RFC 4231, test case 2)', () => {
    const known = '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843'
    expect(mac('Jefe', 'what do ya want for nothing?', 'hex')).toBe(known)
    expect(digest('')).toBe(createHash('sha256').digest('base64url'))
    fc.assert(
      fc.property(text, text, (secret, message) => {
        expect(mac(secret, message)).toBe(createHmac('sha256', secret).update(message).digest('base64url'))
        expect(macBy(secret)(message)).toBe(mac(secret, message))
        expect(digest(message, 'hex')).toBe(createHash('sha256').update(message).digest('hex'))
      }),
    )
  })
})

describe('macBy', () => {
  it.each([0, 1, 63, 64, 65, 200])('is HMAC-SHA256 with a key of %i bytes, whatever was hashed before', (bytes) => {
    const secret = Buffer.alloc(bytes, 7)
    const mine = macBy(secret)
    for (const length of [3000, 0, 1, 2730, 2731, 9000, 5])
      for (const one of ['a', 'ü', '🔑']) {
        const message = one.repeat(length)
        expect(mine(message)).toBe(createHmac('sha256', secret).update(message).digest('base64url'))
      }
  })

  it('is compared whole, and of one length', () => {
    const right = macBy('secret')('text')
    expect(isMac(right, right)).toBe(true)
    for (let at = 0; at < right.length; at++)
      expect(isMac(`${right.slice(0, at)}~${right.slice(at + 1)}`, right)).toBe(false)
    for (const other of ['', right.slice(1), `${right}a`]) expect(isMac(other, right)).toBe(false)
  })
})

describe('randomId', () => {
  it('has as many bytes as are asked for, 32 else, and never the same', () => {
    const made = Array.from({ length: 1000 }, () => randomId())
    expect(new Set(made).size).toBe(1000)
    expect([...made.map((id) => Buffer.from(id, 'base64url').length)].every((bytes) => bytes === 32)).toBe(true)
    expect(Buffer.from(randomId(16), 'base64url')).toHaveLength(16)
  })
})

describe('derive', () => {
  it('gives each purpose another key, however its parts are cut', () => {
    const root = Buffer.alloc(32, 1)
    const keys = [derive(root), derive(root, 'ab'), derive(root, 'a', 'b'), derive(root, 'a,b'), derive(root, 'ab', '')]
    expect(new Set(keys.map((one) => one.toString('hex'))).size).toBe(keys.length)
    expect(keys.map(({ length }) => length)).toStrictEqual(keys.map(() => 32))
  })
})

describe('encrypt', () => {
  it('is opened by the same key for the same owner alone, and by nothing that was changed', () => {
    fc.assert(
      fc.property(key, key, text, text, fc.nat(), (mine, yours, content, owner, place) => {
        const raw = encrypt(mine, content, owner)
        expect(decrypt(mine, raw, owner)?.toString()).toBe(Buffer.from(content).toString())
        expect(decrypt(mine, raw, `${owner}.`)).toBeUndefined()
        if (!mine.equals(yours)) expect(decrypt(yours, raw, owner)).toBeUndefined()
        const changed = Buffer.from(raw)
        const at = place % raw.length
        changed.writeUInt8(changed.readUInt8(at) ^ 1, at)
        expect(decrypt(mine, changed, owner)).toBeUndefined()
        expect(decrypt(mine, raw.subarray(0, at), owner)).toBeUndefined()
      }),
    )
  })

  it('makes another string of the same content each time', () => {
    const root = Buffer.alloc(32, 1)
    expect(encrypt(root, 'a').equals(encrypt(root, 'a'))).toBe(false)
  })
})

describe('hiding', () => {
  it('shows what was hidden, hides it in one form, and uses no nonce twice', () => {
    fc.assert(
      fc.property(key, text, text, (root, one, other) => {
        const { hide, show } = hiding(root)
        expect(show(hide(one, 'anna'))).toBe(Buffer.from(one).toString())
        expect(hide(one, 'anna')).toBe(hide(one, 'anna'))
        const nonces = [hide(one, 'anna'), hide(one, 'bert'), hide(`${other}.`, 'carl')].map((hidden) =>
          hidden.slice(0, 21),
        )
        expect(new Set(nonces).size).toBe(3)
      }),
    )
  })
})
