/** The signed examples of RFC 7515 appendix A and of RFC 8037 appendix A, and each with another byte. */
import { createPublicKey, KeyObject } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { checkSignature, oneKey, parseJwks, usableKeys } from '../../src/jwt/signature.js'

const fromBase64 = (given: string) => Buffer.from(given, 'base64url')
const claims = 'eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ'
const publicKey = (jwk: Readonly<Record<string, string>>) => createPublicKey({ key: { ...jwk }, format: 'jwk' })

const examples = [
  {
    name: 'RFC 7515 A.1, HS256',
    key: fromBase64('AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow'),
    token: `eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.${claims}.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk`,
  },
  {
    name: 'RFC 7515 A.2, RS256',
    key: publicKey({
      kty: 'RSA',
      n: 'ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ',
      e: 'AQAB',
    }),
    token: `eyJhbGciOiJSUzI1NiJ9.${claims}.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw`,
  },
  {
    name: 'RFC 7515 A.3, ES256',
    key: publicKey({
      kty: 'EC',
      crv: 'P-256',
      x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
      y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
    }),
    token: `eyJhbGciOiJFUzI1NiJ9.${claims}.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q`,
  },
  {
    name: 'RFC 8037 A.4, EdDSA',
    key: publicKey({ kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' }),
    token:
      'eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg',
  },
]

const formOf = (token: string) => {
  const [header = '', payload = '', signature = ''] = token.split('.')
  // Safe: the header of each example has its algorithm
  const read = JSON.parse(fromBase64(header).toString()) as { alg: string }
  return { header: read, signed: `${header}.${payload}`, signature: fromBase64(signature) }
}

describe.each(examples)('$name', ({ key, token }) => {
  const keys = oneKey(key)

  it('has a good signature', async () => {
    expect(await checkSignature(formOf(token), keys)).toBe('good')
  })

  it('has none with another header, payload or signature', async () => {
    const form = formOf(token)
    const signature = Buffer.from(form.signature)
    signature[3]! ^= 1
    expect(await checkSignature({ ...form, signature }, keys)).not.toBe('good')
    for (const signed of [`x${form.signed}`, `${form.signed}x`]) {
      expect(await checkSignature({ ...form, signed }, keys)).not.toBe('good')
    }
  })
})

describe('a key of a set verifies nothing', () => {
  const { key, token } = examples[1]!
  const jwk = key instanceof KeyObject ? key.export({ format: 'jwk' }) : {}
  const checked = async (own: object, alg = 'RS256') => {
    const keys = usableKeys({ keys: [{ ...jwk, ...own }] })
    const form = formOf(token)
    return keys && (await checkSignature({ ...form, header: { ...form.header, alg } }, parseJwks(keys)))
  }

  it.each<[string, string | undefined, object, string?]>([
    ['unless it is one', 'good', { use: 'sig', alg: 'RS256', key_ops: ['verify'] }],
    ['if it has several primes', 'bad', { oth: [] }],
    ['if it is private', 'bad', { d: 'AQAB' }],
    ['if it is for another use', undefined, { use: 'other' }],
    ['if it is for another operation', 'unknown key', { key_ops: ['sign'] }],
    ['if an operation is there twice', 'unknown key', { key_ops: ['verify', 'verify'] }],
    ['by another algorithm than its own', 'unknown key', { alg: 'RS512' }],
    ['by an algorithm of another family', 'unknown key', {}, 'ES256'],
    ['by a secret that is the key', 'unknown key', {}, 'HS256'],
  ])('%s: %s', async (_what, expected, own, alg) => {
    expect(await checked(own, alg)).toBe(expected)
  })
})
