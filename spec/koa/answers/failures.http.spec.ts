/** Failures (spec/requirements.md): the response to each, and how a list folds them. */
import { either as E, taskEither as TE } from 'fp-ts'
import createError from 'http-errors'
import { apiKeyHeader, apiKeyQuery, AuthError, httpBasicAuth, httpBearer, withAuth } from 'koa-with-auth'
import { describe, expect, test, vi } from 'vitest'
import {
  bearer,
  challenge,
  expectCrashed,
  expectDenied,
  expectPassed,
  operation,
  type Answer,
} from '../../support/models/behavior.js'
import { kinds } from '../../support/models/behaviorKinds.js'

type Row = readonly [
  tag: string,
  failure: AuthError,
  expected: { status: number; challenges: string[]; detail?: string; retryAfter?: string },
]

const rows: ReadonlyArray<Row> = [
  ['absent', AuthError.absent, { status: 401, challenges: [challenge.bearer] }],
  ['malformed', AuthError.malformed, { status: 401, challenges: [challenge.refusedBearer] }],
  ['invalid', AuthError.invalid, { status: 401, challenges: [challenge.refusedBearer] }],
  ['expired', AuthError.expired, { status: 401, challenges: [challenge.refusedBearer] }],
  ['forged', AuthError.forged, { status: 403, challenges: [], detail: 'CSRF check Failed' }],
  [
    'insufficient',
    AuthError.insufficient(),
    { status: 403, challenges: ['Bearer realm="api", error="insufficient_scope"'] },
  ],
  [
    'insufficient with scopes',
    AuthError.insufficient(['pets:read', 'pets:write']),
    {
      status: 403,
      challenges: ['Bearer realm="api", error="insufficient_scope", scope="pets:read pets:write"'],
    },
  ],
  ['unavailable', AuthError.unavailable(), { status: 503, challenges: [], retryAfter: '5' }],
  ['unavailable with seconds', AuthError.unavailable(120), { status: 503, challenges: [], retryAfter: '120' }],
  [
    'unavailable with a fraction of seconds',
    AuthError.unavailable(0.2),
    { status: 503, challenges: [], retryAfter: '1' },
  ],
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

describe('a list folds the failures', () => {
  // From the weakest to the strongest, each with its response when a query key fails with it
  const order: ReadonlyArray<readonly [failure: AuthError, status: number, detail?: string]> = [
    [AuthError.absent, 401],
    [AuthError.malformed, 401],
    [AuthError.invalid, 401],
    [AuthError.expired, 401],
    [AuthError.forged, 403, 'CSRF check Failed'],
    [AuthError.insufficient(), 403],
  ]
  const queryKey = (failure: AuthError) => apiKeyQuery({ authenticate: () => E.left(failure) })
  const headerKey = (failure: AuthError) => apiKeyHeader({ authenticate: () => E.left(failure) })
  const key = { query: challenge.key('query'), header: challenge.key('header') }
  const reported = (status: number, first: AuthError, second: AuthError) =>
    status === 401
      ? [key.query, key.header]
      : [...(first._tag === 'insufficient' ? [key.query] : []), ...(second._tag === 'insufficient' ? [key.header] : [])]

  test.each(order.flatMap((weak, at) => order.slice(at).map((strong) => ({ weak, strong }))))(
    'the strongest failure decides the status: $weak.0._tag and $strong.0._tag',
    async ({ weak: [weak], strong: [strong, status, detail] }) => {
      for (const [first, second] of [
        [weak, strong],
        [strong, weak],
      ] as const) {
        const { ask } = await operation(withAuth([queryKey(first), headerKey(second)]))
        const answer = await ask('/x?key=k', { headers: { key: 'k' } })
        expectDenied(answer, status, reported(status, first, second), detail)
      }
    },
  )

  test('a 401 offers the challenges of all alternatives, in the order of the list and each once', async () => {
    const refusing = () => false
    const list = withAuth([
      apiKeyHeader({ paramName: 'X-B', authenticate: refusing }),
      httpBearer({ authenticate: refusing }),
      apiKeyHeader({ paramName: 'X-A', authenticate: refusing }),
      httpBearer({ authenticate: refusing }),
      httpBasicAuth({ realm: 'office', authenticate: refusing }),
      () => false,
      () => false,
      apiKeyHeader({ paramName: 'X-B', authenticate: refusing }),
    ])
    const { ask } = await operation(list)
    const rest = [challenge.key('header', 'X-A'), 'Basic realm="office", charset="UTF-8"', challenge.custom]
    expectDenied(await ask(), 401, [challenge.key('header', 'X-B'), challenge.bearer, ...rest])
    expectDenied(await ask('/x', bearer('t')), 401, [challenge.key('header', 'X-B'), challenge.refusedBearer, ...rest])
  })

  test.each<[string, () => unknown]>([
    ['unavailable', () => E.left(AuthError.unavailable(3))],
    ['unavailable, from an async hook', async () => E.left(AuthError.unavailable(3))],
  ])('%s stops a list: no later hook is called', async (_what, authenticate) => {
    const before = vi.fn(() => false)
    const behind = vi.fn(() => true)
    const { ask } = await operation(
      withAuth([apiKeyQuery({ authenticate: before }), httpBearer({ authenticate }), () => behind()]),
    )
    const answer = await ask('/x?key=k', bearer('t'))
    expectDenied(answer, 503, [])
    expect(answer.headers['retry-after']).toBe('3')
    expect(before).toHaveBeenCalledTimes(1)
    expect(behind).not.toHaveBeenCalled()
    expectPassed(await ask('/x?key=k'), true)
  })

  test.each<[string, () => unknown]>([
    [
      'thrown',
      () => {
        throw new Error('down')
      },
    ],
    ['rejected', () => Promise.reject(new Error('down'))],
    ['returned as raised', () => E.left(AuthError.raised(new Error('down')))],
    ['thrown in a TaskEither', () => () => Promise.reject(new Error('down'))],
  ])('raised stops a list: no later hook is called (%s)', async (_what, authenticate) => {
    const behind = vi.fn(() => true)
    const { ask, errors } = await operation(withAuth([httpBearer({ authenticate }), () => behind()]))
    expectCrashed(await ask('/x', bearer('t')))
    expect(errors).toMatchObject([{ message: 'down' }])
    expect(behind).not.toHaveBeenCalled()
    expectPassed(await ask(), true)
  })
})

describe('an error that a hook throws', () => {
  test.each([400, 401, 403, 404, 429])(
    'of http-errors with the status %i keeps its status and stops the list',
    async (status) => {
      const behind = vi.fn(() => true)
      const authenticate = () => {
        throw createError(status, 'token t of anna is on the list')
      }
      const { ask } = await operation(withAuth([httpBearer({ authenticate }), () => behind()]))
      expectDenied(await ask('/x', bearer('t')), status, status === 401 ? [challenge.bearer, challenge.custom] : [])
      expect(behind).not.toHaveBeenCalled()
    },
  )

  test('of http-errors with the status 429 keeps its Retry-After, and none of its other headers', async () => {
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

  const dressed = (fields: object) => Object.assign(new Error('down'), fields)
  const thrown: ReadonlyArray<readonly [what: string, error: unknown]> = [
    ['null', null],
    ['undefined', undefined],
    ['a string', 'down'],
    ['0', 0],
    ['an object with status 200', { status: 200, expose: true }],
    ['status 200', dressed({ status: 200, expose: true })],
    ['status 204', dressed({ status: 204 })],
    ['status 302', dressed({ status: 302, headers: { location: '/elsewhere' } })],
    ['statusCode 200', dressed({ statusCode: 200, expose: true })],
    ['an exposed 500', dressed({ status: 500, expose: true })],
    ['a 404 that is not an HTTP error', dressed({ status: 404 })],
    ['status "401"', dressed({ status: '401', expose: true })],
    ['ENOENT, of which Koa makes a 404', dressed({ code: 'ENOENT' })],
  ]
  test.each(thrown)(
    'A-30 %s is a 500: the request does not hang or pass, and the body shows nothing',
    async (_what, error) => {
      for (const authenticate of [
        () => {
          throw error
        },
        () => Promise.reject(error),
        async () => E.left(AuthError.raised(error)),
      ]) {
        const { ask } = await operation(withAuth(httpBearer({ authenticate })))
        expectCrashed(await ask('/x', bearer('t')))
      }
    },
  )
})
