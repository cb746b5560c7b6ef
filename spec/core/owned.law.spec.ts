/** Laws of `owned`: refused and unknown are one answer, one look-up, and conditions keep their order and the principal. */
import fc from 'fast-check'
import { pipe } from 'fp-ts/lib/function.js'
import { AuthError, defaultErrorMapper, httpBearer, owned, unchecked } from 'koa-with-auth'
import { map } from 'koa-with-auth/fp'
import { mockRequest, withBearer } from 'koa-with-auth/testing'
import { describe, expect, it } from 'vitest'

interface User {
  readonly name: string
}
const user = httpBearer({ authenticate: (_request, token): User | false => token !== 'wrong' && { name: token } })
const requestFor = (name: string, id: string) => {
  const request = mockRequest(withBearer(name))
  request.ctx['params'] = { id }
  return request
}
const word = fc.stringMatching(/^[a-z]{1,4}$/)
const store = fc.dictionary(word, fc.record({ owner: word }))

describe('owned', () => {
  it('answers alike for what is not there and what is not theirs, after one look-up', async () => {
    await fc.assert(
      fc.asyncProperty(store, word, word, fc.boolean(), async (notes, name, id, isLate) => {
        fc.pre(name !== 'wrong')
        let asked = 0
        const note = owned('note', {
          param: 'id',
          find: (key, _one: User) => {
            asked++
            const found = Object.hasOwn(notes, key) ? notes[key] : undefined
            return isLate ? Promise.resolve(found) : found
          },
          allow: ({ owner }, one) => owner === one.name,
        })
        const request = requestFor(name, id)
        const result = await pipe(user, note).evaluate(request)
        const isOwn = Object.hasOwn(notes, id) && notes[id]?.owner === name
        expect(asked).toBe(1)
        expect(result._tag).toBe(isOwn ? 'Right' : 'Left')
        const missing = await pipe(user, note).evaluate(requestFor(name, 'missing'))
        if (result._tag === 'Left' && missing._tag === 'Left') {
          expect(result.left).toStrictEqual(missing.left)
          expect(defaultErrorMapper(result.left, request)).toBe(defaultErrorMapper(missing.left, request))
        } else expect(result).toStrictEqual({ _tag: 'Right', right: { name } })
      }),
    )
  })

  it('keeps the principal: map of identity before and after it changes nothing, and so does unchecked', async () => {
    const note = owned('note', { param: 'id', find: (id, one: User) => id === one.name })
    const identity = map((one: User) => one)
    const same = [
      pipe(user, note),
      pipe(user, identity, note),
      pipe(user, note, identity),
      pipe(user, unchecked('id', 'the law says so'), note),
    ]
    await fc.assert(
      fc.asyncProperty(word, word, async (name, id) => {
        const results = await Promise.all(same.map(async (a) => a.evaluate(requestFor(name, id))))
        for (const result of results) expect(result).toStrictEqual(results[0])
      }),
    )
  })

  it('counts in a list as insufficient does', () => {
    const both = AuthError.Semigroup.concat(AuthError.absent, AuthError.notFound)
    expect(both._tag).toBe('notFound')
    expect(AuthError.Ord.equals(AuthError.notFound, AuthError.insufficient())).toBe(true)
  })
})
