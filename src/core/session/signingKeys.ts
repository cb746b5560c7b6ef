/**
 * The keys that sign cookies and sign-ins (`app.keys`): whether they could be guessed, and signing with them.
 *
 * The first key signs, and every key verifies, so that keys can be rotated. A Keygrip signs in its own way.
 */
import { createHmac } from 'node:crypto'
import { constantTimeEqual } from '../constantTimeEqual.js'

/** The shortest key that is accepted, in characters. */
export const MIN_KEY_LENGTH = 32

/** The part of a Keygrip that is used here. */
interface Signer {
  readonly sign: (text: string) => string
  readonly verify: (text: string, signature: string) => boolean
}

const isSigner = (keys: unknown): keys is Signer =>
  typeof keys === 'object' &&
  keys !== null &&
  'sign' in keys &&
  typeof keys.sign === 'function' &&
  'verify' in keys &&
  typeof keys.verify === 'function'

/**
 * How strong keys are. The first one signs, so it must not be short. An older one may be short while it is rotated out:
 * `older short`. If any key is not a key (an empty string), they are `weak`. A Keygrip cannot be inspected, and is
 * accepted.
 */
export const strengthOf = (keys: unknown): 'strong' | 'older short' | 'weak' => {
  if (!Array.isArray(keys)) return isSigner(keys) ? 'strong' : 'weak'
  if (!isLong(keys[0])) return 'weak'
  if (keys.every(isLong)) return 'strong'
  return keys.every((key: unknown) => typeof key === 'string' && key !== '') ? 'older short' : 'weak'
}

const isLong = (key: unknown): boolean => typeof key === 'string' && key.length >= MIN_KEY_LENGTH

/** How to fix weak keys. */
export const keysFix = `app.keys must hold strings, and the first, which signs, at least ${MIN_KEY_LENGTH} characters; app.keys = [randomBytes(32).toString('hex')], kept outside the code`

/** The warning about a short key that is rotated out. It prints no key. */
export const shortKeyWarning = `app.keys: an older key has fewer than ${MIN_KEY_LENGTH} characters. It still verifies cookies, and whoever guesses it can sign them; take it out as soon as the sessions from before the rotation are over`

const hmac = (key: string, text: string): string => createHmac('sha256', key).update(text).digest('base64url')

/** Signs a string with the first key. Throws a TypeError if there is none. */
export const signed = (keys: unknown, text: string): string => {
  if (isSigner(keys)) return keys.sign(text)
  const [first]: ReadonlyArray<unknown> = Array.isArray(keys) ? keys : []
  if (typeof first !== 'string') throw new TypeError(keysFix)
  return hmac(first, text)
}

/** Which key made a signature: the first, one of the others, or none. */
export const signedBy = (keys: unknown, text: string, signature: string): 'first' | 'older' | 'none' => {
  if (isSigner(keys)) {
    if (constantTimeEqual(keys.sign(text), signature)) return 'first'
    return keys.verify(text, signature) ? 'older' : 'none'
  }
  const at = Array.isArray(keys)
    ? keys.findIndex((key: unknown) => typeof key === 'string' && constantTimeEqual(hmac(key, text), signature))
    : -1
  return at < 0 ? 'none' : at === 0 ? 'first' : 'older'
}
