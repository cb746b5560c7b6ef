/** A refusal says why to developers: in the explained body and in the record of the decision, and nowhere else. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { bodyParser } from '@koa/bodyparser'
import { either as E } from 'fp-ts'
import { allOf, apiKeyHeader, AuthError, authSettings, formAuth, httpBasicAuth, httpBearer } from 'koa-with-auth'
import type { Why } from 'koa-with-auth'
import { httpJwt } from 'koa-with-auth/jwt'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { API, identityProvider, seconds, signedByHand, signingKey } from '../../support/servers/identityProvider.js'
import { guardedApp, sendCounted } from '../../support/sites/guardedApp.js'
import { listen } from '../../support/servers/server.js'
import type { Decision } from 'koa-with-auth/events'

let records: Decision[] = []
// Safe: only decisions are published on this channel
const note = (record: unknown) => void records.push(record as Decision)
beforeEach(() => {
  records = []
  subscribe('koa-with-auth:decision', note)
})
afterEach(() => void unsubscribe('koa-with-auth:decision', note))

const site = async (auth: unknown, explain = true) => {
  const guarded = guardedApp({ '/x': auth }, { above: () => [authSettings({ explain }), bodyParser()] })
  const { port } = await listen(guarded.app)
  return async (lines: ReadonlyArray<string>, method = 'GET', body = '') => {
    const answer = await sendCounted(guarded, port, `${method} /x`, lines, body)
    await expect.poll(() => records.length).toBeGreaterThan(0)
    return { ...answer, json: JSON.parse(answer.body) as { tried?: Array<{ failure: string; why?: string }> } }
  }
}

/** Expects a refusal with this cause, in the body and in the record. */
type Asked = ReturnType<Awaited<ReturnType<typeof site>>>
const expectWhy = async (asked: Asked, failure: string, why: Why | undefined, status = 401) => {
  const answer = await asked
  expect([answer.status, answer.ran]).toStrictEqual([status, 0])
  expect(answer.json.tried?.map((one) => [one.failure, one.why])).toStrictEqual([[failure, why]])
  expect(records.map((record) => [record.failure, record.why])).toStrictEqual([[failure, why]])
}

const bearer = httpBearer({ maxLength: 40, authenticate: (_request, token) => token === 'good' && { token } })

describe('a bearer token', () => {
  it.each([
    ['a syntax that is no b64token', ['Authorization: Bearer 12|abc'], 'malformed', 'syntax'],
    ['one that is too long', [`Authorization: Bearer ${'x'.repeat(50)}`], 'malformed', 'length'],
    ['one that was sent twice', ['Authorization: Bearer a', 'Authorization: Bearer b'], 'malformed', 'twice'],
    ['one that the hook refuses', ['Authorization: Bearer bad'], 'invalid', 'hook'],
    ['none', [], 'absent', undefined],
  ] as const)('%s', async (_case, lines, failure, why) => {
    await expectWhy((await site(bearer))(lines), failure, why)
  })
})

it('a password in Latin-1 says that it is not UTF-8', async () => {
  const basic = httpBasicAuth({ authenticate: () => ({ user: 'anna' }) })
  const field = Buffer.from('anna:zürich', 'latin1').toString('base64')
  await expectWhy((await site(basic))([`Authorization: Basic ${field}`]), 'malformed', 'encoding')
})

it('a form that no parser reads says so, and one of another site is refused before its password is looked at', async () => {
  let asked = 0
  const form = formAuth({ fields: ['username', 'password'], authenticate: () => ((asked += 1), { user: 'anna' }) })
  const send = await site(form)
  const multipart = '--b\r\nContent-Disposition: form-data; name="username"\r\n\r\nanna\r\n--b--\r\n'
  await expectWhy(send(['Content-Type: multipart/form-data; boundary=b'], 'POST', multipart), 'absent', 'body')
  records = []
  const lines = ['Content-Type: application/x-www-form-urlencoded', 'Origin: https://evil.example']
  await expectWhy(send(lines, 'POST', 'username=anna&password=x'), 'forged', 'origin', 403)
  expect(asked).toBe(0)
})

describe('a JSON Web Token', () => {
  const tokens = async () => {
    const provider = await identityProvider('', 'RS256')
    const jwt = httpJwt({ issuer: provider.issuer, audience: API, authorizedParties: ['web'], algorithms: ['RS256'] })
    const good = { ...provider.claims({ azp: 'web' }) }
    const own = provider.keys[0]!
    const sign = (claims: object, header: object = {}, key = own) =>
      signedByHand({ alg: key.alg, kid: key.kid, ...header }, JSON.stringify(claims), key)
    return { jwt, good, own, sign }
  }
  const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
  type Tokens = Awaited<ReturnType<typeof tokens>>
  it.each<readonly [Why, string, (given: Tokens) => string | Promise<string>]>([
    ['audience', 'invalid', ({ sign, good }) => sign({ ...good, aud: 'https://other.example' })],
    ['algorithm', 'invalid', ({ sign, good }) => sign(good, { alg: 'RS512' })],
    ['algorithm', 'invalid', ({ good }) => `${[{ alg: 'none' }, good].map(encoded).join('.')}.`],
    ['claims', 'invalid', ({ sign, good }) => sign({ ...good, exp: undefined })],
    ['signature', 'invalid', async ({ sign, good, own }) => sign(good, {}, await signingKey('RS256', own.kid))],
    ['expired', 'expired', ({ sign, good }) => sign({ ...good, exp: seconds() - 60 })],
    ['syntax', 'malformed', () => 'no.token'],
  ])('%s: %s', async (why, failure, token) => {
    const given = await tokens()
    const send = await site(given.jwt)
    await expectWhy(send([`Authorization: Bearer ${await token(given)}`]), failure, why)
  })
})

describe('a group', () => {
  const keyOf = (schemeName: string, paramName: string, own: string) =>
    apiKeyHeader({ schemeName, paramName, authenticate: (_request, key) => key === own })
  const [customer, admin] = [keyOf('customer', 'X-A', 'a'), keyOf('admin', 'X-B', 'b')]
  it('names the credential that is missing, not the one that was good', async () => {
    const answer = await (await site(allOf({ customer, admin })))(['X-A: a'])
    expect([answer.status, answer.ran]).toStrictEqual([401, 0])
    const [record] = records
    expect(record?.branches).toStrictEqual([{ scheme: 'admin', failure: 'absent' }])
    expect([record?.failure, record?.why]).toStrictEqual(['absent', 'partial'])
    expect(answer.json.tried?.map(({ failure }) => failure)).toStrictEqual(['absent'])
  })
  it('names the credential that is wrong', async () => {
    const send = await site(allOf({ customer, admin }))
    await send(['X-A: a', 'X-B: x'])
    expect(records[0]?.branches).toStrictEqual([{ scheme: 'admin', failure: 'invalid', why: 'hook' }])
  })
})

it('a failure that a hook returns keeps what it has', async () => {
  const own = httpBearer({ authenticate: () => E.left(AuthError.invalid({ code: 'suspended' })) })
  await expectWhy((await site(own))(['Authorization: Bearer good']), 'invalid', 'hook')
})
