/** `sessions(app, options)`: an option that is weak or cannot work is a TypeError that names the place and the fix. */
import Router from '@koa/router'
import Koa from 'koa'
import Keygrip from 'keygrip'
import { sessions, type SessionsOptions } from 'koa-with-auth/sessions'
import { memoryStore } from 'koa-with-auth/stores'
import { describe, expect, it } from 'vitest'
import { checkSessionsOptions } from '../../src/sessions/SessionsOptions.js'

const key = 'k'.repeat(32)
const loadUser = (id: string) => ({ username: id })
const DAY = 86_400_000

const { get: _, ...incomplete } = memoryStore()

type Row = [what: string, options: object, message: RegExp, env?: string]
const mistakes: Row[] = [
  ['no loadUser', { loadUser: undefined }, /loadUser \}\) must be a function/],
  ['a loadUser with two parameters', { loadUser: (_a: 1, _b: 2) => _a }, /loadUser \}\) takes 2/],
  ['null for dpop, which would bind no token', { bearer: { dpop: null } }, /bearer: \{ dpop \} \}\) must be an object/],
  ['an identify that is not a function', { identify: 'id' }, /identify \}\) must be/],
  ['an identify with two parameters', { identify: (_a: 1, _b: 2) => 'a' }, /identify \}\) takes 2/],
  [
    'an isStaff that is async',
    { isStaff: async () => true },
    /isStaff.* is async, but must return true or false itself/,
  ],
  ['an isStaff that is a generator', { isStaff: function* () {} }, /isStaff.* is a generator/],
  ['an isActive that is a class', { isActive: class Active {} }, /isActive.* is the class Active/],
  ['an isActive that is true', { isActive: true }, /isActive.* must be a function, not a boolean/],
  ['an isSuperuser of two', { isSuperuser: (a: unknown, b: unknown) => a === b }, /isSuperuser.* takes 2 parameters/],
  ['an unknown option', { maxAge: 1 }, /no option "maxAge"; there are loadUser,/],
  // Options of koa-session that are not allowed here
  ['D-S7 an asynchronous valid', { valid: async () => false }, /no option "valid"/],
  ['D-S9 unsigned cookies', { signed: false }, /no option "signed"/],
  ['D-S1 an externalKey', { externalKey: {} }, /no option "externalKey"/],
  ['D-S4 rolling', { rolling: true }, /no option "rolling"/],
  ['a __Host- cookie over http', { cookieName: '__Host-a' }, /only over https; set https: true/],
  ['a __secure- cookie over http', { cookieName: '__secure-a' }, /only over https/],
  ...['a b', '', 'a=b'].map((cookieName): Row => [
    `the cookie name "${cookieName}"`,
    { cookieName },
    /cookieName \}\) must be a name/,
  ]),
  ['SameSite in capitals', { sameSite: 'Lax' }, /sameSite \}\) must be/],
  ['https that is a string', { https: 'yes' }, /https \}\) must be true or false/],
  ...[0, -1, NaN, 'session'].map((idle): Row => [`the idle time ${idle}`, { idle }, /idle \}\) must be a number/]),
  ...[Infinity, 401 * DAY].map((absolute): Row => [
    `the absolute time ${absolute}`,
    { absolute },
    /absolute \}\) must be.*400 days/,
  ]),
  ['an idle time over the absolute time', { idle: 2, absolute: 1 }, /idle must not be longer than absolute/],
  ['an idle time over the default absolute time', { idle: 8 * DAY }, /idle must not be longer than absolute/],
  ...['ftp://shop.example', 'https://*.shop.example', 'https://shop.example/', 'shop.example', 'null', 5].map(
    (origin): Row => [`an origin that is ${origin}`, { origin }, /origin \}\) must be the public origin/],
  ),
  ...[0, 2 ** 31].map((timeout): Row => [`a timeout of ${timeout}`, { timeout }, /timeout \}\) must be a number/]),
  ['a text that no page has', { texts: { de: { greeting: 'Hallo' } } }, /\["de"\].* no option "greeting"/],
  ['texts of no language', { texts: { 'deutsch!': {} } }, /deutsch! is no language tag/],
  ['a maxLength of null', { maxLength: null }, /maxLength \}\) must be a number/],
  ['a store that is not a store', { store: new Map() }, /store \}\) has no method insert; see/],
  ['a store that is null', { store: null }, /store \}\) has no method get/],
  ['a factory that was not called', { store: memoryStore }, /has no method get/],
  ['a store that lacks a method', { store: incomplete }, /has no method get/],
  ['no store in production', {}, /required in production: use sqliteStore, redisStore/, 'production'],
]

