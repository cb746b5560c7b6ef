/** What a Standard Schema accepts: only a result with `value` and without `issues`. Everything else refuses. */
import { type } from 'arktype'
import { either as E } from 'fp-ts'
import * as t from 'io-ts'
import { UnavailableError } from 'koa-with-auth'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { decoderOf, schemaLike, type Schema, type StandardSchema } from '../../src/core/Schema.js'

const standard = (validate: (value: unknown) => unknown): StandardSchema => ({
  // Safe: a program without types could write this
  '~standard': { version: 1, vendor: 'mine', validate: validate as never },
})
const decode = (schema: Schema<unknown>, value: unknown) => decoderOf('place', schema)(value)
/** The verdict about `a` of a Standard Schema that validates so. */
const verdict = (validate: () => unknown) => decode(standard(validate), 'a')
const issue = { message: 'a secret text' }

const results: ReadonlyArray<readonly [string, () => unknown]> = [
  ['issues', () => ({ issues: [issue] })],
  ['no issue in issues', () => ({ issues: [] })],
  ['a value and issues', () => ({ value: 'a', issues: [issue] })],
  ['a value and no issue in issues', () => ({ value: 'a', issues: [] })],
  ['a value and null as issues', () => ({ value: 'a', issues: null })],
  ['a value and false as issues', () => ({ value: 'a', issues: false })],
  ['a value and inherited issues', () => Object.assign(Object.create({ issues: [issue] }) as object, { value: 'a' })],
  ['a value and a getter of issues', () => Object.defineProperty({ value: 'a' }, 'issues', { get: () => [] })],
  ['nothing', () => ({})],
  ['issues: undefined alone', () => ({ issues: undefined })],
  ['an array', () => ['a']],
  ['a string', () => 'a'],
  ['true', () => true],
  ['undefined', () => undefined],
  ['null', () => null],
  ['a function', () => Object.assign(() => {}, { value: 'a' })],
  ['a Right', () => E.right('a')],
  [
    'a value that turns into issues',
    () => ({ value: 'a', then: (pass: (r: unknown) => void) => pass({ issues: [] }) }),
  ],
]

describe('a result', () => {
  it.each(results)('with %s refuses, sync and async', async (_what, result) => {
    expect(await verdict(result)).toMatchObject({ _tag: 'Left' })
    expect(await verdict(async () => result())).toMatchObject({ _tag: 'Left' })
  })

  it.each([
    ['value', () => ({ value: 'b' })],
    ['value and issues: undefined', () => ({ value: 'b', issues: undefined })],
    ['value, frozen', () => Object.freeze({ value: 'b' })],
    ['value, without a prototype', () => Object.assign(Object.create(null) as object, { value: 'b' })],
    ['value by a getter of a class', () => new (class { get value() { return 'b' } })()], // prettier-ignore
    [
      'value after a second answer',
      () => ({ then: (pass: (r: unknown) => void) => (pass({ value: 'b' }), pass({ issues: [] })) }),
    ],
  ])('with %s accepts', async (_what, result) => {
    expect(await verdict(result)).toEqual(E.right('b'))
  })

  it('with issues that would turn into a value refuses', () => {
    const lying = { issues: [], then: (pass: (result: unknown) => void) => pass({ value: 'a' }) }
    expect(verdict(() => lying)).toMatchObject({ _tag: 'Left' })
  })

  it('is read once', () => {
    let reads = 0
    const once = { get value() { return reads++ } } // prettier-ignore
    expect(verdict(() => once)).toEqual(E.right(0))
    expect(reads).toBe(1)
  })

  it('undefined is a value', () => {
    expect(verdict(() => ({ value: undefined }))).toEqual(E.right(undefined))
  })
})

describe('a schema that throws', () => {
  const secret = Object.assign(new Error('a secret text'), { status: 418, expose: true })
  it.each([
    ['sync', () => { throw secret }], // prettier-ignore
    ['async', () => Promise.reject(secret)],
    ['in a getter of the result', () => Object.defineProperty({}, 'value', { get: () => { throw secret } })], // prettier-ignore
    ['in a getter of its issues', () => Object.defineProperty({ value: 1 }, 'issues', { get: () => { throw secret } })], // prettier-ignore
    ['in a then', () => ({ then: () => { throw secret } })], // prettier-ignore
  ])('%s: the error names the place, has no status and does not show the message', async (_how, validate) => {
    const error: unknown = await (async () => verdict(validate))().catch((one: unknown) => one)
    expect(String(error)).toBe('Error: place: the schema threw')
    expect(error).not.toHaveProperty('status')
    expect(error).toMatchObject({ cause: secret })
  })

  it('an UnavailableError stays one', async () => {
    const down = new UnavailableError('the directory is down')
    await expect(verdict(async () => { throw down })).rejects.toBe(down) // prettier-ignore
  })
})

describe('schemaLike', () => {
  const check = (value: unknown) => () => schemaLike('t.string')('place', value)

  it.each([t.string, z.string(), v.string(), type('string'), standard(() => ({}))])('accepts %#', (schema) => {
    expect(check(schema)).not.toThrow()
  })

  it.each([undefined, null, 'string', 7, {}, [], () => {}, z.object, type, { validate: () => {} }])(
    'is a TypeError for %s',
    (value) => {
      expect(check(value)).toThrow(
        /^place must be an io-ts codec, such as t\.string, or a schema of zod, valibot or arktype/,
      )
    },
  )

  it.each([
    ['a later version', { version: 2, vendor: 'x', validate: () => ({}) }],
    ['no version', { vendor: 'x', validate: () => ({}) }],
    ['no validate', { version: 1, vendor: 'x' }],
    ['a validate that is no function', { version: 1, vendor: 'x', validate: 'yes' }],
    ['null', null],
    ['undefined', undefined],
    ['true', true],
  ])('is a TypeError for a ~standard with %s', (_what, face) => {
    expect(check({ '~standard': face })).toThrow(TypeError)
    expect(check({ '~standard': face })).toThrow(/^place has a "~standard" that is not version 1/)
  })

  it('what is changed afterwards changes nothing', () => {
    const schema = standard(() => ({ issues: [] }))
    const decoding = decoderOf('place', schema)
    Object.assign(schema['~standard'], { validate: () => ({ value: 'all' }) })
    expect(decoding('a')).toMatchObject({ _tag: 'Left' })
  })
})
