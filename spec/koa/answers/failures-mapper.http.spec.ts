/** Failures (spec/requirements.md): an error mapper that replaces the default, for all failures or for one. */
import { either as E } from 'fp-ts'
import type Koa from 'koa'
import {
  apiKeyQuery,
  AuthError,
  authSettings,
  defaultErrorMapper,
  httpBearer,
  withAuth,
  type AuthSettings,
  type ErrorMapper,
} from 'koa-with-auth'
import { describe, expect, test, vi } from 'vitest'
import { bearer, challenge, expectCrashed, expectDenied, operation } from '../../support/models/behavior.js'

const failing = (failure: AuthError) => withAuth(httpBearer({ authenticate: () => E.left(failure) }))
const settings = (options: AuthSettings) => (app: Koa) => {
  app.use(authSettings(options))
}
const mapped = (errorMapper: ErrorMapper, failure: AuthError = AuthError.invalid) =>
  operation(failing(failure), settings({ errorMapper }))

describe('an error mapper of the application', () => {
  test('is called with the failure and the request, and its status, headers and body are sent', async () => {
    const errorMapper = vi.fn<ErrorMapper>((error, request) => ({
      status: 418,
      headers: { 'X-Why': error._tag, 'X-Lines': ['a', 'b'] },
      body: `no tea for ${request.path}`,
    }))
    const { ask } = await mapped(errorMapper, AuthError.expired)
    const answer = await ask('/x', bearer('t'))
    expect(answer).toMatchObject({ status: 418, challenges: [], body: 'no tea for /x', seen: [] })
    expect(answer.headers).toMatchObject({
      'x-why': 'expired',
      'x-lines': 'a, b',
      'cache-control': 'no-store',
      'content-type': 'text/plain; charset=utf-8',
      vary: 'Authorization',
    })
    expect(errorMapper).toHaveBeenCalledTimes(1)
  })

  test.each([AuthError.invalid, AuthError.insufficient(['write'])])(
    'that answers neither 401 nor 403 offers no challenge: $_tag',
    async (failure) => {
      const { ask } = await mapped(() => ({ status: 404 }), failure)
      expect(await ask('/x', bearer('t'))).toMatchObject({ status: 404, challenges: [], seen: [] })
    },
  )

  test('is called with a failure that holds every branch of a list', async () => {
    const errorMapper = vi.fn<ErrorMapper>(defaultErrorMapper)
    const list = withAuth([apiKeyQuery({ authenticate: () => false }), httpBearer({ authenticate: () => false })])
    const { ask } = await operation(list, settings({ errorMapper }))
    await ask('/x?key=k')
    const [error] = errorMapper.mock.calls[0] ?? []
    expect(error && AuthError.branchesOf(error).map(({ _tag }) => _tag)).toEqual(['invalid', 'absent'])
  })

  test('can use defaultErrorMapper for the other failures', async () => {
    const errorMapper: ErrorMapper = (error, request) =>
      error._tag === 'expired' ? { status: 401, body: { detail: 'Sign in again' } } : defaultErrorMapper(error, request)
    const expired = await mapped(errorMapper, AuthError.expired)
    const answer = await expired.ask('/x', bearer('t'))
    expect(answer).toMatchObject({ status: 401, challenges: [challenge.refusedBearer], seen: [] })
    expect(answer.body).toStrictEqual({ detail: 'Sign in again' })
    expect(answer.headers['content-type']).toBe('application/problem+json')
    const other = await mapped(errorMapper, AuthError.unavailable(9))
    const unavailable = await other.ask('/x', bearer('t'))
    expectDenied(unavailable, 503, [])
    expect(unavailable.headers['retry-after']).toBe('9')
  })

  test('can redirect: 302, no challenge, not cached, and no handler ran', async () => {
    const { ask } = await mapped(() => ({ status: 302, headers: { Location: '/sign-in' } }))
    const answer = await ask('/x', bearer('t'))
    expect(answer).toMatchObject({ status: 302, challenges: [], body: '', seen: [] })
    expect(answer.headers).toMatchObject({ location: '/sign-in', 'cache-control': 'no-store' })
  })

  test.each<[string, () => never]>([
    [
      'an error',
      () => {
        throw new Error('the mapper fails')
      },
    ],
    [
      'an error with status 200',
      () => {
        throw Object.assign(new Error('hidden'), { status: 200, expose: true })
      },
    ],
    [
      'null',
      () => {
        throw null
      },
    ],
  ])('that throws %s makes a 500, and no handler ran', async (_what, errorMapper) => {
    const { ask } = await mapped(errorMapper)
    expectCrashed(await ask('/x', bearer('t')))
  })

  test.each(['WWW-Authenticate', 'www-authenticate'])('that sets %s on a 401 replaces the challenges', async (name) => {
    const { ask } = await mapped(() => ({ status: 401, headers: { [name]: 'Negotiate' }, body: 'no' }))
    expect(await ask('/x', bearer('t'))).toMatchObject({ status: 401, challenges: ['Negotiate'], body: 'no', seen: [] })
  })

  test('B-01 that makes a 401 of a 403 offers the challenges', async () => {
    const errorMapper: ErrorMapper = () => ({ status: 401, body: { detail: 'no' } })
    const { ask } = await mapped(errorMapper, AuthError.forged)
    expect(await ask('/x', bearer('t'))).toMatchObject({ status: 401, challenges: [challenge.bearer], seen: [] })
  })

  test('can replace the type problem+json, and can send bytes or no body', async () => {
    const headers = { 'content-type': 'application/json' }
    const json = await mapped(() => ({ status: 401, headers, body: { detail: 'no' } }))
    const answer = await json.ask('/x', bearer('t'))
    expect(answer.headers['content-type']).toBe('application/json')
    expect(answer.body).toStrictEqual({ detail: 'no' })
    const bytes = await mapped(() => ({ status: 401, body: Buffer.from('bytes') }))
    expect(await bytes.ask('/x', bearer('t'))).toMatchObject({ status: 401, body: 'bytes', seen: [] })
    const none = await mapped(() => ({ status: 401 }))
    expect(await none.ask('/x', bearer('t'))).toMatchObject({ status: 401, body: '', seen: [] })
  })
})
