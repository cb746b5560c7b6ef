/** Passkeys in Chromium with its virtual authenticator: what the page of an application does. */
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createServer as createTlsServer } from 'node:https'
import { chromium, type CDPSession, type Page } from 'playwright-core'
import { describe, expect, it, onTestFinished } from 'vitest'
import { browserOptions, browsing, missingBrowser } from '../support/servers/browser.js'
import { listening } from '../support/servers/server.js'
import { certificates } from '../support/servers/certificates.js'
import { missingTls } from '../support/servers/tlsProxy.js'
import { passkeySite, type PasskeySiteOptions } from '../support/sites/passkeySite.js'
import { stoppedClock } from '../support/runs/clock.js'
import { repository } from '../support/projects/typecheck.js'
import { describeUnless } from '../support/projects/programs.js'

const missing = missingBrowser()
const open = missing === undefined ? browsing() : undefined!

// The origin has the port, so the port is known before the application is made
const started = async (options: PasskeySiteOptions = {}, host = 'localhost') => {
  const server = await new Promise<Server>((resolve) => {
    const starting = createServer().listen(0, () => resolve(starting))
  })
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  )
  const url = `http://${host}:${(server.address() as AddressInfo).port}`
  const site = passkeySite({ ...options, origin: url })
  const answer = site.app.callback()
  server.on('request', (request, response) => void answer(request, response))
  return { ...site, url }
}

const devtools = new WeakMap<Page, CDPSession>()
const authenticator = async (page: Page, more: Readonly<Record<string, unknown>> = {}) => {
  const session = devtools.get(page) ?? (await page.context().newCDPSession(page))
  devtools.set(page, session)
  await session.send('WebAuthn.enable', { enableUI: false })
  const { authenticatorId } = await session.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      ctap2Version: 'ctap2_1',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
      ...more,
    },
  })
  return { session, authenticatorId }
}

interface Reply {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>> | undefined
}

// What the page sends. The functions run in the browser, whose types this project does not load
const post = (page: Page, path: string, body: unknown = {}): Promise<Reply> =>
  page.evaluate(`(async ([path, body]) => {
    const response = await fetch(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
    const text = await response.text()
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
  })(${JSON.stringify([path, body])})`)

const credential = (page: Page, how: 'create' | 'get', options: unknown, more: object = {}): Promise<unknown> =>
  page.evaluate(`(async ([how, options, more]) => {
    const parse = how === 'create' ? 'parseCreationOptionsFromJSON' : 'parseRequestOptionsFromJSON'
    try {
      return (await navigator.credentials[how]({ publicKey: PublicKeyCredential[parse](options), ...more })).toJSON()
    } catch (error) {
      return error.name
    }
  })(${JSON.stringify([how, options, more])})`)

const register = async (page: Page): Promise<Reply> => {
  const options = await post(page, '/passkeys/options')
  return post(page, '/passkeys', await credential(page, 'create', options.body))
}
const use = async (page: Page, more: object = {}, at = '/sign-in/passkey'): Promise<Reply> => {
  const options = await post(page, `${at}/options`, { returnTo: '/basket' })
  return post(page, at, await credential(page, 'get', options.body, more))
}
const userOf = (page: Page): Promise<unknown> => page.evaluate(`fetch('/me').then((r) => (r.ok ? r.json() : r.status))`)

const registered = async (site: { readonly url: string }, user = 'anna') => {
  const { page } = await open()
  await page.goto(site.url)
  const { session, authenticatorId } = await authenticator(page)
  await post(page, `/sign-in/password/${user}`)
  expect(await register(page)).toMatchObject({ status: 201, body: { id: expect.any(String) } })
  return { page, session, authenticatorId }
}

