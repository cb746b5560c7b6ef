/** `mockRequest` refuses what a request does not have: a misspelt property would make a test that tests nothing. */
import { mockRequest, withBearer } from 'koa-with-auth/testing'
import { describe, expect, it } from 'vitest'

// What TypeScript refuses, as JavaScript can call it
const untyped = mockRequest as (spec: unknown) => unknown

describe('mockRequest', () => {
  it.each<[name: string, spec: unknown, message: RegExp]>([
    [
      'headers',
      { headers: { Authorization: 'Bearer x' } },
      /^mockRequest: no option "headers"; there are method, url, fields/,
    ],
    ['header', { method: 'POST', header: [['Authorization', 'Bearer x']] }, /no option "header"/],
    ['path', { path: '/x' }, /no option "path"/],
    ['Method', { Method: 'POST' }, /no option "Method"/],
    ['ip', { ...withBearer('x'), ip: '::1' }, /no option "ip"/],
    [
      'fields that are a record',
      { fields: { Authorization: 'Bearer x' } },
      /fields \}\) must be an array of header lines/,
    ],
    ['a line that is a string', { fields: ['Authorization: Bearer x'] }, /must be an array of header lines/],
    ['a line of one', { fields: [['Authorization']] }, /must be an array of header lines/],
    ['a line of three', { fields: [['Authorization', 'Bearer x', 'y']] }, /must be an array of header lines/],
    ['a value that is none', { fields: [['Authorization', undefined]] }, /must be an array of header lines/],
    ['a url that is no string', { url: new URL('http://x/') }, /url \}\) must be a string/],
    ['a string', 'GET /', /takes an object of options, not a string/],
    ['null', null, /takes an object/],
  ])('refuses %s', (_name, spec, message) => {
    if (spec !== null) expect(() => untyped(spec)).toThrow(message)
    expect(() => untyped(spec)).toThrow(TypeError)
  })

  it('refuses them in a variable, too, when it is compiled', () => {
    const misspelt = { method: 'POST', header: [] }
    // @ts-expect-error: no property of a spec
    expect(() => mockRequest(misspelt)).toThrow(TypeError)
    // @ts-expect-error: no property of a spec
    expect(() => mockRequest({ url: '/', feilds: [] })).toThrow(TypeError)
    expect(mockRequest({ method: 'POST', url: '/x?a=b' }).url).toBe('/x?a=b')
    expect(mockRequest(undefined).method).toBe('GET')
  })
})
