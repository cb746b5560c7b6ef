/** Sessions in Chromium: what pages of other origins make the browser send with its cookie, or to get one. */
import { randomBytes } from 'node:crypto'
import Router from '@koa/router'
import Koa from 'koa'
import { sessionAuth, withAuth } from 'koa-with-auth'
import { sessions } from 'koa-with-auth/sessions'
import type { Page } from 'playwright-core'
import { beforeEach, expect, it } from 'vitest'
import { browsing, missingBrowser } from '../support/servers/browser.js'
import { serve } from '../support/servers/server.js'
import { describeUnless } from '../support/projects/programs.js'

const missing = missingBrowser()
const open = missing === undefined ? browsing() : undefined!

let written = 0
let hadCookie = false
beforeEach(() => {
  written = 0
})

const makeSite = (): Koa => {
  const app = new Koa({ keys: [randomBytes(32).toString('hex')] })
  app.use((ctx, next) => {
    hadCookie = ctx.get('cookie') !== ''
    return next()
  })
  const { logIn, logOut } = sessions(app, { loadUser: (username) => ({ username, isActive: true }) })
  const anybody = withAuth(null)(new Router())
  anybody.get('/', (ctx) => {
    ctx.type = 'html'
    ctx.body = '<!doctype html><title>A site</title><link rel="icon" href="data:,">'
  })
  anybody.post('/login/:user', async (ctx) => {
    await logIn(ctx, { username: String(ctx.params['user']), isActive: true })
    ctx.status = 204
  })
  anybody.post('/logout', async (ctx) => {
    await logOut(ctx)
    ctx.status = 204
  })
  const own = withAuth(sessionAuth())(new Router())
  own.get('/me', (ctx) => {
    ctx.body = ctx.request.auth.username
  })
  own.post('/notes', (ctx) => {
    written++
    ctx.status = 201
  })
  app.use(anybody.routes()).use(own.routes())
  return app
}

const makeForeign = (): Koa =>
  new Koa().use((ctx) => {
    ctx.type = 'html'
    ctx.body = '<!doctype html><title>Another site</title><link rel="icon" href="data:,">'
  })

// What a script of the open page gets. A foreign one may not read the response, so the browser's own record is read.
const post = async (page: Page, url: string): Promise<{ readonly status: number; readonly cookie: boolean }> => {
  const answering = page.waitForResponse((response) => response.url() === url && response.request().method() === 'POST')
  await page.evaluate((target) => fetch(target, { method: 'POST', mode: 'no-cors', credentials: 'include' }), url)
  return { status: (await answering).status(), cookie: hadCookie }
}

// What a form of the open page gets, when it leaves the page
const submit = async (page: Page, url: string): Promise<number> => {
  const answering = page.waitForResponse((response) => response.url() === url && response.request().method() === 'POST')
  await page.setContent(`<form method="POST" action="${url}"></form>`)
  await page.locator('form').evaluate((form) => Reflect.apply(Reflect.get(form, 'submit') as () => void, form, []))
  const status = (await answering).status()
  await page.waitForURL(url)
  return status
}

const me = (page: Page, url: string): Promise<number> =>
  page
    .context()
    .request.get(`${url}/me`)
    .then((answer) => answer.status())

describeUnless(missing, 'sessions in a browser', () => {
  const site = serve(makeSite)
  const foreign = serve(makeForeign)

  const signedIn = async (): Promise<Page> => {
    const { page } = await open()
    await page.goto(site.url)
    expect(await post(page, `${site.url}/login/anna`)).toMatchObject({ status: 204 })
    expect(await me(page, site.url)).toBe(200)
    return page
  }

  it('a page of the same origin writes with the cookie', async () => {
    const page = await signedIn()
    expect(await post(page, `${site.url}/notes`)).toEqual({ status: 201, cookie: true })
    expect(await submit(page, `${site.url}/notes`)).toBe(201)
    expect(written).toBe(2)
  })

  // SameSite does not stop the cookie, because ports are not part of a site
  it('a page of another port writes nothing, although the browser sends the cookie', async () => {
    const page = await signedIn()
    await page.goto(foreign.url)
    expect(await post(page, `${site.url}/notes`)).toEqual({ status: 403, cookie: true })
    expect(await submit(page, `${site.url}/notes`)).toBe(403)
    expect(written).toBe(0)
    expect(await me(page, site.url)).toBe(200)
  })

  it('a page of another site writes nothing, and the browser sends no cookie', async () => {
    const page = await signedIn()
    await page.goto(foreign.url.replace('127.0.0.1', 'localhost'))
    expect(await post(page, `${site.url}/notes`)).toEqual({ status: 401, cookie: false })
    expect(await submit(page, `${site.url}/notes`)).toBe(401)
    expect(written).toBe(0)
    expect(await me(page, site.url)).toBe(200)
  })

  it.each([
    { from: 'another port', host: '127.0.0.1' },
    { from: 'another site', host: 'localhost' },
  ])('a page of $from signs no user in or out', async ({ host }) => {
    const page = await signedIn()
    await page.goto(foreign.url.replace('127.0.0.1', host))
    const before = await page.context().cookies()
    expect(await post(page, `${site.url}/login/mallory`)).toMatchObject({ status: 403 })
    expect(await submit(page, `${site.url}/login/mallory`)).toBe(403)
    expect(await page.context().cookies()).toEqual(before)
    await page.goto(foreign.url.replace('127.0.0.1', host))
    expect(await post(page, `${site.url}/logout`)).toMatchObject({ status: 403 })
    const answer = await page.context().request.get(`${site.url}/me`)
    expect([answer.status(), await answer.text()]).toEqual([200, 'anna'])
  })

  it('a browser without a session is not signed in by a foreign page either', async () => {
    const { page } = await open()
    await page.goto(foreign.url)
    expect(await post(page, `${site.url}/login/mallory`)).toMatchObject({ status: 403 })
    expect(await page.context().cookies()).toEqual([])
    expect(await me(page, site.url)).toBe(401)
  })
})
