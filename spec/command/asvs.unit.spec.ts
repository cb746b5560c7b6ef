/** ASVS 5.0: the guide and its data, and what `audit --asvs` says of an application: never more than it has read. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import Router, { type RouterInstance } from '@koa/router'
import * as E from 'fp-ts/lib/Either.js'
import Koa from 'koa'
import {
  apiApp,
  apiKeyCookie,
  apiKeyHeader,
  authorize,
  httpBasicAuth,
  httpBearer,
  optional,
  owned,
  requireScopes,
  sessionAuth,
  throttled,
  unchecked,
  withAuth,
  type Authenticator,
} from 'koa-with-auth'
import { httpJwt } from 'koa-with-auth/jwt'
import { sessions } from 'koa-with-auth/sessions'
import { begin, emailSignIn, finish, passwordSignIn } from 'koa-with-auth/sign-in'
import { backChannelLogout, oidc } from 'koa-with-auth/sign-in/oidc'
import { memoryStore } from 'koa-with-auth/stores'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { describe, expect, it } from 'vitest'
import type { AnyRouter } from '../../src/koa/layer.js'
import { readApplication, readRouter } from '../../src/audit/application.js'
import { asvsTable, rowsFor } from '../../src/command/asvs.js'
import { verdictsOf } from '../../src/command/asvsVerdicts.js'
import { optionsFrom, perform } from '../../src/command/perform.js'
import { guardOf } from '../support/models/levels.js'
import { repository } from '../support/projects/typecheck.js'

const sources = readdirSync(`${repository}src`, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => readFileSync(`${repository}src/${file}`, 'utf8'))
  .join('\n')

const rows = rowsFor({}, 3)

// The specs by the number of a requirement that holds by default or by an option
const shown = [
  ...readFileSync(`${repository}examples/guides/asvs.md`, 'utf8').matchAll(
    /^\| (\d\S+) .*\| by (?:default|an option) +\|([^|]*)\|([^|]*)\|$/gm,
  ),
].map(([, id = '', where = '', cell = '']) => ({
  id,
  where,
  specs: [...cell.matchAll(/\(\.\.\/\.\.\/([^)]+\.spec\.ts)\)/g)].map(([, spec]) => `${repository}${spec}`),
}))

/** A spec, with the helpers that it imports. */
const withHelpers = (spec: string): string => {
  const text = readFileSync(spec, 'utf8')
  const helpers = [...text.matchAll(/ from '(\.[^']*\/support\/[^']*)\.js'/g)].map(([, file]) =>
    join(spec, '..', `${file}.ts`),
  )
  return [text, ...helpers.filter(existsSync).map((file) => readFileSync(file, 'utf8'))].join('\n')
}

describe('the guide ASVS 5.0', () => {
  it('has the 122 requirements of V6 to V10, and 32, 64 and 26 of the three levels, each once', () => {
    const ids = rows.map(({ id }) => id)
    expect([ids.length, new Set(ids).size]).toEqual([122, 122])
    expect([1, 2, 3].map((level) => rows.filter((one) => one.level === level).length)).toEqual([32, 64, 26])
    const chapters = ['6', '7', '8', '9', '10'].map((one) => ids.filter((id) => id.startsWith(`${one}.`)).length)
    expect(chapters).toEqual([47, 19, 13, 7, 36])
    expect(ids).toEqual(ids.toSorted((one, other) => one.localeCompare(other, 'en', { numeric: true })))
  })

  it('counts its rows', () => {
    const counts = [
      /^show that the application uses/,
      /^show that the application has/,
      /^the application says/,
      /^only/,
    ]
    const guide = readFileSync(`${repository}examples/guides/asvs.md`, 'utf8')
    const written = [...guide.matchAll(/^\| (?:by|yours|does)[^|]*\| (\d+) +\|$/gm)].map(([, count]) => Number(count))
    expect(counts.map((how) => rows.filter(({ why }) => how.test(why)).length)).toEqual(written)
    expect(shown).toHaveLength((written[0] ?? 0) + (written[1] ?? 0))
  })

  it.each(shown)('$id names parts that exist, and specs that use each of them', ({ where, specs }) => {
    const texts = specs.map(withHelpers).join('\n')
    for (const [, name = ''] of where.matchAll(/`(\w+)`/g)) {
      const places = `export const ${name}\\b|export function ${name}\\b|readonly ${name}\\??:|^  ${name},$`
      const isThere = new RegExp(places, 'm').test(sources)
      expect([name, isThere, new RegExp(`\\b${name}\\b`).test(texts)]).toEqual([name, true, true])
    }
    expect(specs.length).toBeGreaterThan(0)
  })
})

