/** `sessions(app, options)`: an option that is weak or cannot work is a TypeError that names the place and the fix. */
import Router from '@koa/router'
import Koa from 'koa'
import Keygrip from 'keygrip'
import { sessions, type SessionsOptions } from 'koa-with-auth/sessions'
import { memoryStore } from 'koa-with-auth/stores'
import { describe, expect, it } from 'vitest'

const key = 'k'.repeat(32)
const loadUser = (id: string) => ({ username: id })
const DAY = 86_400_000

interface Row {
  readonly description: string
  readonly options: object
  readonly message: RegExp
  readonly env?: string
}

const { get: _, ...incomplete } = memoryStore()

const mistakes: ReadonlyArray<Row> = [
  { description: 'no loadUser', options: { loadUser: undefined }, message: /loadUser \}\) must be a function/ },
  {
    description: 'a loadUser with two parameters',
    options: { loadUser: (_a: 1, _b: 2) => _a },
    message: /loadUser \}\) takes 2/,
  },
  {
    description: 'a class as loadUser',
    options: { loadUser: class User {} },
    message: /loadUser \}\) is the class User/,
  },
  {
    description: 'a generator as loadUser',
    options: { loadUser: function* () {} },
    message: /loadUser \}\) is a generator/,
  },
  {
    description: 'null for dpop, which would bind no token',
    options: { bearer: { dpop: null } },
    message: /bearer: \{ dpop \} \}\) must be an object/,
  },
  { description: 'an identify that is not a function', options: { identify: 'id' }, message: /identify \}\) must be/ },
  {
    description: 'an identify with two parameters',
    options: { identify: (_a: 1, _b: 2) => 'a' },
    message: /identify \}\) takes 2/,
  },
  { description: 'an unknown option', options: { maxAge: 1 }, message: /no option "maxAge"; there are loadUser,/ },
  // Options of koa-session that are not allowed here
  { description: 'D-S7 an asynchronous valid', options: { valid: async () => false }, message: /no option "valid"/ },
  { description: 'D-S9 unsigned cookies', options: { signed: false }, message: /no option "signed"/ },
  { description: 'D-S1 an externalKey', options: { externalKey: {} }, message: /no option "externalKey"/ },
  { description: 'D-S4 rolling', options: { rolling: true }, message: /no option "rolling"/ },
  {
    description: 'a __Host- cookie over http',
    options: { cookieName: '__Host-a' },
    message: /only over https; set https: true/,
  },
  { description: 'a __secure- cookie over http', options: { cookieName: '__secure-a' }, message: /only over https/ },
  {
    description: 'a cookie name with a blank',
    options: { cookieName: 'a b' },
    message: /cookieName \}\) must be a name/,
  },
  { description: 'an empty cookie name', options: { cookieName: '' }, message: /cookieName \}\) must be a name/ },
  { description: 'a cookie name with "="', options: { cookieName: 'a=b' }, message: /cookieName \}\) must be a name/ },
  {
    description: 'SameSite none without https',
    options: { sameSite: 'none' },
    message: /sameSite: 'none' \}\) needs https/,
  },
  { description: 'SameSite in capitals', options: { sameSite: 'Lax' }, message: /sameSite \}\) must be/ },
  { description: 'https that is a string', options: { https: 'yes' }, message: /https \}\) must be true or false/ },
  { description: 'an idle time of 0', options: { idle: 0 }, message: /idle \}\) must be a number of milliseconds/ },
  { description: 'a negative idle time', options: { idle: -1 }, message: /idle \}\) must be/ },
  { description: 'an idle time that is not a number', options: { idle: NaN }, message: /idle \}\) must be/ },
  { description: "an idle time of 'session'", options: { idle: 'session' }, message: /idle \}\) must be/ },
  {
    description: 'an endless absolute time',
    options: { absolute: Infinity },
    message: /absolute \}\) must be.*400 days/,
  },
  {
    description: 'longer than browsers keep a cookie',
    options: { absolute: 401 * DAY },
    message: /absolute \}\) must be.*400 days/,
  },
  {
    description: 'an idle time over the absolute time',
    options: { idle: 2, absolute: 1 },
    message: /idle must not be longer than absolute/,
  },
  {
    description: 'an idle time over the default absolute time',
    options: { idle: 8 * DAY },
    message: /idle must not be longer than absolute/,
  },
  ...['ftp://shop.example', 'https://*.shop.example', 'https://shop.example/', 'shop.example', 'null', 5].map(
    (origin) => ({
      description: `an origin that is ${origin}`,
      options: { origin },
      message: /origin \}\) must be the public origin/,
    }),
  ),
  { description: 'a timeout of 0', options: { timeout: 0 }, message: /timeout \}\) must be a number from 1/ },
  {
    description: 'a timeout that no timer can wait for',
    options: { timeout: 2 ** 31 },
    message: /timeout \}\) must be a number/,
  },
  { description: 'a maxLength of null', options: { maxLength: null }, message: /maxLength \}\) must be a number/ },
  {
    description: 'a store that is not a store',
    options: { store: new Map() },
    message: /store \}\) has no method insert; see/,
  },
  { description: 'a store that is null', options: { store: null }, message: /store \}\) has no method get/ },
  { description: 'a factory that was not called', options: { store: memoryStore }, message: /has no method get/ },
  { description: 'a store that lacks a method', options: { store: incomplete }, message: /has no method get/ },
  {
    description: 'no store in production',
    options: {},
    env: 'production',
    message: /required in production: use sqliteStore, redisStore/,
  },
]

describe('sessions(app, options)', () => {
  const appOf = (env?: string) => new Koa({ keys: [key], ...(env !== undefined && { env }) })
  // Safe: a program without types could write this
  const call = (app: unknown, options: unknown) => () => sessions(app as Koa, options as SessionsOptions<unknown>)

  it.each(mistakes)('is a TypeError for $description', ({ options, message, env }) => {
    const app = appOf(env)
    expect(call(app, { loadUser, ...options })).toThrow(TypeError)
    expect(call(app, { loadUser, ...options })).toThrow(message)
    expect(call(app, { loadUser, ...options })).toThrow(/^sessions\(app/)
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

  const accepted: ReadonlyArray<readonly [string, object, string?]> = [
    ['only loadUser', {}],
    ['a __Host- cookie over https', { https: true, cookieName: '__Host-a' }],
    ['thirty days', { absolute: 30 * DAY }],
    ['as long as browsers keep a cookie', { idle: 400 * DAY, absolute: 400 * DAY }],
    ['idle as long as absolute', { idle: 5, absolute: 5 }],
    ['a store in production', { store: memoryStore() }, 'production'],
    ['an asynchronous loadUser', { loadUser: async (id: string) => loadUser(id) }],
  ]
  it.each(accepted.map(([what, options, env]) => ({ what, options, env })))('accepts $what', ({ options, env }) => {
    expect(call(appOf(env), { loadUser, ...options })).not.toThrow()
  })

  it('accepts a Keygrip', () => {
    const app = new Koa()
    Object.assign(app, { keys: new Keygrip([key]) })
    expect(call(app, { loadUser })).not.toThrow()
  })
})
