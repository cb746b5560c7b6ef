/** Settings of a request, the response to each failure, mappers for single failures, and handlers of exceptions. */
import { describe, expect, it } from 'vitest'
import { z, ZodError } from 'zod'
import { mockRequest } from 'koa-with-auth/testing'
import createError from 'http-errors'
import fc from 'fast-check'
import { AuthError, defaultErrorMapper, perFailure, type AuthResponse, type ErrorMapper, onError } from 'koa-with-auth'
import { answeredBy, defaults, httpStatusOf, serialize, addHandlers, handlerOf } from '../../src/core/Settings.js'
import { exchangeOf, settingsOf } from '../../src/core/Exchange.js'
import { authError } from '../support/models/arbitraries.js'
import { outcomes } from '../support/models/evaluator.js'
import { row } from '../support/models/row.js'
import { polluted } from '../support/runs/pollute.js'

// Settings belong to the context of one request. Without them, the defaults apply.
describe('Settings of a request', () => {
  it('decision "csrf", and the time limit: the defaults apply if nothing was set', () => {
    expect(settingsOf(mockRequest())).toBe(defaults)
    expect(defaults).toMatchObject({ csrf: true, timeout: 10_000, realm: 'api', trustedOrigins: new Set() })
  })

  it('A-38 belong to the request that has them, not to the next one', () => {
    const request = mockRequest()
    const settings = { ...defaults, csrf: false }
    exchangeOf(request.ctx).settings = settings
    expect(settingsOf(request)).toBe(settings)
    expect(settingsOf(mockRequest())).toBe(defaults)
  })

  it('A-01 cannot be set by a header', () => {
    const fields = [['koa-with-auth/exchange', '{"settings":{"csrf":false}}']] as const
    expect(settingsOf(mockRequest({ fields }))).toBe(defaults)
  })
})

// The response to each failure: status, body and headers (decision "Failures"; B-24, B-25).

const { absent, malformed, invalid, expired, forged, insufficient, throttled, unavailable, raised } = AuthError
const respond = (error: AuthError) => defaultErrorMapper(error, mockRequest())
const problem = (status: number, title: string, detail = title) => ({ type: 'about:blank', title, status, detail })

describe('defaultErrorMapper', () => {
  it.each([
    ...[absent, malformed, invalid, expired].map((input) => ({ input, expected: problem(401, 'Unauthorized') })),
    { input: invalid({ detail: 'd', code: 'c' }), expected: { ...problem(401, 'Unauthorized', 'd'), code: 'c' } },
    { input: insufficient(['read']), expected: problem(403, 'Forbidden') },
    { input: forged, expected: problem(403, 'Forbidden', 'CSRF check Failed') },
    { input: throttled(), expected: problem(429, 'Too Many Requests') },
    { input: unavailable(), expected: problem(503, 'Service Unavailable') },
    { input: raised(new Error('secret')), expected: problem(500, 'Internal Server Error') },
    { input: raised(null), expected: problem(500, 'Internal Server Error') },
    { input: raised(createError(429, 'secret')), expected: problem(429, 'Too Many Requests') },
    { input: raised(createError(503, 'secret')), expected: problem(500, 'Internal Server Error') },
  ])('$input._tag is $expected.status, "$expected.detail"', ({ input, expected }) => {
    const { status, body } = respond(input)
    expect(status).toBe(expected.status)
    expect(body).toStrictEqual(expected)
  })

  it.each([
    row('nothing', unavailable(), /^[1-9][0-9]*$/),
    row('0', unavailable(0), /^0$/),
    row('a fraction, which is rounded up', unavailable(1.2), /^2$/),
    row('NaN', unavailable(NaN), /^[0-9]+$/),
    row('a negative number', unavailable(-3), /^[0-9]+$/),
    row('Infinity', unavailable(Infinity), /^[0-9]+$/),
    row('a number that prints with an exponent', unavailable(1e21), /^[0-9]+$/),
    row('the longest time of a timer', unavailable(2 ** 31 - 1), /^2147483647$/),
    row('a longer time', unavailable(2 ** 31), /^5$/),
  ])('RFC 9110 §10.2.3 Retry-After is a number of seconds for $description', ({ input, expected }) => {
    expect(respond(input).headers?.['Retry-After']).toMatch(expected)
    // RFC 6585 §4: the same for too many requests
    expect(respond({ ...input, _tag: 'throttled' }).headers).toStrictEqual(respond(input).headers)
  })

  it('B-24 the status in the body is the real status, and never a success', () => {
    fc.assert(
      fc.property(authError, (error) => {
        const { status, body } = respond(error)
        expect(body).toMatchObject({ status, type: 'about:blank' })
        expect(status).toBeGreaterThanOrEqual(400)
      }),
    )
  })

  it('B-25 the body depends only on the tag, whatever the hook threw, and whatever the URL was', () => {
    fc.assert(
      fc.property(fc.anything(), fc.webPath(), (thrown, url) => {
        fc.pre(httpStatusOf(thrown) === undefined)
        expect(defaultErrorMapper(raised(thrown), mockRequest({ url }))).toStrictEqual(respond(raised(new Error('x'))))
      }),
    )
  })
})

