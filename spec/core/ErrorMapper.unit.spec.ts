/** The response to each failure: status, body and headers (decision "Failures"; B-24, B-25). */
import createError from 'http-errors'
import fc from 'fast-check'
import { AuthError, defaultErrorMapper } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { httpStatusOf, serialize } from '../../src/core/Settings.js'
import { authError } from '../support/models/arbitraries.js'
import { mockRequest } from 'koa-with-auth/testing'

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
