/** Section 5.7 of the requirements: asynchronous authentication, which every kind accepts. */
import Router from '@koa/router'
import { taskEither as TE } from 'fp-ts'
import { withAuth, type AuthenticatorLike } from 'koa-with-auth'
import { describe, expect, test, vi } from 'vitest'
import { challenge, expectDenied, expectPassed, operation, running } from '../support/models/behavior.js'
import { kinds, listOf } from '../support/models/behaviorKinds.js'

const later = <A>(value: A): Promise<A> => new Promise((resolve) => setTimeout(resolve, 5, value))

const answered = (result: string | Promise<string>, write: (body: string) => void): void | Promise<void> =>
  typeof result === 'string' ? write(result) : result.then(write)

describe('5.7.1 asynchronous functions', () => {
  test.each([
    ['a synchronous operation', () => 'done'],
    ['an asynchronous operation', async () => later('done')],
  ])('5.7.1 on %s', async (_what, work) => {
    const ran = vi.fn()
    const known = async (request: { get: (name: string) => string }) => {
      const client = await later(request.get('X-Client'))
      return client === 'Acme' && client
    }
    const { ask } = await running((app) => {
      const router = new Router()
      router.get('/x', withAuth(known), (ctx) => {
        ran(ctx.request.auth)
        return answered(work(), (body) => {
          ctx.body = body
        })
      })
      app.use(router.routes())
    })
    expect(await ask('/x', { headers: { 'X-Client': 'Acme' } })).toMatchObject({ status: 200, body: 'done' })
    expect(ran.mock.calls).toEqual([['Acme']])
    expectDenied(await ask('/x', { headers: { 'X-Client': 'Ecma' } }), 401, [challenge.custom])
    expect(ran).toHaveBeenCalledTimes(1)
  })

  test('5.7.1 a promise is awaited before it is judged: a promise of a falsy value is a refusal', async () => {
    for (const value of [false, undefined, null, 0, '', []]) {
      const { ask } = await operation(withAuth(async () => later(value)))
      expectDenied(await ask(), 401, [challenge.custom])
    }
  })
})

describe('5.7.2 the built-in kinds accept asynchronous hooks (decision "asynchronous hooks")', () => {
  test.each(kinds)('5.7.2 $kind accepts an async hook and a TaskEither', async ({ make, carrying, refused }) => {
    for (const say of [(answer: unknown) => later(answer), (answer: unknown) => () => later(TE.right(answer)())]) {
      const passing = await operation(withAuth(make(() => say({ id: 1 }))))
      expectPassed(await passing.ask(...carrying), { id: 1 })
      const refusing = await operation(withAuth(make(() => say(null))))
      expectDenied(await refusing.ask(...carrying), 401, [refused])
    }
  })

  test.each(kinds)('5.7.2 $kind with an async hook works in a list, before and after a sync one', async (row) => {
    const slow = row.make(() => later({ via: 'slow' }))
    const refusing = row.make(() => later(false))
    for (const list of [[slow], [refusing, slow], [() => false, slow], [refusing, () => false, slow]]) {
      const { ask } = await operation(withAuth(listOf<AuthenticatorLike>(list)))
      expectPassed(await ask(...row.carrying), { via: 'slow' })
    }
  })
})
