/** A failure can say why: `detail` and `code` go to the body of the response, and never to the challenge. */
import { inspect } from 'node:util'
import { either as E, option as O, taskEither as TE } from 'fp-ts'
import type Koa from 'koa'
import { AuthError, authSettings, httpBearer, perFailure, withAuth } from 'koa-with-auth'
import type { AuthSettings, PrincipalFromAnswer } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { bearer, challenge, operation } from '../../support/models/behavior.js'
import { untyped } from '../../support/projects/mistakes.js'

const why = { detail: 'The account was suspended on 3 May.', code: 'user_suspended' }
const settings = (options: AuthSettings) => (app: Koa) => void app.use(authSettings(options))
const failing = (failure: AuthError, options: AuthSettings = {}) =>
  operation(withAuth(httpBearer({ authenticate: () => E.left(failure) })), settings(options))

describe('a failure with a reason', () => {
  it.each([
    ['invalid', AuthError.invalid(why), 401, 'Unauthorized', challenge.refusedBearer],
    ['expired', AuthError.expired(why), 401, 'Unauthorized', challenge.refusedBearer],
    ['insufficient', AuthError.insufficient(why), 403, 'Forbidden', 'Bearer realm="api", error="insufficient_scope"'],
  ])('%s: detail and code are in the body, not in the challenge', async (_tag, failure, status, title, offered) => {
    const { ask } = await failing(failure)
    const body = { type: 'about:blank', title, status, ...why }
    const expected: unknown = expect.objectContaining({ status, challenges: [offered], seen: [], body })
    expect(await ask('/x', bearer('t'))).toStrictEqual(expected)
  })

  it('insufficient also takes the scopes, which the challenge names', async () => {
    const { ask } = await failing(AuthError.insufficient({ ...why, scope: ['write', 'admin'] }))
    const answer = await ask('/x', bearer('t'))
    expect([answer.status, answer.challenges.join()]).toEqual([403, expect.stringContaining('write admin')])
    expect(answer.challenges.join()).not.toContain('suspended')
    expect(answer.body).toMatchObject(why)
  })

  it('can be read by mappers, typed', async () => {
    const seen: unknown[] = []
    const errorMapper = perFailure({
      invalid: (error) => {
        seen.push(error.detail satisfies string | undefined, error.code satisfies string | undefined)
        return { status: 401, body: { message: error.code } }
      },
    })
    const { ask } = await failing(AuthError.invalid(why), { errorMapper })
    expect((await ask('/x', bearer('t'))).body).toStrictEqual({ message: 'user_suspended' })
    expect(seen).toStrictEqual([why.detail, why.code])
    const all = await failing(AuthError.expired(why), {
      errorMapper: (error) => ({ status: 401, body: { message: error.detail ?? error.code } }),
    })
    expect((await all.ask('/x', bearer('t'))).body).toStrictEqual({ message: why.detail })
  })

  it('is no reason if it was not put there: a polluted prototype, or no string', async () => {
    for (const name of ['detail', 'code']) {
      const { ask } = await failing(AuthError.invalid)
      Object.defineProperty(Object.prototype, name, { value: 'polluted', configurable: true, enumerable: false })
      const answer = await ask('/x', bearer('t')).finally(() => Reflect.deleteProperty(Object.prototype, name))
      expect(JSON.stringify(answer.body)).not.toContain('polluted')
    }
    const { ask } = await failing(untyped({ _tag: 'invalid', detail: { secret: 1 }, code: 5 }))
    const plain = { type: 'about:blank', title: 'Unauthorized', status: 401, detail: 'Unauthorized' }
    expect((await ask('/x', bearer('t'))).body).toStrictEqual(plain)
  })
})

describe('the plain values', () => {
  it.each([
    ['invalid', AuthError.invalid],
    ['expired', AuthError.expired],
  ] as const)('%s is data: its tag, serialized and spread, and frozen', (tag, failure) => {
    expect(failure._tag).toBe(tag)
    expect(AuthError.is(failure)).toBe(true)
    expect({ ...failure }).toStrictEqual({ _tag: tag })
    expect(Reflect.ownKeys(failure)).toStrictEqual(['_tag'])
    expect(JSON.stringify({ failure })).toBe(`{"failure":{"_tag":"${tag}"}}`)
    expect(inspect(failure)).toBe(inspect({ _tag: tag }))
    expect(Object.isFrozen(failure)).toBe(true)
    expect(failure()).toBe(failure)
    expect(failure({ detail: undefined })).toBe(failure)
    expect(AuthError.Ord.equals(failure, failure({ code: 'x' }))).toBe(true)
  })

  it('let no principal through, for the compiler', () => {
    const never = (_: never) => {}
    const principal: PrincipalFromAnswer<typeof AuthError.invalid | E.Left<typeof AuthError.expired> | false>[] = []
    principal.forEach(never)
    const thunk = TE.fromOption(AuthError.invalid)(O.none)
    expect(thunk).toBeTypeOf('function')
    // insufficient takes the scopes as before
    expect(AuthError.insufficient(['a'])).toStrictEqual({ _tag: 'insufficient', scope: ['a'] })
  })
})

describe('mistakes in a reason', () => {
  const { invalid, expired, insufficient } = AuthError
  it.each([
    ['title', invalid, { title: 'x' }],
    ['type', expired, { type: 'x' }],
    ['status', insufficient, { status: 403 }],
    ['another member', invalid, { details: 'x' }],
    ['scope of invalid', invalid, { scope: ['a'] }],
    ['a detail that is no string', invalid, { detail: 1 }],
    ['an empty code', expired, { code: '' }],
    ['a scope that is no array', insufficient, { scope: 'a' }],
    ['a scope with a number', insufficient, { scope: [1] }],
    ['null', invalid, null],
    ['a string', invalid, 'locked'],
    ['an array', expired, []],
  ])('%s is a TypeError', (_what, make, reason) => {
    expect(() => make(untyped(reason))).toThrow(TypeError)
    expect(() => make(untyped(reason))).toThrow('AuthError.')
  })

  it('names what there is', () => {
    const message = 'AuthError.invalid: no option "status"; there are detail, code'
    expect(() => invalid(untyped({ status: 402 }))).toThrow(new TypeError(message))
  })
})
