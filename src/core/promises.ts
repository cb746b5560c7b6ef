/**
 * Values that are like promises: how they are recognized, and how a promise is made of them.
 */

/** @internal Whether a value has a `then`. A getter that throws belongs to the value, and is caught where it is read again. */
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
