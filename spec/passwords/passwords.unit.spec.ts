/** Passwords while many guesses arrive: no blocked event loop, a bounded queue, and hashes of other programs. */
import { scryptSync } from 'node:crypto'
import { availableParallelism } from 'node:os'
import * as argon from '@node-rs/argon2'
import * as bcrypt from '@node-rs/bcrypt'
import fc from 'fast-check'
import { hash, needsRehash, newPassword, verify } from 'koa-with-auth/passwords'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { UnavailableError } from 'koa-with-auth'
import { argon2OfNode, argon2OfPackage } from '../../src/passwords/argon2.js'
import { makeQueue, widthFor } from '../../src/passwords/Queue.js'
import { isEnough, isLarge, parse, printPassword } from '../../src/passwords/StoredPassword.js'
import { derivations } from '../support/models/derivations.js'
import { untimedPasswords } from '../support/runs/untimedPasswords.js'

// Passwords: what is stored, what is verified, what is refused, and the work for an unknown user.

const SALT = 'AAAAAAAAAAAAAAAAAAAAAA'
const KEY = 'A'.repeat(43)

// Safe, three times: what JavaScript may pass
const noPasswords: ReadonlyArray<[string, string]> = [
  ['empty', ''],
  ['4097 bytes', 'a'.repeat(4097)],
  ['4098 bytes in 2049 characters', 'ü'.repeat(2049)],
  ['10 MB', 'a'.repeat(10_000_000)],
  ['a lone surrogate', 'a\ud800'],
  ['a lone surrogate alone', '\udfff'],
  ['NUL', 'a\0b'],
  ['NUL at the end', 'anna-secret\0'],
  ['257 combining marks in a row', `anna${'\u0315\u0300'.repeat(128)}\u0327-secret`],
  ['a number', 5 as never],
  ['an object', {} as never],
  ['nothing', undefined as never],
]

describe('hash', () => {
  it('P-01 makes a PHC string of Argon2id at the costs of OWASP, different each time, without the password', async () => {
    const [first, second] = [await hash('anna-secret'), await hash('anna-secret')]
    for (const stored of [first, second]) {
      expect(stored).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
      expect(stored).not.toContain('anna')
      expect(await verify(stored, 'anna-secret')).toBe(true)
      expect(needsRehash(stored)).toBe(false)
    }
    expect(first).not.toBe(second)
  })

  it('makes a string that @node-rs/argon2 verifies', async () => {
    expect(await argon.verify(await hash('anna-secret'), 'anna-secret')).toBe(true)
  })

  it.each(noPasswords)('%s is a RangeError that does not contain the password', async (_name, password) => {
    const error: unknown = await hash(password).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(RangeError)
    expect((error as Error).message).toBe(
      'hash(password): a password must be well-formed Unicode of 1 to 4096 bytes, without NUL, and with at most 256 combining marks in a row',
    )
  })

  it.each(['a'.repeat(4096), 'ü'.repeat(2048), ' ', '日本語 🔑', `a${'\u0315\u0300'.repeat(128)}-`.repeat(4)])(
    '%# any other string works',
    async (password) => {
      const stored = await hash(password)
      expect(await verify(stored, password)).toBe(true)
      expect(await verify(stored, `${password.slice(0, -1)}x`)).toBe(false)
    },
  )
})

