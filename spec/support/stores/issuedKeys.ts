/** API keys in a store that notes what it is asked, and what becomes of a key that is sent. */
import { createHash } from 'node:crypto'
import { either as E } from 'fp-ts'
import { apiKeys, type ApiKey, type ApiKeys, type ApiKeysOptions } from 'koa-with-auth/keys'
import { memoryStore } from 'koa-with-auth/stores'
import { mockRequest } from 'koa-with-auth/testing'
import { noting } from './stores.js'

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Keys of `acme`, by default in memory. */
export const made = (more: Partial<ApiKeysOptions<string>> = {}) => {
  const { store, calls, given } = noting(more.store ?? memoryStore())
  return { keys: apiKeys({ prefix: 'acme', ...more, store }), calls, given }
}

/** The tag of the failure; `in` for a key that lets in. */
export const tagOf = async (keys: ApiKeys<string>, key: string): Promise<string> => {
  const result = await keys.authenticate(mockRequest({}), key)
  return E.isRight(result) ? 'in' : result.left._tag
}

export const principalOf = async (keys: ApiKeys<string>, key: string): Promise<ApiKey> => {
  const result = await keys.authenticate(mockRequest({}), key)
  if (E.isLeft(result)) throw new Error('refused')
  return result.right
}
