/** K-07 `apiKeys({ owner })` takes a Standard Schema of strings, also an async one. */
import { type } from 'arktype'
import { either as E } from 'fp-ts'
import { apiKeys, type ApiKeysOptions } from 'koa-with-auth/keys'
import { memoryStore } from 'koa-with-auth/stores'
import { mockRequest } from 'koa-with-auth/testing'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'

const request = mockRequest({})
const made = (owner: unknown, store = memoryStore()) =>
  // Safe: a program without types could write this
  apiKeys({ prefix: 'acme', store, owner } as unknown as ApiKeysOptions<string>)
const team = /^team-\d+$/
const hidden = 'a secret text'
const throwing = { '~standard': { version: 1, vendor: 'x', validate: () => Promise.reject(new Error(hidden)) } }

describe.each<readonly [string, unknown]>([
  ['zod', z.string().regex(team, hidden)],
  ['zod, async', z.string().refine(async (name) => team.test(name), hidden)],
  ['valibot', v.pipe(v.string(), v.regex(team, hidden))],
  ['arktype', type(team)],
])('an owner of %s', (_library, owner) => {
  it('is stored as it is, and returned', async () => {
    const keys = made(owner)
    const { key } = await keys.issue({ owner: 'team-1' })
    const result = await keys.authenticate(request, key)
    expect(E.isRight(result) && result.right.owner).toBe('team-1')
    expect((await keys.list('team-1')).map((one) => one.owner)).toEqual(['team-1'])
    await keys.adopt('0'.repeat(64), { owner: 'team-1' })
    expect(await keys.list('team-1')).toHaveLength(2)
  })

  it('that the schema refuses is an error without its value or the text of the issue', async () => {
    const store = memoryStore()
    const keys = made(owner, store)
    for (const wrong of ['user-of-mine', '', 7, null, undefined, ['team-1'], { toString: () => 'team-1' }]) {
      // Safe: a program without types could write this
      const given = wrong as string
      for (const call of [
        () => keys.issue({ owner: given }),
        () => keys.list(given),
        () => keys.adopt('0'.repeat(64), { owner: given }),
      ]) {
        const error: unknown = await call().catch((one: unknown) => one)
        expect(error).toBeInstanceOf(TypeError)
        expect(String(error)).toMatch(/^TypeError: keys\.\w+\(.*is refused by the schema of apiKeys\(\{ owner \}\)$/)
      }
    }
    const { key } = await apiKeys({ prefix: 'acme', store }).issue({ owner: 'user-of-mine' })
    const error: unknown = await Promise.resolve(keys.authenticate(request, key)).catch((one: unknown) => one)
    expect(String(error)).toMatch(/the owner of a stored key is refused/)
    expect(String(error)).not.toMatch(/mine|secret/)
  })
})

describe('a schema that is not one of strings', () => {
  it.each([
    ['zod', z.number()],
    ['zod that coerces', z.coerce.number()],
    ['arktype', type('number')],
    ['an object', z.object({ name: z.string() })],
    ['no schema', z.object],
    ['a later version', { '~standard': { version: 2 } }],
  ])('is a TypeError: %s', (_what, owner) => {
    expect(() => made(owner)).toThrow(TypeError)
    expect(() => made(owner)).toThrow(/^apiKeys\(\{ owner \}\)/)
  })

  it('without JSON Schema it refuses each owner', async () => {
    const keys = made(v.number())
    for (const owner of ['7', 7]) {
      // Safe: a program without types could write this
      await expect(keys.issue({ owner: owner as string })).rejects.toThrow(/keys\.issue\(\{ owner \}\) is refused/)
    }
  })

  it.each([
    ['changes a string', z.string().toLowerCase()],
    ['returns something else', z.string().transform((name) => ({ name }))],
    [
      'returns an object that looks like it',
      v.pipe(
        v.string(),
        v.transform((name) => ({ toString: () => name })),
      ),
    ],
  ])('that %s is a TypeError at the first owner', async (_what, owner) => {
    await expect((async () => made(owner).issue({ owner: 'Anna' }))()).rejects.toThrow(/apiKeys\(\{ owner \}\)/)
    const store = memoryStore()
    const { key } = await apiKeys({ prefix: 'acme', store }).issue({ owner: 'Anna' })
    await expect((async () => made(owner, store).authenticate(request, key))()).rejects.toThrow(/of a stored key/)
  })

  it('that throws: nothing is stored, and the error does not show the message', async () => {
    const error: unknown = await made(throwing)
      .issue({ owner: 'anna' })
      .catch((one: unknown) => one)
    expect(String(error)).toBe('Error: apiKeys({ owner }): the schema threw')
  })
})
