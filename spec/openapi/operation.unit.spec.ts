/** What is said of one operation, and of the body that it takes. */
import { describe, expect, it, vi } from 'vitest'
import Router from '@koa/router'
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import * as t from 'io-ts'
import type { Schema } from 'koa-with-auth'
import { openApi } from 'koa-with-auth/openapi'
import * as v from 'valibot'
import { z } from 'zod'
import { operation } from '../../src/openapi/operation.js'

// What `operation` accepts, and what it refuses when it is called.

const documentOf = (router: Router) => openApi(router, { title: 'Pets', version: '1' })

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
      parameters: [{ name: 'age', in: 'query', schema: {} }],
      requestBody: { content: {} },
      responses: {},
      callbacks: {},
      deprecated: false,
      servers: [],
      'x-internal': 1,
    }
    const { paths } = documentOf(new Router().get('/x', operation(all), () => {}))
    expect(paths['/x']?.get).toMatchObject(all)
  })

  it('is middleware that only returns what next() returns', async () => {
    const later = Promise.resolve('later')
    expect(operation({})({}, () => later)).toBe(later)
    await expect(operation({})({}, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  })
})

// `operation({ requestBody })` takes a schema or a codec. The document describes the body, so that a docs page has a field for it.

const bodyOf = (requestBody: unknown): unknown => {
  const router = new Router()
  // Safe: a program without types could write this
  router.post('/pets', operation({ requestBody: requestBody as Schema<unknown> }), () => {})
  return documentOf(router).paths['/pets']?.post?.requestBody
}
const described = (schema: object) => ({ required: true, content: { 'application/json': { schema } } })
const anything = { required: true, content: { 'application/json': { schema: {}, example: {} } } }

const pet = { type: 'object', properties: { name: { type: 'string' }, age: { type: 'number' } }, required: ['name'] }
const libraries: ReadonlyArray<readonly [string, Schema<unknown>]> = [
  ['zod', z.object({ name: z.string(), age: z.number().optional() })],
  ['arktype, which is a function', type({ name: 'string', 'age?': 'number' })],
  ['valibot with its package', toStandardJsonSchema(v.object({ name: v.string(), age: v.optional(v.number()) }))],
  ['io-ts', t.type({ name: t.string, age: t.union([t.number, t.undefined]) })],
]

const responsesIn = (responses: Parameters<typeof operation>[0]['responses']) =>
  documentOf(new Router().get('/x', operation({ responses }), () => {})).paths['/x']?.get?.responses

describe('the responses of', () => {
  it.each(libraries)('%s have its JSON Schema, and the phrase of the status', (_library, schema) => {
    expect(responsesIn({ 200: schema, 404: { description: 'none' } })).toMatchObject({
      200: { description: 'OK', content: { 'application/json': { schema: pet } } },
      404: { description: 'none' },
    })
  })

  it('a schema is described as it is written out, and that of a body as it is read', () => {
    const born = z.object({ at: z.string().transform((text) => text.length).pipe(z.number()) }) // prettier-ignore
    const content = (type: string) => ({ 'application/json': { schema: { properties: { at: { type } } } } })
    expect(responsesIn({ 201: born })).toMatchObject({ 201: { content: content('number') } })
    expect(bodyOf(born)).toMatchObject({ content: content('string') })
  })

  it('what is no status is a TypeError', () => {
    for (const status of ['ok', '2000', '600', '20X', '5xx'])
      expect(() => given({ responses: { [status]: pet } })).toThrow(`${status} is not a status; write one such as 200`)
    expect(() => operation({ responses: { 200: 'x' as never } })).toThrow(TypeError)
  })
})

