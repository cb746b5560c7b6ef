/** Signing in with a provider without OpenID Connect, and linking with providers, over HTTP. */
import { UnavailableError } from 'koa-with-auth'
import { begin } from 'koa-with-auth/sign-in'
import type { OAuth2Options } from 'koa-with-auth/sign-in/oidc'
import { describe, expect, it } from 'vitest'
import { newBrowser, limitFor, type ProviderSite } from '../support/sites/providerSite.js'
import { navigation, type UserAgent } from '../support/servers/userAgent.js'
import { failing, wrongProvider } from '../support/servers/wrongProvider.js'
import { plainKind, plainSite, tried as triedAt, wrongSite } from '../support/sites/wrongProviderSite.js'

const start = async (over: Partial<OAuth2Options> = {}) => {
  const made = await plainSite((issuer) => ({ subject: subjectAt(issuer), timeout: limitFor(''), ...over }))
  made.provider.userinfo = { id: 7 }
  return made
}

const subjectAt =
  (issuer: string): OAuth2Options['subject'] =>
  async ({ access_token: token }, signal) => {
    const response = await fetch(`${issuer}/userinfo`, { headers: { Authorization: `Bearer ${token}` }, signal })
    if (response.status !== 200) throw new UnavailableError('the provider is down')
    return ((await response.json()) as { id: string | number }).id
  }

const tried = async (site: ProviderSite, change?: (url: URL) => void) => {
  const { page, reason, who } = await triedAt(site, change)
  return [page.status, reason, who] as const
}

// O-08
describe('a provider without OpenID Connect', () => {
  it('signs in by the id that its API answers', async () => {
    const { provider, site } = await start()
    expect(await tried(site)).toEqual([303, undefined, 'plain-7'])
    expect(site.done[0]?.proof).toMatchObject({ method: 'oauth2', issuer: 'plain', subject: '7' })
    expect(site.answers[0]).toMatchObject({ claims: undefined, tokens: { access_token: 'an-access-token' } })
    const sent = provider.authorizationRequest()
    expect([sent.get('code_challenge_method'), sent.has('nonce'), sent.has('scope')]).toEqual(['S256', false, false])
  })

  it('may answer a form', async () => {
    const { provider, site } = await start()
    provider.answers['/token'] = (res) =>
      res
        .writeHead(200, { 'Content-Type': 'application/x-www-form-urlencoded; charset=utf-8' })
        .end('access_token=a&token_type=bearer&scope=')
    expect(await tried(site)).toEqual([303, undefined, 'plain-7'])
  })

  it('may send an ID token, which is not read', async () => {
    const { provider, site } = await start()
    provider.tokens = (answer) => ({ ...answer, id_token: 'rubbish', refresh_token: null })
    expect(await tried(site)).toEqual([303, undefined, 'plain-7'])
    expect(JSON.stringify(site.answers)).not.toContain('rubbish')
  })

  const form = 'application/x-www-form-urlencoded'
  const json = 'application/json'
  it.each([
    [200, json, '{"error":"bad_verification_code","error_description":"words of a stranger"}', 400, 'late'],
    [200, json, '{"error":"access_denied","error_description":"words of a stranger"}', 500, undefined],
    [200, json, '{"error":"incorrect_client_credentials","error_description":"words of a stranger"}', 500, undefined],
    [200, form, 'error=bad_verification_code&error_description=words', 400, 'late'],
    [400, form, 'error=bad_verification_code', 400, 'late'],
    [400, json, '{"error":"bad_verification_code"}', 400, 'late'],
    [401, form, 'error=invalid_client', 500, undefined],
    [200, form, 'error=access_denied&access_token=a&token_type=bearer', 500, undefined],
    [200, json, '{"error":{"message":"a"},"access_token":"a","token_type":"bearer"}', 500, undefined],
    [200, json, '{"error":true,"access_token":"a","token_type":"bearer"}', 500, undefined],
    [200, json, '{"access_token":"a","token_type":"mac"}', 400, 'provider'],
    [200, json, '{"token_type":"bearer"}', 503, undefined],
    [200, json, '[]', 503, undefined],
  ])('that answers %i %s %s signs in no user', async (sent, type, body, status, reason) => {
    const { provider, site } = await start()
    provider.answers['/token'] = (res) => res.writeHead(sent, { 'Content-Type': type }).end(body)
    expect(await tried(site)).toEqual([status, reason, undefined])
    expect(JSON.stringify(site.errors)).not.toContain('stranger')
  })

  it.each(Object.keys(failing) as ReadonlyArray<keyof typeof failing>)('that is down (%s) is a 503', async (way) => {
    const { provider, site } = await start({ timeout: limitFor(way) })
    provider.answers['/token'] = failing[way]
    expect(await tried(site)).toEqual([503, undefined, undefined])
  })

  it('whose API is down or hangs is a 503', async () => {
    const { provider, site } = await start({ timeout: limitFor('hanging') })
    provider.answers['/userinfo'] = failing.error
    expect(await tried(site)).toEqual([503, undefined, undefined])
    provider.answers['/userinfo'] = failing.hanging
    expect(await tried(site)).toEqual([503, undefined, undefined])
  })

  it.each([
    ['an empty string', '', 400],
    ['a blank', ' ', 400],
    ['String(undefined)', 'undefined', 500],
    ['String(null)', 'null', 500],
    ['String(NaN)', 'NaN', 500],
    ['String({})', '[object Object]', 500],
    ['a fraction', 1.5, 400],
    ['a number that is not exact', 2 ** 53, 400],
    ['NaN', NaN, 400],
    ['a long string', 'a'.repeat(300), 400],
    ['undefined', undefined, 500],
    ['an object', {}, 500],
    ['true', true, 500],
  ])('whose id is %s signs in no user', async (_name, id, status) => {
    const { site } = await start({ subject: () => id as string })
    expect((await tried(site))[0]).toBe(status)
    expect(site.done).toEqual([])
  })

  it('is not asked by a hook that waits forever', async () => {
    const { site } = await start({ subject: () => new Promise<string>(() => {}), timeout: limitFor('hanging') })
    expect(await tried(site)).toEqual([503, undefined, undefined])
  })

  // O-04
  it('is checked by iss where that comes, and must send it where its issuer is known', async () => {
    const { site, provider: own } = await start()
    const without = (url: URL) => url.searchParams.delete('iss')
    const naming = (iss: string) => (url: URL) => url.searchParams.set('iss', iss)
    expect(await tried(site, naming('https://evil.example'))).toEqual([400, 'provider', undefined])
    expect(await tried(site, naming(`${own.issuer}/tenant`))).toEqual([303, undefined, 'plain-7'])
    expect(await tried(site, without)).toEqual([303, undefined, 'plain-7'])
    const provider = await wrongProvider()
    const known = await start({ issuer: provider.issuer })
    expect(await tried(known.site)).toEqual([400, 'provider', undefined])
    expect(await tried(known.site, naming(provider.issuer))).toEqual([303, undefined, 'plain-7'])
    expect(await tried(known.site, without)).toEqual([400, 'provider', undefined])
  })

  it('cannot step up', () => {
    expect(() => begin(plainKind('https://plain.example', '/callback'), { intent: 'stepUp' })).toThrow(TypeError)
  })
})

