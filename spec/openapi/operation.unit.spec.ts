/** What `operation` accepts, and what it refuses when it is called. */
import { describe, expect, it } from 'vitest'
import { descriptionAmong, operation } from '../../src/openapi/operation.js'

// For values that the compiler refuses
const given = operation as (options: unknown) => ReturnType<typeof operation>

describe('operation({ ... })', () => {
  it.each([
    [{ security: [] }, 'operation({ security }): it comes from the guard of the operation; write withAuth(a) after it'],
    [{ sumary: 'x' }, 'operation: no option "sumary"; there are tags, summary, '],
    [{ summary: 1 }, 'operation({ summary }) must be a string'],
    [{ operationId: {} }, 'operation({ operationId }) must be a string'],
    [{ tags: 'pets' }, 'operation({ tags }) must be an array'],
    [{ parameters: {} }, 'operation({ parameters }) must be an array'],
    [{ responses: [] }, 'operation({ responses }) must be an object'],
    [{ requestBody: null }, 'operation({ requestBody }) must be an object'],
    [{ deprecated: 'yes' }, 'operation({ deprecated }) must be true or false'],
    [{ undocumented: 'yes' }, 'operation({ undocumented }) must be true or false'],
    ['summary', 'operation takes an object of options, not a string'],
    [undefined, 'operation takes an object of options, not undefined'],
    [[], 'operation takes an object of options, not an array'],
    [null, 'operation takes an object of options, not null'],
  ])('refuses %j', (options, message) => {
    expect(() => given(options)).toThrow(TypeError)
    expect(() => given(options)).toThrow(message)
  })

  it('accepts the fields of an Operation Object, and extensions', () => {
    const all = {
      tags: ['pets'],
      summary: 'A pet',
      description: 'One of them',
      externalDocs: { url: 'https://example.com' },
      operationId: 'getPet',
      parameters: [],
      requestBody: { content: {} },
      responses: {},
      callbacks: {},
      deprecated: false,
      servers: [],
      'x-internal': 1,
    }
    expect(descriptionAmong([operation(all)], 'GET /x')).toStrictEqual(all)
  })

  it('is middleware that only returns what next() returns', async () => {
    const later = Promise.resolve('later')
    expect(operation({})({}, () => later)).toBe(later)
    await expect(operation({})({}, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  })

  it('that is twice in one route is a TypeError that names the route', () => {
    const one = operation({ summary: 'x' })
    expect(() => descriptionAmong([one, () => {}, one], 'GET /x')).toThrow(
      new TypeError('GET /x: operation({ ... }) is in it twice; remove one'),
    )
    expect(descriptionAmong([() => {}], 'GET /x')).toEqual({})
  })
})
