/** A value cannot change an SQL statement, whatever it contains. */
import { createClient } from '@libsql/client'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { withValues } from '../../src/stores/sqlite.js'

const client = createClient({ url: ':memory:' })
afterAll(() => client.close())

// In hexadecimal digits, because the client reads a string only up to its first NUL
const stored = async (value: string | number): Promise<string> => {
  const { rows } = await client.execute(withValues('select hex(?) as value', [value]))
  const digits = rows[0]?.['value']
  return typeof digits === 'string' ? Buffer.from(digits, 'hex').toString() : 'no text'
}

describe('withValues', () => {
  it.each(["'; drop table auth_sessions; --", "''", '?', '? ?', '\u0000', 'a\u0000b', '"', '\\', '', 'ü€😀'])(
    'stores a string with SQL as it is: %j',
    async (text) => {
      expect(await stored(text)).toBe(text)
    },
  )

  it('stores any string and any integer', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.string({ unit: 'grapheme' }), fc.maxSafeInteger()), async (value) => {
        expect(await stored(value)).toBe(String(value))
      }),
    )
  })

  it('is a TypeError if there are more values than places, or fewer', () => {
    expect(() => withValues('select ?', [])).toThrow(TypeError)
    expect(() => withValues('select ?', [1, 2])).toThrow(TypeError)
  })
})
