/** Failures (spec/requirements.md): realms, settings, and what upstream middleware and hooks left in the response. */
import cors from '@koa/cors'
import { either as E } from 'fp-ts'
import type Koa from 'koa'
import {
  apiKeyHeader,
  AuthError,
  authSettings,
  httpBasicAuth,
  httpBearer,
  withAuth,
  type AuthSettings,
} from 'koa-with-auth'
import { describe, expect, test } from 'vitest'
import { bearer, challenge, expectDenied, operation } from '../../support/models/behavior.js'

const failing = (failure: AuthError) => withAuth(httpBearer({ authenticate: () => E.left(failure) }))
const refusing = withAuth(httpBearer({ authenticate: () => false }))
const settings = (options: AuthSettings) => (app: Koa) => {
  app.use(authSettings(options))
}
describe('the realm', () => {
  const list = () =>
    withAuth([
      httpBearer({ authenticate: () => false }),
      httpBasicAuth({ realm: 'office', authenticate: () => false }),
      apiKeyHeader({ authenticate: () => false }),
    ])

  test('is the one of the kind, or else that of the application', async () => {
    const { ask } = await operation(list(), settings({ realm: 'pets' }))
    const own = 'Basic realm="office", charset="UTF-8"'
    expectDenied(await ask(), 401, ['Bearer realm="pets"', own, 'ApiKey realm="pets", in="header", name="key"'])
    expectDenied(await ask('/x', bearer('t')), 401, [
      'Bearer realm="pets", error="invalid_token"',
      own,
      'ApiKey realm="pets", in="header", name="key"',
    ])
  })
})

describe('a response that others have changed', () => {
  const upstream = (app: Koa) => {
    app.use((ctx, next) => {
      ctx.set({ 'Cache-Control': 'public, max-age=3600', Vary: 'Accept-Encoding', 'X-Kept': 'yes' })
      ctx.set('WWW-Authenticate', 'Negotiate')
      ctx.type = 'text/html'
      ctx.status = 202
      return next()
    })
  }

  test('upstream middleware: a refusal replaces its status, type, challenges and Cache-Control, and adds to its Vary', async () => {
    const { ask } = await operation(refusing, upstream)
    const answer = await ask('/x', bearer('t'))
    expectDenied(answer, 401, [challenge.refusedBearer])
    expect(answer.headers).toMatchObject({ vary: 'Accept-Encoding, Authorization', 'x-kept': 'yes' })
  })

  test('upstream middleware: a 403 and a 503 do not send its WWW-Authenticate either', async () => {
    const forged = await operation(failing(AuthError.forged), upstream)
    expectDenied(await forged.ask('/x', bearer('t')), 403, [], 'CSRF check Failed')
    const unavailable = await operation(failing(AuthError.unavailable()), upstream)
    expectDenied(await unavailable.ask('/x', bearer('t')), 503, [])
  })

  test('@koa/cors: a 401 keeps Access-Control-Allow-Origin, and Vary names both', async () => {
    const { ask } = await operation(refusing, (app) => {
      app.use(cors({ origin: 'https://app.example', credentials: true }))
    })
    const answer = await ask('/x', { headers: { Origin: 'https://app.example' } })
    expectDenied(answer, 401, [challenge.bearer])
    expect(answer.headers).toMatchObject({
      'access-control-allow-origin': 'https://app.example',
      'access-control-allow-credentials': 'true',
      vary: 'Origin, Authorization',
    })
  })
})

test('B-24 the problem body is this, byte for byte', async () => {
  const { url } = await operation(refusing)
  const response = await fetch(`${url}/x`)
  expect(await response.text()).toBe(
    '{"type":"about:blank","title":"Unauthorized","status":401,"detail":"Unauthorized"}',
  )
  expect(response.headers.get('content-type')).toBe('application/problem+json')
})
