/** `authSettings`, and the exceptions that have a handler. */
import Router from '@koa/router'
import Koa, { type Context } from 'koa'
import { authSettings, type AuthResponse, type AuthSettings, apiApp, AuthError, onError } from 'koa-with-auth'
import { expect, it, describe } from 'vitest'
import { checkOptions } from '../../src/core/options.js'
import { defaults, type Settings } from '../../src/core/Settings.js'
import { exchangeOf, settingsOf } from '../../src/core/Exchange.js'
import { answerable, answerException, serverError, settings, settingsFrom } from '../../src/koa/settings.js'
import { expectCrashed, running } from '../support/models/behavior.js'

// How settings are added to those of an outer level.

const outer: Settings = {
  csrf: false,
  trustedOrigins: new Set(['https://a.example']),
  realm: 'outer',
  timeout: 1,
  errorMapper: () => ({ status: 418 }),
  explain: true,
  state: 'account',
  exceptionHandlers: new Map([[Error.prototype, (): AuthResponse => ({ status: 418 })]]),
}

const errorMapper = (): AuthResponse => ({ status: 401 })
const given: ReadonlyArray<[keyof AuthSettings, unknown, unknown?]> = [
  ['csrf', true],
  ['realm', 'inner'],
  ['timeout', 2],
  ['errorMapper', errorMapper],
  ['explain', false],
  ['state', 'user'],
  ['trustedOrigins', ['https://b.example'], new Set(['https://b.example'])],
]

it.each(given)('%s is set, and all other settings are those of the outer level', (name, value, settled = value) => {
  const add = settingsFrom(checkOptions('x', { [name]: value }, settings))
  expect(add(outer)).toStrictEqual({ ...outer, [name]: settled })
})

it('the middleware adds to the settings above it, for each request', async () => {
  const seen: Settings[] = []
  const see = (ctx: Context) => void seen.push(settingsOf(ctx.request))
  const realm = authSettings({ realm: 'inner' })
  const context = () => new Koa().createContext({ headers: {} } as never, {} as never)
  const [bare, within] = [context(), context()]
  await realm(bare, async () => see(bare))
  await authSettings({ timeout: 5 })(within, () => realm(within, async () => see(within)))
  expect(seen).toStrictEqual([
    { ...defaults, realm: 'inner' },
    { ...defaults, realm: 'inner', timeout: 5 },
  ])
})

it('the middleware sets those of the request, also if it gets another context for it', async () => {
  const context = new Koa().createContext({ headers: {} } as never, {} as never)
  // Safe: it inherits all of a context
  const other = Object.create(context) as Context
  let seen: Settings | undefined
  await authSettings({ realm: 'inner' })(other, async () => {
    seen = settingsOf(context.request)
  })
  expect(seen).toStrictEqual({ ...defaults, realm: 'inner' })
})

it.each([new Router(), new Koa(), undefined, null, {}])('the middleware takes a context, not %s', (given) => {
  const message = /^authSettings\(options\) returns middleware; write app\.use/
  // Safe: each is a mistake
  expect(() => authSettings({})(given as never, undefined as never)).toThrow(message)
})

it('the middleware has no name, so that a policy file names it by a digest of its text', () => {
  expect(authSettings({}).name).toBe('')
})

// What an exception handler may return, and what Koa gets of an exception that it must answer.

class Raised extends Error {}

const answering = (answer: unknown) => {
  // Safe: a program without types could return this
  const api = apiApp({ onError: [onError(Raised, () => answer as never)], docs: false })
  api.get('/x', () => {
    throw new Raised('secret-token')
  })
  return running((app) => app.use(api.routes()))
}

describe('an exception handler', () => {
  it.each([200, 599])('may return the status %i', async (status) => {
    const { ask, errors } = await answering({ status, body: { a: 1 } })
    expect(await ask()).toMatchObject({ status, body: { a: 1 } })
    expect(errors).toStrictEqual([])
  })

  it.each([
    null,
    undefined,
    'text',
    () => {},
    {},
    { body: 'x' },
    ...[99, 199, 600, 200.5, NaN, '200'].map((status) => ({ status })),
  ])('that returns %o gets an error that names its mistake, and the client gets a plain 500', async (answer) => {
    const { ask, errors } = await answering(answer)
    expectCrashed(await ask())
    const message = 'an onError handler must return { status, body } with a status from 200 to 599'
    expect(errors).toMatchObject([new TypeError(message)])
  })

  it('is not called for an exception without a handler, which is rethrown', async () => {
    const exception = new Raised()
    // Safe: without a handler, nothing of the context is read
    await expect(answerException({} as never, exception, defaults)).rejects.toBe(exception)
  })

  it('is not called after the head was sent; the exception is noted for the sessions', async () => {
    const exception = new Raised()
    const known = settingsFrom({ onError: [onError(Raised, () => expect.unreachable())] })(defaults)
    const context = { headerSent: true }
    // Safe: nothing else of the context is read
    await expect(answerException(context as never, exception, known)).rejects.toBe(exception)
    expect(exchangeOf(context).hasThrown).toBe(true)
  })
})

