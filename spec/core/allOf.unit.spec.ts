/** `allOf` of members that admit anonymous callers: what it makes of them is a principal. */
import { pipe } from 'fp-ts/lib/function.js'
import { allOf, anyOf, apiKeyHeader, AuthError, authorize, optional } from 'koa-with-auth'
import { mockRequest } from 'koa-with-auth/testing'
import { expect, it } from 'vitest'

const key = apiKeyHeader({ paramName: 'X-Key', authenticate: (_request, sent) => ({ sent }) })
// it was sent, and its hook says that it counts as none
const none = apiKeyHeader({ paramName: 'X-Other', authenticate: () => AuthError.absent })

it('is a principal, so a list lets it in after another member has refused', async () => {
  const refusing = pipe(
    key,
    authorize(() => false),
  )
  const listed = anyOf([refusing, allOf([optional(none)])])
  const request = mockRequest({
    fields: [
      ['X-Key', 'k'],
      ['X-Other', 'o'],
    ],
  })
  expect(await listed.evaluate(request)).toStrictEqual({ _tag: 'Right', right: [undefined] })
  // alone, an optional member does not let in who sent a credential that was refused
  expect(await anyOf([refusing, optional(none)]).evaluate(request)).toMatchObject({ _tag: 'Left' })
})
