/**
 * `mockRequest` refuses what a request does not have, because a misspelt property would make a test without a subject.
 */
import { mockRequest, withBearer } from 'koa-with-auth/testing'
import { describe, expect, it } from 'vitest'

// A call that TypeScript refuses, but JavaScript can write
const untyped = mockRequest as (spec: unknown) => unknown

describe('mockRequest', () => {
  const lines = /fields \}\) must be an array of header lines/
  const known = /^mockRequest: no option "headers"; there are method, url, fields/
  it.each<[name: string, spec: unknown, message: RegExp]>([
    ['headers', { headers: { Authorization: 'Bearer x' } }, known],
    ['header', { method: 'POST', header: [['Authorization', 'Bearer x']] }, /no option "header"/],
    ['path', { path: '/x' }, /no option "path"/],
    ['Method', { Method: 'POST' }, /no option "Method"/],
    ['ip', { ...withBearer('x'), ip: '::1' }, /no option "ip"/],
    ['fields that are an object', { fields: { Authorization: 'Bearer x' } }, lines],
    ['a line that is a string', { fields: ['Authorization: Bearer x'] }, lines],
    ['a line with one string', { fields: [['Authorization']] }, lines],
    ['a line with three strings', { fields: [['Authorization', 'Bearer x', 'y']] }, lines],
    ['a value that is undefined', { fields: [['Authorization', undefined]] }, lines],
    ['a url that is not a string', { url: new URL('http://x/') }, /url \}\) must be a string/],
    ['a string', 'GET /', /takes an object of options, not a string/],
    ['null', null, /takes an object/],
  ])('refuses %s', (_name, spec, message) => {
    if (spec !== null) expect(() => untyped(spec)).toThrow(message)
    expect(() => untyped(spec)).toThrow(TypeError)
  })

  it('refuses a misspelt property in a variable, too, when it is compiled', () => {
    const misspelt = { method: 'POST', header: [] }
    // @ts-expect-error: no property of a spec
    expect(() => mockRequest(misspelt)).toThrow(TypeError)
    // @ts-expect-error: no property of a spec
    expect(() => mockRequest({ url: '/', feilds: [] })).toThrow(TypeError)
    expect(mockRequest({ method: 'POST', url: '/x?a=b' }).url).toBe('/x?a=b')
    expect(mockRequest(undefined).method).toBe('GET')
  })
})
