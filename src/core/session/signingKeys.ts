/**
 * The keys that sign cookies and sign-ins (`app.keys`): whether they could be guessed (SECURITY A-33), and signing with them.
 *
 * The first key signs, every key verifies, so that keys can be rotated. A Keygrip signs as it was made to.
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

/** Whether there are keys and none is short. A Keygrip cannot be inspected, and is accepted. */
export const areStrong = (keys: unknown): boolean =>
  Array.isArray(keys)
    ? keys.length > 0 && keys.every((key: unknown) => typeof key === 'string' && key.length >= MIN_KEY_LENGTH)
    : typeof keys === 'object' && keys !== null && 'verify' in keys

/** How to fix weak ones. */
export const keysFix = `app.keys must hold keys of at least ${MIN_KEY_LENGTH} characters each; app.keys = [randomBytes(32).toString('hex')], kept outside the code`

const hmac = (key: string, text: string): string => createHmac('sha256', key).update(text).digest('base64url')

/** Signs a string with the first key. TypeError where there is no key. */
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