describe('A-30 an exception of an operation is rethrown as it is, if Koa can answer it', () => {
  const trap = (): never => {
    throw new Error('x')
  }

  it.each<[string, unknown]>([
    ['a plain error', new Error('x')],
    ['a client error, exposed', Object.assign(new Error('x'), { status: 409, expose: true })],
    ['with headers', Object.assign(new Error('x'), { status: 405, headers: { Allow: 'POST' } })],
    ['a string', 'text'],
    ['an object', { code: 7 }],
  ])('%s', (_, error) => {
    expect(answerable(error, defaults)).toBe(error)
  })

  it('a frozen error that a registered handler answers', () => {
    class Known extends Error {}
    const error = Object.freeze(new Known('x'))
    const known = settingsFrom({ onError: [onError(Known, () => ({ status: 409 }))] })(defaults)
    expect(answerable(error, known)).toBe(error)
  })

  it.each<[string, unknown]>([
    ['null', null],
    ['undefined', undefined],
    ['a frozen error', Object.freeze(new Error('x'))],
    ['a success', Object.assign(new Error('x'), { status: 204 })],
    ['a redirect', Object.assign(new Error('x'), { statusCode: 302 })],
    ['a header that Node refuses', Object.assign(new Error('x'), { headers: { 'x\n': 'y' } })],
    ['a value of a header that Node refuses', Object.assign(new Error('x'), { headers: { x: 'y\n' } })],
    ['a proxy', new Proxy(new Error('x'), { get: trap })],
    ['a proxy without a type', new Proxy({}, { getPrototypeOf: trap })],
    ['an object that cannot be written', { toJSON: trap }],
  ])('%s: is wrapped', (_, error) => {
    expect((answerable(error, defaults) as Error).message).toMatch(/^a value was thrown/)
  })
})

describe('A-30 an exception is rethrown as it is, if Koa makes a plain 500 of it', () => {
  class Settable extends Error {
    set status(_: number) {}
  }
  class Inherited extends Error {}
  Object.assign(Inherited.prototype, { status: 503 })

  it.each<[string, Error]>([
    ['a plain error', new Error('x')],
    ['with status 500', Object.assign(new Error('x'), { status: 500 })],
    ['with statusCode 503', Object.assign(new Error('x'), { statusCode: 503 })],
    ['with status 0, and a statusCode', Object.assign(new Error('x'), { status: 0, statusCode: 500 })],
    ['without expose', Object.assign(new Error('x'), { expose: false })],
    ['whose class sets the status', new Settable('x')],
    ['whose class has a status', new Inherited('x')],
    ['that is sealed but has a status', Object.seal(Object.assign(new Error('x'), { status: 500 }))],
  ])('%s', (_, error) => {
    expect(serverError(error)).toBe(error)
  })

  class Raising extends Error {
    get status(): number {
      throw null
    }
  }
  class Computed extends Error {
    get status() {
      return 500
    }
  }

  it.each<[string, unknown]>([
    ['null', null],
    ['a string', 'text'],
    ['an object', { message: 'x', stack: 'x' }],
    ['a client error', Object.assign(new Error('x'), { status: 499 })],
    ['a client error by statusCode', Object.assign(new Error('x'), { statusCode: 404 })],
    ['a missing file, which Koa 2 answers with a 404', Object.assign(new Error('x'), { code: 'ENOENT' })],
    ['a status that is a string', Object.assign(new Error('x'), { status: '503' })],
    ['an exposed error', Object.assign(new Error('x'), { status: 500, expose: true })],
    ['a frozen error', Object.freeze(new Error('x'))],
    ['a frozen error with status 500', Object.freeze(Object.assign(new Error('x'), { status: 500 }))],
    ['an error that is not extensible', Object.preventExtensions(new Error('x'))],
    ['an error with a computed status', new Computed('x')],
    ['an error whose status throws', new Raising('x')],
    ['an error with headers', Object.assign(new Error('x'), { headers: {} })],
    ['an error whose stack is not a string', Object.assign(new Error('x'), { stack: undefined })],
    ['an error whose message is not a string', Object.assign(new Error('x'), { stack: 'x', message: Symbol('x') })],
    ['an error whose message and stack are no strings', Object.assign(new Error('x'), { message: Symbol('x') })],
  ])('%s: is wrapped, and becomes the cause', (_, raised) => {
    const { message, cause } = serverError(raised)
    expect(message).toMatch(/^a value was thrown that is not a server error: ./)
    expect(cause).toBe(raised)
  })

  const ofStatus = 'its status counts only if http-errors made it: return false, or an AuthError'
  // Koa logs the stack of an error, but not its cause
  it.each<[string, unknown, string]>([
    ['a missing file', Object.assign(new Error('no users.json'), { code: 'ENOENT' }), 'Error: no users.json'],
    ['an error with a status of its own', Object.assign(new Error('no'), { status: 401 }), `Error: no; ${ofStatus}`],
    ['a failure', AuthError.expired, 'the AuthError "expired"; return it instead'],
    ['a string, which may be a secret', 'text', 'a string'],
    ['a proxy', new Proxy({}, { has: () => { throw null } }), 'an object'], // prettier-ignore
  ])('%s: is named in the message', (_, raised, what) => {
    expect(serverError(raised).message).toBe(`a value was thrown that is not a server error: ${what}`)
  })
})
