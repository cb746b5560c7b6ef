/** The laws of what an authenticator says of itself, and of writes from other sites. */
import { either as E, option as O } from 'fp-ts'
import type { Request } from 'koa'
import {
  allOf,
  anyOf,
  apiKeyCookie,
  AuthError,
  authenticator,
  fromAuthorization,
  authSettings,
  BasicCredentials,
  Challenge,
  describedAs,
  fromHeader,
  fromQuery,
} from 'koa-with-auth'
import { withBearer, withCookie, withHeader, mergeRequests } from 'koa-with-auth/testing'
import { describe, expect, it } from 'vitest'
import { breachesOf, right } from '../support/brokenLaws.js'

const kind = {
  scheme: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
  challenge: Challenge.make('ApiKey'),
  ambient: false,
  extract: fromHeader('X-API-Key'),
  authenticate: (_request: Request, key: unknown) => key === 'Partner-Key' && { client: 'Acme' },
} as const
const key = [withHeader('X-API-Key', 'Partner-Key')]

describe('its description is true', () => {
  const lawsBroken = async (...args: Parameters<typeof breachesOf>) => (await breachesOf(...args)).map(({ law }) => law)

  it('a kind that keeps every law', async () => {
    expect(await lawsBroken(authenticator(kind), { valid: key })).toStrictEqual([])
  })

  it('the credential alone goes where the description says, so another header is found by that, too', async () => {
    const other = authenticator({ ...kind, extract: fromHeader('X-Key') })
    expect(await lawsBroken(other, { valid: ['Partner-Key'] })).toContainEqual(expect.stringMatching(/^lets in/))
  })

  it('a second place that is not described', async () => {
    const inQuery = fromQuery('X-API-Key')
    const extract = (request: Request) => O.alt(() => inQuery(request))(fromHeader('X-API-Key')(request))
    expect(await lawsBroken(authenticator({ ...kind, extract }), { valid: key })).toStrictEqual([
      expect.stringMatching(/^its description is true/),
    ])
  })

  it('an extract that never says none', async () => {
    const extract = (request: Request) => O.some(request.get('X-API-Key'))
    const [breach] = await breachesOf(authenticator({ ...kind, extract }), { valid: key })
    expect(breach?.fix).toContain('extract must return none')
  })

  it('an alternative that no valid request shows, and that reads something else', async () => {
    const other = authenticator({
      ...kind,
      scheme: { ...kind.scheme, name: 'X-Other' },
      extract: fromHeader('X-Unknown'),
    })
    const [breach] = await breachesOf(anyOf([right, other]), { valid: [withBearer('supersecret')] })
    expect(breach?.counterexample).toContain('X-Other')
  })

  it('describedAs(a) for what does something else', async () => {
    const lying = describedAs(right)(
      (request: Request) => async () =>
        request.get('X-API-Key') === 'Partner-Key' ? E.right({ user: 'anna' }) : E.left(AuthError.absent),
    )
    expect(await lawsBroken(lying, { valid: key })).toContainEqual(expect.stringMatching(/^its description is true/))
  })

  it('a group of which one is enough', async () => {
    const both = allOf([right, authenticator(kind)])
    const request = mergeRequests(withBearer('supersecret'), key[0]!)
    expect(await lawsBroken(both, { valid: [request] })).toStrictEqual([])
    const half = Object.assign(both, { evaluate: right.evaluate })
    expect(await lawsBroken(half, { valid: [request] })).toContainEqual(
      expect.stringMatching(/^its description is true/),
    )
  })

  it('B-01 a challenge of another scheme than is described', async () => {
    const scheme = { type: 'http', scheme: 'digest' } as const
    const [breach] = await breachesOf(authenticator({ ...kind, scheme, extract: () => O.none }), { valid: key })
    expect(breach).toBeDefined()
    const broken = await lawsBroken(authenticator({ ...kind, scheme, extract: () => O.none }), { valid: key })
    expect(broken).toContainEqual(expect.stringMatching(/^offers a challenge/))
  })

  it('B-05 a challenge that cannot be written', async () => {
    const challenge = (error: AuthError) =>
      error._tag === 'invalid' ? { scheme: 'ApiKey', parameters: { why: 'a\r\nb' } } : Challenge.make('ApiKey')
    expect(await lawsBroken(authenticator({ ...kind, challenge }), { valid: key })).toStrictEqual([
      expect.stringMatching(/^offers a challenge/),
    ])
  })
})

describe('other sites', () => {
  it('Basic of one’s own that says it is not ambient: browsers send it by themselves, too', async () => {
    const own = authenticator({
      scheme: { type: 'http', scheme: 'basic' },
      challenge: Challenge.make('Basic'),
      ambient: false,
      extract: fromAuthorization('Basic'),
      credentials: BasicCredentials,
      authenticate: (_request, { username, password }) => username === 'admin' && password === 'secret' && { username },
    })
    const broken = await breachesOf(own, { valid: [{ username: 'admin', password: 'secret' }] })
    expect(broken).toMatchObject([
      { law: expect.stringMatching(/^refuses writes/), fix: expect.stringContaining('ambient: true') },
    ])
  })

  it('csrf: false above is lawful: the application decided it', async () => {
    const cookie = apiKeyCookie({ authenticate: (_request, sent) => sent === 'Partner-Key' && { client: 'Acme' } })
    const above = [authSettings({ csrf: false })]
    expect(await breachesOf(cookie, { valid: [withCookie('key', 'Partner-Key')], above })).toStrictEqual([])
  })
})
