/** What an exception handler may answer, and what of an exception Koa is given to answer itself. */
import { apiApp, AuthError, onError } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { answerException, serverError } from '../../src/koa/exceptions.js'
import { defaults } from '../../src/core/Settings.js'
import { expectCrashed, running } from '../support/behavior.js'

class Raised extends Error {}

const answering = (answer: unknown) => {
  // Safe: what somebody without types could answer
  const api = apiApp({ onError: [onError(Raised, () => answer as never)], docs: false })
  api.get('/x', () => {
    throw new Raised('secret-token')
  })
  return running((app) => app.use(api.routes()))
}

describe('an exception handler', () => {
  it.each([200, 599])('may answer %i', async (status) => {
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
  ])('that answers %o gets an error that names its mistake, and the client nothing', async (answer) => {
    const { ask, errors } = await answering(answer)
    expectCrashed(await ask())
    const message = 'an onError handler must return { status, body } with a status from 200 to 599'
    expect(errors).toMatchObject([new TypeError(message)])
  })

  it('is not asked about what has none: the very exception goes on', async () => {
    const exception = new Raised()
    // Safe: without a handler nothing of a context is asked
    await expect(answerException({} as never, exception, defaults)).rejects.toBe(exception)
  })
})

describe('A-30 what is raised goes on as it is where Koa makes a bare 500 of it', () => {
  class Settable extends Error {
    set status(_: number) {}
  }
  class Inherited extends Error {}
  Object.assign(Inherited.prototype, { status: 503 })

  it.each<[string, Error]>([
    ['a plain error', new Error('x')],
    ['of status 500', Object.assign(new Error('x'), { status: 500 })],
    ['of statusCode 503', Object.assign(new Error('x'), { statusCode: 503 })],
    ['of status 0, and a statusCode', Object.assign(new Error('x'), { status: 0, statusCode: 500 })],
    ['that is not exposed', Object.assign(new Error('x'), { expose: false })],
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
    ['a status that is text', Object.assign(new Error('x'), { status: '503' })],
    ['an exposed one', Object.assign(new Error('x'), { status: 500, expose: true })],
    ['a frozen one', Object.freeze(new Error('x'))],
    ['a frozen one of status 500', Object.freeze(Object.assign(new Error('x'), { status: 500 }))],
    ['one that cannot be extended', Object.preventExtensions(new Error('x'))],
    ['one that computes its status', new Computed('x')],
    ['one that raises when it is asked', new Raising('x')],
    ['one with headers', Object.assign(new Error('x'), { headers: {} })],
    ['one with a stack that is no text', Object.assign(new Error('x'), { stack: undefined })],
    ['one with a message that is no text', Object.assign(new Error('x'), { stack: 'x', message: Symbol('x') })],
    ['one with a message and thereby a stack that is no text', Object.assign(new Error('x'), { message: Symbol('x') })],
  ])('not so %s: it is wrapped, and reported as the cause', (_, raised) => {
    const { message, cause } = serverError(raised)
    expect(message).toMatch(/^a value was thrown that is not a server error: ./)
    expect(cause).toBe(raised)
  })

  // Koa logs the stack of an error, but not its cause
  it.each<[string, unknown, string]>([
    ['a file that is missing', Object.assign(new Error('no users.json'), { code: 'ENOENT' }), 'Error: no users.json'],
    ['a failure', AuthError.expired, 'the AuthError "expired"; return it instead'],
    ['a string, which may be a secret', 'text', 'a string'],
    ['a proxy', new Proxy({}, { has: () => { throw null } }), 'an object'], // prettier-ignore
  ])('and the message says what was thrown: %s', (_, raised, what) => {
    expect(serverError(raised).message).toBe(`a value was thrown that is not a server error: ${what}`)
  })
})
