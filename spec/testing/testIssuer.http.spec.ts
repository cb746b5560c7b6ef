/** `testIssuer`: an issuer for tests, with rotation, wrong claims and outages. */
import { httpJwt } from 'koa-with-auth/jwt'
import { testIssuer } from 'koa-with-auth/testing'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import { expect, it, onTestFinished, vi } from 'vitest'
import { tokenSite } from '../support/sites/tokenSite.js'

const AUD = 'https://api.example'

const started = async () => {
  const one = await testIssuer()
  onTestFinished(one.stop)
  return one
}

it('httpJwt accepts its tokens by discovery, and so does jose', async () => {
  const { issuer, token } = await started()
  const site = await tokenSite(httpJwt({ issuer, audience: AUD }))
  expect((await site.get(token({ aud: AUD, sub: 'anna' }))).text).toContain('"sub":"anna"')
  const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`))
  await expect(jwtVerify(token({ aud: AUD }), keys, { issuer, audience: AUD })).resolves.toBeDefined()
})

it.each([
  ['another issuer', { iss: 'https://other.example' }],
  ['an end in the past', { exp: 1 }],
  ['no end', { exp: undefined }],
  ['another audience', { aud: 'https://other.example' }],
])('wrong claims are refused: %s', async (_case, claims) => {
  const { issuer, token } = await started()
  const site = await tokenSite(httpJwt({ issuer, audience: AUD }))
  const answer = await site.get(token({ aud: AUD, ...claims }))
  expect([answer.status, answer.ran]).toEqual([401, 0])
})

it('after a rotation, new tokens pass and old ones do not; after stop, what is unknown is a 503', async () => {
  const { issuer, token, rotate, stop } = await started()
  const jwt = httpJwt({ issuer, audience: AUD, verified: false })
  const site = await tokenSite(jwt)
  const old = token({ aud: AUD })
  expect((await site.get(old)).status).toBe(200)
  rotate()
  vi.useFakeTimers({ toFake: ['Date', 'performance'] })
  try {
    vi.advanceTimersByTime(120_000)
    expect((await site.get(token({ aud: AUD }))).status).toBe(200)
    vi.advanceTimersByTime(120_000)
    expect((await site.get(old)).status).toBe(401)
  } finally {
    vi.useRealTimers()
  }
  await stop()
  const fresh = await tokenSite(httpJwt({ issuer, audience: AUD }))
  expect((await fresh.get(token({ aud: AUD }))).status).toBe(503)
})
