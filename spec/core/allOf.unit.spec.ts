/** `allOf` of members that admit anonymous callers: what it makes of them is a principal. */
import { pipe } from 'fp-ts/lib/function.js'
import { allOf, anyOf, apiKeyHeader, authorize, optional } from 'koa-with-auth'
import { mockRequest } from 'koa-with-auth/testing'
import { expect, it } from 'vitest'

const key = (paramName: string) => apiKeyHeader({ paramName, authenticate: (_request, sent) => ({ sent }) })

it('is a principal, so a list lets it in after another member has refused', async () => {
  const refusing = pipe(
    key('X-Key'),
    authorize(() => false),
  )
  const listed = anyOf([refusing, allOf([optional(key('X-Other'))])])
  const request = mockRequest({ fields: [['X-Key', 'k']] })
  expect(await listed.evaluate(request)).toStrictEqual({ _tag: 'Right', right: [undefined] })
  // alone, an optional member does not let in who sent a credential that was refused
  expect(await anyOf([refusing, optional(key('X-Other'))]).evaluate(request)).toMatchObject({ _tag: 'Left' })
})
