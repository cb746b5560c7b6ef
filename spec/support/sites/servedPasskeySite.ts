/** The application with passkeys, served. Apart from it, because processes of their own import that one without a test. */
import { listen } from '../servers/server.js'
import { passkeySite, person, withPasskey, type PasskeySiteOptions } from './passkeySite.js'

/** Serves the application until the test is over. */
export const servedPasskeySite = async (options: PasskeySiteOptions = {}) => {
  const site = passkeySite(options)
  const { url, errors } = await listen(site.app)
  return { ...site, url: () => url, errors }
}

type Given = [...Parameters<typeof servedPasskeySite>, Parameters<typeof person>[1]?]

/** A site where anna is signed in by a password, and has no passkey. */
export const passwordAt = async (...[options, phone]: Given) => {
  const site = await servedPasskeySite(options)
  const anna = person(site.url, phone)
  await anna.browser.post('/sign-in/password/anna')
  return { ...site, anna }
}

/** A site where anna is signed in, and has a passkey. */
export const annaAt = async (...[options, phone]: Given) => {
  const site = await servedPasskeySite(options)
  return { ...site, anna: await withPasskey(site.url, 'anna', phone) }
}
