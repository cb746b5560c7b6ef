/**
 * `credentials` and `claims` take a Standard Schema: what it refuses is a 401, what it throws is a 500, and if it never settles, the
 * answer is a 503 within the time limit. No text of an issue reaches an answer.
 */
import { createHmac } from 'node:crypto'
import { type } from 'arktype'
import { option as O } from 'fp-ts'
import { pipe } from 'fp-ts/lib/function.js'
import type Koa from 'koa'
import { authenticator, authSettings, Challenge, fromHeader, throttled, withAuth } from 'koa-with-auth'
import { httpJwt } from 'koa-with-auth/jwt'
import { mockRequest } from 'koa-with-auth/testing'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import * as v from 'valibot'
import { describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import type { Schema, StandardSchema } from '../../src/core/Schema.js'
import { askPort, expectCrashed, expectDenied, expectPassed, operation } from '../support/models/behavior.js'

interface Caller {
  readonly team: string
  readonly secret: string
}
const lower = /^[a-z]+$/
const sleep = async (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
const standard = (validate: (value: unknown) => unknown): StandardSchema<Caller> => ({
  // Safe: a program without types could write this
  '~standard': { version: 1, vendor: 'mine', validate: validate as never },
})
const hidden = 'a-secret-text'

// The header `X-Caller: red:s3cret`
const split = (request: { readonly get: (name: string) => string }): O.Option<unknown> => {
  const [team, secret] = request.get('X-Caller').split(':')
  return team === '' ? O.none : O.some({ team, secret })
}
const kind = (credentials: Schema<Caller>) => {
  const hook = vi.fn((_request: unknown, { team, secret }: Caller) => secret === 's3cret' && { team })
  const made = authenticator({
    challenge: Challenge.make('Team'),
    ambient: false,
    extract: split,
    credentials,
    authenticate: (request, caller: Caller) => hook(request, caller),
  })
  return { hook, made }
}
const sent = (caller: string) => ({ headers: { 'X-Caller': caller } })
const shape = { team: z.string().regex(lower, hidden), secret: z.string().min(2, hidden) }

const libraries: ReadonlyArray<readonly [string, Schema<Caller>]> = [
  ['zod', z.object(shape)],
  ['zod, async', z.object(shape).refine(async ({ team }) => sleep(2).then(() => team !== 'blue'), hidden)],
  ['valibot', v.object({ team: v.pipe(v.string(), v.regex(lower, hidden)), secret: v.string(hidden) })],
  [
    'valibot, async',
    v.objectAsync({
      team: v.pipeAsync(
        v.string(),
        v.checkAsync(async (t) => lower.test(t), hidden),
      ),
      secret: v.string(),
    }),
  ],
  ['arktype', type({ team: lower, secret: 'string' }).configure({ message: () => hidden })],
]

describe.each(libraries)('credentials of %s', (library, schema) => {
  it('let in what they accept, and refuse the rest without a call of the hook', async () => {
    const { hook, made } = kind(schema)
    const { ask, errors } = await operation(withAuth(made))
    expectPassed(await ask('/x', sent('red:s3cret')), { team: 'red' })
    expect(hook).toHaveBeenCalledTimes(1)
    for (const wrong of ['RED:s3cret', '7:s3cret', 'red', '__proto__:s3cret']) {
      const answer = await ask('/x', sent(wrong))
      expectDenied(answer, 401, ['Team realm="api"'])
      expect(JSON.stringify(answer)).not.toContain(hidden)
    }
    expect(hook).toHaveBeenCalledTimes(1)
    expectDenied(await ask('/x', sent('red:wrong')), 401, ['Team realm="api"'])
    expectDenied(await ask('/x'), 401, ['Team realm="api"'])
    expect([errors, hook.mock.calls.length]).toEqual([[], 2])
  })

  it('are decided sync while the schema is', () => {
    const request = mockRequest({ fields: [['X-Caller', 'red:s3cret']] })
    expect(kind(schema).made.evaluate(request) instanceof Promise).toBe(library.endsWith('async'))
  })
})

describe('a schema of credentials that', () => {
  const secretError = Object.assign(new Error(hidden), { status: 403, expose: true })
  it.each([
    ['throws', () => { throw secretError }], // prettier-ignore
    ['rejects', async () => Promise.reject(secretError)],
    ['returns a getter that throws', () => Object.defineProperty({}, 'value', { get: () => { throw secretError } })], // prettier-ignore
  ])('%s is a 500, and the hook is not called', async (_what, validate) => {
    const { hook, made } = kind(standard(validate))
    const { ask, errors } = await operation(withAuth(made))
    const answer = await ask('/x', sent('red:s3cret'))
    expectCrashed(answer)
    expect(JSON.stringify(answer)).not.toContain(hidden)
    expect(String(errors[0])).toBe('Error: authenticator({ credentials }): the schema threw')
    expect(hook).not.toHaveBeenCalled()
  })

  it.each([
    ['a promise', () => new Promise(() => {})],
    ['a thenable', () => ({ then: () => {} })],
  ])('never settles (%s) is a 503 within the time limit, and later changes nothing', async (_what, validate) => {
    const { hook, made } = kind(standard(validate))
    const { ask } = await operation(withAuth(made), (app: Koa) => void app.use(authSettings({ timeout: 40 })))
    const answer = await ask('/x', sent('red:s3cret'))
    expect([answer.status, answer.seen, hook.mock.calls]).toEqual([503, [], []])
  })
})

describe('a credential that is one string', () => {
  it('too long, or sent twice, never reaches the schema', async () => {
    const validate = vi.fn((value: unknown) => ({ value }))
    const made = authenticator({
      challenge: Challenge.make('Team'),
      ambient: false,
      extract: fromHeader('X-Caller'),
      credentials: pipe(
        standard(validate) as unknown as StandardSchema<string>,
        (all) => v.pipe(v.string(), v.check((one) => all['~standard'].validate(one) !== undefined)), // prettier-ignore
      ),
      maxLength: 10,
      authenticate: (_request, caller) => caller.length > 0 && { caller },
    })
    const { ask } = await operation(withAuth(made))
    expectDenied(await ask('/x', sent('x'.repeat(11))), 401, ['Team realm="api"'])
    expectDenied(await ask('/x', { headers: { 'X-Caller': ['a', 'b'] } }), 401, ['Team realm="api"'])
    expect(validate).not.toHaveBeenCalled()
    expectPassed(await ask('/x', sent('x'.repeat(10))), { caller: 'x'.repeat(10) })
  })
})

describe('an async schema inside', () => {
  const slow = z.object(shape).refine(async () => sleep(5).then(() => true))

  it('throttled: at most the limit reach the hook, however many are parallel, and keys gets what was decoded', async () => {
    const { hook, made } = kind(slow)
    const accounts = new Set<string>()
    const keys = (_request: unknown, { team }: Caller) => {
      accounts.add(team)
      return { account: team }
    }
    const limiter = new RateLimiterMemory({ points: 3, duration: 60 })
    const { port, errors } = await operation(withAuth(pipe(made, throttled<Caller>({ limiter, keys }))))
    const guesses = Array.from({ length: 12 }, async () => askPort(port, '/x', sent('red:wrong')))
    const statuses = (await Promise.all(guesses)).map(({ status }) => status).sort()
    expect(statuses).toEqual([401, 401, 401, ...Array.from({ length: 9 }, () => 429)])
    expect([hook.mock.calls.length, [...accounts], errors]).toEqual([3, ['red'], []])
  })

  it('throttled: a malformed credential is a guess of its address, and a schema that throws is a 500', async () => {
    const limiter = new RateLimiterMemory({ points: 1, duration: 60 })
    const keys = () => ({})
    const refusing = await operation(withAuth(pipe(kind(slow).made, throttled({ limiter, keys }))))
    expect((await refusing.ask('/x', sent('RED:s3cret'))).status).toBe(401)
    expect((await refusing.ask('/x', sent('RED:s3cret'))).status).toBe(429)
    const throwing = kind(standard(async () => Promise.reject(new Error(hidden)))).made
    const broken = await operation(withAuth(pipe(throwing, throttled({ limiter, keys }))))
    expectCrashed(await broken.ask('/x', sent('red:s3cret')))
  })
})

describe('claims', () => {
  const [issuer, audience, secret] = ['https://login.example/', 'https://api.example', Buffer.alloc(32, 7)]
  const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const token = (claims: object): string => {
    const all = { iss: issuer, aud: audience, exp: Math.floor(Date.now() / 1000) + 300, sub: 'anna', ...claims }
    const input = `${encoded({ alg: 'HS256' })}.${encoded(all)}`
    return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`
  }
  const bearing = (claims: object) => ({ headers: { Authorization: `Bearer ${token(claims)}` } })
  const of = { issuer: { issuer, secret }, audience }
  const refused = 'Bearer realm="api", error="invalid_token"'

  it.each<readonly [string, Schema<{ sub: string; org: number }>]>([
    ['zod', z.object({ sub: z.string(), org: z.number(hidden) })],
    ['zod, async', z.object({ sub: z.string(), org: z.number() }).refine(async ({ org }) => org !== 8, hidden)],
    ['valibot', v.object({ sub: v.string(), org: v.number(hidden) })],
    ['arktype', type({ sub: 'string', org: 'number', '+': 'delete' })],
  ])('of %s: what is accepted is the principal, and the rest is a 401', async (library, claims) => {
    const { ask } = await operation(withAuth(httpJwt({ ...of, claims })))
    for (let at = 0; at < 2; at++) expectPassed(await ask('/x', bearing({ org: 7 })), { sub: 'anna', org: 7 })
    for (const org of ['7', null, library.endsWith('async') ? 8 : [7]]) {
      const answer = await ask('/x', bearing({ org }))
      expectDenied(answer, 401, [refused])
      expect(JSON.stringify(answer)).not.toContain(hidden)
    }
  })

  it('a schema that changes them does not change those of another request', async () => {
    const claims = standard((value) => ({
      value: Object.assign(value as object, { seen: Object.keys(value as object) }),
    }))
    const { ask } = await operation(withAuth(httpJwt({ ...of, claims })))
    const request = bearing({})
    const [first, second] = [await ask('/x', request), await ask('/x', request)]
    expect(first.status).toBe(200)
    expect(second.seen).toEqual(first.seen)
    expect(JSON.stringify(second.seen)).not.toContain('"seen","')
  })

  it('a schema that throws is a 500', async () => {
    const throwing = await operation(
      withAuth(httpJwt({ ...of, claims: standard(async () => Promise.reject(new Error(hidden))) })),
    )
    expectCrashed(await throwing.ask('/x', bearing({})))
    expect(String(throwing.errors[0])).toMatch(/claims.*: the schema threw$/)
  })
})
