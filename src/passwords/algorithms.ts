/**
 * The algorithms that hash passwords: Argon2id of node:crypto, or else of `@node-rs/argon2`, or else scrypt.
 * `@node-rs/bcrypt` verifies old passwords of bcrypt. All work on Node's threads, not on the event loop.
 */
import * as crypto from 'node:crypto'
import type { Argon2Cost, ScryptCost } from './StoredPassword.js'

/** Makes a key of a password and a salt. */
export type Derive<Cost> = (password: Buffer, salt: Buffer, cost: Cost, length: number) => Promise<Buffer>

interface Argon2Parameters {
  readonly message: Buffer
  readonly nonce: Buffer
  readonly parallelism: number
  readonly tagLength: number
  readonly memory: number
  readonly passes: number
}
type NodeArgon2 = (
  algorithm: 'argon2id',
  parameters: Argon2Parameters,
  done: (error: Error | null, key: Buffer) => void,
) => void

/** Argon2id of node:crypto, which has it from 24.7 on. */
export const argon2OfNode = (argon2: unknown = Reflect.get(crypto, 'argon2')): Derive<Argon2Cost> | undefined => {
  if (typeof argon2 !== 'function') return undefined
  // Safe: the type is from the documentation of node:crypto, and `works` tries it
  const derive = argon2 as NodeArgon2
  return (message, nonce, { m, t, p }, tagLength) =>
    new Promise((resolve, reject) => {
      derive('argon2id', { message, nonce, parallelism: p, tagLength, memory: m, passes: t }, (error, key) => {
        if (error === null) resolve(Buffer.from(key))
        else reject(error)
      })
    })
}

// From `const enum Algorithm`, which does not exist at run time
const ARGON2ID = 2

/** Argon2id of `@node-rs/argon2`; `undefined` if it is not installed. */
export const argon2OfPackage = async (): Promise<Derive<Argon2Cost> | undefined> => {
  const found = await import('@node-rs/argon2').catch(() => undefined)
  if (found === undefined) return undefined
  return (password, salt, { m, t, p }, outputLen) =>
    found.hashRaw(password, { algorithm: ARGON2ID, salt, memoryCost: m, timeCost: t, parallelism: p, outputLen })
}

// One may exist but not work: in a build of OpenSSL without it, or as a binary for another system
const works = async (derive: Derive<Argon2Cost> | undefined): Promise<Derive<Argon2Cost> | undefined> => {
  if (derive === undefined) return undefined
  const key = await derive(Buffer.from('password'), Buffer.alloc(16), { m: 8, t: 1, p: 1 }, 16).catch(() => undefined)
  return key?.length === 16 ? derive : undefined
}

/** The first Argon2id that works, if any does. */
export const findArgon2 = async (): Promise<Derive<Argon2Cost> | undefined> =>
  (await works(argon2OfNode())) ?? (await works(await argon2OfPackage()))

/** scrypt of node:crypto. */
export const scrypt: Derive<ScryptCost> = (password, salt, { ln, r, p }, length) =>
  new Promise((resolve, reject) => {
    const N = 2 ** ln
    // the need of RFC 7914, and some room; Node's default would refuse more than 2^14
    const maxmem = 128 * r * (N + p + 8)
    crypto.scrypt(password, salt, length, { N, r, p, maxmem }, (error, key) => {
      if (error === null) resolve(key)
      else reject(error)
    })
  })

/** Whether bcrypt makes a hash of a password. */
export type VerifyBcrypt = (password: Buffer, stored: string) => Promise<boolean>

/** bcrypt of `@node-rs/bcrypt`; `undefined` if it is not installed. */
export const findBcrypt = async (): Promise<VerifyBcrypt | undefined> => {
  const found = await import('@node-rs/bcrypt').catch(() => undefined)
  return found && ((password, stored) => found.verify(password, stored))
}
