/** Settings of a request, the response to each failure, mappers for single failures, and handlers of exceptions. */
import { afterEach, describe, expect, it, vi } from 'vitest'
import { z, ZodError } from 'zod'
import { mockRequest } from 'koa-with-auth/testing'
import createError from 'http-errors'
import fc from 'fast-check'
import { AuthError, defaultErrorMapper, perFailure, type AuthResponse, type ErrorMapper, onError } from 'koa-with-auth'
import { defaults, httpStatusOf, serialize, addHandlers, handlerOf } from '../../src/core/Settings.js'
import { exchangeOf, settingsOf } from '../../src/core/Exchange.js'
import { authError } from '../support/models/arbitraries.js'
import { outcomes } from '../support/models/trees.js'

// Settings belong to the context of one request. Without them, the defaults apply.
describe('Settings of a request', () => {
  afterEach(() => {
    vi.unstubAllEnvs()
    // the next file of this process must not get the module of another environment
    vi.resetModules()
  })

  describe('Settings', () => {
    it.each([
      ['development', true],
      ['production', false],
      ['test', false],
      [undefined, false],
    ])('failures are explained only if NODE_ENV is development: %s', async (env, explain) => {
      vi.stubEnv('NODE_ENV', env)
      // The module reads NODE_ENV when it is loaded
      vi.resetModules()
      const module = await import('../../src/core/Settings.js')
      expect(module.defaults).toMatchObject({ explain })
    })

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
})

// The response to each failure: status, body and headers (decision "Failures"; B-24, B-25).

const { absent, malformed, invalid, expired, forged, insufficient, throttled, unavailable, raised } = AuthError
const respond = (error: AuthError) => defaultErrorMapper(error, mockRequest())
const problem = (status: number, title: string, detail = title) => ({ type: 'about:blank', title, status, detail })

describe('defaultErrorMapper', () => {
  it.each([
    ...[absent, malformed, invalid, expired].map((input) => ({ input, expected: problem(401, 'Unauthorized') })),
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
    { description: 'nothing', input: unavailable(), expected: /^[1-9][0-9]*$/ },
    { description: '0', input: unavailable(0), expected: /^0$/ },
    { description: 'a fraction, which is rounded up', input: unavailable(1.2), expected: /^2$/ },
    { description: 'NaN', input: unavailable(NaN), expected: /^[0-9]+$/ },
    { description: 'a negative number', input: unavailable(-3), expected: /^[0-9]+$/ },
    { description: 'Infinity', input: unavailable(Infinity), expected: /^[0-9]+$/ },
    { description: 'a number that prints with an exponent', input: unavailable(1e21), expected: /^[0-9]+$/ },
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
    { description: 'http-errors 401', input: createError(401), expected: 401 },
    { description: 'http-errors 400, the lowest', input: createError(400), expected: 400 },
    { description: 'http-errors 404', input: createError(404, 'x'), expected: 404 },
    {
      description: 'http-errors 429 without expose',
      input: createError(429, 'x', { expose: false }),
      expected: 429,
    },
    { description: 'http-errors 500', input: createError(500), expected: undefined },
    { description: 'only a status', input: Object.assign(new Error(), { status: 401 }), expected: undefined },
    {
      description: 'a status without expose',
      input: Object.assign(new Error(), { status: 404, statusCode: 404 }),
      expected: undefined,
    },
    {
      description: 'two different statuses',
      input: Object.assign(createError(401), { statusCode: 200 }),
      expected: undefined,
    },
    {
      description: 'a success',
      input: Object.assign(createError(401), { status: 200, statusCode: 200 }),
      expected: undefined,
    },
    {
      description: 'a redirect',
      input: Object.assign(createError(401), { status: 302, statusCode: 302 }),
      expected: undefined,
    },
    {
      description: 'an unknown 4xx',
      input: Object.assign(createError(400), { status: 499, statusCode: 499 }),
      expected: undefined,
    },
    { description: 'not an error', input: { status: 401, statusCode: 401, expose: true }, expected: undefined },
    { description: 'text', input: '401', expected: undefined },
    { description: 'null', input: null, expected: undefined },
  ])('$description', ({ input, expected }) => {
    expect(httpStatusOf(input)).toBe(expected)
  })
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

  it.each([
    { status: '401', statusCode: '401', expose: true },
    { status: 401, statusCode: 401, expose: 'yes' },
    { status: 401, statusCode: 402, expose: true },
    { status: 401, expose: true },
    { status: 401, statusCode: 401 },
    { status: 499, statusCode: 499, expose: true },
    { status: 500, statusCode: 500, expose: false },
    { status: 399, statusCode: 399, expose: true },
  ])('with %o, an error is not a 4xx error', (parts) => {
    expect(httpStatusOf(Object.assign(new Error('parts'), parts))).toBe(undefined)
    expect(httpStatusOf({ status: 401, statusCode: 401, expose: true })).toBe(undefined)
  })

  it('Retry-After is at most the longest time of a timer', () => {
    expect(respond(unavailable(2 ** 31 - 1)).headers).toStrictEqual({ 'Retry-After': '2147483647' })
    expect(respond(unavailable(2 ** 31)).headers).toStrictEqual({ 'Retry-After': '5' })
  })
})

// `perFailure`: a mapper for each tag of failure, and one for the others.

const request = mockRequest()
const [, ...tags] = outcomes
type Tag = (typeof tags)[number]
const answer = (tag: string): AuthResponse => ({ status: 418, body: tag })
const mappersOf = (some: ReadonlyArray<Tag>) => Object.fromEntries(some.map((tag) => [tag, () => answer(tag)]))

describe('perFailure', () => {
  it('calls the mapper of the failure, or else the default mapper', () => {
    fc.assert(
      fc.property(fc.subarray([...tags]), authError, (some, error) => {
        const expected = some.includes(error._tag) ? answer(error._tag) : defaultErrorMapper(error, request)
        expect(perFailure(mappersOf(some))(error, request)).toStrictEqual(expected)
      }),
    )
  })

  it('calls the other mapper for failures without one, and never both', () => {
    fc.assert(
      fc.property(fc.subarray([...tags]), authError, (some, error) => {
        let asked = 0
        const otherwise: ErrorMapper = () => ({ status: 400 + asked++ })
        const response = perFailure(mappersOf(some), otherwise)(error, request)
        expect(asked).toBe(some.includes(error._tag) ? 0 : 1)
        expect(response).toMatchObject({ status: some.includes(error._tag) ? 418 : 400 })
      }),
    )
  })

  it('nests: a perFailure can be the other mapper', () => {
    const nested = perFailure(mappersOf(['expired']), perFailure(mappersOf(['expired', 'absent'])))
    expect(nested(AuthError.expired, request)).toStrictEqual(answer('expired'))
    expect(nested(AuthError.absent, request)).toStrictEqual(answer('absent'))
    expect(nested(AuthError.invalid, request)).toStrictEqual(defaultErrorMapper(AuthError.invalid, request))
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

  it('without mappers is the other mapper', () => {
    for (const tag of tags) {
      const error = { _tag: tag } as AuthError
      expect(perFailure({})(error, request)).toStrictEqual(defaultErrorMapper(error, request))
    }
  })

  it.each([
    {
      description: 'a tag that does not exist',
      input: [{ expird: () => answer('x') }],
      expected: /no option "expird"/,
    },
    {
      description: 'a property name of every object',
      input: [{ constructor: () => answer('x') }],
      expected: /"constructor"/,
    },
    {
      description: 'a response instead of a mapper',
      input: [{ expired: answer('x') }],
      expected: /perFailure\({ expired }\)/,
    },
    {
      description: 'a mapper with three parameters',
      input: [{ expired: (_a: 1, _b: 2, _c: 3) => 1 }],
      expected: /takes 3/,
    },
    { description: 'perFailure, not called', input: [{ expired: perFailure }], expected: /perFailure itself; call it/ },
    { description: 'nothing', input: [], expected: /takes an object of options, not undefined/ },
    { description: 'a list', input: [[]], expected: /takes an object of options, not an array/ },
    { description: 'only a mapper', input: [defaultErrorMapper], expected: /takes an object of options/ },
    { description: 'null as the other mapper', input: [{}, null], expected: /otherwise must be a function, not null/ },
    {
      description: 'a response as the other mapper',
      input: [{}, answer('x')],
      expected: /otherwise must be a function/,
    },
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
    { description: 'the class itself', input: new Base(), expected: { status: 400 } },
    { description: 'the nearest ancestor', input: new Derived(), expected: { status: 400 } },
    { description: 'a class that is not an Error', input: new Other(), expected: { status: 401 } },
    { description: 'an unregistered ancestor', input: new Error(), expected: undefined },
    { description: 'a primitive', input: 'Base', expected: undefined },
    { description: 'null', input: null, expected: undefined },
    { description: 'undefined', input: undefined, expected: undefined },
    { description: 'an object without a prototype', input: Object.create(null) as unknown, expected: undefined },
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

  it('7.1 a primitive is an instance of no class, not of Object either', () => {
    const all = addHandlers(none, [onError(Object, answers(400))])
    expect([statusOf({}, all), statusOf('text', all)]).toStrictEqual([{ status: 400 }, undefined])
  })

  it('an inner level replaces the handler of an outer one, which does not change', () => {
    const inner = addHandlers(handlers, [onError(Base, answers(418))])
    expect(statusOf(new Base(), inner)).toStrictEqual({ status: 418 })
    expect(statusOf(new Base())).toStrictEqual({ status: 400 })
  })
})

describe('onError', () => {
  // Safe: a caller without types could write this
  const untyped = (value: unknown) => value as never
  it.each([
    { description: 'no class', input: () => onError(untyped('Base'), answers(400)) },
    {
      description: 'an arrow function',
      input: () =>
        onError(
          untyped(() => 1),
          answers(400),
        ),
    },
    { description: 'null', input: () => onError(untyped(null), answers(400)) },
    {
      description: 'a function without a prototype',
      input: () => onError(untyped(Object.assign(function none() {}, { prototype: null })), answers(400)),
    },
    { description: 'no handler', input: () => onError(Base, untyped(undefined)) },
    { description: 'a response instead of a handler', input: () => onError(Base, untyped({ status: 400 })) },
    {
      description: 'a handler with three parameters',
      input: () =>
        onError(
          Base,
          untyped((_a: 1, _b: 2, _c: 3) => ({ status: 400 })),
        ),
    },
    {
      description: 'two handlers of one class in one level',
      input: () => addHandlers(none, [onError(Base, answers(400)), onError(Base, answers(401))]),
    },
  ])('is a TypeError for $description', ({ input }) => {
    expect(input).toThrow(TypeError)
  })
})
