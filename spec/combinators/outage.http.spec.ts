/** Outages over HTTP: an outage is a 503 that falls through to nothing weaker, and only `recoverUnavailable` says otherwise. */
import { setTimeout as sleep } from 'node:timers/promises'
import { either as E, option as O } from 'fp-ts'
import { pipe } from 'fp-ts/lib/function.js'
import {
  allOf,
  apiKeyCookie,
  AuthError,
  authSettings,
  firstPresent,
  httpBearer,
  lenient,
  optional,
  recoverUnavailable,
  timeout,
  type Authenticator,
} from 'koa-with-auth'
import { describe, expect, test } from 'vitest'
import { bearer, challenge, expectCrashed, expectDenied, expectPassed } from '../support/behavior.js'
import { behind, crossSite, key, sending } from '../support/combining.js'

const token = bearer('t')
const slow = (ms: number, answer: unknown = { name: 'slow' }) =>
  httpBearer({ authenticate: () => sleep<unknown>(ms, answer) })
const hanging = httpBearer({ authenticate: () => new Promise<{ name: string }>(() => {}) })
const down = httpBearer({ authenticate: (): E.Either<AuthError, { name: string }> => E.left(AuthError.unavailable(9)) })

describe('timeout', () => {
  test('in time: the principal; the timer does not strike later', async () => {
    const { ask, errors } = await behind(pipe(slow(5), timeout(60)))
    expectPassed(await ask('/x', token), { name: 'slow' })
    await sleep(90)
    expectPassed(await ask('/x', token), { name: 'slow' })
    expect(errors).toEqual([])
  })

  test.each<[string, unknown]>([
    ['alone', pipe(hanging, timeout(20))],
    ['in a list, with a good key behind it', [pipe(hanging, timeout(20)), key]],
    ['around a list', pipe(firstPresent([hanging, key]), timeout(20))],
    ['in a group', allOf([key, pipe(hanging, timeout(20))])],
    ['optional', optional(pipe(hanging, timeout(20)))],
    ['lenient', lenient(pipe(hanging, timeout(20)))],
    ['around optional', pipe(optional(hanging), timeout(20))],
  ])('too slow, %s: 503 with Retry-After, not stored, and no handler ran', async (_what, auth) => {
    const { ask } = await behind(auth)
    const answer = await ask('/x', sending({ user: 't', key: 'good' }))
    expectDenied(answer, 503, [])
    expect(answer.headers['retry-after']).toBe('5')
  })

  test('what comes too late lets no request in, and a late rejection ends no process', async () => {
    const late = await behind(pipe(slow(40), timeout(10)))
    const failing = await behind(
      pipe(httpBearer({ authenticate: () => sleep(30).then(() => Promise.reject(new Error('late'))) }), timeout(10)),
    )
    expectDenied(await late.ask('/x', token), 503, [])
    expectDenied(await failing.ask('/x', token), 503, [])
    await sleep(60)
    expect([...late.errors, ...failing.errors]).toEqual([])
    const answer = await late.ask('/x', token)
    expect(answer.seen).toEqual([])
  })

  test('it shortens the application’s limit, and cannot extend it', async () => {
    const settings = (app: { use: (m: ReturnType<typeof authSettings>) => unknown }) => {
      app.use(authSettings({ timeout: 20 }))
    }
    // the longer one is longer than a test may take
    const { ask } = await behind(pipe(hanging, timeout(60_000)), settings)
    expectDenied(await ask('/x', token), 503, [])
  })

  test('a bad credential is still a 401, a missing one, too', async () => {
    const { ask } = await behind(pipe(slow(1, false), timeout(500)))
    expectDenied(await ask('/x', token), 401, [challenge.refusedBearer])
    expectDenied(await ask('/x'), 401, [challenge.bearer])
  })
})

