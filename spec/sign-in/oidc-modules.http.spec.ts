/**
 * Modules of the OpenID Foundation's conformance suite for relying parties whose provider does nothing wrong, or leaves
 * something out. The names in brackets are theirs, without `oidcc-client-test-`; those of wrong providers are in the
 * other specs of this folder. The guide "Sign-in libraries, compared" lists all.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { signedByHand, signingKey } from '../support/servers/identityProvider.js'
import { newBrowser } from '../support/sites/providerSite.js'
import { tried, wrongSite as start } from '../support/sites/wrongProviderSite.js'
import { repository } from '../support/projects/typecheck.js'
import { navigation } from '../support/servers/userAgent.js'

describe('O-07 a sign-in', () => {
  it('finds endpoints and keys by discovery [discovery-openid-config] [discovery-jwks-uri-keys] [oidcc-client-test] [idtoken-sig-rs256]', async () => {
    const { provider, site, browser } = await start()
    const url = await site.toCallback(browser)
    expect([provider.asked('/discovery'), provider.asked('/authorize'), provider.asked('/jwks')]).toEqual([1, 1, 0])
    await browser.send(url, { headers: navigation })
    expect([provider.asked('/token'), provider.asked('/jwks')]).toEqual([1, 1])
    expect(await site.me(browser)).toBe('provider-anna')
  })

  it('refuses a token without kid where several keys could have signed it [kid-absent-multiple-jwks]', async () => {
    const { provider, site } = await start()
    provider.keys.push(await signingKey('RS256', 'k2'))
    provider.idToken = (claims) => signedByHand({ alg: 'RS256' }, JSON.stringify(claims), provider.keys[0]!)
    expect(await tried(site)).toMatchObject({ page: { status: 400 }, reason: 'provider', who: undefined })
  })

  it('asks for claims by scope, and hands them on as they are [scope-userinfo-claims] [userinfo-bearer-header] [aggregated-claims] [distributed-claims]', async () => {
    const { provider, site } = await start({ scope: ['openid', 'email'], userinfo: true })
    provider.userinfo = {
      sub: 'anna',
      email: 'anna@shop.example',
      _claim_names: { age: 'elsewhere', name: 'here' },
      _claim_sources: {
        elsewhere: { endpoint: 'https://claims.example', access_token: 'a' },
        here: { JWT: 'a.b.c' },
      },
    }
    await site.signIn(newBrowser())
    expect(provider.authorizationRequest().get('scope')).toBe('openid email')
    expect(site.answers).toMatchObject([{ userinfo: provider.userinfo }])
  })

  it('may be begun by a link of another site [3rd-party-init-login]', async () => {
    const { provider, site } = await start()
    const query = new URLSearchParams({ iss: provider.issuer, target_link_uri: 'https://evil.example/' }).toString()
    const browser = newBrowser()
    const { stopped } = await browser.open(`${site.origin}/sign-in/provider?${query}`, (url) =>
      url.includes('/callback'),
    )
    const page = await browser.send(stopped, { headers: navigation })
    expect([page.status, page.location, await site.me(browser)]).toEqual([303, `${site.origin}/`, 'provider-anna'])
  })

  it('whose error is posted is declined [form-post-error]', async () => {
    const { provider, site, browser } = await start({ responseMode: 'form_post' })
    const begun = await browser.send(`${site.origin}/sign-in/provider`)
    const state = new URL(begun.location ?? '').searchParams.get('state') ?? ''
    const body = new URLSearchParams({ error: 'access_denied', state, iss: provider.issuer })
    const headers = { 'Sec-Fetch-Site': 'cross-site', Origin: provider.issuer, Cookie: '' }
    const posted = await browser.send(`${site.origin}/sign-in/provider/callback`, { method: 'POST', body, headers })
    expect(posted.status).toBe(303)
    const page = await browser.send(posted.location ?? '', { headers: navigation })
    expect([page.status, JSON.parse(page.body)]).toMatchObject([400, { reason: 'declined' }])
  })
})

describe('the table of modules', () => {
  const guide = readFileSync(`${repository}examples/guides/providers-compared.md`, 'utf8')
  const rows = [...guide.matchAll(/^\| (`[^|]+) \| ([^|]+) \| ([^|]+) \|$/gm)].map(([, names = '', , by = '']) => ({
    names: [...names.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
    by: by.trim(),
  }))
  const titles = readdirSync(`${repository}spec/sign-in`)
    .filter((name) => name.startsWith('oidc'))
    .flatMap((name) => [...readFileSync(`${repository}spec/sign-in/${name}`, 'utf8').matchAll(/\[([a-z0-9-]+)\]/g)])
    .map(([, name = '']) => name)

  it('has each of the 57 modules once, and each that applies has a spec with its name', () => {
    const names = rows.flatMap((row) => row.names)
    expect([...names].sort()).toEqual([...modules].sort())
    for (const { names: some, by } of rows) {
      expect(['openid-client', 'this package', 'both', 'not offered']).toContain(by)
      for (const name of some) expect([name, titles.includes(name)]).toEqual([name, by !== 'not offered'])
    }
  })
})

/** The modules for relying parties of conformance-suite, of 2026-08-20. */
const modules = `
  oidcc-client-test 3rd-party-init-login aggregated-claims client-secret-basic discovery-issuer-mismatch
  discovery-jwks-uri-keys discovery-openid-config discovery-webfinger-acct discovery-webfinger-url distributed-claims
  dynamic-registration form-post-error idtoken-sig-none idtoken-sig-rs256 invalid-athash
  invalid-aud invalid-chash invalid-iss invalid-sig-es256 invalid-sig-hs256
  invalid-sig-rs256 kid-absent-multiple-jwks kid-absent-single-jwks missing-athash missing-aud
  missing-chash missing-iat missing-sub mtls-endpoint-aliases nonce-invalid
  nonce-unless-code-flow refresh-token refresh-token-invalid-issuer refresh-token-invalid-sub request-uri-signed-none
  request-uri-signed-rs256 rp-backchannel-rpinitlogout rp-backchannel-rpinitlogout-alg-none rp-backchannel-rpinitlogout-no-event rp-backchannel-rpinitlogout-with-nonce
  rp-backchannel-rpinitlogout-wrong-alg rp-backchannel-rpinitlogout-wrong-aud rp-backchannel-rpinitlogout-wrong-event rp-backchannel-rpinitlogout-wrong-iss rp-frontchannel-opinitlogout
  rp-frontchannel-rpinitlogout rp-init-logout rp-init-logout-no-state rp-init-logout-other-state scope-userinfo-claims
  session-management signing-key-rotation signing-key-rotation-just-before-signing userinfo-bearer-body userinfo-bearer-header
  userinfo-invalid-sub userinfo-signed
`
  .trim()
  .split(/\s+/)
