/** Express, Fastify, node:http and node:http2, guarded by the helpers of the guide: each decision and each refusal is that of Koa. */
import Koa from 'koa'
import { guardRequest } from 'koa-with-auth/upgrades'
import { expect, it } from 'vitest'
import { describeDecisions, describeHostile } from '../support/servers/frameworkCases.js'
import { frameworks, ofHttp2 } from '../support/servers/otherFrameworks.js'

// their bytes are those of HTTP/1
frameworks.forEach(describeHostile)
;[...frameworks, ofHttp2].forEach(describeDecisions)

it('an option that is none, and a wrong one, are TypeErrors that name it', () => {
  expect(() => guardRequest(new Koa(), () => true, { methods: 'some' as 'all' })).toThrow(
    "guardRequest(app, a, { methods }) must be 'all' or 'sockets'",
  )
})
