/** An application with passkeys: the routes that the guide shows, on given stores. */
import { randomBytes } from 'node:crypto'
import Router from '@koa/router'
import Koa from 'koa'
import { withAuth } from 'koa-with-auth'
import { sessions } from 'koa-with-auth/sessions'
import { memoryStore, type Store } from 'koa-with-auth/stores'
import { begin, finish } from 'koa-with-auth/sign-in'
import { passkeys, type Passkeys, type PasskeysOptions } from 'koa-with-auth/sign-in/passkeys'
import {
  softwareAuthenticator,
  type CreationOptions,
  type RequestOptions,
  type SoftwareAuthenticatorOptions,
  type WrongAssertion,
  type WrongRegistration,
} from 'koa-with-auth/testing'
import type { PasskeyRecord, PasskeyUse } from '../../../src/sign-in/passkeys/PasskeyRecord.js'
import { jsonClient, type JsonClient, type JsonReply } from '../servers/jsonClient.js'

interface SiteUser {
  readonly username: string
  readonly email: string
  readonly isActive: true
}

export const origin = 'http://localhost:4000'
export const rpId = 'localhost'

// the site also runs as a program of its own, beside the built package, where nothing looks into the store
const recordsIn = async (store: Store) =>
  new (await import('../../../src/sign-in/passkeys/PasskeyRecord.js')).PasskeysInStore(rpId, store)

/** What a store has of the passkeys of the site. */
export const passkeysIn = (store: Store) => ({
  byId: async (id: string) => (await (await recordsIn(store)).find(id))?.record,
  ofUser: async (user: string) => (await recordsIn(store)).listOf(user),
  add: async (record: PasskeyRecord) => (await recordsIn(store)).add(record),
  update: async (id: string, used: PasskeyUse, at: number) => {
    const records = await recordsIn(store)
    const found = await records.find(id)
    return found !== undefined && records.use(found, used, at)
  },
  remove: async (...args: Parameters<Awaited<ReturnType<typeof recordsIn>>['remove']>) =>
    (await recordsIn(store)).remove(...args),
})

export interface PasskeySiteOptions {
  readonly passkeys?: Partial<PasskeysOptions<SiteUser>>
  readonly store?: Store
  readonly sessionStore?: Store
  readonly keys?: string[]
  /** The origin of the site itself. */
  readonly origin?: string
  /** How old a proof may be where a fresh one is asked. */
  readonly fresh?: number
  /** Another page, at `/page`. */
  readonly page?: string
  /** More routes. */
  readonly routes?: (router: Router, passkey: Passkeys) => void
}

const page = `<!doctype html><html lang="en"><title>A site</title><link rel="icon" href="data:,">
<form><label>Name <input name="username" autocomplete="username webauthn"></label></form>`

