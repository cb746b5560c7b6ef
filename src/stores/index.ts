/** koa-with-auth/stores: the databases in which sessions, API keys, passkeys and one-time ids are kept. */
export { memoryStore } from './memoryStore.js'
export type { Store } from './Store.js'
