/** Decisions of spec/requirements.md: what hooks may return. Titles begin with the question of the row. */
import { either as E, option as O, type readerTaskEither as RTE, task as T, taskEither as TE } from 'fp-ts'
import type { Request } from 'koa'
import { apiKeyHeader, AuthError, authSettings, httpBearer, withAuth, type AuthenticatorLike } from 'koa-with-auth'
import { describedAs, fromFunction, flatMap } from 'koa-with-auth/fp'
import { describe, expect, test, vi } from 'vitest'
import {
  bearer,
  challenge,
  expectCrashed,
  expectDenied,
  expectPassed,
  operation,
  type Answer,
} from '../support/models/behavior.js'

const answering = (answer: unknown): Promise<Answer> =>
  operation(withAuth(httpBearer({ authenticate: () => answer }))).then(({ ask }) => ask('/x', bearer('t')))

describe("what a hook's answer is worth", () => {
  const passing: ReadonlyArray<readonly [what: string, answer: unknown, principal: unknown]> = [
    ['a list that is not empty', [undefined], [undefined]],
    ['Some of a value', O.some('a'), 'a'],
    ['Right of a value', E.right('a'), 'a'],
    ['Some of a Right', O.some(E.right('a')), 'a'],
    ['Right of a Some', E.right(O.some('a')), 'a'],
    ['an object with its own _tag', { _tag: 'User', name: 'a' }, { _tag: 'User', name: 'a' }],
  ]
  test.each(passing)("what a hook's answer is worth: %s passes", async (_what, answer, principal) => {
    expectPassed(await answering(answer), principal)
    expectPassed(await answering(Promise.resolve(answer)), principal)
  })

  const failing: ReadonlyArray<readonly [what: string, answer: unknown]> = [
    ['None', O.none],
    ['Left', E.left('why')],
    ['Left of undefined', E.left(undefined)],
    ['an empty array', []],
    ['Some of false', O.some(false)],
    ['Some of an empty array', O.some([])],
    ['Some of None', O.some(O.none)],
    ['Right of 0', E.right(0)],
    ['Right of a Left', E.right(E.left('why'))],
    ['Right of an empty string', E.right('')],
    ['{}', {}],
    ['{} without a prototype', Object.create(null)],
  ]
  test.each(failing)("what a hook's answer is worth: %s fails", async (_what, answer) => {
    expectDenied(await answering(answer), 401, [challenge.refusedBearer])
    expectDenied(await answering(Promise.resolve(answer)), 401, [challenge.refusedBearer])
  })

  const strange: ReadonlyArray<readonly [what: string, answer: unknown]> = [
    ['a Some without a value', { _tag: 'Some' }],
    ['a Right with another key', { _tag: 'Right', right: { username: 'root' }, username: 'mallory' }],
    ['an Error', new Error('expired')],
  ]
  test.each(strange)("what a hook's answer is worth: %s is a 500, and no request passes", async (_what, answer) => {
    expectCrashed(await answering(answer))
    expectCrashed(await answering(Promise.resolve(answer)))
  })

  test("what a hook's answer is worth: the result of map is judged in the same way", async () => {
    for (const [, answer] of failing) {
      const mapped = flatMap(() => answer)(fromFunction(() => 'somebody'))
      const { ask } = await operation(withAuth(mapped))
      expectDenied(await ask(), 401, [challenge.custom])
    }
  })
})

describe('a function answered by a hook, or a raw `ReaderTaskEither` passed as `auth`', () => {
  const running: ReadonlyArray<readonly [what: string, task: () => unknown, principal: unknown]> = [
    ['a TaskEither', TE.right('a'), 'a'],
    ['an IOEither', () => E.right('a'), 'a'],
    ['a TaskEither of an Option', TE.right(O.some('a')), 'a'],
  ]
  test.each(running)('a function answered by a hook is run as a Task: %s', async (_what, task, principal) => {
    expectPassed(await answering(task), principal)
  })

  test('a function answered by a hook is run as a Task, and its Left is a refusal', async () => {
    for (const task of [TE.left('why'), () => E.left('why'), TE.left(AuthError.expired), TE.right(false)]) {
      expectDenied(await answering(task), 401, [challenge.refusedBearer])
    }
  })

  const mistakes: ReadonlyArray<readonly [what: string, task: () => unknown]> = [
    ['true', () => true],
    ['nothing', () => undefined],
    ['a Task of a value', T.of('a')],
    ['an Option', () => O.some('a')],
    ['a Task of an Option', T.of(O.some('a'))],
    ['a function', () => () => true],
    ['a function of an Either', () => () => E.right('a')],
    ['a class', class {} as never],
  ]
  test.each(mistakes)(
    'a function answered by a hook that yields %s is a 500, and no request passes',
    async (_what, task) => {
      expectCrashed(await answering(task))
      expectCrashed(await answering(Promise.resolve(task)))
    },
  )

  const fetched = (request: Request) => request.get('X-Client')
  const known: RTE.ReaderTaskEither<Request, AuthError, string> = (request) =>
    fetched(request) === 'Acme' ? TE.right('Acme') : TE.left(AuthError.invalid)

  test('a raw `ReaderTaskEither` passed as `auth`: Right passes, Left fails', async () => {
    const { ask } = await operation(withAuth(known))
    expectPassed(await ask('/x', { headers: { 'X-Client': 'Acme' } }), 'Acme')
    expectDenied(await ask(), 401, [challenge.custom])
  })

  test('a raw `ReaderTaskEither` works in a list, and with describedAs', async () => {
    const key = apiKeyHeader({ authenticate: (_request, sent) => sent })
    const listed = await operation(withAuth([known, key]))
    expectPassed(await listed.ask('/x', { headers: { key: 'k' } }), 'k')
    expectDenied(await listed.ask(), 401, [challenge.custom, challenge.key('header')])
    const described = await operation(withAuth(describedAs(key)(known)))
    expectPassed(await described.ask('/x', { headers: { 'X-Client': 'Acme' } }), 'Acme')
    expectDenied(await described.ask(), 401, [challenge.key('header')])
  })

  const raw: ReadonlyArray<readonly [what: string, auth: AuthenticatorLike]> = [
    ['rejects', () => () => Promise.reject(new Error('down'))],
    ['does not yield an Either', () => () => Promise.resolve('a')],
    ['yields true', () => () => true],
    [
      'throws',
      () => () => {
        throw new Error('down')
      },
    ],
  ]
  test.each(raw)('a raw `ReaderTaskEither` that %s is a 500, and no request passes', async (_what, auth) => {
    const { ask } = await operation(withAuth(auth))
    expectCrashed(await ask())
  })
})

