// The clients and their API keys. A key is shown once, when it is issued; what is kept is a digest.
import { createHash } from 'node:crypto'
import { apiKeys, memoryKeyStore, type ApiKeys, type KeyStore } from 'koa-with-auth/keys'

/** The API keys of clients: `clients.issue({ owner: 'Acme' })` makes another. */
export const clientKeys = (store: KeyStore): ApiKeys<string> =>
  // The demonstration has one key that everyone can remember; your own never look like this
  apiKeys({ prefix: 'pets', store, adopted: /^supersecret$/ })

/** Gives Acme the key of the demonstration, once: where it was revoked it stays so. */
export const withDemoKey = async (clients: ApiKeys<string>): Promise<ApiKeys<string>> => {
  const isThere = async () => (await clients.list('Acme')).length > 0
  if (await isThere()) return clients
  const digest = createHash('sha256').update('supersecret').digest('hex')
  await clients.adopt(digest, { owner: 'Acme', name: 'demonstration' }).catch(async (error: unknown) => {
    // another process may have been first
    if (!(await isThere())) throw error
  })
  return clients
}

/** Clients in this process alone. */
export const clientsInMemory = (): ApiKeys<string> => {
  const clients = clientKeys(memoryKeyStore())
  void withDemoKey(clients)
  return clients
}
