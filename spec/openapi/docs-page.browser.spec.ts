/** The docs page of the example, in Chromium, as users see it (spec section 1, rules 5 and 6). */
import { expect, it } from 'vitest'
import { browsing, missingBrowser } from '../support/servers/browser.js'
import { authorize, block, logOut, openDocs, padlocked, tryOut } from '../support/sites/docsPage.js'
import { exampleSite } from '../support/sites/exampleSite.js'
import { describeUnless } from '../support/projects/programs.js'

const missing = missingBrowser()

// What is entered for each scheme, and what the browser then sends
const schemes: ReadonlyArray<[scheme: string, path: string, values: string[], header: string, sent?: string]> = [
  ['demoToken', '/api/bearer', ['supersecret'], 'authorization', 'Bearer supersecret'],
  ['demoUser', '/api/basic', ['admin', 'secret'], 'authorization', 'Basic YWRtaW46c2VjcmV0'],
  ['clientKey', '/api/apikey', ['supersecret'], '?api_key=supersecret'],
  ['queryKey', '/api/multiple', ['supersecret'], '?key=supersecret'],
  ['headerKey', '/api/headerkey', ['supersecret'], 'x-api-key', 'supersecret'],
  ['cookieKey', '/api/cookiekey', ['supersecret'], 'cookie', 'X-API-KEY=supersecret'],
]

describeUnless(missing, 'the docs page of the example', () => {
  const open = browsing()
  const site = exampleSite()
  const docs = () => `${site.now().url}/api/docs`

  it('opens from the page at /, without an error on the console or a request to another host', async () => {
    const { page, complaints, origins } = await open()
    await page.goto(site.now().url)
    await page.getByRole('link', { name: 'Open the docs page' }).click()
    await page.locator('.opblock').first().waitFor()
    expect(new URL(page.url()).pathname).toBe('/api/docs')
    expect(await page.title()).toBe('Pets')
    // Wait for what is loaded late
    await page.waitForLoadState('networkidle')
    expect(complaints).toEqual([])
    expect([...origins]).toEqual([site.now().url])
  })

  it('has a padlock at exactly the operations whose security is not empty', async () => {
    const { page } = await open()
    await openDocs(page, docs())
    const document = (await (await fetch(`${site.now().url}/api/openapi.json`)).json()) as {
      readonly paths: Record<string, Record<string, { readonly security?: ReadonlyArray<object> }>>
    }
    const operations = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, { security = [] }]) => ({ name: `${method} ${path}`, security })),
    )
    expect(await page.locator('.opblock').count()).toBe(operations.length)
    const guarded = operations.filter(({ security }) => security.length > 0).map(({ name }) => name)
    expect(guarded.length).toBeGreaterThanOrEqual(13)
    expect((await padlocked(page)).sort()).toEqual(guarded.sort())
  })

  it('each scheme: 200 after Authorize, 401 after Logout', async () => {
    const { page, dialogs, origins } = await open()
    await openDocs(page, docs())
    const seen = async (path: string, header: string) => {
      const { status, headers, url } = await tryOut(page, 'get', path)
      return { status, sent: headers[header], query: new URL(url).search }
    }
    for (const [scheme, path, values, header, sent] of schemes) {
      const query = header.startsWith('?') ? header : ''
      await authorize(page, scheme, ...values)
      expect(await seen(path, header), scheme).toEqual({ status: 200, sent, query })
      await logOut(page, scheme)
      expect(await seen(path, header), scheme).toEqual({ status: 401, sent: undefined, query: '' })
    }
    expect([...origins, dialogs]).toEqual([site.now().url, []])
  })

  it('opens no prompt of the browser for a wrong password of Basic', async () => {
    const { page, dialogs } = await open()
    await openDocs(page, docs())
    await authorize(page, 'demoUser', 'admin', 'wrong')
    // A prompt would hold the response back, and the page would not show it
    const { status, response } = await tryOut(page, 'get', '/api/basic')
    expect([status, response.headers()['www-authenticate'], dialogs]).toEqual([
      401,
      'xBasic realm="pets", charset="UTF-8"',
      [],
    ])
  })

  it('accepts a token that POST /token issued on the page', async () => {
    const { page } = await open()
    await openDocs(page, docs())
    const issued = await tryOut(page, 'post', '/api/token')
    expect(issued.status).toBe(200)
    const { token } = (await issued.response.json()) as { readonly token: string }
    await authorize(page, 'issuedToken', token)
    expect((await tryOut(page, 'get', '/api/whoami')).status).toBe(200)
  })

  it('5.4 signs in by POST /login: reads and writes pass, with the check for CSRF, until POST /logout', async () => {
    const { page } = await open()
    await openDocs(page, docs())
    expect((await tryOut(page, 'get', '/api/pets')).status).toBe(401)
    expect((await tryOut(page, 'post', '/api/pets')).status).toBe(401)
    expect((await tryOut(page, 'post', '/api/login')).status).toBe(204)
    expect((await tryOut(page, 'get', '/api/pets')).status).toBe(200)
    const written = await tryOut(page, 'post', '/api/pets')
    expect([written.status, written.headers['sec-fetch-site']]).toEqual([201, 'same-origin'])
    expect((await tryOut(page, 'post', '/api/logout')).status).toBe(204)
    expect((await tryOut(page, 'get', '/api/pets')).status).toBe(401)
  })

  it('says what to enter for each scheme, and shows and focuses the first one', async () => {
    const { page } = await open({ viewport: { width: 1280, height: 700 } })
    await openDocs(page, docs())
    await page.locator('.auth-wrapper .btn.authorize').click()
    const first = page.locator('.auth-container').first()
    expect(await first.innerText()).toContain('The token is supersecret.')
    await expect.poll(() => first.locator('input:focus').count()).toBe(1)
    expect(await first.locator('h4').isVisible()).toBe(true)
    expect(
      await page.locator('.modal-ux-content').evaluate((content) => Reflect.get(content, 'scrollTop') as number),
    ).toBe(0)
  })

  it('fills in the forms, so that each operation can be tried without input', async () => {
    const { page } = await open()
    await openDocs(page, docs())
    for (const path of ['/api/login', '/api/token']) {
      await tryOut(page, 'post', path)
      const fields = block(page, 'post', path).locator('.parameters input')
      expect([await fields.nth(0).inputValue(), await fields.nth(1).inputValue()]).toEqual(['anna', 'anna-secret'])
    }
  })
})
