// Passwords are kept as scrypt hashes, tokens and keys as SHA-256 digests: whoever reads the database can use neither.
import { createHash, randomBytes, scrypt, timingSafeEqual, type ScryptOptions } from 'node:crypto'
import { promisify } from 'node:util'

const derive = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt)
const KEY_LENGTH = 32

// OWASP Password Storage Cheat Sheet: with N 2^14 and r 8, p is 5
const COST = { N: 2 ** 14, r: 8, p: 5 }

export const hashPassword = async (password: string): Promise<string> => {
  const salt = randomBytes(16)
  return `${salt.toString('hex')}:${(await derive(password, salt, KEY_LENGTH, COST)).toString('hex')}`
}

// What an unknown user is compared with: that costs the same time as a wrong password.
const ofNoUser = hashPassword(randomBytes(32).toString('hex'))

/** Whether a password is the one behind a hash; without a hash the answer is no, and takes as long. */
export const verifyPassword = async (password: string, hash: string | undefined): Promise<boolean> => {
  const [salt = '', key = ''] = (hash ?? (await ofNoUser)).split(':')
  const derived = await derive(password, Buffer.from(salt, 'hex'), KEY_LENGTH, COST)
  return timingSafeEqual(derived, Buffer.from(key, 'hex')) && hash !== undefined
}

/** What is kept of a random token or key: they are too long to be guessed, so a fast hash does. */
export const digest = (token: string): string => createHash('sha256').update(token).digest('hex')