describe('verify: hashes of other programs', () => {
  it.each([
    [
      'the reference implementation of Argon2',
      '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc',
      'password',
    ],
    [
      'passlib, scrypt',
      '$scrypt$ln=16,r=8,p=1$aM15713r3Xsvxbi31lqr1Q$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E',
      'password',
    ],
    ['bcrypt, 2a', '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW', 'U*U'],
    ['bcrypt, 2b', '$2b$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW', 'U*U'],
    ['bcrypt, 2y', '$2y$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW', 'U*U'],
  ])('%s', async (_name, stored, password) => {
    expect(await verify(stored, password)).toBe(true)
    for (const wrong of [`${password}x`, password.slice(1), password.toUpperCase() + password.toLowerCase()]) {
      expect(await verify(stored, wrong)).toBe(false)
    }
  })

  it('Argon2id with other costs', async () => {
    const stored = await argon.hash('p', { memoryCost: 64, timeCost: 3, parallelism: 2, outputLen: 24 })
    expect([await verify(stored, 'p'), await verify(stored, 'q'), needsRehash(stored)]).toEqual([true, false, true])
  })

  it('a password is compared exactly, whatever its form of Unicode: no case folding, no trimming', async () => {
    const stored = await hash('é')
    expect(await verify(stored, 'e\u0301')).toBe(true)
    for (const other of ['É', ' é', 'é ', 'e', '\uff45']) expect(await verify(stored, other)).toBe(false)
  })

  it.each(['NFC', 'NFD'] as const)('a hash of before, of the form %s, verifies, and needs a rehash', async (form) => {
    const typed = 'Grüße'.normalize(form)
    const stored = await argon.hash(typed, { memoryCost: 19456, timeCost: 2, parallelism: 1, algorithm: 2 })
    expect(needsRehash(stored)).toBe(false)
    for (const other of ['NFC', 'NFD'] as const) expect(await verify(stored, 'Grüße'.normalize(other))).toBe(true)
    expect(needsRehash(stored)).toBe(form === 'NFD')
    expect(await verify(stored, 'grüße')).toBe(false)
  })

  // RFC 8265 §4.2.2
  it('a blank of another kind is a blank', async () => {
    const [plain, other] = ['correct horse battery', 'correct\u00a0horse\u3000battery']
    expect(await verify(await hash(other), plain)).toBe(true)
    expect(await verify(await hash(plain), other)).toBe(true)
    expect(await newPassword(other)).toEqual({ ok: true, password: plain })
    const stored = await argon.hash(other, { memoryCost: 64, timeCost: 1, parallelism: 1, algorithm: 2 })
    expect([await verify(stored, other), needsRehash(stored)]).toEqual([true, true])
  })

  it('a hash of before of neither form verifies with the same bytes alone', async () => {
    const mixed = `${'ü'.normalize('NFC')}${'ü'.normalize('NFD')}`
    const stored = await argon.hash(mixed, { memoryCost: 64, timeCost: 1, parallelism: 1, algorithm: 2 })
    expect([await verify(stored, mixed), await verify(stored, mixed.normalize('NFC'))]).toEqual([true, false])
  })
})

describe('P-05 verify: a value that is not a password is refused before any work', () => {
  it.each(noPasswords)('%s', async (_name, password) => {
    const stored = await hash('anna-secret')
    const cost = await derivations(async () => {
      expect([await verify(stored, password), await verify(undefined, password)]).toEqual([false, false])
    })
    expect(cost).toEqual({ runs: [], lined: 0 })
  })
})

it('A-43 marks in a row, which Unicode sorts one by one, are counted before anything is normalized', async () => {
  const normalize = vi.spyOn(String.prototype, 'normalize')
  onTestFinished(() => normalize.mockRestore())
  const marks = `a${'\u0315\u0300'.repeat(1000)}`
  expect(await verify(await hash('anna-secret').then((stored) => (normalize.mockClear(), stored)), marks)).toBe(false)
  expect(await newPassword(marks)).toStrictEqual({ ok: false, reason: 'long' })
  expect(normalize).not.toHaveBeenCalled()
})

describe('P-06 verify: bcrypt reads 72 bytes, so more are refused', () => {
  it('72 bytes are verified; 73 are refused, although bcrypt would accept them', async () => {
    const password = 'a'.repeat(72)
    const stored = await bcrypt.hash(password, 4)
    expect(await bcrypt.verify(`${password}b`, stored)).toBe(true)
    expect([await verify(stored, password), await verify(stored, `${password}b`)]).toEqual([true, false])
    expect(await verify(stored, 'ü'.repeat(37))).toBe(false)
  })

  it.each<[string, () => Promise<string> | string, ReadonlyArray<string>]>([
    ['bcrypt takes a repetition', () => bcrypt.hash('abc', 4), ['abc\0abc', 'abc\0']],
    ['scrypt takes one with NUL at the end', () => scryptOf('abc'), ['abc\0', 'abc\0\0']],
  ])('a password with NUL is refused, because %s for the same password', async (_how, stored, others) => {
    const kept = await stored()
    expect(await verify(kept, 'abc')).toBe(true)
    for (const other of others) expect(await verify(kept, other)).toBe(false)
  })
})

const scryptOf = (password: string): string => {
  const salt = Buffer.alloc(16, 1)
  const key = scryptSync(password, salt, 32, { N: 2 ** 4, r: 8, p: 1 })
  return `$scrypt$ln=4,r=8,p=1$${[salt, key].map((bytes) => bytes.toString('base64').replace(/=+$/, '')).join('$')}`
}

