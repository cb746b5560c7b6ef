/**
 * The cryptography of this package: comparison, digests, random ids, MACs, derivation of keys, and encryption. Nothing here is
 * an algorithm of our own: SHA-256, HMAC (RFC 2104), HKDF (RFC 5869) and AES-256-GCM (NIST SP 800-38D) of `node:crypto`.
 *
 * Elsewhere are the algorithms that others prescribe: of passwords (`passwords`), of tokens (`jwt/signature.ts`), of signed requests
 * (`signatures`, `webhooks`), of authenticator apps (`sign-in/secondFactor.ts`), of passkeys (`sign-in/passkeys`). `appKeys.ts` has the keys of
 * an application.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  hash,
  hkdfSync,
  randomBytes,
  randomFillSync,
  timingSafeEqual,
  type BinaryLike,
  type KeyObject,
} from 'node:crypto'

// --- comparison

// UTF-16, because UTF-8 writes all lone surrogates alike
const ENCODING = 'utf16le'

/** The longest secrets that are compared without a digest, in UTF-16 code units. */
const LENGTH = 256
// Two more, so that zeros are also written after the longest secret: a call that writes nothing takes 13 ns less
const BYTES = 2 * LENGTH + 2
const zeros = '\0'.repeat(BYTES / 2)
const left = Buffer.alloc(BYTES)
const right = Buffer.alloc(BYTES)

// As many bytes are written for a short secret as for a long secret
const fill = (buffer: Buffer, secret: string): void => {
  const end = buffer.write(secret, 0, ENCODING)
  buffer.write(zeros, end, BYTES - end, ENCODING)
}

const digestBytes = (secret: string): Buffer => hash('sha256', Buffer.from(secret, ENCODING), 'buffer')

/**
 * Returns whether two secrets are equal. The time that it takes does not reveal where they differ (CWE-208). Strings of different
 * lengths take as long as strings of equal lengths.
 *
 * Strings of up to 256 characters are compared in buffers of one size, and longer strings by their digests, so different lengths
 * neither throw nor return early. The time of many calls may reveal one thing about a single string: whether it is longer than 256
 * characters, and below that its length, by a few nanoseconds of copying. It never throws: a value that is not a string equals
 * nothing.
 *
 * @example
 * import { constantTimeEqual } from 'koa-with-auth'
 *
 * assert.strictEqual(constantTimeEqual('supersecret', 'supersecret'), true)
 * assert.strictEqual(constantTimeEqual('supersecret', 'super'), false)
 */
export const constantTimeEqual = (a: string, b: string): boolean => {
  if (typeof a !== 'string' || typeof b !== 'string') return false
  if (a.length > LENGTH || b.length > LENGTH) return timingSafeEqual(digestBytes(a), digestBytes(b))
  fill(left, a)
  fill(right, b)
  const isEqual = timingSafeEqual(left, right)
  // A secret may end in zeros itself, so the lengths count, too. They come first: no branch depends on the content
  return a.length === b.length && isEqual
}

// --- digests, random ids, MACs

/** How bytes become a string: `base64url` for ids and MACs, `binary` for keys of a `Map`. */
type Encoding = 'base64url' | 'base64' | 'hex' | 'binary'

/** SHA-256. A string counts as UTF-8. */
export const digest = (data: string | NodeJS.ArrayBufferView, encoding: Encoding = 'base64url'): string =>
  hash('sha256', data, encoding)

// Random bytes for many ids at once: koa-session asks for an id at each request without a session, and the call costs most of its time
const pool = Buffer.alloc(2048)
let taken = pool.length

/** A secret that cannot be guessed, in base64url: 32 random bytes unless said otherwise. */
export const randomId = (bytes = 32): string => {
  if (taken + bytes > pool.length) {
    randomFillSync(pool)
    taken = 0
  }
  const from = taken
  taken += bytes
  return pool.toString('base64url', from, taken)
}

// The block of SHA-256, and the bytes that are hashed at once
const BLOCK = 64
const inner = Buffer.alloc(BLOCK + 8192)
const outer = Buffer.alloc(BLOCK + 32)

const padded = (key: Buffer, pad: number): Buffer =>
  Buffer.from(Array.from({ length: BLOCK }, (_, at) => (key[at] ?? 0) ^ pad))

