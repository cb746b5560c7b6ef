/** The laws of the description of an authenticator, and of writes from other sites. */
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
  Challenge,
  fromHeader,
  fromQuery,
} from 'koa-with-auth'
import { BasicCredentials, describedAs } from 'koa-with-auth/fp'
import { withBearer, withCookie, withHeader, mergeRequests } from 'koa-with-auth/testing'
import { describe, expect, it } from 'vitest'
import { breachesOf, right } from '../../support/models/brokenLaws.js'

const kind = {
  scheme: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
  challenge: Challenge.make('ApiKey'),
  ambient: false,
  extract: fromHeader('X-API-Key'),
  authenticate: (_request: Request, key: unknown) => key === 'Partner-Key' && { client: 'Acme' },
} as const
const key = [withHeader('X-API-Key', 'Partner-Key')]

describe('the law about the description', () => {
  const lawsBroken = async (...args: Parameters<typeof breachesOf>) => (await breachesOf(...args)).map(({ law }) => law)

  it('is kept by a kind with a true description', async () => {
    expect(await lawsBroken(authenticator(kind), { valid: key })).toStrictEqual([])
  })

  it('finds another header than the described one, because the bare credential is sent where the description says', async () => {
    const other = authenticator({ ...kind, extract: fromHeader('X-Key') })
    expect(await lawsBroken(other, { valid: ['Partner-Key'] })).toContainEqual(expect.stringMatching(/^lets in/))
  })

  it('finds a second place that is not described', async () => {
    const inQuery = fromQuery('X-API-Key')
    const extract = (request: Request) => O.alt(() => inQuery(request))(fromHeader('X-API-Key')(request))
    expect(await lawsBroken(authenticator({ ...kind, extract }), { valid: key })).toStrictEqual([
      expect.stringMatching(/^its description is true/),
    ])
  })

  it('finds an extract that never returns none', async () => {
    const extract = (request: Request) => O.some(request.get('X-API-Key'))
    const [breach] = await breachesOf(authenticator({ ...kind, extract }), { valid: key })
    expect(breach?.fix).toContain('extract must return none')
  })

  it('finds an alternative that no valid request covers, and that reads something else', async () => {
    const other = authenticator({
      ...kind,
      scheme: { ...kind.scheme, name: 'X-Other' },
      extract: fromHeader('X-Unknown'),
    })
    const [breach] = await breachesOf(anyOf([right, other]), { valid: [withBearer('supersecret')] })
    expect(breach?.counterexample).toContain('X-Other')
  })

  it('finds describedAs(a) around an authenticator that reads something else', async () => {
    const lying = describedAs(right)(
      (request: Request) => async () =>
        request.get('X-API-Key') === 'Partner-Key' ? E.right({ user: 'anna' }) : E.left(AuthError.absent),
    )
    expect(await lawsBroken(lying, { valid: key })).toContainEqual(expect.stringMatching(/^its description is true/))
  })

  it('finds a group of which one member is enough', async () => {
    const both = allOf([right, authenticator(kind)])
    const request = mergeRequests(withBearer('supersecret'), key[0]!)
    expect(await lawsBroken(both, { valid: [request] })).toStrictEqual([])
    const half = Object.assign(both, { evaluate: right.evaluate })
    expect(await lawsBroken(half, { valid: [request] })).toContainEqual(
      expect.stringMatching(/^its description is true/),
    )
  })

  it('B-01 finds a challenge of another scheme than the described one', async () => {
    const scheme = { type: 'http', scheme: 'digest' } as const
    const [breach] = await breachesOf(authenticator({ ...kind, scheme, extract: () => O.none }), { valid: key })
    expect(breach).toBeDefined()
    const broken = await lawsBroken(authenticator({ ...kind, scheme, extract: () => O.none }), { valid: key })
    expect(broken).toContainEqual(expect.stringMatching(/^offers a challenge/))
  })

  it('B-05 finds a challenge that cannot be written', async () => {
    const challenge = (error: AuthError) =>
      error._tag === 'invalid' ? { scheme: 'ApiKey', parameters: { why: 'a\r\nb' } } : Challenge.make('ApiKey')
    expect(await lawsBroken(authenticator({ ...kind, challenge }), { valid: key })).toStrictEqual([
      expect.stringMatching(/^offers a challenge/),
    ])
  })
})

describe('the law about other sites', () => {
  it('finds your own Basic kind that is not ambient, although browsers send it by themselves', async () => {
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

  it('is kept with csrf: false, because the application decided so', async () => {
    const cookie = apiKeyCookie({ authenticate: (_request, sent) => sent === 'Partner-Key' && { client: 'Acme' } })
    const above = [authSettings({ csrf: false })]
    expect(await breachesOf(cookie, { valid: [withCookie('key', 'Partner-Key')], above })).toStrictEqual([])
  })
})