const unreadable = [
  'secret in clear text',
  `$argon2i$v=19$m=19456,t=2,p=1$${SALT}$${KEY}`,
  `$argon2d$v=19$m=19456,t=2,p=1$${SALT}$${KEY}`,
  `$argon2id$m=19456,t=2,p=1$${SALT}$${KEY}`,
  `$argon2id$v=16$m=19456,t=2,p=1$${SALT}$${KEY}`,
  `$argon2id$v=19$m=19456,t=2,p=1$${SALT}$`,
  `$argon2id$v=19$m=19456,t=2,p=1$${SALT}$AAAA`,
  `$argon2id$v=19$m=19456,t=2,p=1$AAAA$${KEY}`,
  `$argon2id$v=19$m=19456,t=2,p=1$${SALT}$${'A'.repeat(87)}`,
  `$argon2id$v=19$m=19456,t=2,p=1$${'A'.repeat(87)}$${KEY}`,
  `$argon2id$v=19$m=4,t=2,p=1$${SALT}$${KEY}`,
  `$argon2id$v=19$m=15,t=2,p=2$${SALT}$${KEY}`,
  `$argon2id$v=19$m=99999999,t=2,p=1$${SALT}$${KEY}`,
  `$argon2id$v=19$m=19456,t=999,p=1$${SALT}$${KEY}`,
  `$argon2id$v=19$m=19456,t=0,p=1$${SALT}$${KEY}`,
  `$argon2id$v=19$m=2097153,t=1,p=1$${SALT}$${KEY}`,
  `$argon2id$v=19$m=2097152,t=3,p=1$${SALT}$${KEY}`,
  `$argon2id$v=19$m=65536,t=65,p=1$${SALT}$${KEY}`,
  `$argon2id$v=19$m=19456,t=2,p=65$${SALT}$${KEY}`,
  `$argon2id$v=19$m=19456,t=2,p=0$${SALT}$${KEY}`,
  ` $argon2id$v=19$m=19456,t=2,p=1$${SALT}$${KEY}`,
  `$argon2id$v=19$m=19456,t=2,p=1$${SALT}$${KEY}\n`,
  `$scrypt$ln=14,r=8,p=5$${SALT}$`,
  `$scrypt$ln=99,r=8,p=1$${SALT}$${KEY}`,
  `$scrypt$ln=21,r=32,p=1$${SALT}$${KEY}`,
  `$scrypt$ln=0,r=8,p=1$${SALT}$${KEY}`,
  `$scrypt$ln=1,r=33,p=1$${SALT}$${KEY}`,
  `$scrypt$ln=20,r=8,p=3$${SALT}$${KEY}`,
  `$2b$31$${'a'.repeat(53)}`,
  `$2b$17$${'a'.repeat(53)}`,
  `$2b$03$${'a'.repeat(53)}`,
  `$2x$10$${'a'.repeat(53)}`,
  `$2b$10$${'a'.repeat(52)}`,
  `$2b$10$${'a'.repeat(10_000_000)}`,
]

const warnings = () => {
  const warn = vi.spyOn(process, 'emitWarning').mockReturnValue(undefined)
  onTestFinished(() => void warn.mockRestore())
  return warn
}

describe('a stored value that is not a hash', () => {
  it.each(unreadable.map((stored) => [stored.slice(0, 60), stored] as const))(
    '%j matches no password, is a warning that does not contain it, and needs a rehash',
    async (_name, stored) => {
      const warn = warnings()
      expect(await verify(stored, 'anna-secret')).toBe(false)
      for (const [message] of warn.mock.calls) expect(String(message)).not.toContain(stored.slice(0, 30))
      expect(needsRehash(stored)).toBe(true)
    },
  )

  it.each([
    ['Django', 'pbkdf2_sha256$870000$salt$Tm90IGEgcmVhbCBoYXNo', 'pbkdf2_sha256'],
    ['a locked account of Django', '!locked', '!'],
    ['Werkzeug', 'scrypt:32768:8:1$salt$6e6f742061207265616c2068617368', 'scrypt'],
    ['passlib', '$pbkdf2-sha512$25000$salt$hash', '$pbkdf2-sha512'],
    ['ASP.NET', 'AQAAAAIAAYagAAAAEE5vdCBhIHJlYWwgaGFzaA==', 'another form'],
  ])('%s matches no password, and is a warning once that names its form', async (_name, stored, form) => {
    const warn = warnings()
    for (let at = 0; at < 3; at++) expect(await verify(stored, 'anna-secret')).toBe(false)
    // the last form may have been seen before
    const isNew = form !== 'another form'
    expect(warn.mock.calls.length).toBe(isNew ? 1 : warn.mock.calls.length & 1)
    for (const call of warn.mock.calls) expect(call).toEqual([expect.stringContaining(`(${form})`), 'PasswordWarning'])
  })

  it.each(['', undefined, null])('a user without a password is no warning: %j', async (stored) => {
    untimedPasswords()
    const warn = warnings()
    expect(await verify(stored, 'anna-secret')).toBe(false)
    expect(warn).not.toHaveBeenCalled()
  })

  it('warns of twenty forms, and of no more', async () => {
    untimedPasswords()
    const warn = warnings()
    for (let at = 0; at < 21; at++) expect(await verify(`form-${at}$salt$hash`, 'anna-secret')).toBe(false)
    expect(warn.mock.calls.length).toBeLessThanOrEqual(20)
    expect(JSON.stringify(warn.mock.calls)).not.toContain('(form-20)')
  })

  it.each([5, {}, [], Buffer.from('x'), true])('%o is a TypeError, and needs a rehash', async (stored) => {
    const error = new TypeError('verify(stored, password): stored must be a string; is hash(...) awaited?')
    await expect(verify(stored as never, 'anna-secret')).rejects.toThrow(error)
    expect(needsRehash(stored as never)).toBe(true)
  })
})

