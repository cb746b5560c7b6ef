/** `npm run docs`: the guides as a website, in a browser. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { browsing, missingBrowser } from '../support/servers/browser.js'
import { linksOf } from '../support/papers/papers.js'
import { describeUnless } from '../support/projects/programs.js'
import { repository } from '../support/projects/typecheck.js'

const types: Readonly<Record<string, string>> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' }
const guides = linksOf('examples/guides/README.md').map(({ target }) => target.replace(/\.md$/, ''))

describeUnless(missingBrowser(), 'the website', () => {
  let folder: string
  let server: Server
  let url: string
  const open = browsing()

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'koa-with-auth-website-'))
    execFileSync('npm', ['--prefix', '.ci', 'run', 'docs', '--', '--out', folder], { cwd: repository, stdio: 'pipe' })
    // In a folder of its host, to see that links are relative
    server = createServer((req, res) => {
      const asked = decodeURIComponent(new URL(req.url ?? '', 'http://site').pathname)
      const path = join(folder, asked.replace(/^\/docs/, ''))
      res.statusCode = existsSync(path) ? 200 : 404
      res.setHeader('Content-Type', types[extname(path)] ?? 'text/plain')
      res.end(existsSync(path) ? readFileSync(path) : '')
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/docs`
  })
  afterAll(() => {
    server?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('has each guide, with its title once, in the order of the list of guides', async () => {
    const { page } = await open()
    await page.goto(`${url}/index.html`)
    for (const guide of guides) {
      await page.click('.neighbors [rel=next]')
      await page.waitForURL(`${url}/guides/${guide}.html`)
      const titles = (await page.locator('h1').allTextContents()).map((title) => title.trim())
      expect(titles).toHaveLength(1)
      expect(await page.title()).toBe(`${titles[0]} | koa-with-auth`)
    }
    expect(await page.$('.neighbors [rel=next]')).toBe(null)
    for (const guide of guides.slice(0, -1).reverse()) {
      await page.click('.neighbors [rel=prev]')
      await page.waitForURL(`${url}/guides/${guide}.html`)
    }
  })

  it('keeps the code in its lists of headings', async () => {
    const { page } = await open()
    await page.goto(`${url}/guides/sessions.html`)
    expect(await page.textContent('.page-menu')).toContain('Changing app.keys')
  })

  it('fits on a phone, in light and dark', async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const { page: phone } = await open({ viewport: { width: 390, height: 800 }, colorScheme })
      for (const path of ['index', ...guides.map((guide) => `guides/${guide}`)]) {
        await phone.goto(`${url}/${path}.html`)
        const overflow = await phone.evaluate('document.documentElement.scrollWidth - innerWidth')
        expect([path, overflow]).toEqual([path, 0])
      }
    }
  })

  // People type what it is called elsewhere; the place is a page, and the heading that the row of words.md names
  it.each(
    `
    login sessions | sign out sessions | remember me site-with-login#2-stay-signed-in | JWT tokens | roles combining | RBAC combining
    OAuth providers | SSO providers | SAML words | LDAP words | reset sign-in | CORS words | postgres postgresql-shop | mysql stores | prisma stores
    invite company#teams | mobile devices | mobile app devices | refresh backend-for-frontend | refresh token backend-for-frontend
    BFF backend-for-frontend | pwned keys-and-passwords#new-passwords | delete account company#accounts | change email company#accounts
    rate limit throttling | impersonate recipes#support-acts | JWT blacklist tokens#revoking | IP whitelist own-authenticators#a-function
    NestJS other-frameworks | webhook webhooks | magic link sign-in | 2FA sign-in | helmet words | graceful shutdown upgrades#a-graceful-end`
      .split(/[|\n]/)
      .flatMap((row) => [/^(.+) (\S+)$/.exec(row.trim())?.slice(1) ?? []].filter(({ length }) => length > 0)),
  )('finds by %s first: %s', async (typed = '', place = '') => {
    const { page } = await open()
    await page.goto(`${url}/guides/levels.html`)
    await page.click('#tsd-search-trigger')
    await page.fill('#tsd-search-input', typed)
    const first = page.locator('#tsd-search-results li a').first()
    await first.waitFor()
    const [path, anchor = ''] = place.split('#')
    const href = await first.getAttribute('href')
    expect(href).toMatch(new RegExp(`^\\.\\./guides/${path}\\.html(?:#${anchor.replace(/\W/g, '.')}.*)?$`))
  })

  it('has no link to an anchor that is not there', () => {
    const pages = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.html'))
    const html = new Map(pages.map((path) => [path, readFileSync(join(folder, path), 'utf8')]))
    const missing = [...html].flatMap(([path, text]) =>
      [...text.matchAll(/href="(?!https?:|mailto:)([^"#]*)#([^"]+)"/g)].flatMap(([, to = '', anchor = '']) => {
        const target = html.get(to === '' ? path : join(path, '..', decodeURIComponent(to)))
        return target === undefined || target.includes(`id="${decodeURIComponent(anchor)}"`)
          ? []
          : [`${path}: ${to}#${anchor}`]
      }),
    )
    expect(missing).toEqual([])
  })

  it.each([
    ['webhook', 'guides/webhooks.html', 'webhook'],
    ['role', 'guides/combining.html', 'role'],
    ['constantTimeEqual', 'functions/koa-with-auth.constantTimeEqual.html', undefined],
  ])('shows of %s the heading and a line of text, and leads there', async (word, path, marked) => {
    const { page } = await open()
    await page.goto(`${url}/guides/levels.html`)
    await page.click('#tsd-search-trigger')
    await page.fill('#tsd-search-input', word)
    const results = page.locator('#tsd-search-results li')
    await results.locator('.passage').first().waitFor()
    // each of them has a line
    expect(await results.locator('.passage span').count()).toBe(await results.count())
    const link = results.locator(`a[href*="${path}"]`).first()
    expect((await link.locator('.passage span').textContent())?.length).toBeGreaterThan(15)
    if (marked === undefined) return
    expect((await link.locator('.passage mark').first().textContent())?.toLowerCase()).toBe(marked)
    const heading = await link.locator('.passage strong').textContent()
    await link.click()
    await page.waitForURL(/#/)
    const target = decodeURIComponent(new URL(page.url()).hash.slice(1))
    expect((await page.locator(`[id="${target}"]`).textContent())?.trim()).toBe(heading)
  })

  it('says on one screen what this is, for whom, and the three ways in', async () => {
    for (const viewport of [
      { width: 1280, height: 800 },
      { width: 390, height: 844 },
    ]) {
      for (const colorScheme of ['light', 'dark'] as const) {
        const { page } = await open({ viewport, colorScheme })
        await page.goto(`${url}/index.html`)
        const ways = await page.locator('.ways > div').all()
        const main = await Promise.all(ways.map((way) => way.locator('a').first().textContent()))
        expect(main).toStrictEqual(['Guard it', 'Build it', 'Audit it'])
        for (const one of [page.locator('.tsd-typography > p').first(), ...ways]) {
          const box = await one.boundingBox()
          expect((box?.y ?? Infinity) + (box?.height ?? Infinity)).toBeLessThan(viewport.height)
        }
      }
    }
  })
})
