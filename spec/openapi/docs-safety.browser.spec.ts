/** What must not happen on the docs page, in Chromium: A-27, and credentials that outlive the page. */
import Koa from 'koa'
import mount from 'koa-mount'
import { apiApp, apiKeyCookie, httpBasicAuth, httpBearer, operation, withAuth, type ApiAppOptions } from 'koa-with-auth'
import { expect, it } from 'vitest'
import { browsing, missingBrowser } from '../support/servers/browser.js'
import { authorize, openDocs, tryOut } from '../support/sites/docsPage.js'
import { listen } from '../support/servers/server.js'
import { describeUnless } from '../support/projects/programs.js'

const missing = missingBrowser()
const open = missing === undefined ? browsing() : undefined!

const bearer = httpBearer({ schemeName: 'token', authenticate: (_request, token) => token === 'supersecret' })
const key = apiKeyCookie({ paramName: 'pass', schemeName: 'pass', authenticate: (_request, sent) => sent === 'c00kie' })

const site = async (options: ApiAppOptions, prefix = '') => {
  const api = apiApp({ prefix: '/api', ...options })
  for (const [path, auth] of [
    ['/bearer', bearer],
    ['/cookie', key],
  ] as const) {
    api.get(path, operation({ summary: String(options.title) }), withAuth(auth), (ctx) => {
      ctx.body = 'ok'
    })
  }
  const app = new Koa()
  app.use(api.routes())
  return listen(prefix === '' ? app : new Koa().use(mount(prefix, app)))
}

describeUnless(missing, 'the docs page in a browser', () => {
  it('A-27 nothing in its address changes it', async () => {
    const { url } = await site({ title: 'Mine' })
    const hostile = [
      '?url=https://evil.example/api.json',
      '?configUrl=https://evil.example/config.json&queryConfigEnabled=true',
      '?urls.primaryName=%3Cscript%3Ealert(1)%3C/script%3E&urls=[{"url":"https://evil.example"}]',
      '?url=data:application/json,{}&validatorUrl=https://evil.example',
      '?oauth2RedirectUrl=javascript:alert(1)&layout=%3Cimg%20src=x%20onerror=alert(1)%3E&persistAuthorization=true',
      '#/%3Cimg%20src=x%20onerror=alert(1)%3E/%22%3E%3Cscript%3Ealert(1)%3C/script%3E',
      '#url=https://evil.example/api.json',
    ]
    const { page, complaints, dialogs, origins } = await open()
    const shown = async (suffix: string) => {
      // From another page, because a new fragment alone does not load it again
      await page.goto('about:blank')
      await openDocs(page, `${url}/api/docs${suffix}`)
      await page.waitForLoadState('networkidle')
      return (await page.locator('#docs').innerText()).replaceAll(url, '')
    }
    const plain = await shown('')
    expect(plain).toContain('Mine')
    for (const suffix of hostile) {
      expect(await shown(suffix), suffix).toBe(plain)
      expect([complaints, dialogs, [...origins]], suffix).toEqual([[], [], [url]])
    }
  })

  it('shows titles and descriptions as text: their scripts do not run', async () => {
    const markup = `</title></script><script>window.ran = 1</script><img src=x onerror="window.ran = 2">"'\u2028`
    const { url } = await site({ title: markup, docs: { description: markup, summary: markup } })
    const { page, dialogs, origins } = await open()
    await openDocs(page, `${url}/api/docs`)
    await page.waitForLoadState('networkidle')
    expect(await page.evaluate(() => Reflect.get(globalThis, 'ran') as unknown)).toBeUndefined()
    expect([dialogs, [...origins]]).toEqual([[], [url]])
    expect(await page.title()).toContain('</title></script><script>')
  })

  it('forgets credentials when it is left', async () => {
    const { url } = await site({ title: 'Mine' })
    const { page } = await open()
    await openDocs(page, `${url}/api/docs`)
    await authorize(page, 'token', 'supersecret')
    await authorize(page, 'pass', 'c00kie')
    const statuses = async () => [
      (await tryOut(page, 'get', '/api/bearer')).status,
      (await tryOut(page, 'get', '/api/cookie')).status,
    ]
    expect(await statuses()).toEqual([200, 200])
    const set = (await page.context().cookies()).map(({ name, value, path, sameSite }) => ({
      name,
      value,
      path,
      sameSite,
    }))
    expect(set).toEqual([{ name: 'pass', value: 'c00kie', path: '/', sameSite: 'Strict' }])
    await page.goto('about:blank')
    // The browser reports a deleted cookie a moment later
    await expect.poll(async () => (await page.context().cookies()).length).toBe(0)
    await openDocs(page, `${url}/api/docs`)
    expect(await statuses()).toEqual([401, 401])
    expect(await page.evaluate(() => JSON.stringify(Reflect.get(globalThis, 'localStorage')))).toBe('{}')
  })

  it('opens with the right password of docs: { auth: basic }, with all its files', async () => {
    const basic = httpBasicAuth({ authenticate: (_request, user, password) => user === 'dev' && password === 's3cret' })
    const { url } = await site({ title: 'Mine', docs: { auth: basic } })
    const { page, complaints } = await open({ httpCredentials: { username: 'dev', password: 's3cret' } })
    await openDocs(page, `${url}/api/docs`)
    await page.waitForLoadState('networkidle')
    expect(complaints.filter((text) => !text.includes('status of 401'))).toEqual([])
  })

  it('works behind a prefix that the router does not see, and with a trailing slash', async () => {
    const { url } = await site({ title: 'Mine', docs: { servers: [{ url: '/behind' }] } }, '/behind')
    const { page, complaints } = await open()
    await openDocs(page, `${url}/behind/api/docs/`)
    expect([new URL(page.url()).pathname, complaints]).toEqual(['/behind/api/docs', []])
    await authorize(page, 'token', 'supersecret')
    const response = page.waitForResponse(/bearer$/)
    await page.locator('.opblock', { hasText: '/api/bearer' }).locator('.opblock-summary-control').click()
    await page.locator('.try-out__btn').click()
    await page.locator('.btn.execute').click()
    expect([(await response).url(), (await response).status()]).toEqual([`${url}/behind/api/bearer`, 200])
  })
})