// --- applications

const handle = (): void => {}
const bearer = httpBearer({ authenticate: () => ({ id: 'anna' }) })
const staff = withAuth(bearer, requireScopes(['staff'], { granted: () => ['staff'] }))
const open = withAuth(null)
const note = owned('note', { param: 'id', find: (_id: string) => undefined, allow: () => true })
const of = (router: AnyRouter) => readRouter('audit', router)
const guarded = () => staff(new Router())
const verdictOf = (audited: ReturnType<typeof of>, id: string) =>
  rowsFor(verdictsOf(audited), 3).find((row) => row.id === id)?.verdict

describe('audit --asvs', () => {
  const anyone = () => ({ id: 'anna' })
  const cookie = apiKeyCookie({ paramName: 'k', authenticate: anyone })
  const condition = authorize(() => true)
  const good = () => of(guarded().get('/reports', handle))

  it('says holds of an application whose guards were read', () => {
    expect(['8.1.1', '8.2.1', '8.3.1'].map((id) => verdictOf(good(), id))).toEqual(['holds', 'holds', 'holds'])
    const held = rowsFor(verdictsOf(good()), 3).filter(({ verdict }) => verdict === 'holds')
    expect(held.map(({ id }) => id)).toEqual(['8.1.1', '8.2.1', '8.3.1'])
  })

  const mounted = (build: (app: Koa) => void) => {
    const app = new Koa({ keys: ['a key of at least 32 characters, for tests'] })
    build(app)
    // Safe: it mounts a router
    return readApplication(app)!
  }
  const one = (auth: unknown, path = '/a') => of(new Router().get(path, guardOf(auth) as never, handle))
  const key = apiKeyHeader({ authenticate: () => ({}) })
  const ahead = (path: string) => new Router().get(path, open, handle)
  const behind = (router: Router) => mounted((app) => app.use(handle).use(router.get('/a', handle).routes()))
  // applications with a planted fault, and the requirements that it breaks
  const faults: ReadonlyArray<readonly [what: string, ids: string, () => ReturnType<typeof of>]> = [
    ['an operation without a decision', '8.1.1 8.2.1 8.3.1', () => of(new Router().get('/reports', handle))],
    ['one of several without a decision', '8.2.1', () => of(new Router().get('/a', staff, handle).get('/b', handle))],
    ['an open operation first', '8.1.1 8.2.1', () => of(ahead('/:any').get('/a', staff, handle))],
    ['first in part', '8.3.1', () => of(ahead('/a/:id').get('/a/b', staff, handle))],
    ['an object that no condition reads', '8.1.1 8.2.2', () => of(guarded().get('/notes/:id', handle))],
    ['an object in only one of two ways in', '8.2.2', () => one([bearer, cookie], '/notes/:id')],
    ['a parameter that needs no check', '8.2.2', () => one(unchecked('id', 'all read it')(bearer), '/notes/:id')],
    ['a second object that no condition reads', '8.2.2', () => one(note(bearer), '/notes/:id/parts/:part')],
    ['a write without any scope', '8.2.1', () => of(withAuth(bearer)(new Router()).post('/reports', handle))],
    ['anonymous callers get in', '8.2.1', () => one(optional(bearer))],
    ['a public write', '8.2.1', () => of(new Router().post('/reports', open, handle))],
    ['a plain function as authenticator', '8.1.1 8.3.1', () => one(anyone)],
    ['a RegExp as path', '8.1.1', () => of(guarded().get(/^\/reports/, handle))],
    ['middleware without a guard', '8.3.1', () => behind(guarded())],
    ['a condition beside an open way', '8.2.1', () => of(ahead('/b').get('/a', withAuth(condition(bearer)), handle))],
  ]

  it.each(faults)('does not say holds: %s (%s)', (_what, ids, build) => {
    for (const id of ids.split(' ')) expect([id, verdictOf(build(), id)]).not.toEqual([id, 'holds'])
  })

  // what the parts of this package have settled
  const signing = (options: object, build: (router: RouterInstance) => unknown) =>
    mounted((app) => {
      sessions(app, { loadUser: (id) => ({ username: id }), store: memoryStore(), ...options })
      const router = new Router()
      build(router)
      app.use(router.routes())
    })
  const accountOf = () => undefined
  const password = (options = {}) => passwordSignIn({ accountOf, ...options })
  const me = (add: (router: RouterInstance) => unknown = () => {}, options = {}) =>
    signing(options, (router) => add(router.get('/me', withAuth(sessionAuth()), handle)))
  const jwt = (options = {}) =>
    httpJwt({ issuer: { issuer: 'https://a.example', secret: 's'.repeat(32) }, audience: 'api', ...options })
  const mail = { send: () => undefined, path: '/sign-in/mail/link' }
  const provider = () =>
    oidc({ issuer: 'https://login.example', client: { id: 'shop', secret: 's'.repeat(32) }, callback: '/callback' })
  const DAY = 86_400_000
  const free: Authenticator<unknown> = httpBasicAuth({ authenticate: () => ({ id: 'anna' }) })
  const inTree = { limiter: new RateLimiterMemory({ points: 5, duration: 900 }) }

  const get = (path: string, auth: unknown) => (router: RouterInstance) =>
    router.get(path, guardOf(auth) as never, handle)
  const post = (path: string, f: unknown) => (router: RouterInstance) => router.post(path, open, f as never)
  const limited = throttled(inTree)(free)
  const signIn = post('/s', password())
  const fresh = () => me(get('/a', sessionAuth({ proof: { maxAge: 60_000 } })))
  const six = () => [...'bcdefg'].reduce((router, path) => router.get(`/${path}`, open, handle), new Router())
  const out = () => backChannelLogout(provider(), { user: accountOf })
  const opaque = httpBearer({ authenticate: () => ({}), bearerFormat: 'JWT' })
  const back = (router: RouterInstance) => router.get('/callback', open, finish(provider(), accountOf))

  it.each<readonly [id: string, verdict: string, why: RegExp, () => ReturnType<typeof of>]>([
    ['7.2.1', 'holds', /makes and reads/, () => me()],
    ['7.2.1', 'not known', /GET \/k: a credential that browsers send is no session/, () => me(get('/k', cookie))],
    ['7.2.2', 'not known', /a key is no session/, () => me(get('/k', key))],
    ['7.2.2', 'holds', /sessions/, () => me()],
    ['7.3.1', 'holds', /after 24 h/, () => me()],
    ['7.3.2', 'holds', /after 7 days/, () => me()],
    ['7.3.2', 'not known', /365 days; say why/, () => me(undefined, { absolute: 365 * DAY })],
    ['7.3.2', 'not known', /POST \/s last/, () => me(post('/s', password({ absolute: () => 365 * DAY })))],
    ['7.3.2', 'not known', /ask for no other: POST \/s/, () => me(post('/s', handle))],
    ['7.3.2', 'holds', /after 30 days/, () => me(undefined, { absolute: 30 * DAY })],
    ['7.3.1', 'not known', /no other: POST \/as/, () => me((r) => r.post('/as', withAuth(sessionAuth()), handle))],
    ['6.3.1', 'holds', /at POST \/s/, () => me(signIn)],
    ['6.3.1', 'not known', /check no password: POST \/t/, () => me((r) => post('/t', handle)(signIn(r)))],
    ['6.3.1', 'fails', /GET \/a/, () => one(free)],
    ['6.3.1', 'holds', /GET \/a/, () => one(limited)],
    ['6.3.1', 'not known', /USE/, () => behind(withAuth(limited)(new Router()))],
    ['6.3.6', 'fails', /POST \/m/, () => me(post('/m', begin(emailSignIn(mail))))],
    ['6.5.5', 'fails', /11 min/, () => me(post('/m', begin(emailSignIn({ ...mail, lifetime: 660_000 }))))],
    ['10.5.1', 'holds', /GET \/callback/, () => signing({}, back)],
    ['10.5.1', 'not known', /GET \/other/, () => signing({}, (r) => back(r).get('/other', open, handle))],
    ['10.5.5', 'holds', /POST \/out/, () => signing({ list: true }, post('/out', out()))],
    ['9.1.2', 'holds', /httpJwt/, () => one(jwt())],
    ['9.1.2', 'holds', /httpJwt/, () => of(apiApp({ auth: jwt() }).get('/a', handle))],
    ['9.1.1', 'not known', /and 1 more/, () => of(six().get('/a', withAuth(jwt()), handle))],
    ['9.1.1', 'not known', /GET \/a: tokens are read by a function of the application/, () => one([jwt(), bearer])],
    ['9.1.1', 'not known', /function of the application/, () => one(opaque)],
    ['9.1.1', 'not known', /read no token: GET \/b/, () => of(ahead('/b').get('/a', withAuth(jwt()), handle))],
    ['9.2.3', 'fails', /any audience/, () => one(jwt({ audience: false, authorizedParties: ['shop'] }))],
    ['9.2.2', 'not known', /profile/, () => one(jwt())],
    ['9.2.2', 'holds', /httpJwt/, () => one(jwt({ profile: 'rfc9068' }))],
    ['9.1.1', 'not known', /show that/, () => one(key)],
    ['7.5.1', 'not known', /^no operation asks for a fresh proof; say why none needs it$/, () => me()],
    ['7.5.3', 'not known', /^a fresh proof is asked for by GET \/a; say why the others need none$/, fresh],
  ])('of %s it says: %s, %s', (id, verdict, why, build) => {
    const row = rowsFor(verdictsOf(build()), 3).find((row) => row.id === id)
    expect(row).toMatchObject({ verdict, why: expect.stringMatching(why) as unknown })
  })

  it('has a cell for each part, and no line that an application could end', () => {
    const odd = new Router().get('/a|b', handle)
    const table = asvsTable(rowsFor(verdictsOf(of(odd)), 1))
    expect(table.split('\n')).toHaveLength(2 + 32)
    for (const line of table.split('\n')) expect(line.match(/(?<!\\)\|/g)).toHaveLength(5)
  })

  it.each([
    ['audit a.js --asvs', { _tag: 'Asvs', level: 3, required: 0 }],
    ['audit a.js --asvs --level 2 --require 1', { _tag: 'Asvs', level: 2, required: 1 }],
  ])('%s', (line, task) => {
    expect(optionsFrom(line.split(' '))).toMatchObject(E.right({ task }))
  })

  it.each([
    ['audit a.js --level 2', '--level and --require need --asvs'],
    ['audit a.js --asvs --level 14', 'a level is 1, 2 or 3, not "14"'],
    ['audit a.js --asvs --json', '--asvs cannot be combined with --write, --check, --openapi, --json or --sarif'],
  ])('%s is refused', (line, why) => {
    expect(optionsFrom(line.split(' '))).toStrictEqual(E.left(why))
  })

  it('exits with 1 if a level is required of which something is not known', () => {
    const options = { _tag: 'Audit', module: 'a.js', exportName: undefined, format: 'text' } as const
    const codeOf = (required: number) => {
      const result = perform({ ...options, task: { _tag: 'Asvs', level: 1, required } }, good(), '0')
      return E.isRight(result) ? result.right.code : result.left
    }
    expect([codeOf(0), codeOf(1)]).toEqual([0, 1])
  })
})
