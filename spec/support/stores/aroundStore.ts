/** A store whose calls pass through a function. */
import type { Store } from 'koa-with-auth/stores'

const methods = ['get', 'insert', 'update', 'end', 'add', 'members'] as const
export type StoreMethod = (typeof methods)[number]

/** `around` gets the method and the arguments, and asks the store itself, or does not. */
export const aroundStore = (
  store: () => Store,
  around: (method: StoreMethod, args: ReadonlyArray<unknown>, ask: () => unknown) => unknown,
): Store =>
  // Safe: all methods are there, with their parameters
  Object.fromEntries(
    methods.map((method) => [
      method,
      (...args: ReadonlyArray<unknown>) => around(method, args, () => Reflect.apply(store()[method], undefined, args)),
    ]),
  ) as object as Store
