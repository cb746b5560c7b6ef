/** `testIssuer`: an issuer for tests, with rotation, wrong claims and outages. */
import { httpJwt } from 'koa-with-auth/jwt'
import { testIssuer } from 'koa-with-auth/testing'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import { hash } from 'node:crypto'
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

it('a code and a refresh token are good once, for their client and its verifier; a revoked one is not', async () => {
  const { issuer } = await started()
  const [client_id, code_verifier] = ['shop', 'v'.repeat(43)]
  const codeFor = async (): Promise<string> => {
    const code_challenge = hash('sha256', code_verifier, 'base64url')
    const asked = new URLSearchParams({
      client_id,
      redirect_uri: 'https://shop.example/callback',
      state: 's',
      code_challenge,
    })
    const { headers } = await fetch(`${issuer}/authorize?${String(asked)}`, { redirect: 'manual' })
    const { origin, pathname, searchParams } = new URL(headers.get('location') ?? '')
    expect([origin + pathname, searchParams.get('state')]).toEqual(['https://shop.example/callback', 's'])
    return searchParams.get('code') ?? ''
  }
  const post = (path: string, sent: Record<string, string>) =>
    fetch(issuer + path, { method: 'POST', body: new URLSearchParams(sent) })
  const refused = async (sent: Record<string, string>) => {
    const response = await post('/token', sent)
    expect([response.status, await response.json()]).toEqual([400, { error: 'invalid_grant' }])
  }
  const code = await codeFor()
  await refused({ code, client_id: 'other', code_verifier })
  const granted = await post('/token', { code, client_id, code_verifier })
  expect(granted.status).toBe(200)
  await refused({ code, client_id, code_verifier })
  await refused({ code: await codeFor(), client_id, code_verifier: 'other' })
  // Safe, both: the issuer answers so
  const { refresh_token } = (await granted.json()) as { readonly refresh_token: string }
  const renewed = await post('/token', { refresh_token, client_id })
  const { refresh_token: token } = (await renewed.json()) as { readonly refresh_token: string }
  await refused({ refresh_token, client_id })
  expect((await post('/revoke', { token })).status).toBe(200)
  await refused({ refresh_token: token, client_id })
})
