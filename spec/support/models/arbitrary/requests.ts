/** Koa requests as a fast-check arbitrary. */
import fc, { type Arbitrary } from 'fast-check'
import type { Request } from 'koa'
import { mergeRequests, mockRequest, type RequestSpec } from 'koa-with-auth/testing'
import { requestSpecs } from '../../../../src/testing/laws/random.js'
import { printed } from '../../../../src/testing/requests.js'

/**
 * Koa requests, each with one of these credentials, or without a credential if none are given. A counterexample shows
 * what was sent.
 */
export const requests = (credentials: Arbitrary<RequestSpec> = fc.constant({})): Arbitrary<Request> =>
  fc.tuple(requestSpecs(), credentials).map(([about, sent]) => {
    const spec = mergeRequests(about, sent)
    return Object.assign(mockRequest(spec), { [fc.toStringMethod]: () => printed(spec) })
  })
