/** The keys of an application, `app.keys` of Koa: their strength, their signatures, and the keys that are derived from them. */
import { constantTimeEqual, digest, isMac, macBy } from './secrets.js'

/** The shortest key that is accepted, in characters. */
export const MIN_KEY_LENGTH = 32

interface Signer {
  readonly sign: (text: string) => string
  readonly verify: (text: string, signature: string) => boolean
}

/** Whether keys are a Keygrip, which does not show them. */
export const isSigner = (keys: unknown): keys is Signer =>
  typeof keys === 'object' &&
  keys !== null &&
  'sign' in keys &&
  typeof keys.sign === 'function' &&
  'verify' in keys &&
  typeof keys.verify === 'function'

/**
 * How strong keys are. The first key signs, so it must not be short. An older key may be short while it is rotated out:
 * `older short`. If any key is not a key (an empty string), they are `weak`. A Keygrip cannot be inspected, and is
 * accepted. Weak keys could be guessed.
 */
export const strengthOf = (keys: unknown): 'strong' | 'older short' | 'weak' => {
  if (!Array.isArray(keys)) return isSigner(keys) ? 'strong' : 'weak'
  if (!isLong(keys[0])) return 'weak'
  if (keys.every(isLong)) return 'strong'
  return keys.every((key: unknown) => typeof key === 'string' && key !== '') ? 'older short' : 'weak'
}

const isLong = (key: unknown): boolean => typeof key === 'string' && key.length >= MIN_KEY_LENGTH

/** The fix for weak keys. */
export const keysFix = `app.keys must hold strings, and the first, which signs, at least ${MIN_KEY_LENGTH} characters; app.keys = [randomBytes(32).toString('hex')], kept outside the code`

// Few, because an application has few keys; those that were rotated out are forgotten
const KEYS = 32
const macs = new Map<string, (text: string) => string>()

const mac = (key: string, text: string): string => {
  const known = macs.get(key)
  if (known !== undefined) return known(text)
  if (macs.size >= KEYS) macs.clear()
  const made = macBy(key)
  macs.set(key, made)
  return made(text)
}

/**
 * Signs a string with the first key. Throws a TypeError if there is none. Every key verifies, so that keys can be
 * rotated. A Keygrip signs in its own way.
 */
export const sign = (keys: unknown, text: string): string => {
  if (isSigner(keys)) return keys.sign(text)
  const [first]: ReadonlyArray<unknown> = Array.isArray(keys) ? keys : []
  if (typeof first !== 'string') throw new TypeError(keysFix)
  return mac(first, text)
}

/** Which key made a signature: the first, one of the others, or none. */
export const signedBy = (keys: unknown, text: string, signature: string): 'first' | 'older' | 'none' => {
  if (isSigner(keys)) {
    if (constantTimeEqual(keys.sign(text), signature)) return 'first'
    return keys.verify(text, signature) ? 'older' : 'none'
  }
  const all: ReadonlyArray<unknown> = Array.isArray(keys) ? keys : []
  const at = all.findIndex((key) => typeof key === 'string' && isMac(signature, mac(key, text)))
  return at < 0 ? 'none' : at === 0 ? 'first' : 'older'
}

/** Keys for another purpose, one for each signing key, the first first. A Keygrip does not show its older keys, so it gives a single key. */
export const derivedFrom = (keys: unknown, purpose: string): ReadonlyArray<Buffer> => {
  const each: ReadonlyArray<unknown> = Array.isArray(keys) ? keys.map((key: unknown) => [key]) : [keys]
  return each.map((key) => Buffer.from(digest(sign(key, purpose)), 'base64url'))
}

/**
 * A value that is made of such keys, once while the keys are the same strings: `undefined` for keys that are no strings. A Keygrip may change
 * inside, so it is made at each call.
 */
export const derivedOnce = <A>(keys: () => unknown, purpose: string, make: (key: Buffer) => A) => {
  let from: ReadonlyArray<unknown> = []
  let derived: ReadonlyArray<A | undefined> = []
  return (): ReadonlyArray<A | undefined> => {
    const now = keys()
    if (!Array.isArray(now)) return isSigner(now) ? derivedFrom(now, purpose).map(make) : []
    if (now.length !== from.length || now.some((key, at) => key !== from[at])) {
      from = [...now]
      derived = from.map((key) => (typeof key === 'string' ? derivedFrom([key], purpose).map(make)[0] : undefined))
    }
    return derived
  }
}
