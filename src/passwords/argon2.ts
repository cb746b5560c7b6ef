/** The two places that Argon2id can come from. */
import * as crypto from 'node:crypto'
import { promisify } from 'node:util'
import type { Argon2Cost } from './StoredPassword.js'

/** Makes a hash. All work is done on Node's threads. */
export type Derive<Cost> = (password: Buffer, salt: Buffer, cost: Cost, length: number) => Promise<Buffer>

type NodeArgon2 = (
  algorithm: 'argon2id',
  parameters: Readonly<Record<string, Buffer | number>>,
  done: (error: Error | null, key: Buffer) => void,
) => void

/** Argon2id of node:crypto, which has it from 24.7 on. */
export const argon2OfNode = (argon2: unknown = Reflect.get(crypto, 'argon2')): Derive<Argon2Cost> | undefined => {
  if (typeof argon2 !== 'function') return undefined
  // Safe: the type is from the documentation of node:crypto, and `works` tries it
  const derive = promisify(argon2 as NodeArgon2)
  return async (message, nonce, { m, t, p }, tagLength) =>
    Buffer.from(await derive('argon2id', { message, nonce, parallelism: p, tagLength, memory: m, passes: t }))
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
