import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import fc from 'fast-check'
import { on } from 'koa-with-auth/events'
import { hash, newPassword, verify } from 'koa-with-auth/passwords'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { repository } from '../support/projects/typecheck.js'

const { commonModule, commonPasswords } = (await import(
  /* @vite-ignore */ pathToFileURL(`${repository}.ci/commonPasswords.mjs`).href
)) as { readonly commonModule: () => string; readonly commonPasswords: () => ReadonlyArray<string> }

const good = 'correct horse battery'
const sha1 = (text: string) => createHash('sha1').update(text).digest('hex').toUpperCase()
const reasonOf = async (...given: Parameters<typeof newPassword>) => {
  const answer = await newPassword(...given)
  return answer.ok ? 'ok' : answer.reason
}

describe('newPassword: length', () => {
  it.each([
    ['14 characters', 'abcdefghijklm!', 'short'],
    ['15 characters', 'abcdefghijklm!o', 'ok'],
    ['128 characters', 'a'.repeat(128), 'ok'],
    ['129 characters', 'a'.repeat(129), 'long'],
    ['15 keys, each of two units of UTF-16', '🔑'.repeat(15), 'ok'],
    ['14 keys, which are 28 units', '🔑'.repeat(14), 'short'],
    ['15 letters of two code points, which are one each in the form C', 'u\u0308'.repeat(15), 'ok'],
    ['14 of them', 'u\u0308'.repeat(14), 'short'],
    ['128 of them', 'u\u0308'.repeat(128), 'ok'],
    ['10 MB', 'a'.repeat(10_000_000), 'long'],
    ['blanks', ' '.repeat(15), 'ok'],
  ])('%s: %#', async (_name, text, reason) => {
    expect(await reasonOf(text)).toBe(reason)
  })

  it('an empty one is short with the least minimum, and min says how short it may be', async () => {
    expect(await reasonOf('', { min: 8 })).toBe('short')
    expect(await reasonOf('zq8!kvwx', { min: 8 })).toBe('ok')
    expect(await reasonOf('zq8!kvw', { min: 8 })).toBe('short')
    expect(await reasonOf(good, { min: 22 })).toBe('short')
  })

  it.each([[undefined], [null], [5], [{ length: 20 }], [['a'.repeat(20)]], ['\ud800'.repeat(20)], [`${good}\0`]])(
    '%j is no password',
    async (text) => {
      expect(await newPassword(text)).toEqual({ ok: false, reason: 'short' })
    },
  )

  it('answers the normal form C, of which hash and verify make the same for both forms', async () => {
    const [composed, decomposed] = ['Grüße aus Köln, 2026', 'Grüße aus Köln, 2026'].map((text, at) =>
      text.normalize(at === 0 ? 'NFC' : 'NFD'),
    ) as [string, string]
    expect(composed).not.toBe(decomposed)
    expect(await newPassword(decomposed)).toEqual({ ok: true, password: composed })
    const stored = await hash(decomposed)
    expect([await verify(stored, composed), await verify(stored, decomposed)]).toEqual([true, true])
  })
})

describe('newPassword: common ones', () => {
  it('refuses each of the 10,000 commonest of at least 8 characters, and those of at least 15, in any case', async () => {
    const all = commonPasswords()
    expect(all.length).toBeGreaterThan(10_000)
    expect(all.filter((one) => [...one].length < 8)).toEqual([])
    for (const one of all) expect([one, await reasonOf(one, { min: 8 })]).toEqual([one, 'common'])
    expect(await reasonOf('PassWord123', { min: 8 })).toBe('common')
    for (const long of ['1qaz2wsx3edc4rfv', '1234567890123456', 'QwertyuiopAsdfgh', '000000000000000'])
      expect([long, await reasonOf(long)]).toEqual([long, 'common'])
  })

  it('refuses fewer than 1 of 2,000 random ones', async () => {
    let refused = 0
    for (let at = 0; at < 40_000; at++) {
      if ((await reasonOf(randomBytes(12).toString('base64'))) !== 'ok') refused++
    }
    expect(refused).toBeLessThan(20)
  })

  it('has a filter of at most 30 kB, which the script makes again of its source', () => {
    const file = readFileSync(`${repository}src/passwords/commonPasswords.ts`, 'utf8')
    expect(file.length).toBeLessThanOrEqual(30_000)
    expect(file).toBe(commonModule())
  })
})

