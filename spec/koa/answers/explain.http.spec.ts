/**
 * `explain`: in development only, the body says what was tried and why each branch failed. It contains no credential.
 */
import { allOf, authSettings, authorize, perFailure, type AuthSettings } from 'koa-with-auth'
import { firstPresent } from 'koa-with-auth/fp'
import { pipe } from 'fp-ts/lib/function.js'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { expectDenied, expectPassed, operation } from '../../support/models/behavior.js'
import { basic, behind, crossSite, key, offers, sending, user } from '../../support/models/combining.js'

const explaining =
  (options: AuthSettings) => (app: { use: (middleware: ReturnType<typeof authSettings>) => unknown }) => {
    app.use(authSettings(options))
  }
const reported = async (auth: unknown, sent = sending({}), options: AuthSettings = { explain: true }) => {
  const { ask } = await behind(auth, explaining(options))
  return ask('/x', sent)
}
const triedOf = (body: unknown): unknown => (Object(body) as { tried?: unknown }).tried
const failuresOf = (body: unknown) =>
  (triedOf(body) as ReadonlyArray<{ challenge?: string; failure: string }>).map(({ challenge, failure }) => [
    challenge?.split(' ')[0],
    failure,
  ])

describe('with explain: true', () => {
  test('the body lists every branch, and the rest of the response stays the same', async () => {
    const sent = sending({ key: 'bad', user: 'old' })
    const plain = await reported([key, user, basic], sent, { explain: false })
    const { body, ...rest } = await reported([key, user, basic], sent)
    expect(body).toEqual({
      type: 'about:blank',
      title: 'Unauthorized',
      status: 401,
      detail: 'Unauthorized',
      tried: [
        { challenge: offers.key, failure: 'invalid', reason: 'the credential was refused', why: 'hook' },
        { challenge: offers.badUser, failure: 'expired', reason: 'the credential is no longer good', why: 'expired' },
        { challenge: offers.basic, failure: 'absent', reason: 'no credential of this kind was sent' },
      ],
    })
    expect(triedOf(plain.body)).toBeUndefined()
    expect(rest.challenges).toEqual(plain.challenges)
    expect(rest).toMatchObject({ status: 401, seen: [] })
    for (const name of ['content-type', 'cache-control', 'vary']) expect(rest.headers[name]).toBe(plain.headers[name])
  })

  test('a branch that was not tried is listed as "not asked"', async () => {
    const group = await reported(allOf([key, user]), sending({ key: 'bad', user: 'good' }))
    expect(failuresOf(group.body)).toEqual([
      ['ApiKey', 'invalid'],
      ['Bearer', 'not asked'],
    ])
    const first = await reported(firstPresent([user, key]), sending({ user: 'bad', key: 'good' }))
    expect(failuresOf(first.body)).toEqual([
      ['Bearer', 'invalid'],
      ['ApiKey', 'not asked'],
    ])
  })

  test.each([
    [
      'not allowed',
      pipe(
        user,
        authorize(() => false),
      ),
      sending({ user: 'good' }),
      403,
      'insufficient',
    ],
    ['an outage', user, sending({ user: 'down' }), 503, 'unavailable'],
    ['a write from another site', basic, sending({ basic: 'good' }, crossSite), 403, 'forged'],
    ['a malformed credential', user, sending({ user: 'a b' }), 401, 'malformed'],
    ['a plain function', () => false, sending({}), 401, 'invalid'],
  ])('%s', async (_what, auth, sent, status, failure) => {
    const answer = await reported(auth, sent)
    expect(answer).toMatchObject({ status, seen: [] })
    expect(failuresOf(answer.body).map(([, each]) => each)).toEqual([failure])
  })

  test('neither an accepted request nor an exception is explained', async () => {
    expectPassed(await reported([key, user], sending({ user: 'good' })), { name: 'user' })
    expect((await reported(user, sending({ user: 'throw' }))).body).toBe('Internal Server Error')
  })

  test('the body of your own error mapper stays the same', async () => {
    const errorMapper = perFailure({ absent: () => ({ status: 401, body: { detail: 'Sign in' } }) })
    expect((await reported(user, sending({}), { explain: true, errorMapper })).body).toEqual({ detail: 'Sign in' })
  })

  test('the body without an explanation stays the same', async () => {
    await reported(user)
    expectDenied(await reported(user, sending({}), { explain: false }), 401, [offers.user])
  })

  test('the body contains no credential, whatever was sent', async () => {
    const secrets = ['s3cr3t-value-1', 's3cr3t value', 's3cr3t"\\quoted', 's3cr3t'.repeat(2000)]
    for (const secret of secrets) {
      for (const sent of [
        sending({ key: secret, user: secret }),
        sending({ basic: secret }),
        sending({ key: secret }),
      ]) {
        for (const auth of [[key, user, basic], allOf([key, user]), firstPresent([basic, user, key])]) {
          const { ask } = await behind(auth, explaining({ explain: true }))
          const { body, headers, challenges } = await ask(`/x?key=s3cr3t`, sent)
          expect(JSON.stringify([body, headers, challenges])).not.toContain('s3cr3t')
          expect(JSON.stringify(body)).not.toContain(Buffer.from(`me:${secret}`).toString('base64'))
        }
      }
    }
  })
})

describe('without the option', () => {
  afterEach(() => {
    vi.unstubAllEnvs()
    vi.resetModules()
  })

  const inEnvironment = async (environment: string | undefined, options?: AuthSettings) => {
    vi.resetModules()
    vi.stubEnv('NODE_ENV', environment)
    const layer = await import('koa-with-auth')
    const refusing = layer.httpBearer({ authenticate: (): boolean => false })
    const { ask } = await operation(layer.withAuth(refusing), (app) => {
      if (options !== undefined) app.use(layer.authSettings(options))
    })
    const answer = await ask('/x')
    expect(answer).toMatchObject({ status: 401, seen: [] })
    return triedOf(answer.body) !== undefined
  }

  test.each([
    ['development', true],
    ['production', false],
    ['test', false],
    ['staging', false],
    ['Development', false],
    ['', false],
    [undefined, false],
  ])('NODE_ENV=%s: %s', async (environment, explains) => {
    expect(await inEnvironment(environment)).toBe(explains)
    expect(await inEnvironment(environment, { realm: 'pets' })).toBe(explains)
    expect(await inEnvironment(environment, { explain: !explains })).toBe(!explains)
  })
})
