/**
 * The ids of sessions. An id that is made at a sign-in also contains who signed in, encrypted with a key of the
 * application.
 *
 * So the session and the mark of its user can be read at the same time, in one round trip to the store. The user in the
 * id is only a guess: the record in the session decides who is signed in (`SignedIn.ts`).
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { signed } from '../core/session/signingKeys.js'

/** Makes ids and reads them. */
export interface SessionIds {
  /** Makes an id of 32 random bytes. If a user is signed in, the id also contains who it is. */
  readonly made: (user: string | undefined) => string
  /** Who is signed in according to an id; `undefined` if it contains nothing that can be read. */
  readonly userOf: (id: string) => string | undefined
}

// A longer name would make the cookie too long, so its mark is read after the session
const MAX_BYTES = 128

const purpose = 'koa-with-auth/sessions/ids'

/** An id that contains no user. */
export const randomId = (): string => randomBytes(32).toString('base64url')

/** Makes and reads ids with the first signing key. Users in ids of an older key cannot be read. */
export const sessionIds = (keys: () => unknown): SessionIds => {
  let derived: { readonly from: string; readonly key: Buffer } | undefined
  const key = (): Buffer => {
    const from = signed(keys(), purpose)
    if (derived?.from !== from) derived = { from, key: createHash('sha256').update(from).digest() }
    return derived.key
  }
  // No nonce is needed, because no two ids have the same first bytes. No tag is needed, because nothing relies on the
  // result
  const begin = (random: string): Buffer => Buffer.from(random, 'base64url').subarray(0, 16)
  return {
    made: (user) => {
      const random = randomId()
      if (user === undefined || Buffer.byteLength(user) > MAX_BYTES) return random
      const cipher = createCipheriv('aes-256-ctr', key(), begin(random))
      return `${random}.${cipher.update(user).toString('base64url')}`
    },
    userOf: (id) => {
      const [random = '', hidden] = id.split('.')
      if (hidden === undefined || random.length !== 43) return undefined
      const user = createDecipheriv('aes-256-ctr', key(), begin(random)).update(hidden, 'base64url').toString()
      // encrypted by another key
      return user === '' || user.includes('\uFFFD') ? undefined : user
    },
  }
}