/** Makes the application. Users are all names but `gone`; signing in with a password takes any. */
export const passkeySite = (options: PasskeySiteOptions = {}) => {
  const store = options.store ?? memoryStore()
  const site = options.origin ?? origin
  const app = new Koa({ keys: options.keys ?? [randomBytes(32).toString('hex')] })
  /** How often the hooks and handlers after a ceremony ran. */
  const calls = { signedIn: 0, registered: 0, steppedUp: 0 }
  const userOf = (username: string): SiteUser | undefined =>
    username === 'gone' ? undefined : { username, email: `${username}@shop.example`, isActive: true }
  const { sessionAuth, logIn, logOut } = sessions(app, {
    loadUser: userOf,
    store: options.sessionStore ?? memoryStore(),
    origin: site,
  })
  const passkey = passkeys<SiteUser>({
    rp: { id: rpId, name: 'Shop' },
    origins: [site],
    store,
    nameOf: ({ email }) => email,
    ...options.passkeys,
  })
  const router = new Router()
  const fresh = { proof: { maxAge: options.fresh ?? 300_000 } }
  router.get('/', withAuth(null), (ctx) => {
    ctx.type = 'html'
    ctx.body = page
  })
  router.get('/page', withAuth(null), (ctx) => {
    ctx.type = 'html'
    ctx.body = options.page
  })
  router.post('/sign-in/password/:user', withAuth(null), async (ctx) => {
    const user = userOf(String(ctx.params['user']))
    if (user === undefined) return ctx.throw(403)
    await logIn(ctx, user, { proof: { method: 'password' } })
    ctx.status = 204
  })
  router.post('/sign-out', withAuth(null), async (ctx) => {
    await logOut(ctx)
    ctx.status = 204
  })
  router.get('/me', withAuth(sessionAuth()), (ctx) => {
    ctx.body = { user: ctx.request.auth.username }
  })
  router.post('/passkeys/options', withAuth(sessionAuth(fresh)), begin(passkey.register))
  router.post(
    '/passkeys',
    withAuth(sessionAuth()),
    finish(passkey.register, (ctx, { proof }) => {
      calls.registered += 1
      ctx.status = 201
      ctx.body = { id: proof.credential }
      return true
    }),
  )
  router.post('/passkeys/conditional', withAuth(sessionAuth()), begin(passkey.register, { conditional: true }))
  router.get('/passkeys/signals', withAuth(sessionAuth()), async (ctx) => {
    ctx.body = await passkey.signals(ctx)
  })
  router.get('/passkeys', withAuth(sessionAuth()), async (ctx) => {
    ctx.body = (await passkey.list(ctx.request.auth.username)).map(({ id }) => ({ id }))
  })
  router.delete('/passkeys/:id', withAuth(sessionAuth(fresh)), async (ctx) => {
    ctx.status = (await passkey.remove(String(ctx.params['id']), ctx.request.auth.username)) ? 204 : 404
  })
  router.post('/sign-in/passkey/options', withAuth(null), begin(passkey))
  router.post(
    '/sign-in/passkey',
    withAuth(null),
    finish(passkey, (_ctx, { proof }) => {
      calls.signedIn += 1
      return userOf(proof.subject)
    }),
  )
  router.post('/prove/passkey/options', withAuth(sessionAuth()), begin(passkey.stepUp))
  router.post(
    '/prove/passkey',
    withAuth(sessionAuth()),
    finish(passkey.stepUp, (_ctx, { proof }) => {
      calls.steppedUp += 1
      return userOf(proof.subject)
    }),
  )
  options.routes?.(router, passkey)
  app.use(passkey.related)
  app.use(router.routes())
  return { app, store: passkeysIn(store), calls }
}

/** A person with a browser and an authenticator. */
export interface Person {
  readonly browser: JsonClient
  readonly phone: ReturnType<typeof softwareAuthenticator>
}

export const person = (url: () => string, options: Partial<SoftwareAuthenticatorOptions> = {}): Person => ({
  browser: jsonClient(url),
  phone: softwareAuthenticator({ origin, ...options }),
})

/** The options that a route answers, for a registration or an assertion. */
export const optionsFrom = async ({ browser }: Person, path: string, body?: unknown) => {
  const reply = await browser.post(path, body)
  if (reply.status !== 200) throw new Error(`${path} answered ${reply.status} ${JSON.stringify(reply.body)}`)
  // Safe: the specs of the options check what is in it
  return reply.body as CreationOptions & RequestOptions
}

/** Registers a passkey for the user who is signed in. */
export const register = async (who: Person, wrong?: WrongRegistration): Promise<JsonReply> =>
  who.browser.post('/passkeys', who.phone.create(await optionsFrom(who, '/passkeys/options'), wrong))

/** Signs in, or at another pair of routes. */
export const use = async (who: Person, wrong?: WrongAssertion, at = '/sign-in/passkey'): Promise<JsonReply> =>
  who.browser.post(at, who.phone.get(await optionsFrom(who, `${at}/options`), wrong))

/** A person who is signed in as a user by a password, and has a passkey. */
export const withPasskey = async (
  url: () => string,
  user: string,
  options: Partial<SoftwareAuthenticatorOptions> = {},
): Promise<Person & { readonly id: string }> => {
  const who = person(url, options)
  await who.browser.post(`/sign-in/password/${user}`)
  const { status } = await register(who)
  if (status !== 201) throw new Error(`not registered: ${status}`)
  return { ...who, id: who.phone.passkeys().at(-1)?.id ?? '' }
}
