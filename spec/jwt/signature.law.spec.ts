/**
 * Signatures, compared with jose: no token is accepted here and refused there, or the reverse. There are two differences. jose accepts
 * `crit` for `b64`, an extension that is not allowed in a JWT (RFC 7797 §7). It also accepts a PSS signature without its first zeros.
 */
import {
  createHmac,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  type SignKeyObjectInput,
} from 'node:crypto'
import fc from 'fast-check'
import { compactVerify, createLocalJWKSet, type JWK } from 'jose'
import { describe, expect, it } from 'vitest'
import { readCompact } from '../../src/jwt/claims.js'
import { checkSignature, parseJwks, oneKey, usableKeys } from '../../src/jwt/signature.js'
import { hasFewCases, samples } from '../support/runs/samples.js'

const SECRET = Buffer.alloc(64, 7)

interface Pair {
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

// Through DER, because Node 20 can hang when it exports a key that it has just generated
const exchanged = ({ privateKey, publicKey }: Pair): Pair => ({
  privateKey,
  publicKey: createPublicKey({ key: publicKey.export({ type: 'spki', format: 'der' }), type: 'spki', format: 'der' }),
})
const rsa = (modulusLength: number) => exchanged(generateKeyPairSync('rsa', { modulusLength }))
const ec = (namedCurve: string) => exchanged(generateKeyPairSync('ec', { namedCurve }))
const [big, other, short] = [rsa(2048), rsa(2048), rsa(1024)]
const pairs: Readonly<Record<string, Pair>> = {
  RS: big,
  PS: big,
  ES256: ec('P-256'),
  ES384: ec('P-384'),
  ES512: ec('P-521'),
  Ed: exchanged(generateKeyPairSync('ed25519')),
}
const hashOf = (alg: string) => `sha${alg.slice(2)}`
const pairOf = (alg: string): Pair => pairs[alg] ?? pairs[alg.slice(0, 2)] ?? big

const part = (data: unknown) => Buffer.from(JSON.stringify(data)).toString('base64url')

const signedBytes = (alg: string, input: string, key: KeyObject, options: Partial<SignKeyObjectInput> = {}): Buffer => {
  if (alg.startsWith('HS')) return createHmac(hashOf(alg), SECRET).update(input).digest()
  if (alg.startsWith('Ed')) return sign(null, Buffer.from(input), key)
  const padding = alg.startsWith('PS') ? { padding: 6, saltLength: -1 } : {}
  return sign(hashOf(alg), Buffer.from(input), { key, dsaEncoding: 'ieee-p1363', ...padding, ...options })
}

type Change = (bytes: Buffer) => Buffer
const flipped =
  (at: number): Change =>
  (bytes) => {
    const copy = Buffer.from(bytes)
    const index = at % copy.length
    copy[index] = (copy[index] ?? 0) ^ (1 << (at % 8))
    return copy
  }
const upTo8 = (change: (bytes: Buffer, count: number) => Buffer) =>
  fc.nat(8).map(
    (count): Change =>
      (bytes) =>
        change(bytes, count),
  )
const changes: fc.Arbitrary<Change> = fc.oneof(
  { weight: 12, arbitrary: fc.constant<Change>((bytes) => bytes) },
  { weight: 3, arbitrary: fc.nat(600).map(flipped) },
  upTo8((bytes, less) => bytes.subarray(0, bytes.length - less)),
  upTo8((bytes, more) => Buffer.concat([bytes, Buffer.alloc(more)])),
  upTo8((bytes, more) => Buffer.concat([Buffer.alloc(more), bytes])),
  fc.constant<Change>((bytes) => Buffer.alloc(bytes.length)),
  fc.constant<Change>((bytes) => Buffer.alloc(bytes.length, 255)),
  // r and s exchanged
  fc.constant<Change>((bytes) =>
    Buffer.concat([bytes.subarray(bytes.length / 2), bytes.subarray(0, bytes.length / 2)]),
  ),
  fc.uint8Array({ maxLength: 300 }).map((random) => (): Buffer => Buffer.from(random)),
)

/** A token with this header, claims and signature. */
const tokenOf = (header: object, claims: object, signed: (input: string) => Buffer): string => {
  const input = `${part(header)}.${part(claims)}`
  return `${input}.${signed(input).toString('base64url')}`
}

const jwkOf = (key: KeyObject, more: object): JWK => ({ ...(key.export({ format: 'jwk' }) as JWK), ...more })

const headers = (alg: string) =>
  fc.record(
    {
      kid: fc.constantFrom('k', 'k', 'k', 'other', 7, null, ''),
      typ: fc.constantFrom('JWT', 'at+jwt', 1),
      cty: fc.constant('x'),
      jku: fc.constant('https://elsewhere.example'),
      jwk: fc.constant(jwkOf(pairOf(alg).publicKey, {})),
    },
    { requiredKeys: [] },
  )

// Extensions are refused by both, so few tokens have one
const withCrit = (alg: string) =>
  fc.oneof(
    { weight: 9, arbitrary: fc.constant({ kid: 'k' }) },
    { weight: 9, arbitrary: headers(alg) },
    fc.constantFrom(['exp'], [], 'exp', null).map((crit) => ({ crit })),
  )

const sets = (alg: string): fc.Arbitrary<ReadonlyArray<JWK>> => {
  const { publicKey } = pairOf(alg)
  const more = fc.record(
    {
      kid: fc.constantFrom('k', 'k', 'k', 'k', 'other', 7),
      alg: fc.constantFrom(alg, alg, alg, 'RS256', 'ES256', 'PS512', 7),
      use: fc.constantFrom('sig', 'sig', 'sig', 'enc'),
      key_ops: fc.constantFrom(
        ['verify'],
        ['verify'],
        ['verify'],
        ['verify', 'verify'],
        'verify',
        ['sign'],
        [],
        ['sign', 'verify'],
      ),
      ext: fc.constantFrom(true, false, true, 'x'),
    },
    { requiredKeys: [] },
  )
  const keys = [
    publicKey,
    publicKey,
    publicKey,
    other.publicKey,
    short.publicKey,
    ...Object.values(pairs).map((one) => one.publicKey),
  ]
  const fields = fc.oneof({ weight: 2, arbitrary: fc.constant({ kid: 'k' }) }, more)
  const jwk = fc.tuple(fc.constantFrom(...keys), fields).map(([key, own]) => jwkOf(key, own))
  return fc.array(jwk, { minLength: 1, maxLength: 4 })
}

const resolves = (promise: Promise<unknown>): Promise<boolean> =>
  promise.then(
    () => true,
    () => false,
  )

const joseAccepts = async (token: string, keys: ReadonlyArray<JWK>, alg: string): Promise<boolean> => {
  const find = createLocalJWKSet({ keys: [...keys] })
  const options = { algorithms: [alg] }
  try {
    await compactVerify(token, find, options)
    return true
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ERR_JWKS_MULTIPLE_MATCHING_KEYS')) return false
    // Safe: this error of jose yields the keys
    for await (const key of error as unknown as AsyncIterable<Parameters<typeof compactVerify>[1] & object>) {
      if (await resolves(compactVerify(token, key, options))) return true
    }
    return false
  }
}

const accepts = async (token: string, keys: ReadonlyArray<JWK>): Promise<boolean> => {
  const compact = readCompact(token)
  const set = usableKeys({ keys })
  return compact !== undefined && set !== undefined && (await checkSignature(compact, parseJwks(set))) === 'good'
}

const asymmetric = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']

const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

const RUNS = process.env['SIGNATURES'] === undefined ? samples(900) : Number(process.env['SIGNATURES'])

describe('the signature of a token', () => {
  it.each(asymmetric)(
    '%s: is accepted exactly where jose accepts it',
    async (alg) => {
      const met = { accepted: 0, refused: 0 }
      const cases = fc.record({
        header: withCrit(alg),
        keys: sets(alg),
        change: changes,
        claims: fc.dictionary(fc.string(), fc.string()),
      })
      await fc.assert(
        fc.asyncProperty(
          cases,
          fc.constantFrom(alg, alg, alg, 'none', 'HS256'),
          async ({ header, keys, change, claims }, said) => {
            const token = tokenOf({ ...header, alg: said }, claims, (input) =>
              change(signedBytes(alg, input, pairOf(alg).privateKey)),
            )
            const expected = await joseAccepts(token, keys, alg)
            expect(said === alg && (await accepts(token, keys))).toBe(expected)
            met[expected ? 'accepted' : 'refused']++
          },
        ),
        { numRuns: RUNS },
      )
      if (hasFewCases) return
      expect(met.accepted).toBeGreaterThan(RUNS / 50)
      expect(met.refused).toBeGreaterThan(RUNS / 50)
    },
    300_000,
  )

  it.each(['HS256', 'HS384', 'HS512'])(
    '%s: is accepted exactly where jose accepts it',
    async (alg) => {
      await fc.assert(
        fc.asyncProperty(headers('RS256'), changes, async (header, change) => {
          const token = tokenOf({ ...header, alg }, {}, (input) => change(signedBytes(alg, input, big.privateKey)))
          const expected = await resolves(compactVerify(token, SECRET, { algorithms: [alg] }))
          const compact = readCompact(token)
          expect(compact !== undefined && (await checkSignature(compact, oneKey(SECRET))) === 'good').toBe(expected)
        }),
        { numRuns: RUNS },
      )
    },
    300_000,
  )

  it('a part of a token has one spelling: that of the bytes that Node reads (RFC 4648 §3.5)', () => {
    const head = part({})
    const met = { one: 0, other: 0 }
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...letters), minLength: 1, maxLength: 9 }), (written) => {
        const isOne = Buffer.from(written, 'base64url').toString('base64url') === written
        met[isOne ? 'one' : 'other']++
        expect(readCompact(`${head}.${head}.${written}`) !== undefined).toBe(isOne)
      }),
      { numRuns: 500 },
    )
    expect(Math.min(met.one, met.other)).toBeGreaterThan(50)
  })

  it.each<[string, string, boolean, object, Partial<SignKeyObjectInput>]>([
    // RFC 7518 §3.5
    ...[0, 20, 64].map((saltLength): [string, string, boolean, object, object] => [
      `with a salt of ${saltLength}`,
      'PS256',
      false,
      {},
      { saltLength },
    ]),
    // RFC 7518 §3.4
    ['in DER', 'ES256', false, {}, { dsaEncoding: 'der' }],
    // a difference
    ['with crit for b64', 'ES256', true, { crit: ['b64'], b64: true }, {}],
  ])('%s: %s is refused; jose accepts it: %s', async (_what, alg, isAcceptedByJose, header, options) => {
    const { privateKey, publicKey } = pairOf(alg)
    const token = tokenOf({ alg, ...header }, {}, (input) => signedBytes(alg, input, privateKey, options))
    const keys = [jwkOf(publicKey, {})]
    expect([await accepts(token, keys), await joseAccepts(token, keys, alg)]).toStrictEqual([false, isAcceptedByJose])
  })

  it.each([
    { alg: 'RS256', isAcceptedByJose: false },
    { alg: 'PS256', isAcceptedByJose: true },
  ])('$alg: without its first zero is refused (RFC 8017 §8.1.2, §8.2.2)', async ({ alg, isAcceptedByJose }) => {
    const keys = [jwkOf(big.publicKey, {})]
    // one signature of 256 begins with a zero
    for (let id = 0; ; id++) {
      const input = `${part({ alg })}.${part({ id })}`
      const bytes = signedBytes(alg, input, big.privateKey)
      if (bytes[0] !== 0) continue
      const whole = `${input}.${bytes.toString('base64url')}`
      const cut = `${input}.${bytes.subarray(1).toString('base64url')}`
      expect([await accepts(whole, keys), await accepts(cut, keys)]).toStrictEqual([true, false])
      expect(await joseAccepts(cut, keys, alg)).toBe(isAcceptedByJose)
      return
    }
  })

  it('of a slow key is checked on the thread pool, from the first one on', async () => {
    // With an exponent as long as the modulus, a check takes as long as a signature
    const { n, d } = big.privateKey.export({ format: 'jwk' })
    const slow = parseJwks({ keys: [{ kty: 'RSA', n, e: d }] })
    const quick = parseJwks({ keys: [{ ...jwkOf(big.publicKey, {}) }] })
    const compact = readCompact(tokenOf({ alg: 'RS256' }, {}, (input) => signedBytes('RS256', input, big.privateKey)))!
    const isLate = (keys: typeof slow) => checkSignature(compact, keys) instanceof Promise
    expect([1, 2].map(() => isLate(slow))).toStrictEqual([true, true])
    expect([1, 2].map(() => isLate(quick))).toStrictEqual([false, false])
  })

  it('of a token without a `kid` is tried with every key that fits, most of them on the thread pool', async () => {
    const many = Array.from({ length: 6 }, () => ec('P-256'))
    const last = many.at(-1)!
    const keys = parseJwks({ keys: many.map(({ publicKey }) => ({ ...jwkOf(publicKey, {}) })) })
    const compact = readCompact(tokenOf({ alg: 'ES256' }, {}, (input) => signedBytes('ES256', input, last.privateKey)))!
    const result = checkSignature(compact, keys)
    expect(result).toBeInstanceOf(Promise)
    expect(await result).toBe('good')
  })
})
