// The clients and their API keys. A key is shown once, when it is issued. Only a digest is stored.
import { createHash } from 'node:crypto'
import { apiKeys, type ApiKeys } from 'koa-with-auth/keys'
import { type Store, memoryStore } from 'koa-with-auth/stores'

/** The API keys of clients: `clients.issue({ owner: 'Acme' })` issues another one. */
export const clientKeys = (store: Store): ApiKeys<string> =>
  // The key of the demonstration is easy to remember; your own keys never look like this
  apiKeys({ prefix: 'pets', store, adopted: /^supersecret$/ })

/** Gives Acme the key of the demonstration, once. If it was revoked, it stays revoked. */
export const withDemoKey = async (clients: ApiKeys<string>): Promise<ApiKeys<string>> => {
  const isThere = async () => (await clients.list('Acme')).length > 0
  if (await isThere()) return clients
  const digest = createHash('sha256').update('supersecret').digest('hex')
  await clients.adopt(digest, { owner: 'Acme', name: 'demonstration' }).catch(async (error: unknown) => {
    // Another process may have been first
    if (!(await isThere())) throw error
  })
  return clients
}

/** Clients in this process only. */
export const clientsInMemory = (): ApiKeys<string> => {
  const clients = clientKeys(memoryStore())
  void withDemoKey(clients)
  return clients
}
