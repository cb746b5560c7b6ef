/** Codes of a second factor: of whom, by which key, and that nothing but `true` is a right one. */
import * as E from 'fp-ts/lib/Either.js'
import { recoveryCodes, secondFactor, totp, type CodeFactor } from 'koa-with-auth/sign-in'
import { memoryStore, oneTimeIds } from 'koa-with-auth/stores'
import { expect, it, vi } from 'vitest'
import type { Ceremony } from '../../src/sign-in/Kind.js'
import { strongKey } from '../support/sites/sessionsApp.js'

const older = 'an older key that is long enough, too'
const factor = (own: Partial<CodeFactor> = {}): CodeFactor => ({ method: 'own', verify: async () => true, ...own })

it.each<[boolean, ReadonlyArray<Partial<CodeFactor>>]>([
  [true, [{}]],
  [true, [{ has: () => true }]],
  [false, [{ has: () => false }]],
  // a flag of a database that cannot be read must not switch the factor off
  [true, [{ has: () => undefined as never }]],
  [true, [{ has: async () => null as never }]],
  [false, [{ has: () => false }, { isSpare: true }]],
  [true, [{ isSpare: true }]],
  [false, [{ has: () => false, isSpare: true }]],
])('a user has set up a factor, %s: %j', async (expected, factors) => {
  expect(await secondFactor({ factors: factors.map(factor) }).has('anna')).toBe(expected)
})

it('nothing but true is a right code; a wrong one is counted for its user alone', async () => {
  const answers: Record<string, unknown> = { good: true, late: false, one: 1, text: 'true' }
  const asked: unknown[] = []
  const verify = async (user: string, code: unknown) => {
    asked.push([user, code])
    return answers[String(code)] as boolean
  }
  const counted: unknown[] = []
  const limiter = {
    get: async () => null,
    consume: async (key: string | number) => (counted.push(key), { remainingPoints: 5, msBeforeNext: 1 }) as never,
    reward: async () => undefined as never,
    delete: async () => true,
  }
  const kind = secondFactor({ factors: [factor({ verify })], limiter })
  // Safe: a check reads no more of it
  const ceremony = { subject: 'anna', ids: oneTimeIds(memoryStore()) } as unknown as Ceremony
  const reasons: unknown[] = []
  for (const code of ['good', 'late', 'one', 'text', undefined]) {
    const found = await kind.check(null, { code, from: '192.0.2.1' }, ceremony)
    reasons.push(E.isRight(found) ? found.right : found.left.reason)
  }
  expect(reasons).toEqual([{ method: 'own', subject: 'anna' }, 'wrong', 'wrong', 'wrong', 'wrong'])
  expect(new Set(asked.map((one) => (one as [string])[0]))).toEqual(new Set(['anna']))
  const ofAnna = counted.splice(0)
  await kind.check(null, { code: 'late', from: '192.0.2.1' }, { ...ceremony, subject: 'bert' })
  expect([ofAnna.length > 0, counted.length > 0, counted.filter((key) => ofAnna.includes(key))]).toEqual([
    true,
    true,
    [],
  ])
})

it('an answer is a POST with a handle', () => {
  const { read } = secondFactor({ factors: [factor()] })
  const incoming = { method: 'POST', body: { handle: 'h', code: '1' }, address: 'here' } as never
  expect(read(incoming, {} as never)).toEqual({ handle: 'h', answer: { code: '1', from: 'here' } })
  expect(read({ ...(incoming as object), method: 'GET' } as never, {} as never)).toBeUndefined()
  expect(read({ ...(incoming as object), body: { handle: ['h'] } } as never, {} as never)).toBeUndefined()
})

it('a recovery code is good by each key, in lower case and with blanks, and only if use says true', async () => {
  const use = vi.fn(async (_user: string, _digests: ReadonlyArray<string>): Promise<boolean> => true)
  const before = recoveryCodes({ keys: () => [older], use })
  const now = recoveryCodes({ keys: () => [strongKey, older], use })
  const { codes, digests } = before.make('anna')
  expect([codes.length, new Set(digests).size, now.make('anna').digests.length]).toEqual([10, 10, 10])
  expect(await now.verify('anna', codes[0]?.toLowerCase().replaceAll('-', ' '))).toBe(true)
  expect(use.mock.calls[0]?.[1]).toContain(digests[0])
  await now.verify('bert', codes[0])
  expect(use.mock.calls[1]?.[1]).not.toContain(digests[0])
  use.mockResolvedValue(1 as never)
  expect(await now.verify('anna', codes[0])).toBe(false)
  use.mockClear()
  for (const wrong of [codes[0]?.slice(1), `${codes[0]}A`, '1', 7, undefined]) await now.verify('anna', wrong)
  expect(use).not.toHaveBeenCalled()
})

it('its name has its factors, and its field is for digits if all its codes are', () => {
  const names = [undefined, 'staff'].map((name) => secondFactor({ factors: [factor(), factor()], name }).name)
  expect(names).toEqual(['code:own,own', 'code:staff:own,own'])
  const fields = (...factors: ReadonlyArray<CodeFactor>) => secondFactor({ factors }).form?.answer
  const field = { name: 'code', type: 'text', autocomplete: 'one-time-code' }
  const app = totp({ issuer: 'Shop', keys: () => [strongKey], secretOf: () => undefined, store: memoryStore() })
  expect(fields(app)).toEqual([{ ...field, inputmode: 'numeric' }])
  expect(fields(app, factor())).toEqual([field])
})

const [one, two, three] = [(_a: 1) => true, (_a: 1, _b: 2) => true, (_a: 1, _b: 2, _c: 3) => true]
it.each<[string, object]>([
  ['totp({ secretOf }) takes 2', { issuer: 'Shop', store: memoryStore(), secretOf: two }],
  ['totp({ keys }) takes 1', { issuer: 'Shop', store: memoryStore(), secretOf: () => undefined, keys: one }],
  ['recoveryCodes({ use }) takes 3', { use: three }],
  ['recoveryCodes({ keys }) takes 1', { use: two, keys: one }],
])('a function that expects more is a TypeError: %s', (message, options) => {
  const make = message.startsWith('totp') ? totp : recoveryCodes
  // Safe: a program without types could write this
  expect(() => make({ keys: () => [strongKey], ...options } as never)).toThrow(message)
})