describe('recoverUnavailable', () => {
  const recovering = (f: unknown, a: Authenticator<unknown> = down) =>
    // Safe: what a program without types would write
    behind(pipe(a, recoverUnavailable(f as () => unknown)))

  test('an outage falls through to nothing by itself', async () => {
    for (const auth of [[down, key], firstPresent([down, key]), optional(down), lenient(down), allOf([down, key])]) {
      const answer = await (await behind(auth)).ask('/x', sending({ user: 't', key: 'good' }))
      expectDenied(answer, 503, [])
      expect(answer.headers['retry-after']).toBe('9')
    }
  })

  test('it is asked in an outage, and gets the failure', async () => {
    const seen: unknown[] = []
    const { ask } = await recovering((_request: unknown, error: AuthError) => {
      seen.push(error._tag, 'retryAfter' in error && error.retryAfter)
      return { name: 'cached' }
    })
    expectPassed(await ask('/x', token), { name: 'cached' })
    expect(seen).toEqual(['unavailable', 9])
  })

  test('another authenticator’s call will do, and its refusal is one', async () => {
    const cached = httpBearer({ authenticate: (_request, sent) => sent === 't' && { name: 'cached' } })
    const { ask } = await recovering((request: never) => cached(request))
    expectPassed(await ask('/x', token), { name: 'cached' })
    expectDenied(await ask('/x', bearer('other')), 401, [challenge.refusedBearer])
  })

  test('a timeout is an outage that it is asked about', async () => {
    const { ask } = await recovering(async () => ({ name: 'cached' }), pipe(hanging, timeout(10)))
    expectPassed(await ask('/x', token), { name: 'cached' })
  })

  test.each<[string, Authenticator<unknown>, number]>([
    ['refused', httpBearer({ authenticate: () => false }), 401],
    ['not allowed', httpBearer({ authenticate: () => E.left(AuthError.insufficient()) }), 403],
  ])('it is not asked about who is %s', async (_what, a, status) => {
    const { ask } = await recovering(() => ({ name: 'cached' }), a)
    expect(await ask('/x', token)).toMatchObject({ status, seen: [] })
    expect(await ask('/x')).toMatchObject({ status: status === 403 ? 401 : status, seen: [] })
  })

  test('nor about an exception, nor about a request without a credential', async () => {
    const throwing = httpBearer({ authenticate: (): { name: string } => JSON.parse('{') as never })
    expectCrashed(await (await recovering(() => ({ name: 'cached' }), throwing)).ask('/x', token))
    expectDenied(await (await recovering(() => ({ name: 'cached' }))).ask('/x'), 401, [challenge.bearer])
  })

  test.each<[string, unknown]>([
    ['nothing', () => undefined],
    ['false', async () => false],
    ['None', () => O.none],
    ['a Left', () => E.left('no')],
  ])('what answers %s lets no request in', async (_what, f) => {
    expectDenied(await (await recovering(f)).ask('/x', token), 401, [challenge.refusedBearer])
  })

  test.each<[string, unknown]>([
    ['throws', () => JSON.parse('{')],
    ['rejects', () => Promise.reject(new Error('hidden'))],
    ['rejects with nothing', () => Promise.reject()],
  ])('what %s is a 500', async (_what, f) => {
    expectCrashed(await (await recovering(f)).ask('/x', token))
  })

  test('still unavailable: 503, with what it says about when', async () => {
    const answer = await (await recovering(() => E.left(AuthError.unavailable(77)))).ask('/x', token)
    expectDenied(answer, 503, [])
    expect(answer.headers['retry-after']).toBe('77')
  })

  test('a write from another site is refused where the credential is a cookie', async () => {
    const session = apiKeyCookie({ authenticate: () => E.left(AuthError.unavailable()) })
    const { ask } = await recovering(() => ({ name: 'cached' }), session)
    const headers = { Cookie: 'key=k' }
    expectPassed(await ask('/x', { method: 'POST', headers }), { name: 'cached' })
    const forged = await ask('/x', { ...crossSite, headers: { ...headers, ...crossSite.headers } })
    expectDenied(forged, 403, [], 'CSRF check Failed')
  })

  // A function has no description, and what has none is the worst case everywhere: it counts as sent by the browser itself
  test('a write from another site is refused where a plain function, which may read a cookie, recovers a token', async () => {
    const { ask } = await recovering(
      ({ ctx }: { ctx: { cookies: { get: (name: string) => unknown } } }) =>
        ctx.cookies.get('sid') === 's' && { name: 'cookie' },
    )
    const headers = { ...token.headers, Cookie: 'sid=s', ...crossSite.headers }
    expectDenied(await ask('/x', { method: 'POST', headers }), 403, [], 'CSRF check Failed')
  })
})