describeUnless(missing, 'passkeys in Chromium', () => {
  it('W-01 registers, signs in without a name, and by conditional UI', async () => {
    const site = await started()
    const { page } = await registered(site)
    expect(await site.store.ofUser('anna')).toMatchObject([{ transports: ['internal'] }])
    for (const more of [{}, { mediation: 'conditional' }]) {
      await post(page, '/sign-out')
      expect(await userOf(page)).toBe(401)
      expect(await use(page, more)).toMatchObject({ status: 200, body: { returnTo: '/basket' } })
      expect(await userOf(page)).toStrictEqual({ user: 'anna' })
    }
    expect(site.calls.signedIn).toBe(2)
  })

  it('W-05 a passkey that becomes synced is accepted', async () => {
    const site = await started()
    const { page, session, authenticatorId } = await registered(site)
    const { credentials } = await session.send('WebAuthn.getCredentials', { authenticatorId })
    const { credentialId = '' } = credentials[0] ?? {}
    await session.send('WebAuthn.setCredentialProperties', {
      authenticatorId,
      credentialId,
      backupEligibility: true,
      backupState: true,
    })
    expect(await use(page)).toHaveProperty('status', 200)
    expect(await site.store.ofUser('anna')).toMatchObject([{ backupEligible: true, backedUp: true }])
  })

  it('W-06 the authenticator refuses to register twice', async () => {
    const site = await started()
    const { page } = await registered(site)
    const options = await post(page, '/passkeys/options')
    expect(await credential(page, 'create', options.body)).toBe('InvalidStateError')
  })

  it('W-07 another RP id has its own passkeys', async () => {
    const site = await started({ passkeys: { rp: { id: 'app.localhost', name: 'App' } } }, 'app.localhost')
    const { page } = await registered(site)
    expect(await use(page)).toHaveProperty('status', 200)
  })

  it('registers right after a password without asking, and not later', async () => {
    const site = await started()
    const { page } = await open()
    await page.goto(site.url)
    await authenticator(page)
    await post(page, '/sign-in/password/anna')
    const options = await post(page, '/passkeys/conditional')
    expect(options.body).toMatchObject({ authenticatorSelection: { userVerification: 'preferred' } })
    // Chromium makes one only if its own password manager has filled the password in, so the dialog's way makes the answer
    expect(await post(page, '/passkeys', await credential(page, 'create', options.body))).toHaveProperty('status', 201)
    stoppedClock().move(300_001)
    expect(await post(page, '/passkeys/conditional')).toMatchObject({ status: 403 })
    await post(page, '/sign-out')
    // a passkey is no password
    expect(await use(page)).toHaveProperty('status', 200)
    expect(await post(page, '/passkeys/conditional')).toMatchObject({ status: 403 })
  })

  it('a passkey that was removed is removed from the password manager by its signal, and a name is renewed', async () => {
    const site = await started()
    const { page, session, authenticatorId } = await registered(site)
    const known = async () =>
      (await session.send('WebAuthn.getCredentials', { authenticatorId })).credentials as ReadonlyArray<{
        userName?: string
      }>
    expect(await known()).toHaveLength(1)
    const signal = (change: string) =>
      page.evaluate(`(async () => {
        const signals = await (await fetch('/passkeys/signals')).json()
        ${change}
        for (const [name, data] of Object.entries(signals)) await PublicKeyCredential[name](data)
        return signals
      })()`)
    expect(await signal('')).toMatchObject({
      signalAllAcceptedCredentials: { rpId: 'localhost', allAcceptedCredentialIds: [expect.any(String)] },
      signalCurrentUserDetails: { name: 'anna@shop.example', displayName: 'anna@shop.example' },
    })
    expect(await known()).toHaveLength(1)
    await signal('signals.signalCurrentUserDetails.name = "Anna"')
    expect(await known()).toMatchObject([{ userName: 'Anna' }])
    await signal('signals.signalAllAcceptedCredentials.allAcceptedCredentialIds = []')
    await expect.poll(known).toHaveLength(0)
  })

  it.runIf(missingTls() === undefined)('a passkey is good at a related origin, and at no other', async () => {
    const [shop, related, stranger] = ['https://shop.example', 'https://shop.test', 'https://shop.invalid']
    const site = passkeySite({
      origin: shop,
      passkeys: { rp: { id: 'shop.example', name: 'Shop' }, origins: [shop, related] },
    })
    const answer = site.app.callback()
    const port = await listening(createTlsServer(certificates().server, (req, res) => void answer(req, res)))
    const { args = [], ...options } = browserOptions(process.env) ?? {}
    const mapped = [shop, related, stranger].map((one) => `MAP ${one.slice(8)}:443 127.0.0.1:${port}`).join(',')
    const own = [...args, `--host-resolver-rules=${mapped}`, '--ignore-certificate-errors']
    const browser = await chromium.launch({ ...options, args: own })
    onTestFinished(() => browser.close())
    const page = await (await browser.newContext({ ignoreHTTPSErrors: true })).newPage()
    await page.goto(shop)
    await authenticator(page)
    await post(page, '/sign-in/password/anna')
    expect(await register(page)).toHaveProperty('status', 201)
    await page.goto(related)
    expect(await userOf(page)).toBe(401)
    expect(await use(page)).toHaveProperty('status', 200)
    expect(await userOf(page)).toStrictEqual({ user: 'anna' })
    await page.goto(stranger)
    const asked = await post(page, '/sign-in/passkey/options')
    expect(await credential(page, 'get', asked.body)).toBe('SecurityError')
  })

  describe('the page of the guide', () => {
    const guide = readFileSync(`${repository}examples/guides/passkeys.md`, 'utf8')
    const content = /^```html\n([\s\S]*?)^```$/m.exec(guide)?.[1] ?? ''
    const page = `<!doctype html><html lang="en"><title>Sign in</title><link rel="icon" href="data:,">${content}`

    it('signs in by conditional UI without a click', async () => {
      const site = await started({ page })
      const { page: tab } = await registered(site)
      await post(tab, '/sign-out')
      await tab.goto(`${site.url}/page`)
      await tab.waitForURL(`${site.url}/`)
      expect(await userOf(tab)).toStrictEqual({ user: 'anna' })
    })

    it('signs in by its button', async () => {
      const site = await started({ page })
      const { page: tab } = await registered(site)
      await post(tab, '/sign-out')
      // the user chooses nothing of the conditional UI, where this authenticator would answer at once
      await tab.addInitScript(`
        const get = navigator.credentials.get.bind(navigator.credentials)
        navigator.credentials.get = (options) =>
          options.mediation !== 'conditional'
            ? get(options)
            : new Promise((_, reject) => options.signal?.addEventListener('abort', () => reject(options.signal.reason)))`)
      await tab.goto(`${site.url}/page`)
      const button = tab.getByRole('button', { name: 'Sign in with a passkey' })
      await button.waitFor()
      expect(await userOf(tab)).toBe(401)
      await button.click()
      await tab.waitForURL(`${site.url}/`)
      expect(await userOf(tab)).toStrictEqual({ user: 'anna' })
    })

    it('loads without complaints where the browser has no passkeys', async () => {
      const site = await started({ page })
      const { page: tab, complaints } = await open()
      await tab.addInitScript('delete window.PublicKeyCredential')
      await tab.goto(`${site.url}/page`)
      expect(await tab.getByRole('button', { name: 'Sign in with a passkey' }).isVisible()).toBe(false)
      expect(complaints).toStrictEqual([])
    })
  })
})