describe('P-07 needsRehash: the costs of OWASP, in any of its variants', () => {
  it.each([
    ...(['47104,t=1', '19456,t=2', '12288,t=3', '9216,t=4', '7168,t=5', '65536,t=3'] as const).map(
      (cost) => [`$argon2id$v=19$m=${cost},p=1$${SALT}$${KEY}`, false] as const,
    ),
    ...(['47103,t=1', '19455,t=2', '12287,t=3', '7167,t=5', '7168,t=4', '4096,t=10'] as const).map(
      (cost) => [`$argon2id$v=19$m=${cost},p=1$${SALT}$${KEY}`, true] as const,
    ),
    [`$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAA$${KEY}`, true],
    [`$2b$12$${'a'.repeat(53)}`, true],
    // Argon2id is available here, so scrypt needs a rehash
    [`$scrypt$ln=14,r=8,p=5$${SALT}$${KEY}`, true],
  ] as const)('%s: %s', async (stored, expected) => {
    await hash('warm')
    expect(needsRehash(stored)).toBe(expected)
  })

  it.each([
    ['ln=17,r=8,p=1', true],
    ['ln=16,r=8,p=2', true],
    ['ln=15,r=8,p=3', true],
    ['ln=14,r=8,p=5', true],
    ['ln=13,r=8,p=10', true],
    ['ln=14,r=8,p=1', false],
    ['ln=17,r=7,p=1', false],
    ['ln=12,r=8,p=20', false],
  ])('scrypt %s: strong enough is %s', (cost, expected) => {
    const stored = parse(`$scrypt$${cost}$${SALT}$${KEY}`)
    expect(stored !== undefined && isEnough(stored)).toBe(expected)
  })
})

it('law: a hash that is printed is read as the same', () => {
  const bytes = (minLength: number) => fc.uint8Array({ minLength, maxLength: 64 }).map((all) => Buffer.from(all))
  const derived = { salt: bytes(8), key: bytes(16) }
  const upTo = (max: number, min = 1) => fc.integer({ min, max })
  const argon2id = {
    _tag: fc.constant('argon2id' as const),
    cost: fc.record({ m: upTo(2 ** 21, 512), t: upTo(2), p: upTo(64) }),
  }
  const scrypt = { _tag: fc.constant('scrypt' as const), cost: fc.record({ ln: upTo(13), r: upTo(32), p: upTo(64) }) }
  const hashes = fc.oneof(fc.record({ ...argon2id, ...derived }), fc.record({ ...scrypt, ...derived }))
  fc.assert(fc.property(hashes, (stored) => void expect(parse(printPassword(stored))).toEqual(stored)))
})

it('law: reading never throws, whatever the string', () => {
  const words = ['$', 'argon2id', 'v=19', 'm=19456,t=2,p=1', 'scrypt', 'ln=14,r=8,p=5', SALT, KEY, '2b', '10', '\0']
  const parts = fc.constantFrom(...words)
  const near = fc.array(parts, { maxLength: 12 }).map((all) => all.join(''))
  fc.assert(fc.property(fc.oneof(fc.string({ unit: 'binary' }), near), (text) => (parse(text), true)))
})