describe('serialize', () => {
  it('is JSON.stringify', () => {
    for (const body of [respond(absent).body, respond(forged).body, { a: 'ä' }, []]) {
      // Safe: all of these are objects
      expect(serialize(body as object)).toBe(JSON.stringify(body))
    }
  })
})

describe('A-30 httpStatusOf: an HTTP error with a 4xx status, and nothing else', () => {
  it.each([
    row('http-errors 401', createError(401), 401),
    row('http-errors 400, the lowest', createError(400), 400),
    row('http-errors 404', createError(404, 'x'), 404),
    row('http-errors 429 without expose', createError(429, 'x', { expose: false }), 429),
    row('http-errors 500', createError(500), undefined),
    row('only a status', Object.assign(new Error(), { status: 401 }), undefined),
    row('a status without expose', Object.assign(new Error(), { status: 404, statusCode: 404 }), undefined),
    row('two different statuses', Object.assign(createError(401), { statusCode: 200 }), undefined),
    row('a success', Object.assign(createError(401), { status: 200, statusCode: 200 }), undefined),
    row('a redirect', Object.assign(createError(401), { status: 302, statusCode: 302 }), undefined),
    row('an unknown 4xx', Object.assign(createError(400), { status: 499, statusCode: 499 }), undefined),
    row('strings', Object.assign(new Error(), { status: '401', statusCode: '401', expose: true }), undefined),
    row('an expose that is no boolean', Object.assign(createError(401), { expose: 'yes' }), undefined),
    row('a status of 399', Object.assign(createError(401), { status: 399, statusCode: 399 }), undefined),
    row('not an error', { status: 401, statusCode: 401, expose: true }, undefined),
    row('text', '401', undefined),
    row('null', null, undefined),
  ])('$description', ({ input, expected }) => {
    expect(httpStatusOf(input)).toBe(expected)
  })
})

it('R09 an inherited answer answers nothing', () => {
  const answer = () => answeredBy(new Error('bug'))
  expect(polluted({ 'koa-with-auth/answered': { status: 200 } }, answer)).toBeUndefined()
})

describe('the headers of an HTTP error of a hook', () => {
  const brought = (headers: unknown) => respond(raised(Object.assign(createError(429), { headers }))).headers

  it.each([
    [{ 'X-A': '9', 'Retry-After': '7', 'X-B': '8' }, { 'Retry-After': '7' }],
    [{ 'retry-AFTER': 70 }, { 'Retry-After': '70' }],
    [{ 'X-A': '9' }, undefined],
    [{ 'Retry-After': 'in 7' }, undefined],
    [{ 'Retry-After': '7 s' }, undefined],
    [{ 'Retry-After': '' }, undefined],
    [null, undefined],
    ['Retry-After', undefined],
    [undefined, undefined],
  ])('of %o, Retry-After is kept if it is a number: %o', (headers, expected) => {
    expect(brought(headers)).toStrictEqual(expected)
  })
})

// `perFailure`: a mapper for each tag of failure, and one for the others.

const request = mockRequest()
const [, ...tags] = outcomes
type Tag = (typeof tags)[number]
const answer = (tag: string): AuthResponse => ({ status: 418, body: tag })
const mappersOf = (some: ReadonlyArray<Tag>) => Object.fromEntries(some.map((tag) => [tag, () => answer(tag)]))

describe('perFailure', () => {
  it('calls the mapper of the failure, or else the other mapper or the default mapper, and never both', () => {
    fc.assert(
      fc.property(fc.subarray([...tags]), authError, (some, error) => {
        const own = some.includes(error._tag) ? answer(error._tag) : undefined
        expect(perFailure(mappersOf(some))(error, request)).toStrictEqual(own ?? defaultErrorMapper(error, request))
        let asked = 0
        const otherwise: ErrorMapper = () => ({ status: 400 + asked++ })
        expect(perFailure(mappersOf(some), otherwise)(error, request)).toStrictEqual(own ?? { status: 400 })
        expect(asked).toBe(own === undefined ? 1 : 0)
      }),
    )
  })

  it('calls each mapper with the failure itself and the request itself', () => {
    const asked: unknown[] = []
    const error = AuthError.insufficient(['read'])
    const mapper = perFailure({
      insufficient: (...args) => {
        asked.push(...args)
        return answer('seen')
      },
    })
    void mapper(error, request)
    expect(asked[0]).toBe(error)
    expect(asked[1]).toBe(request)
  })

  it.each([
    row('a tag that does not exist', [{ expird: () => answer('x') }], /no option "expird"/),
    row('a property name of every object', [{ constructor: () => answer('x') }], /"constructor"/),
    row('a response instead of a mapper', [{ expired: answer('x') }], /perFailure\({ expired }\)/),
    row('a mapper with three parameters', [{ expired: (_a: 1, _b: 2, _c: 3) => 1 }], /takes 3/),
    row('nothing', [], /takes an object of options, not undefined/),
    row('null as the other mapper', [{}, null], /otherwise must be a function, not null/),
    row('a response as the other mapper', [{}, answer('x')], /otherwise must be a function/),
  ])('is a TypeError that names the place for $description', ({ input, expected }) => {
    const attempt = (): unknown => Reflect.apply(perFailure, undefined, input)
    expect(attempt).toThrow(TypeError)
    expect(attempt).toThrow(expected)
    expect(attempt).toThrow(/perFailure/)
  })
})

