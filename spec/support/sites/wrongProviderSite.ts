/** Sites whose users sign in with a provider that does what a test says. */
import { oauth2, type OAuth2Options, type OidcOptions } from 'koa-with-auth/sign-in/oidc'
import { navigation } from '../servers/userAgent.js'
import { wrongProvider } from '../servers/wrongProvider.js'
import { newBrowser, providerSite, SECRET_CLIENT, siteOf, type ProviderSite, type SiteOptions } from './providerSite.js'

/** A site with `oidc` as its kind `provider`, and a browser that has never been there. */
export const wrongSite = async (over: Partial<OidcOptions> = {}, options: Partial<SiteOptions> = {}) => {
  const provider = await wrongProvider()
  return { provider, site: await siteOf(provider.issuer, over, options), browser: newBrowser() }
}

/** `oauth2` for the client `shop`, whose users all have the id 7. */
export const plainKind = (issuer: string, callback: string, over: Partial<OAuth2Options> = {}) =>
  oauth2({
    ...{ name: 'plain', authorize: `${issuer}/authorize`, token: `${issuer}/token` },
    ...{ client: SECRET_CLIENT, callback, subject: () => 7 },
    ...over,
  })

/** A site with `oauth2` as its kind `plain`. */
export const plainSite = async (
  over: Partial<OAuth2Options> | ((issuer: string) => Partial<OAuth2Options>) = {},
  options: Partial<SiteOptions> = {},
) => {
  const provider = await wrongProvider()
  const given = typeof over === 'function' ? over(provider.issuer) : over
  const kinds: SiteOptions['kinds'] = (callback) => ({ plain: plainKind(provider.issuer, callback('plain'), given) })
  return { provider, site: await providerSite({ kinds, ...options }), browser: newBrowser() }
}

/** Signs in as far as the provider lets it: the page of the callback, its reason, and who is signed in then. */
export const tried = async (site: ProviderSite, change: (url: URL) => void = () => {}) => {
  const browser = newBrowser()
  const url = new URL(await site.toCallback(browser))
  change(url)
  const page = await browser.send(url.href, { headers: navigation })
  const { reason } = page.body.startsWith('{') ? (JSON.parse(page.body) as { reason?: string }) : {}
  return { page, browser, reason, who: await site.me(browser) }
}
