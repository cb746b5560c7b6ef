/** The schema `Problem` of a document describes the bodies that guards really send. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { AuthError, defaultErrorMapper, httpBearer, withAuth } from 'koa-with-auth'
import Router from '@koa/router'
import { describe, expect, it } from 'vitest'
import { because, insufficientAuthentication, unfinished, unproven } from '../../src/core/AuthError.js'
import { unfinishedReasons, type UnfinishedReason } from '../../src/core/UnfinishedReason.js'
import { openApi } from 'koa-with-auth/openapi'
import { mockRequest } from 'koa-with-auth/testing'
import { explained } from '../support/models/explained.js'

const router = new Router().get('/x', withAuth(httpBearer({ authenticate: () => true })), () => {})
const { components } = openApi(router, { title: 'Pets', version: '1' })
const ajv = new Ajv2020({ strict: true })
addFormats.default(ajv)
const isProblem = ajv.compile({ ...components!.schemas!['Problem'], additionalProperties: false })

// Safe: these are its keys
const reasons = Object.keys(unfinishedReasons) as ReadonlyArray<UnfinishedReason>
const failures: ReadonlyArray<[name: string, failure: AuthError]> = [
  ['absent', AuthError.absent],
  ['malformed', AuthError.malformed],
  ['invalid, with a reason', AuthError.invalid({ detail: 'Suspended', code: 'suspended' })],
  ['expired, with a reason', AuthError.expired({ detail: 'Over', code: 'over' })],
  ['forged', AuthError.forged],
  ['insufficient', AuthError.insufficient({ scope: ['read'], detail: 'No', code: 'no' })],
  ['a proof is needed', unproven({ methods: ['totp'], maxAge: 300 })],
  ['another authentication is needed', insufficientAuthentication({ acr: ['gold'], maxAge: 60 })],
  ['a grant at a provider has ended', because(AuthError.expired, 'upstream')],
  ['notFound', AuthError.notFound],
  ['throttled', AuthError.throttled(3)],
  ['unavailable', AuthError.unavailable(3)],
  ['raised', AuthError.raised(Object.assign(new Error('no'), { status: 418, expose: true }))],
  ...reasons.map((reason): [string, AuthError] => [`a sign-in, ${reason}`, unfinished(reason)]),
]

describe('the schema of problems', () => {
  it.each(failures)('describes each member of the body of a failure: %s', (_name, failure) => {
    const response = defaultErrorMapper(failure, mockRequest())
    expect(isProblem(response.body), JSON.stringify(isProblem.errors)).toBe(true)
    expect(explained(failure)).toHaveProperty('tried')
    expect(isProblem(explained(failure)), JSON.stringify(isProblem.errors)).toBe(true)
  })

  it('has no member that no failure sends', () => {
    const sent = failures.flatMap(([, failure]) => Object.keys(explained(failure)))
    // RFC 9457 §3.1.5: an error mapper may name the occurrence
    expect(Object.keys(components!.schemas!['Problem']!.properties!).sort()).toEqual(
      [...new Set([...sent, 'instance'])].sort(),
    )
  })
})