/**
 * Makes the HMAC-SHA256 (RFC 2104) of strings by one key, in base64url. Each request with a session has two of them, and an Hmac of
 * node:crypto is a stream, which takes three times as long to make as two hashes.
 */
export const macBy = (secret: string | Buffer): ((text: string) => string) => {
  const given = Buffer.from(secret)
  const key = given.length > BLOCK ? hash('sha256', given, 'buffer') : given
  const [before, after] = [padded(key, 0x36), padded(key, 0x5c)]
  return (text) => {
    // a character takes three bytes at most
    if (text.length > (inner.length - BLOCK) / 3) return mac(given, text)
    before.copy(inner)
    const end = BLOCK + inner.write(text, BLOCK)
    after.copy(outer)
    outer.write(hash('sha256', inner.subarray(0, end), 'binary'), BLOCK, 'binary')
    return hash('sha256', outer, 'base64url')
  }
}

/**
 * Whether a string is a MAC, in a time that does not reveal where they differ (CWE-208). Everybody knows how long a MAC is, so nothing is
 * padded, which is most of the work of `constantTimeEqual`.
 */
export const isMac = (sent: string, expected: string): boolean => {
  if (sent.length !== expected.length) return false
  let difference = 0
  for (let at = 0; at < expected.length; at++) difference |= sent.charCodeAt(at) ^ expected.charCodeAt(at)
  return difference === 0
}

/** HMAC-SHA256 (RFC 2104). */
export const mac = (key: BinaryLike | KeyObject, data: BinaryLike, encoding: Encoding = 'base64url'): string =>
  createHmac('sha256', key).update(data).digest(encoding)

// --- keys for a purpose

/** A key of 32 bytes for a purpose: HKDF-SHA256. The parts are a JSON array, so different parts never make the same string. */
export const derive = (key: Buffer, ...purpose: ReadonlyArray<string>): Buffer =>
  Buffer.from(hkdfSync('sha256', key, '', JSON.stringify(purpose), 32))

// --- encryption

const NONCE = 12
const TAG = 16

/**
 * Encrypts and authenticates content under a derived key (AES-256-GCM): the nonce, the content, the tag. `owner` is authenticated, too:
 * without the same owner, `decrypt` finds nothing. The nonce is random, so one key is good for 2^32 messages (SP 800-38D §8.3).
 */
export const encrypt = (key: Buffer, content: string | Buffer, owner = ''): Buffer => {
  const nonce = randomBytes(NONCE)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(owner))
  return Buffer.concat([nonce, cipher.update(content), cipher.final(), cipher.getAuthTag()])
}

/** The bytes that were encrypted under this key for this owner; `undefined` for anything else. */
export const decrypt = (key: Buffer, raw: Buffer, owner = ''): Buffer | undefined => {
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, raw.subarray(0, NONCE), { authTagLength: TAG })
    decipher.setAAD(Buffer.from(owner)).setAuthTag(raw.subarray(-TAG))
    const content = decipher.update(raw.subarray(NONCE, -TAG))
    // it has nothing more to give, and throws if the tag is wrong
    decipher.final()
    return content
  } catch {
    return undefined // another key made it, or none
  }
}

// Bytes of a counter of AES
const COUNTER = 16

/**
 * Hides short texts in one form each, so that the same text is the same string again (AES-256-CTR). The nonce is a MAC of the owner and
 * the text, so no nonce is used for two texts. It authenticates nothing: the caller has a MAC of all.
 */
export const hiding = (root: Buffer) => {
  const [encryption, nonces] = [derive(root, 'encryption'), derive(root, 'nonce')]
  return {
    hide: (text: string, owner: string): string => {
      const nonce = Buffer.from(mac(nonces, JSON.stringify([owner, text])), 'base64url').subarray(0, COUNTER)
      return Buffer.concat([nonce, createCipheriv('aes-256-ctr', encryption, nonce).update(text)]).toString('base64url')
    },
    show: (hidden: string): string => {
      const raw = Buffer.from(hidden, 'base64url')
      return createDecipheriv('aes-256-ctr', encryption, raw.subarray(0, COUNTER))
        .update(raw.subarray(COUNTER))
        .toString()
    },
  }
}
