/** The laws of an error mapper: the default mapper keeps them, and each mistake breaks its law. */
import { defaultErrorMapper, perFailure, type AuthResponse, type ErrorMapper } from 'koa-with-auth'
import { laws } from 'koa-with-auth/testing/laws'
import { describe, expect, it } from 'vitest'
import { violationsOf } from '../../support/models/brokenLaws.js'

const broken = async (mapper: ErrorMapper) =>
  (await violationsOf(laws.errorMapper(mapper).check())).map(({ law }) => law)

const cycle: { self?: unknown } = {}
cycle.self = cycle

let calls = 0

// Safe: a caller without types could write this
const untyped = (mapper: unknown) => mapper as ErrorMapper

type Mapped = Partial<AuthResponse>
/** The default mapper, with something else. */
const besides =
  (other: (...args: Parameters<ErrorMapper>) => Mapped): ErrorMapper =>
  (error, request) => ({ ...defaultErrorMapper(error, request), ...other(error, request) })
const why = { 'X-Why': 'a\r\nb' }

const mistakes: ReadonlyArray<readonly [description: string, mapper: ErrorMapper, law: RegExp]> = [
  ['throws for one kind of failure', perFailure({ forged: () => raise() }), /^is total/],
  ['returns a promise', untyped(async () => ({ status: 401 })), /^is total/],
  ['returns undefined', untyped(() => undefined), /^is total/],
  ['answers 200', () => ({ status: 200, body: 'ok' }), /^is total/],
  ['answers 600', () => ({ status: 600 }), /^is total/],
  ['answers 500 to who is not allowed', perFailure({ insufficient: () => ({ status: 500 }) }), /^answers 401/],
  ['answers 302', () => ({ status: 302, headers: { Location: '/sign-in' } }), /^is total/],
  ['answers 403 to an absent credential', perFailure({ absent: () => ({ status: 403 }) }), /^answers 401/],
  ['answers 401 to who is not allowed', perFailure({ insufficient: () => ({ status: 401 }) }), /^answers 401/],
  ['answers 403 to too many guesses', perFailure({ throttled: () => ({ status: 403 }) }), /^answers 401/],
  ['answers 401 to an outage', perFailure({ unavailable: () => ({ status: 401 }) }), /^answers 401/],
  ['returns a cycle', perFailure({ invalid: () => ({ status: 401, body: cycle }) }), /^returns a response/],
  ['writes two lines', perFailure({ expired: () => ({ status: 401, headers: why }) }), /^returns a response/],
  ['names a field with a blank', besides(() => ({ headers: { 'a b': 'x' } })), /^returns a response/],
  ['shows the URL', besides((_error, { url }) => ({ body: { instance: url } })), /^leaks nothing/],
  ['shows an exception', besides((e) => (e._tag === 'raised' ? { body: String(e.error) } : {})), /^leaks nothing/],
  ['echoes a header', besides((_error, { headers }) => ({ body: { ...headers } })), /^leaks nothing/],
  ['counts', besides(() => ({ headers: { 'X-Count': String(++calls) } })), /^is pure/],
  ['writes the response itself', (error, request) => written(defaultErrorMapper(error, request), request), /^is pure/],
]

const raise = (): never => {
  throw new Error('mapper')
}

const written = (response: AuthResponse, { ctx }: Parameters<ErrorMapper>[1]): AuthResponse => {
  ctx.set('X-Written', 'yes')
  return response
}

describe('laws.errorMapper', () => {
  it('accepts the default mapper, and a mapper for single failures', async () => {
    expect(await broken(defaultErrorMapper)).toStrictEqual([])
    expect(
      await broken(perFailure({ expired: () => ({ status: 401, body: { detail: 'Sign in again' } }) })),
    ).toStrictEqual([])
    expect(
      await broken((error, request) => ({ ...defaultErrorMapper(error, request), body: Buffer.from('no') })),
    ).toStrictEqual([])
  })

  it.each(mistakes)('finds a mapper that %s', async (_description, mapper, law) => {
    expect(await broken(mapper)).toContainEqual(expect.stringMatching(law))
  })

  it('has a separate test for each law', async () => {
    const leaky: ErrorMapper = (error, request) => ({ ...defaultErrorMapper(error, request), body: request.url })
    const verdicts = await Promise.all(
      laws.errorMapper(leaky).tests.map(({ name, check }) => check().then(() => [], () => [name])), // prettier-ignore
    )
    expect(verdicts.flat()).toStrictEqual([expect.stringMatching(/^leaks nothing/)])
  })

  it('is a TypeError that names the place for a wrong argument', () => {
    expect(() => laws.errorMapper(untyped('x'))).toThrow(TypeError)
    expect(() => laws.errorMapper(defaultErrorMapper, { tries: 1 } as never)).toThrow(/no option "tries"/)
    expect(() => laws.errorMapper(defaultErrorMapper, { runs: 0 })).toThrow(/runs/)
  })
})
