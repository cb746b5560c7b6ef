/** `verify`: the time of a wrong password does not reveal which users exist, whatever kind of hash they have. */
import { hash as bcryptHash } from '@node-rs/bcrypt'
import { hashRaw } from '@node-rs/argon2'
import { scryptSync } from 'node:crypto'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { hash, verify } from 'koa-with-auth/passwords'

const base64 = (bytes: Buffer) => bytes.toString('base64').replace(/=+$/, '')
const scryptOf = (password: string, ln: number): string => {
  const salt = Buffer.alloc(16, 1)
  return `$scrypt$ln=${ln},r=8,p=1$${base64(salt)}$${base64(scryptSync(password, salt, 32, { N: 2 ** ln, r: 8, p: 1, maxmem: 2 ** 28 }))}`
}
const argon2Of = async (password: string, m: number, t: number): Promise<string> => {
  const salt = Buffer.alloc(16, 1)
  const key = await hashRaw(password, { algorithm: 2, salt, memoryCost: m, timeCost: t, parallelism: 1, outputLen: 32 })
  return `$argon2id$v=19$m=${m},t=${t},p=1$${base64(salt)}$${base64(key)}`
}

// Of the processor, because the machine has other work
const timeOf = async (stored: string | null | undefined, password: string): Promise<number> => {
  const begun = process.cpuUsage()
  expect(await verify(stored, password)).toBe(false)
  const { user, system } = process.cpuUsage(begun)
  return (user + system) / 1000
}

describe('P-01 a wrong password', () => {
  const users = new Map<string, string | null | undefined>()

  beforeAll(async () => {
    users.set('bcrypt 10', await bcryptHash('right', 10))
    users.set('bcrypt 8', await bcryptHash('right', 8))
    users.set('today', await hash('right'))
    users.set('scrypt', scryptOf('right', 12))
    users.set('argon2', await argon2Of('right', 32_768, 2))
    for (const stored of users.values()) expect(await verify(stored, 'right')).toBe(true)
    // What is measured is the second time
    for (const stored of users.values()) expect(await verify(stored, 'wrong')).toBe(false)
    users.set('no such user', undefined)
    users.set('no password', null)
    users.set('an empty hash', '')
  })

  it.each([
    ['short', 'wrong'],
    ['longer than bcrypt reads', 'x'.repeat(73)],
  ])('takes the same time for every user and for none, if it is %s', async (_what, password) => {
    const times = new Map<string, number>()
    const ratio = () => Math.max(...times.values()) / Math.min(...times.values())
    // Other programs only make a call longer, so the shortest ones come closer to the truth with each round, until they decide
    for (let round = 0; round < 200 && (round < 7 || ratio() >= 1.6); round++) {
      for (const [user, stored] of users) {
        times.set(user, Math.min(await timeOf(stored, password), times.get(user) ?? Infinity))
      }
    }
    expect(ratio(), JSON.stringify([...times])).toBeLessThan(1.6)
  })

  it('does no work for a hash that only waited for the processor', async () => {
    const shortest = async (limit = 0): Promise<number> => {
      const times = [await timeOf(null, 'wrong')]
      for (let round = 1; round < 5 || (round < 200 && Math.min(...times) >= limit && limit > 0); round++) {
        times.push(await timeOf(null, 'wrong'))
      }
      return Math.min(...times)
    }
    const before = await shortest()
    const clock = vi.spyOn(performance, 'now')
    let waited = 0
    clock.mockImplementation(() => (waited += 2000))
    expect(await verify(scryptOf('right', 11), 'right')).toBe(true)
    clock.mockRestore()
    expect(await shortest(3 * before)).toBeLessThan(3 * before)
  })
})
