/**
 * Whether the keys that sign cookies could be guessed (SECURITY A-33): whoever does makes himself any session.
 */

/** The shortest key that is accepted, in characters. */
export const MIN_KEY_LENGTH = 32

/** Whether there are keys and none is short. A Keygrip cannot be inspected, and is accepted. */
export const areStrong = (keys: unknown): boolean =>
  Array.isArray(keys)
    ? keys.length > 0 && keys.every((key: unknown) => typeof key === 'string' && key.length >= MIN_KEY_LENGTH)
    : typeof keys === 'object' && keys !== null && 'verify' in keys

/** What to do about weak ones. */
export const keysMend = `app.keys must hold keys of at least ${MIN_KEY_LENGTH} characters each; app.keys = [randomBytes(32).toString('hex')], kept outside the code`
