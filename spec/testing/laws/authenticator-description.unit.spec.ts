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
import type { ValidRequest } from 'koa-with-auth/testing/laws'
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

  const inQuery = fromQuery('X-API-Key')
  const twice = (request: Request) => O.alt(() => inQuery(request))(fromHeader('X-API-Key')(request))
  const always = (request: Request) => O.some(request.get('X-API-Key'))
  const unread = authenticator({
    ...kind,
    scheme: { ...kind.scheme, name: 'X-Other' },
    extract: fromHeader('X-Unknown'),
  })
  const lying = describedAs(right)(
    (request: Request) => async () =>
      request.get('X-API-Key') === 'Partner-Key' ? E.right({ user: 'anna' }) : E.left(AuthError.absent),
  )
  const digest = { scheme: { type: 'http', scheme: 'digest' }, extract: () => O.none } as const
  const badChallenge = (error: AuthError) =>
    error._tag === 'invalid' ? { scheme: 'ApiKey', parameters: { why: 'a\r\nb' } } : Challenge.make('ApiKey')

  it('is kept by a kind with a true description', async () => {
    expect(await lawsBroken(authenticator(kind), { valid: key })).toStrictEqual([])
  })

  it.each<
    [
      what: string,
      authenticator: Parameters<typeof breachesOf>[0],
      valid: ReadonlyArray<ValidRequest>,
      law: RegExp,
      says?: string,
    ]
  >([
    [
      'another header than the described one, because the bare credential is sent where the description says',
      authenticator({ ...kind, extract: fromHeader('X-Key') }),
      ['Partner-Key'],
      /^lets in/,
    ],
    ['a second place that is not described', authenticator({ ...kind, extract: twice }), key, /^its description/],
    [
      'an extract that never returns none',
      authenticator({ ...kind, extract: always }),
      key,
      /^its description/,
      'extract must return none',
    ],
    [
      'an alternative that no valid request covers, and that reads something else',
      anyOf([right, unread]),
      [withBearer('supersecret')],
      /^its description/,
      'X-Other',
    ],
    ['describedAs(a) around something that reads something else', lying, key, /^its description/],
    ['B-01 a challenge of another scheme', authenticator({ ...kind, ...digest }), key, /^offers a challenge/],
    [
      'B-05 a challenge that cannot be written',
      authenticator({ ...kind, challenge: badChallenge }),
      key,
      /^offers a challenge/,
    ],
  ])('finds %s', async (_what, wrong, valid, law, says = '') => {
    const breaches = await breachesOf(wrong, { valid })
    const breach = breaches.find((one) => law.test(one.law))
    expect(`${breach?.counterexample} ${breach?.fix}`).toContain(says)
    expect(breach).toBeDefined()
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