const signInAs = (site: ProviderSite, browser: UserAgent, user: string) =>
  browser.send(`${site.origin}/sign-in/as/${user}`, { method: 'POST' })

const beginLink = async (site: ProviderSite, browser: UserAgent): Promise<string> => {
  const begun = await browser.send(`${site.origin}/accounts/provider`, { method: 'POST' })
  expect(begun.status).toBe(303)
  return (await browser.open(begun.location ?? '', (url) => url.startsWith(site.origin))).stopped
}

const reasonAt = async (browser: UserAgent, url: string) => {
  const page = await browser.send(url, { headers: navigation })
  return [page.status, page.body === '' ? undefined : (JSON.parse(page.body) as { reason?: string }).reason]
}

// O-10
describe('linking an identity', () => {
  it('is for the user who began, still signed in, in this browser', async () => {
    const { provider, site, browser } = await wrongSite()
    await signInAs(site, browser, 'anna')
    const session = browser.cookies(`localhost:${site.port}`).get('session')
    expect(await reasonAt(browser, await beginLink(site, browser))).toEqual([303, undefined])
    expect(browser.cookies(`localhost:${site.port}`).get('session')).toBe(session)
    expect([...site.accounts]).toEqual([[`${provider.issuer} anna`, 'anna']])
    expect(await site.me(browser)).toBe('anna')

    const url = await beginLink(site, browser)
    await signInAs(site, browser, 'bert')
    expect(await reasonAt(browser, url)).toEqual([403, 'anotherUser'])
    await browser.send(`${site.origin}/sign-out`, { method: 'POST' })
    expect(await reasonAt(browser, url)).toEqual([403, 'anotherUser'])
    const other = newBrowser()
    await signInAs(site, other, 'anna')
    expect(await reasonAt(other, url)).toEqual([400, 'unknown'])
    expect([provider.asked('/token'), site.done.length]).toEqual([1, 1])
  })

  it('never moves an identity of another account', async () => {
    const { provider, site, browser } = await wrongSite()
    site.accounts.set(`${provider.issuer} anna`, 'anna')
    await signInAs(site, browser, 'bert')
    const url = await beginLink(site, browser)
    expect(await reasonAt(browser, url)).toEqual([403, 'noAccount'])
    expect(await reasonAt(browser, url)).toEqual([400, 'unknown'])
    expect(site.accounts.get(`${provider.issuer} anna`)).toBe('anna')
    expect(await site.me(browser)).toBe('bert')
  })

  it('needs a user, and no other site begins it', async () => {
    const { site, browser } = await wrongSite()
    expect((await browser.send(`${site.origin}/accounts/provider`, { method: 'POST' })).status).toBe(401)
    await signInAs(site, browser, 'anna')
    const headers = { 'Sec-Fetch-Site': 'cross-site', Origin: 'https://evil.example' }
    expect((await browser.send(`${site.origin}/accounts/provider`, { method: 'POST', headers })).status).toBe(403)
  })
})
