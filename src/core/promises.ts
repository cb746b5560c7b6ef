/**
 * Recognizes values that are like promises, and makes promises of them.
 */

/** @internal Whether a value has a `then`. `false` for a getter that throws; what reads it again must catch that. */
export const isThenable = (value: unknown): value is PromiseLike<unknown> => {
  try {
    return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
  } catch {
    return false
  }
}

/**
 * @internal A promise for a value with a `then`. A promise of Node's own is returned as it is, unless its `then` was
 * replaced.
 */
export const toPromise = (value: unknown): Promise<unknown> =>
  value instanceof Promise && value.then === Promise.prototype.then ? value : new Promise((resolve) => resolve(value))