describe('the body of', () => {
  it.each(libraries)('%s has its JSON Schema', (_library, schema) => {
    expect(bodyOf(schema)).toEqual(described(pet))
  })

  it.each<readonly [string, Schema<unknown>]>([
    ['valibot alone', v.object({ name: v.string() })],
    ['what JSON cannot say', z.object({ born: z.date() })],
    ['a schema that refers to itself', z.object({ name: z.string(), get next() { return this } })], // prettier-ignore
    ['a codec of its own class', new t.Type<number, number, unknown>('Even', t.number.is, t.number.validate, Number)],
    ['a codec that refers to itself', t.recursion<object>('Tree', (self) => t.partial({ next: self }))],
    ['unknown', t.unknown],
  ])('%s is any JSON, with an example for the field', (_what, schema) => {
    expect(bodyOf(schema)).toEqual(anything)
  })

  it.each([
    ['throws', () => { throw new Error('a secret text') }], // prettier-ignore
    ['returns nothing', () => undefined],
    ['returns a string', () => 'a'],
    ['returns an array', () => ['a']],
    ['returns null', () => null],
    ['returns a reference', () => ({ type: 'array', items: { $ref: '#' } })],
    ['returns a ring', () => { const ring = { self: {} }; ring.self = ring; return ring }], // prettier-ignore
  ])('a schema whose jsonSchema %s is any JSON', (_what, input) => {
    const validate = vi.fn(() => ({ value: 1 }))
    const body = bodyOf({ '~standard': { version: 1, vendor: 'x', validate, jsonSchema: { input } } })
    expect(body).toEqual(anything)
    expect(validate).not.toHaveBeenCalled()
  })

  const [text, nothing] = [{ type: 'string' }, { type: 'null' }]
  const aString = { type: 'object', properties: { a: { type: 'string' } } }
  it.each<readonly [t.Mixed, object]>([
    [t.string, { type: 'string' }],
    [t.boolean, { type: 'boolean' }],
    [t.null, { type: 'null' }],
    [t.literal('a'), { const: 'a' }],
    [t.keyof({ a: null, b: null }), { enum: ['a', 'b'] }],
    [t.array(t.number), { type: 'array', items: { type: 'number' } }],
    [t.readonlyArray(t.string), { type: 'array', items: { type: 'string' } }],
    [t.tuple([t.null, t.null]), { type: 'array', prefixItems: [nothing, nothing], minItems: 2, maxItems: 2 }],
    [t.record(t.string, t.number), { type: 'object', additionalProperties: { type: 'number' } }],
    [t.UnknownRecord, { type: 'object' }],
    [t.union([t.string, t.null]), { anyOf: [{ type: 'string' }, { type: 'null' }] }],
    [t.partial({ a: t.string }), aString],
    [t.exact(t.type({ a: t.string })), { ...aString, required: ['a'] }],
    [t.readonly(t.array(t.string)), { type: 'array', items: { type: 'string' } }],
    [t.brand(t.string, (s): s is t.Branded<string, { readonly Id: symbol }> => s !== '', 'Id' as never), text],
    [
      t.intersection([t.partial({ a: t.string }), t.array(t.null)]),
      { allOf: [aString, { type: 'array', items: nothing }] },
    ],
    [
      t.type({ a: t.unknown, b: t.undefined, c: t.readonly(t.unknown), d: t.refinement(t.unknown, () => true) }),
      { type: 'object', properties: { a: {}, b: {}, c: {}, d: {} } },
    ],
  ])('the codec %# follows its tags', (codec, schema) => {
    expect(bodyOf(codec)).toEqual(described(schema))
  })

  it('an object of OpenAPI stays as it is, and undefined is none', () => {
    const schema = { ...z.toJSONSchema(z.object({ name: z.string() })) }
    const references = [{ $ref: '#/components/requestBodies/Pet' }, undefined]
    for (const body of [{ content: { 'text/plain': {} } }, { content: { 'a/b': { schema } } }, ...references])
      expect(bodyOf(body)).toEqual(body)
  })

  it.each([null, [], 'body', 7, () => {}, z.object])('%o is a TypeError', (wrong) => {
    expect(() => bodyOf(wrong)).toThrow(TypeError)
    expect(() => bodyOf(wrong)).toThrow(/^operation\(\{ requestBody \}\) must be an object/)
  })

  it.each([{}, { schema: z.string() }, { type: 'object', properties: {} }, { content: null }, { $ref: 7 }, z])(
    'an object of another form is a TypeError, case %#',
    (wrong) => {
      expect(() => bodyOf(wrong)).toThrow(TypeError)
      expect(() => bodyOf(wrong)).toThrow(
        'operation({ requestBody }) must be a schema, a codec, or an object of OpenAPI with `content`',
      )
    },
  )

  it.each([z.string(), t.string])('a schema inside of an object of OpenAPI is a TypeError, case %#', (schema) => {
    expect(() => bodyOf({ content: { 'application/json': { schema } } })).toThrow(
      new TypeError(
        'operation({ requestBody }): in `content` the schema must be JSON Schema; write the schema or codec itself: requestBody: Pet',
      ),
    )
  })

  it('another version of Standard Schema is a TypeError', () => {
    const why = /^operation\(\{ requestBody \}\) has a "~standard" that is not/
    expect(() => bodyOf({ '~standard': { version: 2 } })).toThrow(why)
  })
})
