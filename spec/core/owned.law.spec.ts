/** Laws of `owned`: refused and unknown are one answer, after one look-up. */
import Router from '@koa/router'
import fc from 'fast-check'
import { pipe } from 'fp-ts/lib/function.js'
import {
  apiKeyHeader,
  anyOf,
  authSettings,
  httpBearer,
  owned,
  perFailure,
  withAuth,
  type AuthSettings,
} from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { running } from '../support/models/behavior.js'
import { samples } from '../support/runs/samples.js'

interface User {
  readonly name: string
}
const user = httpBearer({ authenticate: (_request, token): User | false => token !== 'wrong' && { name: token } })
const word = fc.stringMatching(/^[a-z]{1,4}$/)
const store = fc.dictionary(word, fc.record({ owner: word }))

const mapper: fc.Arbitrary<AuthSettings['errorMapper']> = fc.constantFrom(
  undefined,
  perFailure({ notFound: () => ({ status: 410, body: 'gone' }) }),
  perFailure({ notFound: async (error) => ({ status: 404, headers: { 'X-Failure': error._tag }, body: { error } }) }),
  (error, request) => ({ status: 404, body: `${error._tag} ${String(error.why)} ${request.method}` }),
  () => {
    throw new Error('the mapper fails')
  },
)
const settings = fc.record({ explain: fc.boolean(), realm: fc.constantFrom('api', 'notes'), errorMapper: mapper })
const method = fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE')

describe('the whole answers over HTTP', () => {
  it('are the same for what is refused and for what is unknown, after one look-up, without the handler', async () => {
    await fc.assert(
      fc.asyncProperty(
        store,
        word,
        word,
        method,
        settings,
        fc.boolean(),
        fc.constantFrom('alone', 'twice', 'in a list'),
        async (others, name, id, method, given, isLate, where) => {
          fc.pre(name !== 'wrong')
          const notes = new Map([...Object.entries(others), [id, { owner: `not ${name}` }]])
          const asked: string[] = []
          let handled = 0
          const answer = <A>(value: A): A | Promise<A> => (isLate ? Promise.resolve(value) : value)
          const note = owned('note', {
            param: 'id',
            find: (key, _one: User) => {
              asked.push(key)
              return answer(notes.get(key))
            },
            allow: ({ owner }, one) => answer(owner === one.name),
          })
          const all = owned('all', { param: 'id', find: () => true })
          const guarded = where === 'twice' ? pipe(user, all, note) : pipe(user, note)
          const key = apiKeyHeader({ authenticate: () => false })
          const { errorMapper, ...rest } = given
          const { ask } = await running((app) => {
            app.silent = true
            app.use(authSettings({ ...rest, ...(errorMapper !== undefined && { errorMapper }) }))
            const router = new Router()
            router.all('/notes/:id', withAuth(where === 'in a list' ? anyOf([guarded, key]) : guarded), (ctx) => {
              handled++
              ctx.body = 'mine'
            })
            app.use(router.routes())
          })
          const sent = { method, headers: { authorization: `Bearer ${name}` } }
          const whole = async (path: string) => {
            const { status, headers, body } = await ask(path, sent)
            const { date: _date, ...others } = headers
            return { status, headers: others, body }
          }
          const refused = await whole(`/notes/${id}`)
          const unknown = await whole(`/notes/unknown-${id}`)
          expect(refused).toStrictEqual(unknown)
          expect(refused.status).not.toBe(200)
          expect(asked).toStrictEqual([id, `unknown-${id}`])
          expect(handled).toBe(0)
        },
      ),
      { numRuns: samples(200, 30) },
    )
  })
})