describe('P-02 an unknown user costs the same work as a known one', () => {
  it('undefined and null cost the same work as a wrong password: one run of Argon2id at the same cost', async () => {
    const stored = await hash('anna-secret')
    for (const kept of [stored, undefined, null]) {
      const cost = await derivations(async () => expect(await verify(kept, 'a guess')).toBe(false))
      expect(cost).toEqual({ runs: [{ salt: 16, cost: { m: 19456, t: 2, p: 1 }, length: 32 }], lined: 1 })
    }
  })

  it('a wrong password of a cheaper hash, and of nobody, takes as much time of the processor as the costliest kind', async () => {
    const stored = await bcrypt.hash('right', 4)
    expect(await verify(stored, 'right')).toBe(true)
    // Safe: what `passwords.ts` shares between copies of the package
    const { durations } = Reflect.get(globalThis, Symbol.for('koa-with-auth/passwords')) as {
      durations: Map<string, number>
    }
    durations.set('a costly kind', 1000)
    onTestFinished(() => void durations.delete('a costly kind'))
    for (const kept of [stored, undefined]) {
      const begun = process.cpuUsage()
      expect(await verify(kept, 'wrong')).toBe(false)
      const { user, system } = process.cpuUsage(begun)
      // a busy machine makes a unit of work seem longer, so there are fewer of them
      expect((user + system) / 1000).toBeGreaterThan(300)
    }
  })

  it('a password that bcrypt cannot verify costs work, too', async () => {
    const stored = await bcrypt.hash('a', 4)
    const { runs } = await derivations(async () => {
      expect(await verify(stored, 'a'.repeat(73))).toBe(false)
    })
    expect(runs).toHaveLength(1)
  })
})

describe('P-08 a stored hash with very high costs', () => {
  it.each([
    ['RFC 9106, the first choice', 'm=2097152,t=1,p=4'],
    ['libsodium, sensitive', 'm=1048576,t=4,p=1'],
  ])('%s can be verified', (_name, cost) => {
    expect(parse(`$argon2id$v=19$${cost}$${SALT}$${KEY}`)).toBeDefined()
  })

  it('of bcrypt is read from a cost of 4 up to 16, and of scrypt up to the work of the most', () => {
    const read = (stored: string): boolean => parse(stored) !== undefined
    const costs = ['03', '04', '16', '17'].filter((cost) => read(`$2b$${cost}$${'a'.repeat(53)}`))
    expect(costs).toEqual(['04', '16'])
    expect([32, 33].map((p) => read(`$scrypt$ln=14,r=32,p=${p}$${SALT}$${KEY}`))).toEqual([true, false])
  })

  it('only one hash with much memory is verified at a time, and others do not wait for it', async ({ skip }) => {
    skip(availableParallelism() < 2, 'one core is not enough to see it')
    untimedPasswords()
    const usual = await hash('anna-secret')
    const large = `$argon2id$v=19$m=163840,t=1,p=1$${SALT}$${KEY}`
    const round = async (): Promise<string[]> => {
      const order: string[] = []
      const verified = async (name: string, stored: string) => {
        await verify(stored, 'a guess')
        order.push(name)
      }
      await Promise.all([...['1', '2'].map((name) => verified(name, large)), verified('usual', usual)])
      expect(order.filter((name) => name !== 'usual')).toEqual(['1', '2'])
      return order
    }
    // if the usual one waited, it would be the last one each time; on a busy machine it may be so once
    let last: string | undefined
    for (let rounds = 0; rounds < 20 && last !== '2'; rounds++) last = (await round()).at(-1)
    expect(last).toBe('2')
  })
})

it('node:crypto and @node-rs/argon2 derive the same bytes, if both exist', async () => {
  const [node, own] = [argon2OfNode(), await argon2OfPackage()]
  const ask = ['password', 'somesalt'].map((text) => Buffer.from(text)) as [Buffer, Buffer]
  const keys = await Promise.all([node, own].map(async (derive) => derive?.(...ask, { m: 256, t: 2, p: 1 }, 32)))
  expect(keys[1]?.toString('hex')).toBe('9dfeb910e80bad0311fee20f9c0e2b12c17987b4cac90c2ef54d5b3021c68bfe')
  if (keys[0] !== undefined) expect(keys[0].toString('hex')).toBe(keys[1]?.toString('hex'))
})

// The queue of password work: a few at a time, in order, none lost. When it is full, or a wait is too long, work is refused.

const settled = () => new Promise((resolve) => setImmediate(resolve))