describe('newPassword: context', () => {
  const user = { id: 7, username: 'annab', name: 'Anna M. Berg de Souza', email: 'lotte.p@shop.example' }

  it.each([
    ['xx ANNAB yy zz 123456', 'context'],
    ['my name is Anna, right?', 'context'],
    ['the iceberg of the north', 'context'],
    ['Lotte.P 2026 hello world', 'context'],
    ['lotte.p@shop.example', 'context'],
    ['de facto, a good one!', 'ok'],
    ['m for murder is a film', 'ok'],
    ['4nn4 b3rg in leetspeak', 'ok'],
    ['shop till we drop, ok?', 'ok'],
  ])('%j: %s', async (text, reason) => {
    expect(await reasonOf(text, { user })).toBe(reason)
  })

  it.each([
    ['i work at Acme today.', ['ACME'], 'context'],
    ['i work at ａｃｍｅ today.', ['acme'], 'context'],
    ['a letter is no word, ok', ['a', 'é'], 'ok'],
    ['two are one: made in eu', ['eu'], 'context'],
    ['ROTHAUS in Grafenhausen', ['rothaus'], 'context'],
  ])('%j with the words %j: %s', async (text, words, reason) => {
    expect(await reasonOf(text, { words })).toBe(reason)
  })

  it.each([[{}], [{ username: 5, name: null, email: undefined }], [{ username: '', name: ' ', email: '@' }]])(
    'a user of which nothing is known refuses nothing: %j',
    async (one) => {
      expect(await reasonOf(good, { user: one })).toBe('ok')
    },
  )
})

describe('newPassword: leaked ones', () => {
  const rangeWith = (text: string, count = ':3') => `00000:1\r\n${sha1(text).slice(5)}${count}\r\nFFFFF:2`

  it('asks for the first five digits of the SHA-1 alone, and refuses a password of the range', async () => {
    const asked: unknown[][] = []
    const breached = (...given: unknown[]) => {
      asked.push(given)
      return Promise.resolve(rangeWith(good))
    }
    expect(await reasonOf(good, { breached: (prefix) => breached(prefix) })).toBe('breached')
    expect(asked).toEqual([[sha1(good).slice(0, 5)]])
    expect(await reasonOf(`${good}!`, { breached: (prefix) => breached(prefix) })).toBe('ok')
  })

  it('is asked about the form C, takes lower case, and no line that hides the length', async () => {
    const decomposed = 'ü'.normalize('NFD').repeat(15)
    const range = rangeWith(decomposed.normalize('NFC')).toLowerCase()
    expect(await reasonOf(decomposed, { breached: () => range })).toBe('breached')
    expect(await reasonOf(good, { breached: () => rangeWith(good, ':0') })).toBe('ok')
    expect(await reasonOf(good, { breached: () => rangeWith(good, '') })).toBe('breached')
  })

  it('is not asked about a password that is refused for another reason', async () => {
    const breached = vi.fn(() => '')
    await reasonOf('short', { breached: (prefix) => breached(...([prefix] as unknown as [])) })
    await reasonOf(`${good} acme`, { words: ['acme'], breached: (prefix) => breached(...([prefix] as unknown as [])) })
    expect(breached).not.toHaveBeenCalled()
  })

  const recorded = () => {
    const records: unknown[] = []
    onTestFinished(on('password-check', (record) => void records.push(record)))
    return records
  }

  it.each([
    ['throws', () => { throw new Error('down') }], // prettier-ignore
    ['rejects', () => Promise.reject(new Error('down'))],
    ['answers no text', () => ({}) as never],
  ])('a list that %s lets the password pass, and is an event', async (_name, breached) => {
    const records = recorded()
    expect(await newPassword(good, { breached })).toEqual({ ok: true, password: good })
    expect(records).toEqual([{ event: 'unanswered', reason: 'failed' }])
  })

  it('a list that does not answer within 10 seconds lets the password pass, and is an event', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const records = recorded()
    let isDone = false
    const answer = newPassword(good, { breached: () => new Promise(() => {}) }).finally(() => (isDone = true))
    await vi.advanceTimersByTimeAsync(9999)
    expect([isDone, records]).toEqual([false, []])
    await vi.advanceTimersByTimeAsync(1)
    expect(await answer).toEqual({ ok: true, password: good })
    expect(records).toEqual([{ event: 'unanswered', reason: 'silent' }])
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('newPassword: options', () => {
  it.each([
    [{ min: 7 }, 'newPassword(text, { min }) must be an integer from 8 to 128'],
    [{ min: 15.5 }, 'newPassword(text, { min }) must be an integer from 8 to 128'],
    [{ words: ['shop', ''] }, 'newPassword(text, { words }) must be an array of strings that are not empty'],
    [{ user: 'anna' }, 'newPassword(text, { user }) must be an object'],
    [{ breached: true }, 'newPassword(text, { breached }) must be a function, not a boolean'],
    [{ max: 64 }, 'newPassword(text, options): no option "max"; there are user, words, min, breached'],
  ])('%j is a TypeError', async (options, message) => {
    await expect(newPassword(good, options as never)).rejects.toThrow(new TypeError(message))
  })

  it('any text has an answer', async () => {
    await fc.assert(
      fc.asyncProperty(fc.anything(), fc.string({ unit: 'binary', maxLength: 300 }), async (u, text) => {
        for (const one of [u, text]) expect(['ok', 'short', 'long', 'common']).toContain(await reasonOf(one))
      }),
    )
  })
})

it('the time limit of a list of leaked passwords holds no process after its answer', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  expect(await newPassword('four words that nobody has', { breached: async () => '' })).toHaveProperty('ok', true)
  expect(vi.getTimerCount()).toBe(0)
})
