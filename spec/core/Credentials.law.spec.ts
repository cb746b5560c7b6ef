/** Codecs: decode after encode is the identity; decoding is total; a refused value is not in the errors. */
import { inspect } from 'node:util'
import { either as E } from 'fp-ts'
import fc, { type Arbitrary } from 'fast-check'
import type * as t from 'io-ts'
import { BasicCredentials, BearerToken, CookieKey, HeaderKey, QueryKey } from 'koa-with-auth/fp'
import { describe, expect, it } from 'vitest'
import { AnyCredentials } from '../../src/core/Credentials.js'
import { b64token, basicCredentials, secret } from '../support/models/arbitraries.js'
import { expectLinear } from '../support/runs/growth.js'

const latin1 = fc.string({ unit: fc.integer({ min: 0, max: 255 }).map((byte) => String.fromCharCode(byte)) })
const quoted = fc.string().map((text) => `"${text}"`)
const anyText = fc.oneof(latin1, quoted, fc.string({ unit: 'binary' }), b64token)

interface Case {
  readonly codec: t.Type<unknown, string, unknown>
  /** Arbitrary credentials, most of them valid. */
  readonly credentials: Arbitrary<unknown>
  /** The beginning of its fields. */
  readonly prefix: string
  /** Characters with which no credential of this kind may end. */
  readonly spoiling: ReadonlyArray<string>
}

// Safe: each codec only gets what its own `is` accepts
const erased = (codec: t.Type<never, string, unknown> | t.Type<string, string, unknown>) => codec as Case['codec']

const cases: ReadonlyArray<Case> = [
  { codec: erased(BearerToken), credentials: b64token, prefix: 'Bearer ', spoiling: ['\u0000', '\n', ' \u0100', '"'] },
  {
    codec: BasicCredentials as Case['codec'],
    credentials: basicCredentials,
    prefix: 'Basic ',
    spoiling: ['\u0000', '\n', ' \u0100', '-', '='],
  },
  { codec: erased(QueryKey), credentials: anyText, prefix: '', spoiling: ['\ud800'] },
  { codec: erased(HeaderKey), credentials: anyText, prefix: '', spoiling: ['\u0000', '\r\n', '\u0100'] },
  { codec: erased(CookieKey), credentials: anyText, prefix: '', spoiling: ['\u0000', ';', '\u0100'] },
]

describe.each(cases)('$codec.name', ({ codec, credentials, prefix, spoiling }) => {
  it('decode after encode is the identity on what it accepts', () => {
    fc.assert(
      fc.property(credentials, (credential) => {
        fc.pre(codec.is(credential))
        expect(codec.decode(codec.encode(credential))).toStrictEqual(E.right(credential))
      }),
      { numRuns: 500 },
    )
  })

  it('decodes to what it accepts, and the encoding of that decodes to the same', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          anyText,
          anyText.map((text) => prefix + text),
        ),
        (sent) => {
          const decoded = codec.decode(sent)
          if (E.isLeft(decoded)) return
          expect(codec.is(decoded.right)).toBe(true)
          expect(codec.decode(codec.encode(decoded.right))).toStrictEqual(decoded)
        },
      ),
      { numRuns: 500 },
    )
  })

  it('is total: any bytes and any value are decoded or refused, and nothing is thrown', () => {
    fc.assert(
      fc.property(fc.oneof(latin1, anyText, fc.anything(), fc.array(fc.string())), (sent) => {
        const decoded = codec.decode(sent)
        expect(['Left', 'Right']).toContain(decoded._tag)
        if (typeof sent !== 'string') expect(decoded._tag).toBe('Left')
      }),
      { numRuns: 500 },
    )
  })

  it('A-37 a refused value is not in the errors', () => {
    fc.assert(
      fc.property(secret, fc.constantFrom(...spoiling), (text, spoiled) => {
        const values = [`${prefix}${text}${spoiled}`, [prefix + text], { key: text }, new String(prefix + text)]
        for (const value of values) {
          const decoded = codec.decode(value)
          expect(decoded._tag).toBe('Left')
          expect(inspect(decoded, { depth: null, showHidden: true })).not.toContain(text)
          expect(JSON.stringify(decoded)).not.toContain(text)
        }
      }),
    )
  })

  it('decodes in linear time (A-23)', () => {
    for (const text of [
      'A'.repeat(12_000),
      ' '.repeat(12_000),
      '='.repeat(12_000),
      '"'.repeat(12_000),
      'a \t'.repeat(4000),
    ]) {
      for (const end of ['', '\u0000', '"', '=']) {
        expectLinear(1500, (size) => {
          const sent = prefix + text.slice(0, size) + end
          return () => codec.decode(sent)
        })
      }
    }
  })
})

describe('AnyCredentials, for a kind without a codec', () => {
  it('refuses only undefined, the empty string, and arrays, which mean that it was sent twice', () => {
    fc.assert(
      fc.property(fc.anything(), (sent) => {
        expect(E.isLeft(AnyCredentials.decode(sent))).toBe(
          sent === undefined || sent === null || sent === '' || Array.isArray(sent),
        )
      }),
    )
  })
})
