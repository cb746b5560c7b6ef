/**
 * The ids of sessions. One that is made at a sign-in also says who signed in, encrypted for the application alone.
 *
 * So the session and the mark of its user can be asked for at the same time: a store on another machine costs one round trip
 * a request, not two. What an id says is a guess: who is signed in is decided by the record in the session (`SignedIn.ts`).
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { signed } from '../core/session/signingKeys.js'

/** Makes ids and reads them. */
export interface SessionIds {
  /** 32 random bytes and, of a session in which somebody is signed in, who. */
  readonly made: (user: string | undefined) => string
  /** Who is signed in according to an id; `undefined` where it says nothing that can be read. */
  readonly userOf: (id: string) => string | undefined
}

// A longer name would make a long cookie, and is asked for afterwards
const MAX_BYTES = 128

const purpose = 'koa-with-auth/sessions/ids'

/** An id that says nothing. */
export const randomId = (): string => randomBytes(32).toString('base64url')

/** Makes and reads ids by the first of the signing keys; those of an older key say nothing. */
export const sessionIds = (keys: () => unknown): SessionIds => {
  let derived: { readonly from: string; readonly key: Buffer } | undefined
  const key = (): Buffer => {
    const from = signed(keys(), purpose)
    if (derived?.from !== from) derived = { from, key: createHash('sha256').update(from).digest() }
    return derived.key
  }
  // no two ids have the same first bytes, and nothing relies on what was decrypted: neither a nonce nor a tag is needed
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
