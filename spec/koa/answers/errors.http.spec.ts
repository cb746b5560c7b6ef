/** The table of errors in section 7 of the requirements, except exceptions that have a handler. */
import { httpBearer, sessionAuth, sessionAuthIsStaff, sessionAuthSuperUser, withAuth } from 'koa-with-auth'
import { describe, expect, test, vi } from 'vitest'
import { bearer, challenge, expectCrashed, expectDenied, operation } from '../../support/models/behavior.js'
import { kinds, listOf } from '../../support/models/behaviorKinds.js'
import { modes, signIn, signInAs, withSessions } from '../../support/models/behaviorSession.js'

describe.each(modes)('a session authenticator without a qualifying session: 401 (%s mode)', (mode) => {
  test('7 a request without a session is a 401', async () => {
    const { ask } = await operation(withAuth(sessionAuth()), withSessions(mode))
    expectDenied(await ask(), 401, [challenge.session])
  })

  test('7 a session without a user is a 401', async () => {
    const api = await operation(withAuth(sessionAuth()), withSessions(mode))
    const Cookie = await signIn(api, { visits: 3 })
    expectDenied(await api.ask('/x', { headers: { Cookie } }), 401, [challenge.session])
  })

  test.each([
    ['a superuser is required', sessionAuthSuperUser()],
    ['staff is required', sessionAuthIsStaff()],
  ])('7 a user without the rights gets a 401, not a 403: %s', async (_what, authenticator) => {
    const api = await operation(withAuth(authenticator), withSessions(mode))
    const Cookie = await signInAs(api, { username: 'anna' })
    expectDenied(await api.ask('/x', { headers: { Cookie } }), 401, [challenge.session])
  })
})

test('7 if every authenticator of a list fails, the response is an authentication error', async () => {
  const list = listOf([...kinds.map(({ make }) => make(() => false)), sessionAuth()])
  const api = await operation(withAuth(list), withSessions())
  const absent = kinds.map((kind) => kind.absent)
  expectDenied(await api.ask(), 401, [...absent, challenge.session])
  for (const { carrying, refused, absent: bare } of kinds) {
    const reported = absent.map((line) => (line === bare ? refused : line))
    expectDenied(await api.ask(...carrying), 401, [...reported, challenge.session])
  }
})

test('7.2 an exception without a handler is Koa’s 500, not a 401; the error event gets it, and the response hides it', async () => {
  class InvalidToken extends Error {}
  const authenticate = vi.fn(() => {
    throw new InvalidToken('token of anna')
  })
  const { ask, errors } = await operation(withAuth(httpBearer({ authenticate })))
  expectCrashed(await ask('/x', bearer('t')))
  expect(errors).toHaveLength(1)
  expect(errors[0]).toBeInstanceOf(InvalidToken)
  expect(authenticate).toHaveBeenCalledTimes(1)
})

test.each(kinds)(
  '7.3 $kind: a refused credential is a 401 with the detail "Unauthorized"',
  async ({ make, carrying, absent, refused }) => {
    const { ask } = await operation(withAuth(make(() => false)))
    expectDenied(await ask(...carrying), 401, [refused], 'Unauthorized')
    expectDenied(await ask(), 401, [absent], 'Unauthorized')
  },
)

test('7.3 a function that refuses is a 401 with the detail "Unauthorized"', async () => {
  const { ask } = await operation(withAuth(() => false))
  expectDenied(await ask(), 401, [challenge.custom], 'Unauthorized')
})
