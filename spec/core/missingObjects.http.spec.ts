/** No order of combinators lets in without an object that is demanded: it is a TypeError, or `seal` says what is not checked. */
import Router from '@koa/router'
import * as RTE from 'fp-ts/lib/ReaderTaskEither.js'
import { pipe } from 'fp-ts/lib/function.js'
import { anyOf, apiKeyHeader, httpBearer, optional, owned, UnavailableError, withAuth } from 'koa-with-auth'
import { seal } from 'koa-with-auth/audit'
import { describedAs, firstPresent, lenient, recoverUnavailable, timeout } from 'koa-with-auth/fp'
import { describe, expect, it } from 'vitest'
import { ask, listen } from '../support/servers/server.js'
import Koa from 'koa'

const user = httpBearer({ authenticate: (_request, token) => token === 'good' && { name: 'anna' } })
const key = apiKeyHeader({ authenticate: () => ({ name: 'cron' }) })
const find = (): { text: string } => {
  throw new UnavailableError('the database is down')
}
const note = owned('note', { param: 'id', find })
const guest = () => ({ name: 'guest' })

const recovering = 'withAuth(a, recoverUnavailable(f), owned(...))'

describe('R27 around owned', () => {
  it.each([
    ['recoverUnavailable', () => recoverUnavailable(guest)(note(user)), recovering],
    ['recoverUnavailable, outside', () => recoverUnavailable(guest)(timeout(5)(anyOf([note(user), key]))), recovering],
    ['an RTE', () => pipe(user, RTE.map(guest), describedAs(note(user))), 'withAuth(describedAs(a)(rte), owned(...))'],
  ])('%s is a TypeError that names the right order', (_what, make, fix) => {
    expect(make).toThrow(TypeError)
    expect(make).toThrow(
      `a looks up objects, which would be missing if another alternative admitted the caller; write ${fix}`,
    )
  })

  it('the right order is a 503 without the object', async () => {
    let ran = 0
    const guard = withAuth(user, recoverUnavailable(guest), note)
    const router = new Router().get('/notes/:id', guard, () => void ran++)
    const { url } = await listen(new Koa().use(router.routes()))
    const { status } = await ask(`${url}/notes/1`, { headers: { authorization: 'Bearer good' } })
    expect([status, ran]).toEqual([503, 0])
  })

  it.each([
    ['optional', optional(note(user))],
    ['lenient', lenient(note(user))],
    ['a list', anyOf([note(user), key])],
    ['firstPresent', firstPresent([note(user), key])],
  ])('%s lets in without the object, so seal({ objects: true }) says that the parameter is not checked', (_what, a) => {
    const router = new Router().get('/notes/:id', withAuth(a), () => {})
    expect(() => seal(router, { objects: true })).toThrow(/:id/)
  })
})
