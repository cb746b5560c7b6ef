/** `openid-client`, which has only ES modules. The entry point says so if it is not installed. */
import type * as OpenidClient from 'openid-client' with { 'resolution-mode': 'import' }

type Module = typeof OpenidClient

let loaded: Module | undefined
const loading: Promise<Module | undefined> = import('openid-client')
  .catch(() => undefined)
  .then((found) => (loaded = found))

/** The module, after {@link openidClientLoaded}. */
export const openidClient = (): Module => {
  if (loaded === undefined) throw new Error('openid-client is not loaded')
  return loaded
}

/** Resolves to the module when it is loaded. */
export const openidClientLoaded = async (): Promise<Module> => {
  await loading
  return openidClient()
}
