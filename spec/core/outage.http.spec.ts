/** Outages over HTTP: an outage is a 503, no weaker credential is tried, and only `recoverUnavailable` changes this. */
import { setTimeout as sleep } from 'node:timers/promises'
import { either as E } from 'fp-ts'
import { pipe } from 'fp-ts/lib/function.js'
import { allOf, apiKeyHeader, AuthError, authSettings, httpBearer, optional } from 'koa-with-auth'
import { firstPresent, lenient, recoverUnavailable, timeout } from 'koa-with-auth/fp'
import { describe, expect, test } from 'vitest'
import { bearer, behind, expectDenied } from '../support/models/behavior.js'

const token = bearer('t')
const both = { headers: { ...token.headers, 'X-Key': 'good' } }
const key = apiKeyHeader({ paramName: 'X-Key', authenticate: (_request, sent) => sent === 'good' && { name: 'key' } })
const slow = (ms: number, answer: unknown = { name: 'slow' }) =>
  httpBearer({ authenticate: () => sleep<unknown>(ms, answer) })
const hanging = httpBearer({ authenticate: () => new Promise<{ name: string }>(() => {}) })
const down = httpBearer({ authenticate: (): E.Either<AuthError, { name: string }> => E.left(AuthError.unavailable(9)) })

describe('timeout', () => {
  test.each<[string, unknown]>([
    ['alone', pipe(hanging, timeout(20))],
    ['in a list, before a valid key', [pipe(hanging, timeout(20)), key]],
    ['around a list', pipe(firstPresent([hanging, key]), timeout(20))],
    ['in a group', allOf([key, pipe(hanging, timeout(20))])],
    ['optional', optional(pipe(hanging, timeout(20)))],
    ['lenient', lenient(pipe(hanging, timeout(20)))],
    ['around optional', pipe(optional(hanging), timeout(20))],
  ])('too late, %s: 503 with Retry-After, not stored, and no handler ran', async (_what, auth) => {
    const { ask } = await behind(auth)
    const answer = await ask('/x', both)
    expectDenied(answer, 503, [])
    expect(answer.headers['retry-after']).toBe('5')
  })

  test('a late principal is not admitted, and a late rejection does not end the process', async () => {
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

  test('it shortens the limit of the application, and cannot extend it', async () => {
    const settings = (app: { use: (m: ReturnType<typeof authSettings>) => unknown }) => {
      app.use(authSettings({ timeout: 20 }))
    }
    // The longer limit is longer than a test may take
    const { ask } = await behind(pipe(hanging, timeout(600_000)), settings)
    expectDenied(await ask('/x', token), 503, [])
  })
})

describe('recoverUnavailable', () => {
  test('another authenticator whose credential was not sent makes no caller anonymous, and lets no list go on', async () => {
    const recovered = pipe(
      down,
      recoverUnavailable((request) => key(request)),
    )
    for (const auth of [recovered, optional(recovered), lenient(recovered), [recovered, optional(key)]]) {
      const { ask } = await behind(auth)
      const answer = await ask('/x', token)
      expectDenied(answer, 503, [])
      expect(answer).toMatchObject({ seen: [] })
      expect((await ask('/x', both)).status).toBe(200)
    }
  })
})