describe('sessions(app, options)', () => {
  const appOf = (env?: string) => new Koa({ keys: [key], ...(env !== undefined && { env }) })
  // Safe: a program without types could write this
  const call = (app: unknown, options: unknown) => () => sessions(app as Koa, options as SessionsOptions<unknown>)

  it.each<Row>(mistakes)('is a TypeError for %s', (_what, options, message, env) => {
    const app = appOf(env)
    for (const expected of [TypeError, message, /^sessions\(app/])
      expect(call(app, { loadUser, ...options })).toThrow(expected)
    expect(app.middleware).toEqual([])
  })

  it.each([undefined, null, {}, 'app', () => {}, new Router()])(
    'is a TypeError for %j instead of an application',
    (app) => {
      expect(call(app, { loadUser })).toThrow(
        new TypeError('sessions(app, options): app must be a Koa application, not a router or an apiApp'),
      )
    },
  )

  it.each([undefined, null, [], 'options', loadUser])('is a TypeError for %j instead of options', (options) => {
    expect(call(appOf(), options)).toThrow(/^sessions\(app, options\) takes an object of options, not/)
  })

  it.each([
    ['missing', undefined],
    ['no list', key],
    ['none', []],
    ['empty', ['']],
    ['short', ['keyboard cat']],
    ['a short first key', ['k'.repeat(31), key]],
    ['an empty key after a strong one', [key, '']],
    ['a key that is not a string after a short older one', [key, 'short', undefined]],
    ['a key that is not a string', [undefined]],
  ])('A-33 is a TypeError for the keys %s', (_what, keys) => {
    const app = new Koa()
    Object.assign(app, { keys })
    expect(call(app, { loadUser })).toThrow(
      /^sessions\(app\): app\.keys must hold strings, and the first, which signs, at least 32 characters/,
    )
    expect(call(app, { loadUser })).toThrow(/randomBytes\(32\)/)
  })

  it.each<[string, object, string?]>([
    ['only loadUser', {}],
    ['a __Host- cookie over https', { https: true, cookieName: '__Host-a' }],
    ['thirty days', { absolute: 30 * DAY }],
    ['as long as browsers keep a cookie', { idle: 400 * DAY, absolute: 400 * DAY }],
    ['texts of a region', { texts: { 'de-AT': { begin: 'Anmelden' }, de: {} } }],
    ['idle as long as absolute', { idle: 5, absolute: 5 }],
    ['a store in production', { store: memoryStore() }, 'production'],
    ['an asynchronous loadUser', { loadUser: async (id: string) => loadUser(id) }],
  ])('accepts %s', (_what, options, env) => {
    expect(call(appOf(env), { loadUser, ...options })).not.toThrow()
  })

  it('has defaults', () => {
    const { rights: _rights, store: _store, ...usual } = checkSessionsOptions(appOf(), { loadUser, name: 'shop' })
    expect(usual).toMatchObject({
      ...{ idle: DAY, absolute: 7 * DAY, timeout: 2000, maxLength: 16_384, https: undefined, sameSite: 'lax' },
      ...{ partitioned: false, persistent: true, list: false, bearer: undefined, needsUsername: true, texts: {} },
      cookie: { name: 'session', domain: undefined },
    })
  })

  it('accepts a Keygrip', () => {
    const app = new Koa()
    Object.assign(app, { keys: new Keygrip([key]) })
    expect(call(app, { loadUser })).not.toThrow()
  })
})
