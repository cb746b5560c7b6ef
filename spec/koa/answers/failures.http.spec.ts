/** Failures (spec/requirements.md, section 7): the response to each. How a list folds them: truthTable.law. */
import { get, type IncomingMessage } from 'node:http'
import cors from '@koa/cors'
import { either as E, taskEither as TE } from 'fp-ts'
import createError from 'http-errors'
import type Koa from 'koa'
import { AuthError, httpBearer, withAuth } from 'koa-with-auth'
import { describe, expect, test, vi } from 'vitest'
import { bearer, challenge, expectCrashed, expectDenied, operation } from '../../support/models/behavior.js'
import type { Answer } from '../../support/models/behavior.js'
import { kinds } from '../../support/models/behaviorKinds.js'

type Row = readonly [
  tag: string,
  failure: AuthError,
  expected: { status: number; challenges: string[]; detail?: string; retryAfter?: string },
]

const scopes = ['pets:read', 'pets:write']
const refused = (...challenges: string[]) => ({ status: 401, challenges })
const scopeless = 'Bearer realm="api", error="insufficient_scope"'
const lacking = (scope = '') => ({ status: 403, challenges: [scopeless + scope] })
const down = (retryAfter: string) => ({ status: 503, challenges: [], retryAfter })

const rows: ReadonlyArray<Row> = [
  ['absent', AuthError.absent, refused(challenge.bearer)],
  ['malformed', AuthError.malformed, refused(challenge.refusedBearer)],
  ['invalid', AuthError.invalid, refused(challenge.refusedBearer)],
  ['expired', AuthError.expired, refused(challenge.refusedBearer)],
  ['forged', AuthError.forged, { status: 403, challenges: [], detail: 'CSRF check Failed' }],
  ['insufficient', AuthError.insufficient(), lacking()],
  ['B-16 insufficient with scopes', AuthError.insufficient(scopes), lacking(`, scope="${scopes.join(' ')}"`)],
  ['unavailable', AuthError.unavailable(), down('5')],
  ['unavailable with seconds', AuthError.unavailable(120), down('120')],
  ['unavailable with a fraction of seconds', AuthError.unavailable(0.2), down('1')],
]

const says: ReadonlyArray<readonly [dialect: string, say: (failure: AuthError) => unknown]> = [
  ['an Either', E.left],
  ['a promise of an Either', async (failure) => E.left(failure)],
  ['a TaskEither', TE.left],
]

const expectRow = (answer: Answer, { status, challenges, detail, retryAfter }: Row[2]): void => {
  expectDenied(answer, status, challenges, detail)
  expect(answer.headers['retry-after']).toBe(retryAfter)
  expect(answer.headers['vary']).toBe('Authorization')
}

describe.each(says)('a hook returns a failure by %s', (_dialect, say) => {
  test.each(rows)('table of failures: %s', async (_tag, failure, expected) => {
    const hook = vi.fn(() => say(failure))
    const { ask, errors } = await operation(withAuth(httpBearer({ authenticate: hook })))
    expectRow(await ask('/x', bearer('t')), expected)
    expect(hook).toHaveBeenCalledTimes(1)
    expect(errors).toEqual([])
  })

  test('table of failures: raised is Koa’s 500, the error event gets the error, and the response does not show it', async () => {
    const error = new Error('connection to 10.0.0.7 refused')
    const { ask, errors } = await operation(withAuth(httpBearer({ authenticate: () => say(AuthError.raised(error)) })))
    expectCrashed(await ask('/x', bearer('t')))
    expect(errors).toEqual([error])
    expect(errors[0]).toBe(error)
  })

  test('any other Left is invalid, and its content is dropped', async () => {
    const left = () => say('the password is hunter2' as never)
    const { ask } = await operation(withAuth(httpBearer({ authenticate: left })))
    expectDenied(await ask('/x', bearer('t')), 401, [challenge.refusedBearer])
  })
})

test.each(kinds.filter(({ kind }) => kind !== 'HttpBearer'))(
  'table of failures: $kind offers its one challenge on each 401',
  async ({ make, carrying, refused }) => {
    for (const failure of [AuthError.absent, AuthError.malformed, AuthError.invalid, AuthError.expired]) {
      const { ask } = await operation(withAuth(make(() => E.left(failure))))
      expectDenied(await ask(...carrying), 401, [refused])
    }
    const { ask } = await operation(withAuth(make(() => E.left(AuthError.forged))))
    expectDenied(await ask(...carrying), 403, [], 'CSRF check Failed')
  },
)

describe('the characters of a scope', () => {
  test.each([
    ['a line break', ['read\r\nX-Admin: 1']],
    ['characters outside of ASCII', ['lesen\u00fc']],
  ])('B-17 a scope with %s writes no header and is a 500, from sync and async hooks', async (_what, scope) => {
    for (const say of [(e: AuthError) => E.left(e), async (e: AuthError) => E.left(e)]) {
      const hook = () => say(AuthError.insufficient(scope))
      const { ask } = await operation(withAuth(httpBearer({ authenticate: hook })))
      const answer = await ask('/x', bearer('t'))
      expectCrashed(answer)
      expect(answer.headers['x-admin']).toBeUndefined()
    }
  })
})

test('a 429 of http-errors keeps its Retry-After, and none of its other headers', async () => {
  const headers = { 'retry-after': '7', 'Set-Cookie': 'a=1', Location: '/' }
  const authenticate = () => {
    throw createError(429, { headers })
  }
  const { ask } = await operation(withAuth(httpBearer({ authenticate })))
  const answer = await ask('/x', bearer('t'))
  expectDenied(answer, 429, [])
  expect(answer.headers['retry-after']).toBe('7')
  expect([answer.headers['set-cookie'], answer.headers['location']]).toEqual([undefined, undefined])
})

test('RFC 9110 §5.1 a refusal names its headers in lower case, and WWW-Authenticate as people read it', async () => {
  const { port } = await operation(withAuth(httpBearer({ authenticate: () => false })))
  const { rawHeaders } = await new Promise<IncomingMessage>((resolve, reject) => {
    get({ port, path: '/x', host: '127.0.0.1' }, (response) => resolve(response.resume())).on('error', reject)
  })
  const names = rawHeaders.filter((_, at) => at % 2 === 0)
  expect(names).toEqual(expect.arrayContaining(['cache-control', 'vary', 'content-type', 'WWW-Authenticate']))
})

// what upstream middleware left in the response

const failing = (failure: AuthError) => withAuth(httpBearer({ authenticate: () => E.left(failure) }))
const refusing = withAuth(httpBearer({ authenticate: () => false }))
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
    const allowing = cors({ origin: 'https://app.example', credentials: true })
    const { ask } = await operation(refusing, (app) => void app.use(allowing))
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
  const body = '{"type":"about:blank","title":"Unauthorized","status":401,"detail":"Unauthorized"}'
  expect(await response.text()).toBe(body)
  expect(response.headers.get('content-type')).toBe('application/problem+json')
})
