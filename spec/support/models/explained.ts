/** What a guard answers a failure with in development, when it explains. */
import type { AuthError } from 'koa-with-auth'
import { mockRequest } from 'koa-with-auth/testing'
import { settingsOf } from '../../../src/core/Exchange.js'
import { guardHeadersOf } from '../../../src/koa/responseHeaders.js'
import { respondFailure } from '../../../src/koa/respond.js'

const headers = guardHeadersOf({ _tag: 'AnyOf', members: [] }).whenRefused

/** The body that a failure has with `explain`. */
export const explained = (failure: AuthError): Readonly<Record<string, unknown>> => {
  const { ctx } = mockRequest()
  void respondFailure(ctx, failure, { ...settingsOf(ctx.request), explain: true }, headers)
  // Safe: a problem is an object
  return JSON.parse(String(ctx.body)) as Readonly<Record<string, unknown>>
}
