/** The proof that an ID token is, and what a record says of an answer that is refused. */
import * as E from 'fp-ts/lib/Either.js'
import type { IDToken, TokenEndpointResponse } from 'openid-client' with { 'resolution-mode': 'import' }
import { expect, it } from 'vitest'
import { proofIn, rejected } from '../../src/sign-in/oidc/ProviderAnswer.js'
import { openidClient, openidClientLoaded } from '../../src/sign-in/oidc/openidClient.js'
import { recordsOf } from '../support/runs/eventRecords.js'
import { stoppedClock } from '../support/runs/clock.js'

const issuer = 'https://op.example'
const tokens = { access_token: 'a', token_type: 'bearer' } as TokenEndpointResponse

const proofOf = (own: object) => {
  stoppedClock()
  const seconds = Math.floor(Date.now() / 1000)
  // Safe: `proofIn` checks what it reads
  const claims = { iss: issuer, sub: 'anna', aud: 'shop', iat: seconds, exp: seconds + 60, ...own } as IDToken
  return proofIn(claims, tokens, { issuer, clientId: 'shop' }, 5)
}

it('holds what can be kept: no time of the future, at most 16 methods, and no claim that is no text', () => {
  const ahead = Math.floor(Date.now() / 1000) + 5
  const many = Array.from({ length: 20 }, (_, at) => `m${at}`)
  const { at, authTime, ...proof } = proofOf({ auth_time: ahead, amr: [7, '', ...many], acr: 7, sid: '' })
  expect(authTime).toBeLessThanOrEqual(at)
  expect(proof).toStrictEqual({ method: 'oidc', issuer, subject: 'anna', amr: many.slice(0, 16) })
  expect(proofOf({ acr: 'a', sid: 's' })).toMatchObject({ acr: 'a', sid: 's' })
  expect(() => proofOf({ iss: 'https://evil.example' })).toThrow('iss')
  expect(() => proofOf({ at_hash: 'x' })).toThrow('at_hash')
})

it('a record has the code of an error, and nothing that a provider made up', async () => {
  await openidClientLoaded()
  const records = recordsOf('provider-answer')
  const { AuthorizationResponseError } = openidClient()
  const failures = ['access_denied', 'server_error', 'login_required', 'own_error', '<script>', 'a'.repeat(65)].map(
    (error) => {
      const thrown = new AuthorizationResponseError('words', { cause: new URLSearchParams({ error }) })
      const failed = rejected(issuer, thrown, 'code')
      return E.isLeft(failed) && (failed.left.reason ?? failed.left._tag)
    },
  )
  expect(failures).toEqual(['declined', 'unavailable', 'provider', 'provider', 'provider', 'provider'])
  expect(records.map((one) => (one as { problem?: string }).problem)).toEqual([
    ...['access_denied', 'server_error', 'login_required', 'own_error', 'an unknown error', 'an unknown error'],
  ])
})
