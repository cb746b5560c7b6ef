/**
 * Careless hooks: scopes, mappers and extractors that are async although they must not be, and invalid failures. No
 * request passes because of them, no handler runs, nothing hangs, and no process ends.
 */
import { either as E, option as O } from 'fp-ts'
import { pipe } from 'fp-ts/lib/function.js'
import {
  allOf,
  apiKeyHeader,
  authenticator,
  authSettings,
  Challenge,
  httpBearer,
  optional,
  perFailure,
  requireScopes,
  type ErrorMapper,
} from 'koa-with-auth'
import { firstPresent } from 'koa-with-auth/fp'
import { describe, expect, test } from 'vitest'
import { bearer, type Answer } from '../support/models/behavior.js'
import { behind } from '../support/models/combining.js'
import { unhandledRejections } from '../support/runs/unhandled.js'

const unhandled = unhandledRejections()

const settled = async (): Promise<ReadonlyArray<unknown>> => {
  await new Promise((resolve) => setTimeout(resolve, 5))
  return unhandled()
}

/** Expects that no handler ran, that the response is an error, and that nothing is left that could end the process. */
const expectHeld = async (answer: Answer, status = 500): Promise<void> => {
  expect({ status: answer.status, seen: answer.seen, unhandled: await settled() }).toEqual({
    status,
    seen: [],
    unhandled: [],
  })
}

const token = bearer('t')
const hooked = (hook: () => unknown) => httpBearer<unknown>({ authenticate: hook })
const key = apiKeyHeader({ paramName: 'X-Key', authenticate: () => false })
const rejected = async (): Promise<never> => Promise.reject(new Error('the database is down'))

/** The mistake is refused when it is written, or each request gets an error. */
const expectRefusedOrHeld = async (write: () => ReturnType<typeof behind>): Promise<void> => {
  const running = await new Promise<ReturnType<typeof behind>>((resolve) => resolve(write())).catch(
    (error: unknown) => {
      expect(error).toBeInstanceOf(TypeError)
    },
  )
  if (running !== undefined) await expectHeld(await running.ask('/x', token))
}

describe('async functions where only sync ones work', () => {
  const failing: ReadonlyArray<() => unknown> = [rejected, () => rejected()]

  test('`granted`', async () => {
    for (const granted of failing) {
      await expectRefusedOrHeld(() =>
        behind(
          pipe(
            hooked(() => ({ user: 'anna' })),
            // Safe: a program without types could write this
            requireScopes<unknown>(['read'], { granted: granted as () => string }),
          ),
        ),
      )
    }
  })

  test.each([
    ['an error mapper', (mapper: ErrorMapper) => mapper],
    ['a mapper of one failure tag', (mapper: ErrorMapper) => perFailure({ invalid: mapper })],
    ['a mapper of all other failure tags', (mapper: ErrorMapper) => perFailure({}, mapper)],
  ])('%s', async (_what, make) => {
    for (const mapper of failing) {
      await expectRefusedOrHeld(() =>
        behind(
          hooked(() => false),
          (app) => {
            // Safe: a program without types could write this
            app.use(authSettings({ errorMapper: make(mapper as ErrorMapper) }))
          },
        ),
      )
    }
  })

  test('`extract`: the hook is not called with undefined', async () => {
    const called: unknown[] = []
    const write = () =>
      behind(
        authenticator({
          challenge: Challenge.make('Odd'),
          ambient: false,
          // Safe: a program without types could write this
          extract: (() => Promise.resolve(O.some('k'))) as unknown as () => O.Option<string>,
          authenticate: (_request, sent: string) => called.push(sent),
        }),
      )
    const { status, seen } = await (await write()).ask('/x')
    expect({ seen, called }).toEqual({ seen: [], called: [] })
    expect(status).toBeGreaterThanOrEqual(400)
  })
})

describe('an undefined credential', () => {
  test.each([undefined, null])('O.some(%s) never reaches a hook', async (nothing) => {
    const environment: Readonly<Record<string, string | undefined>> = {}
    const auth = authenticator({
      challenge: Challenge.make('Odd'),
      ambient: false,
      extract: () => O.some(nothing),
      // Both are undefined, and equal
      authenticate: (_request, sent) => sent === (environment['KEY'] ?? nothing) && { user: 'anybody' },
    })
    const answer = await (await behind(auth)).ask('/x')
    await expectHeld(answer, 401)
  })
})

describe('an invalid failure', () => {
  const challenge = Challenge.make('Odd')
  const odd: ReadonlyArray<readonly [what: string, failure: object]> = [
    ['branches that are not a list', { _tag: 'invalid', challenge, branches: 1 }],
    ['branches that are undefined', { _tag: 'invalid', challenge, branches: null }],
    ['branches that are not failures', { _tag: 'invalid', challenge, branches: [null] }],
    ['a challenge that is null', { _tag: 'invalid', challenge: null }],
    ['a challenge that is a string', { _tag: 'invalid', challenge: 'Odd realm="a"' }],
    [
      'a challenge with a line break',
      { _tag: 'invalid', challenge: { scheme: 'A\r\nSet-Cookie: a=1', parameters: {} } },
    ],
  ]
  const ways: ReadonlyArray<readonly [way: string, make: (say: () => unknown) => unknown]> = [
    ['alone', (say) => hooked(say)],
    ['in a list', (say) => [hooked(say), key]],
    ['in a group', (say) => allOf([hooked(say), key])],
    ['first present', (say) => firstPresent([hooked(say), key])],
    ['optional', (say) => optional(hooked(say))],
  ]
  test.each(odd.flatMap(([what, failure]) => ways.map(([way, make]) => [what, way, failure, make] as const)))(
    '%s, %s, sync and async: the response is an error',
    async (_what, _way, failure, make) => {
      for (const say of [() => E.left(failure), async () => E.left(failure)]) {
        const answer = await (await behind(make(say))).ask('/x', token)
        expect({ seen: answer.seen, unhandled: await settled() }).toEqual({ seen: [], unhandled: [] })
        expect([401, 500]).toContain(answer.status)
        expect(answer.headers['set-cookie']).toBeUndefined()
      }
    },
  )
})
