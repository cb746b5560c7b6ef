/**
 * `explain`: the body of a failure says what was tried and why each branch failed, and contains nothing that was sent.
 */
import { either as E } from 'fp-ts'
import {
  allOf,
  anyOf,
  apiKeyHeader,
  apiKeyQuery,
  AuthError,
  authSettings,
  defaultErrorMapper,
  firstPresent,
  httpBearer,
  type AuthSettings,
} from 'koa-with-auth'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { tried } from '../../src/koa/respond.js'
import { guardedApp, sendCounted, type GuardedApp } from '../support/sites/guardedApp.js'
import { listen } from '../support/servers/server.js'

const token = 's3cr3t-token-of-anna'
const bearer = httpBearer({
  authenticate: (_request, sent) => (sent === 'down' ? outage() : E.left(AuthError.expired)),
})
const outage = (): E.Either<AuthError, string> => E.left(AuthError.unavailable())
const key = apiKeyHeader({
  paramName: 'X-Key',
  realm: 'own',
  authenticate: (_request, sent) => sent === 'k1' && 'cron',
})
const query = apiKeyQuery({ authenticate: () => false })

const routes = {
  '/any': anyOf([bearer, key]),
  '/all': allOf([key, bearer, query]),
  '/first': firstPresent([query, bearer, key]),
  '/after': anyOf([query, bearer]),
}

interface Running {
  readonly guarded: GuardedApp
  readonly port: number
  readonly close: () => Promise<void>
}
const start = async (settings: AuthSettings): Promise<Running> => {
  const guarded = guardedApp(routes, { above: () => [authSettings({ realm: 'pets', ...settings })] })
  const { port, close } = await listen(guarded.app)
  return { guarded, port, close }
}
let running: Record<'explaining' | 'silent' | 'byOmission' | 'own', Running>
beforeAll(async () => {
  running = {
    explaining: await start({ explain: true }),
    silent: await start({ explain: false }),
    byOmission: await start({}),
    own: await start({ explain: true, errorMapper: (error, request) => defaultErrorMapper(error, request) }),
  }
})
afterAll(() => Promise.all(Object.values(running).map(({ close }) => close())))

const triedBy = async (name: keyof typeof running, path: string, lines: ReadonlyArray<string> = []) => {
  const { guarded, port } = running[name]
  const answer = await sendCounted(guarded, port, `GET ${path}`, lines)
  expect(answer.ran).toBe(0)
  return { ...answer, json: JSON.parse(answer.body) as Record<string, unknown> }
}

const noKey = {
  challenge: 'ApiKey realm="own", in="header", name="X-Key"',
  failure: 'absent',
  reason: 'no credential of this kind was sent',
}
const expired = {
  challenge: 'Bearer realm="pets", error="invalid_token"',
  failure: 'expired',
  reason: 'the credential is no longer good',
}
const skipped = (challenge: string) => ({ challenge, failure: 'not asked', reason: 'another one had decided' })

describe('explain', () => {
  it('lists every alternative, with its scheme and why it failed, beside the problem itself', async () => {
    const { status, json } = await triedBy('explaining', '/any', [`Authorization: Bearer ${token}`])
    expect(status).toBe(401)
    expect(json).toStrictEqual({
      type: 'about:blank',
      title: 'Unauthorized',
      status: 401,
      detail: 'Unauthorized',
      tried: [expired, noKey],
    })
  })

  it('lists the members of a group that were not tried, because an earlier one decided', async () => {
    const { json } = await triedBy('explaining', '/all', ['X-Key: k1', `Authorization: Bearer ${token}`])
    expect(json['tried']).toStrictEqual([expired, skipped('ApiKey realm="pets", in="query", name="key"')])
    const first = await triedBy('explaining', '/first', [`Authorization: Bearer ${token}`])
    expect(first.json['tried']).toStrictEqual([
      { ...noKey, challenge: 'ApiKey realm="pets", in="query", name="key"' },
      expired,
      skipped('ApiKey realm="own", in="header", name="X-Key"'),
    ])
  })

  it.each(['/after', '/first'])('lists what was tried before an outage, at %s', async (path) => {
    const { status, json } = await triedBy('explaining', path, ['Authorization: Bearer down'])
    const down = {
      challenge: 'Bearer realm="pets"',
      failure: 'unavailable',
      reason: 'it cannot be decided now, or was not in time',
    }
    expect(status).toBe(503)
    const before = { ...noKey, challenge: 'ApiKey realm="pets", in="query", name="key"' }
    expect(json['tried']).toStrictEqual([before, down])
  })

  it('A-37 never contains what was sent', async () => {
    for (const path of Object.keys(routes)) {
      for (const line of [`Authorization: Bearer ${token}`, `X-Key: ${token}`]) {
        const answer = await triedBy('explaining', `${path}?key=${token}`, [line, `Cookie: key=${token}`])
        expect(answer.body + JSON.stringify(answer.headers)).not.toContain(token)
      }
    }
  })

  it('changes only the body: the status and the header lines stay the same', async () => {
    const lines = [`Authorization: Bearer ${token}`]
    const [loud, quiet] = [await triedBy('explaining', '/any', lines), await triedBy('silent', '/any', lines)]
    const fields = ({ headers }: typeof loud) => headers.filter(([name]) => !['date', 'content-length'].includes(name))
    expect(loud.status).toBe(quiet.status)
    expect(fields(loud)).toStrictEqual(fields(quiet))
  })

  it.each(['silent', 'byOmission', 'own'] as const)(
    'adds nothing if it is off, not set, or if another mapper is used: %s',
    async (name) => {
      const { json } = await triedBy(name, '/any', [`Authorization: Bearer ${token}`])
      expect(json).not.toHaveProperty('tried')
      expect(json['detail']).toBe('Unauthorized')
    },
  )

  it.each([undefined, null, 1, 'true'])(
    'is a TypeError for authSettings({ explain: %o }), unless it is a boolean or undefined',
    (explain) => {
      if (explain === undefined) expect(() => authSettings({ explain })).not.toThrow()
      else expect(() => authSettings({ explain } as never)).toThrow('authSettings({ explain }) must be true or false')
    },
  )
})

describe('each failure has its own text', () => {
  it.each([
    [AuthError.absent, 'no credential of this kind was sent'],
    [AuthError.malformed, 'the credential breaks the syntax of its kind, is too long, or was sent twice'],
    [AuthError.invalid, 'the credential was refused'],
    [AuthError.expired, 'the credential is no longer good'],
    [AuthError.forged, 'the credential is good, but another site made the browser send it (Sec-Fetch-Site, Origin)'],
    [AuthError.insufficient(), 'authenticated, but not allowed'],
    [AuthError.throttled(), 'too many guesses were made, so the credential was not looked at'],
    [AuthError.unavailable(), 'it cannot be decided now, or was not in time'],
    [AuthError.raised(new Error(token)), 'the hook threw'],
  ])('$_tag', (error, reason) => {
    expect(tried({ status: 401, body: { detail: 'Unauthorized' } }, error, 'pets')).toStrictEqual({
      status: 401,
      body: { detail: 'Unauthorized', tried: [{ failure: error._tag, reason }] },
    })
  })
})