describe('promise-like answers', () => {
  const thenable = (value: unknown) => ({ then: (resolve: (value: unknown) => void) => resolve(value) })
  class Query extends Promise<unknown> {}
  const makers: ReadonlyArray<readonly [what: string, make: (value: unknown) => unknown]> = [
    ['a promise', (value) => Promise.resolve(value)],
    ['a class of promises', (value) => Query.resolve(value)],
    ['a thenable', thenable],
    ['a thenable function', (value) => Object.assign(() => true, thenable(value))],
    ['a thenable whose then is inherited', (value) => Object.create(thenable(value)) as unknown],
    ['a promise of a thenable', (value) => Promise.resolve().then(() => thenable(value))],
    ['Some of a promise', (value) => O.some(Promise.resolve(value))],
    ['Right of a thenable', (value) => E.right(thenable(value))],
  ]
  test.each(makers)('promise-like answers are awaited before the truth test: %s', async (_what, make) => {
    expectPassed(await answering(make('a')), 'a')
    for (const falsy of [false, undefined, null, [], O.none, E.left('why')]) {
      expectDenied(await answering(make(falsy)), 401, [challenge.refusedBearer])
    }
  })

  test('promise-like answers that reject, or whose then throws, are a 500', async () => {
    expectCrashed(await answering({ then: (_: unknown, reject: (why: unknown) => void) => reject(new Error('down')) }))
    expectCrashed(
      await answering({
        then: () => {
          throw new Error('down')
        },
      }),
    )
    const { ask } = await operation(withAuth(() => Promise.reject(undefined)))
    expectCrashed(await ask())
  })
})

test('exception inside a list stops the list: later authenticators are not tried', async () => {
  for (const raise of [
    () => {
      throw new Error('down')
    },
    () => Promise.reject(new Error('down')),
  ]) {
    const later = vi.fn(() => true)
    const { ask } = await operation(withAuth([() => false, () => raise(), () => later()]))
    expectCrashed(await ask())
    expect(later).not.toHaveBeenCalled()
  }
})

describe('a hook that never settles', () => {
  const never = () => new Promise<never>(() => {})
  const hanging: ReadonlyArray<readonly [what: string, hook: () => unknown]> = [
    ['a promise', never],
    ['a thenable', () => ({ then: () => {} })],
    ['a TaskEither', () => never],
    ['a promise after another', async () => O.some(never())],
  ]
  test.each(hanging)('a hook that never settles is unavailable: %s', async (_what, hook) => {
    const later = vi.fn(() => true)
    const guard = withAuth([httpBearer({ authenticate: hook }), () => later()])
    const { ask, errors } = await operation(guard, (app) => {
      app.use(authSettings({ timeout: 40 }))
    })
    const answer = await ask('/x', bearer('t'))
    expectDenied(answer, 503, [])
    expect(answer.headers['retry-after']).toMatch(/^\d+$/)
    expect(later).not.toHaveBeenCalled()
    expect(errors).toEqual([])
  })

  test('a hook that settles after the time limit runs no handler, and the next request is served', async () => {
    let pass = (_principal: string): void => {}
    const slow = () => new Promise<string>((resolve) => (pass = resolve))
    const hook = vi.fn<() => unknown>(slow)
    const { ask } = await operation(withAuth(httpBearer({ authenticate: hook })), (app) => {
      app.use(authSettings({ timeout: 40 }))
    })
    expectDenied(await ask('/x', bearer('t')), 503, [])
    hook.mockImplementation(() => 'next')
    pass('late')
    await new Promise((resolve) => setImmediate(resolve))
    expectPassed(await ask('/x', bearer('t')), 'next')
  })

  test('a hook that never settles: a slow hook within the time limit passes; a sync hook has no limit', async () => {
    const { ask } = await operation(
      withAuth(() => new Promise((resolve) => setTimeout(resolve, 30, 'slow'))),
      (app) => {
        app.use(authSettings({ timeout: 600_000 }))
      },
    )
    expectPassed(await ask(), 'slow')
    const busy = () => {
      const end = performance.now() + 20
      while (performance.now() < end);
      return 'busy'
    }
    const synchronous = await operation(withAuth(busy), (app) => {
      app.use(authSettings({ timeout: 1 }))
    })
    expectPassed(await synchronous.ask(), 'busy')
  })
})

test('asynchronous hooks: every kind accepts them, alone, in a list, and with map', async () => {
  const slow = httpBearer({ authenticate: async (_request, token) => token === 't' && { token } })
  const guard = withAuth([async () => false, flatMap(async ({ token }: { token: string }) => token)(slow)])
  const { ask } = await operation(guard)
  expectPassed(await ask('/x', bearer('t')), 't')
  expectDenied(await ask('/x', bearer('u')), 401, [challenge.custom, challenge.refusedBearer])
})
