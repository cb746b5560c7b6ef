/** The records of a request and of a decision: what nothing wrote is not there, whatever every object inherits. */
import { mockRequest } from 'koa-with-auth/testing'
import { expect, it } from 'vitest'
import { Attempt, Exchange } from '../../src/core/Exchange.js'
import { pollute } from '../support/runs/pollute.js'

it.each([
  ['request', () => new Exchange()],
  ['decision', () => new Attempt(mockRequest())],
])('a field that every object inherits is not in the record of a %s', (_what, make) => {
  pollute({ isUncounted: true })
  expect(Boolean(Reflect.get(make(), 'isUncounted'))).toBe(false)
})
