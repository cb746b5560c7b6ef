/** The docs page in Chromium, as users see it (spec section 1, rules 5 and 6), narrow and wide, and what must not happen there. */
import { mkdirSync } from 'node:fs'
import { expect, it } from 'vitest'
import Koa from 'koa'
import mount from 'koa-mount'
import {
  apiApp,
  apiKeyCookie,
  httpBasicAuth,
  httpBearer,
  operation,
  withAuth,
  type ApiAppOptions,
  type Schema,
} from 'koa-with-auth'
import { bodyParser } from '@koa/bodyparser'
import * as t from 'io-ts'
import * as v from 'valibot'
import { z } from 'zod'
import { httpJwt } from 'koa-with-auth/jwt'
import { browsing, missingBrowser } from '../support/servers/browser.js'
import { authorize, block, logOut, openDocs, padlocked, tryOut } from '../support/sites/docsPage.js'
import { exampleSite } from '../support/sites/exampleSite.js'
import { describeUnless } from '../support/projects/programs.js'
import { listen } from '../support/servers/server.js'
import { API, identityProvider } from '../support/servers/identityProvider.js'

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
  const docs = () => `${site().url}/api/docs`

  it('opens from the page at /, without an error on the console or a request to another host', async () => {
    const { page, complaints, origins } = await open()
    await page.goto(site().url)
    await page.getByRole('link', { name: 'Open the docs page' }).click()
    await page.locator('.opblock').first().waitFor()
    expect(new URL(page.url()).pathname).toBe('/api/docs')
    expect(await page.title()).toBe('Pets')
    // Wait for what is loaded late
    await page.waitForLoadState('networkidle')
    expect(complaints).toEqual([])
    expect([...origins]).toEqual([site().url])
  })

  it('has a padlock at exactly the operations whose security is not empty', async () => {
    const { page } = await open()
    await openDocs(page, docs())
    const document = (await (await fetch(`${site().url}/api/openapi.json`)).json()) as {
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
    expect([...origins, dialogs]).toEqual([site().url, []])
  })

  it('opens no prompt of the browser for a wrong password of Basic', async () => {
    const { page, dialogs } = await open()
    await openDocs(page, docs())
    await authorize(page, 'demoUser', 'admin', 'wrong')
    // A prompt would hold the response back, and the page would not show it
    const { status, response } = await tryOut(page, 'get', '/api/basic')
    const challenge = response.headers()['www-authenticate']
    expect([status, challenge, dialogs]).toEqual([401, 'xBasic realm="pets", charset="UTF-8"', []])
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

const open = missing === undefined ? browsing() : undefined!

const bearer = httpBearer({ schemeName: 'token', authenticate: (_request, token) => token === 'supersecret' })
const key = apiKeyCookie({ paramName: 'pass', schemeName: 'pass', authenticate: (_request, sent) => sent === 'c00kie' })

const site = async (options: ApiAppOptions, prefix = '') => {
  const api = apiApp({ prefix: '/api', ...options })
  for (const [path, auth] of [
    ['/bearer', bearer],
    ['/cookie', key],
  ] as const) {
    const summary = String(options.title)
    api.get(path, operation({ summary }), withAuth(auth), (ctx) => void (ctx.body = 'ok'))
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
    const statusAt = async (path: string) => (await tryOut(page, 'get', path)).status
    const statuses = async () => [await statusAt('/api/bearer'), await statusAt('/api/cookie')]
    expect(await statuses()).toEqual([200, 200])
    const set = { name: 'pass', value: 'c00kie', path: '/', sameSite: 'Strict' }
    expect(await page.context().cookies()).toMatchObject([set])
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

// Screenshots are written there, if it is set
const folder = process.env['SCREENSHOTS']
if (folder) mkdirSync(folder, { recursive: true })

const brightness = (colour: string): number =>
  colour
    .match(/\d+/g)!
    .slice(0, 3)
    .reduce((sum, part) => sum + Number(part), 0) / 3

describeUnless(missing, 'the looks of the docs page', () => {
  const open = browsing()
  const site = exampleSite()

  // Each switches to the other colours at its end
  it.each([
    { width: 'wide', colorScheme: 'light', viewport: { width: 1280, height: 900 } },
    { width: 'narrow', colorScheme: 'dark', viewport: { width: 360, height: 760 } },
  ] as const)(
    '$width, $colorScheme: nothing is cut off, and the colours are those of the system',
    async ({ width, colorScheme, viewport }) => {
      const { page } = await open({ viewport, colorScheme })
      const shot = async (name: string, fullPage = false) => {
        if (folder) await page.screenshot({ path: `${folder}/${width}-${colorScheme}-${name}.png`, fullPage })
      }
      const overflow = () =>
        page
          .locator('html')
          .evaluate((html) => Number(Reflect.get(html, 'scrollWidth')) - Number(Reflect.get(html, 'clientWidth')))
      const background = () =>
        page.locator('html').evaluate((html) => {
          const style = (
            Reflect.get(globalThis, 'getComputedStyle') as (of: unknown) => { readonly backgroundColor: string }
          )(html)
          return style.backgroundColor
        })
      await page.goto(site().url)
      await shot('home')
      expect(await overflow()).toBe(0)

      await openDocs(page, `${site().url}/api/docs`)
      await shot('page', true)
      expect(await overflow()).toBe(0)
      expect(brightness(await background()) > 128).toBe(colorScheme === 'light')
      // A description next to its heading would become a column of single letters
      for (const description of await page.locator('.opblock-tag small').all()) {
        expect((await description.boundingBox())!.height).toBeLessThan(100)
      }

      const operation = block(page, 'post', '/api/token')
      await operation.locator('.opblock-summary-control').click()
      await operation.locator('.try-out__btn').click()
      await operation.locator('.btn.execute').click()
      await operation.locator('.live-responses-table').waitFor()
      if (folder) await operation.screenshot({ path: `${folder}/${width}-${colorScheme}-operation.png` })
      expect(await overflow()).toBe(0)

      await page.locator('.auth-wrapper .btn.authorize').click()
      const dialog = (await page.locator('.modal-ux').boundingBox())!
      await shot('dialog')
      expect([dialog.x >= 8, dialog.x + dialog.width <= viewport.width - 8]).toEqual([true, true])

      await page.emulateMedia({ colorScheme: colorScheme === 'light' ? 'dark' : 'light' })
      await expect.poll(async () => brightness(await background()) > 128).toBe(colorScheme === 'dark')
    },
  )
})

const bodies: Readonly<Record<string, Schema<unknown>>> = {
  '/zod': z.object({ name: z.string() }),
  '/io-ts': t.type({ name: t.string }),
  // it has no JSON Schema
  '/valibot': v.object({ name: v.string() }),
}

describeUnless(missing, 'bodies on the docs page', () => {
  const open = browsing()

  it('each has a field, and what is typed there is sent as JSON', async () => {
    const api = apiApp({ title: 'Pets', version: '1', prefix: '/api', auth: null })
    const app = new Koa().use(bodyParser())
    for (const [path, requestBody] of Object.entries(bodies)) {
      api.post(path, operation({ requestBody }), (ctx) => void (ctx.body = { got: ctx.request.body }))
    }
    app.use(api.routes())
    const { url } = await listen(app)
    const { page, complaints } = await open()
    await openDocs(page, `${url}/api/docs`)
    for (const path of Object.keys(bodies)) {
      const operation = block(page, 'post', `/api${path}`)
      await operation.locator('.opblock-summary-control').click()
      await operation.locator('.try-out__btn').click()
      const field = operation.locator('textarea.body-param__text')
      await field.waitFor()
      const shown: unknown = JSON.parse(await field.inputValue())
      expect(shown, path).toEqual(path === '/valibot' ? {} : { name: 'string' })
      await field.fill('{"name":"Rex"}')
      const { status, response } = await tryOut(page, 'post', `/api${path}`)
      expect([status, await response.json()], path).toEqual([200, { got: { name: 'Rex' } }])
    }
    expect(complaints).toEqual([])
  })
})

describeUnless(missing, 'tokens on the docs page', () => {
  const open = browsing()

  it('the page offers http bearer JWT, even if discovery is used', async () => {
    const provider = await identityProvider()
    const auth = httpJwt({ issuer: provider.issuer, audience: API })
    const api = apiApp({ title: 'Files', version: '1', prefix: '/api', auth })
    api.get('/me', (ctx) => void (ctx.body = { sub: ctx.request.auth.sub }))
    const { url } = await listen(new Koa().use(api.routes()))
    const { page } = await open()
    await openDocs(page, `${url}/api/docs`)
    expect(await tryOut(page, 'get', '/api/me')).toMatchObject({ status: 401 })
    await authorize(page, 'bearer_JWT', await provider.token())
    expect(await tryOut(page, 'get', '/api/me')).toMatchObject({ status: 200 })
  })
})