// Exception handlers: the handler of the nearest class answers, and a level has one for each class (spec 5.1.5, 7.1).

class Base extends Error {}
class Derived extends Base {}
class Other {}
const answers = (status: number) => () => ({ status })

const none = new Map<unknown, never>()
const handlers = addHandlers(none, [onError(Base, answers(400)), onError(Other, answers(401))])
const statusOf = (error: unknown, among = handlers) => {
  const answer = handlerOf(among, error)
  // Safe: `answers` reads neither of its arguments
  return answer?.(undefined as never, error)
}

describe('handlerOf', () => {
  it.each([
    row('the class itself', new Base(), { status: 400 }),
    row('the nearest ancestor', new Derived(), { status: 400 }),
    row('a class that is not an Error', new Other(), { status: 401 }),
    row('an unregistered ancestor', new Error(), undefined),
    row('a primitive', 'Base', undefined),
    row('null', null, undefined),
    row('undefined', undefined, undefined),
    row('an object without a prototype', Object.create(null) as unknown, undefined),
  ])('7.1 $description', ({ input, expected }) => {
    expect(statusOf(input)).toStrictEqual(expected)
  })

  it('7.1 a nearer class wins, wherever it was registered', () => {
    const nearer = addHandlers(handlers, [onError(Derived, answers(403))])
    expect(statusOf(new Derived(), nearer)).toStrictEqual({ status: 403 })
    expect(statusOf(new Base(), nearer)).toStrictEqual({ status: 400 })
  })

  it('7.1 a class that decides itself what is an instance of it is obeyed, behind the classes of the exception', () => {
    const all = addHandlers(none, [onError(ZodError, answers(422))])
    const { error } = z.string().safeParse(1)
    expect([error instanceof ZodError, Object.getPrototypeOf(error) === ZodError.prototype]).toStrictEqual([
      true,
      false,
    ])
    expect(statusOf(error, all)).toStrictEqual({ status: 422 })
    expect(statusOf(new Base(), addHandlers(all, [onError(Base, answers(400))]))).toStrictEqual({ status: 400 })
    const replaced = Object.assign(function () {}, { prototype: Object.create(Base.prototype) as object })
    // Safe: it stands for a class that a compiler of long ago has made
    expect(statusOf(new Base(), addHandlers(none, [onError(replaced as never, answers(1))]))).toBeUndefined()
  })

  it('7.1 of classes that decide so themselves the latest counts, and an inner handler replaces an outer one', () => {
    const own = (status: number) => {
      class Own {
        static [Symbol.hasInstance] = (u: unknown) => u instanceof Other
      }
      return onError(Own, answers(status))
    }
    expect(statusOf(new Other(), addHandlers(none, [own(400), own(401)]))).toStrictEqual({ status: 401 })
    const inner = addHandlers(handlers, [onError(Other, answers(409))])
    expect(statusOf(new Other(), inner)).toStrictEqual({ status: 409 })
  })

  it('7.1 a primitive is an instance of no class, not of Object either', () => {
    const all = addHandlers(none, [onError(Object, answers(400))])
    expect([statusOf({}, all), statusOf('text', all)]).toStrictEqual([{ status: 400 }, undefined])
  })
})

describe('onError', () => {
  it.each([
    row('no class', ['Base', answers(400)]),
    row('an arrow function', [() => 1, answers(400)]),
    row('null', [null, answers(400)]),
    row('a function without a prototype', [Object.assign(function none() {}, { prototype: null }), answers(400)]),
    row('no handler', [Base]),
    row('a response instead of a handler', [Base, { status: 400 }]),
    row('a handler with three parameters', [Base, (_a: 1, _b: 2, _c: 3) => ({ status: 400 })]),
  ])('is a TypeError for $description', ({ input }) => {
    expect((): unknown => Reflect.apply(onError, undefined, input)).toThrow(TypeError)
  })

  it('two handlers of one class in one level are a TypeError', () => {
    expect(() => addHandlers(none, [onError(Base, answers(400)), onError(Base, answers(401))])).toThrow(TypeError)
  })
})
