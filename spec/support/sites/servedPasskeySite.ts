/** The application with passkeys, served. Apart from it, because processes of their own import that one without a test. */
import { listen } from '../servers/server.js'
import { passkeySite, withPasskey, type PasskeySiteOptions } from './passkeySite.js'

/** Serves the application until the test is over. */
export const servedPasskeySite = async (options: PasskeySiteOptions = {}) => {
  const site = passkeySite(options)
  const { url, errors } = await listen(site.app)
  return { ...site, url: () => url, errors }
}

/** A site where anna is signed in, and has a passkey. */
export const annaAt = async (
  ...[options, phone]: [...Parameters<typeof servedPasskeySite>, Parameters<typeof withPasskey>[2]?]
) => {
  const site = await servedPasskeySite(options)
  return { ...site, anna: await withPasskey(site.url, 'anna', phone) }
}