// Work that ends when the test says so
const works = () => {
  const begun: number[] = []
  const ends = new Map<number, (error?: Error) => void>()
  const work = (id: number) => () =>
    new Promise<number>((resolve, reject) => {
      begun.push(id)
      ends.set(id, (error) => (error === undefined ? resolve(id) : reject(error)))
    })
  return { begun, ends, work }
}

it.each<[number, string | undefined, number]>([
  [8, undefined, 3],
  [2, undefined, 2],
  [1, undefined, 1],
  [8, '6', 5],
  [2000, '5000', 1023],
  ...['1', '0', '-3', 'many', ''].map((poolSize): [number, string, number] => [8, poolSize, 1]),
])('on %s cores with a pool of %j, %s are hashed at a time', (cores, poolSize, width) => {
  expect(widthFor(cores, poolSize)).toBe(width)
})

describe('P-03 a line', () => {
  it('starts as many as its width, and the next one when one ends, even with an error', async () => {
    const { begun, ends, work } = works()
    const line = makeQueue({ width: 2, limit: 10, patience: 1000 })
    const all = [1, 2, 3, 4].map((id) => line(work(id)))
    const failing = expect(all[0]).rejects.toThrow('failed')
    expect(begun).toEqual([1, 2])
    ends.get(2)?.()
    await settled()
    expect(begun).toEqual([1, 2, 3])
    ends.get(1)?.(new Error('failed'))
    await settled()
    expect(begun).toEqual([1, 2, 3, 4])
    for (const id of [3, 4]) ends.get(id)?.()
    await failing
    expect(await Promise.all(all.slice(1))).toEqual([2, 3, 4])
  })

  it('refuses work while it is full, and accepts work again later', async () => {
    const { begun, ends, work } = works()
    const line = makeQueue({ width: 1, limit: 1, patience: 1000 })
    const [first, second] = [line(work(1)), line(work(2))]
    await expect(line(work(3))).rejects.toBeInstanceOf(UnavailableError)
    ends.get(1)?.()
    await first
    await settled()
    const fourth = line(work(4))
    ends.get(2)?.()
    await second
    await settled()
    ends.get(4)?.()
    expect([await fourth, begun]).toEqual([4, [1, 2, 4]])
  })

  it('refuses work that waited too long, and never starts it', async () => {
    const { begun, ends, work } = works()
    const line = makeQueue({ width: 1, limit: 10, patience: 20 })
    const [first, second] = [line(work(1)), line(work(2))]
    const refused = expect(second).rejects.toBeInstanceOf(UnavailableError)
    await new Promise((resolve) => setTimeout(resolve, 40))
    const third = line(work(3))
    ends.get(1)?.()
    await first
    await refused
    await settled()
    ends.get(3)?.()
    expect([await third, begun]).toEqual([3, [1, 3]])
  })

  it('law: never runs more than its width, and each work gets its own result or is refused', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.nat(6),
        fc.array(fc.record({ fails: fc.boolean(), turns: fc.nat(3) }), { maxLength: 30 }),
        async (width, limit, all) => {
          const line = makeQueue({ width, limit, patience: 10_000 })
          let [working, most] = [0, 0]
          const results = await Promise.allSettled(
            all.map(({ fails, turns }, id) =>
              line(async () => {
                most = Math.max(most, ++working)
                for (let turn = 0; turn < turns; turn++) await settled()
                working--
                if (fails) throw new Error(String(id))
                return id
              }),
            ),
          )
          expect(most).toBeLessThanOrEqual(width)
          expect(working).toBe(0)
          const away = results.filter((one) => one.status === 'rejected' && one.reason instanceof UnavailableError)
          expect(away.length).toBe(Math.max(0, all.length - width - limit))
          for (const [id, one] of results.entries()) {
            if (one.status === 'fulfilled') expect(one.value).toBe(id)
            else if (!(one.reason instanceof UnavailableError))
              expect(one.reason).toMatchObject({ message: String(id) })
          }
        },
      ),
    )
  })
})

it.each([
  ['argon2id$v=19$m=131072,t=1,p=1', false],
  ['argon2id$v=19$m=131073,t=1,p=1', true],
  ['scrypt$ln=17,r=8,p=1', false],
  ['scrypt$ln=18,r=8,p=1', true],
])('a hash of more than 128 MiB is verified alone, because several would exhaust the memory: %s, %s', (form, large) => {
  const stored = parse(`$${form}$${SALT}$${KEY}`)
  expect(stored && isLarge(stored)).toBe(large)
})
