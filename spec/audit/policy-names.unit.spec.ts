/**
 * A line of the policy file has a name for everything that decides, so an exchange of it is a difference. Two authenticators that
 * would have the same words are refused.
 */
import Router, { type RouterInstance } from '@koa/router'
import * as E from 'fp-ts/lib/Either.js'
import { pipe } from 'fp-ts/lib/function.js'
import {
  allOf,
  anyOf,
  apiKeyCookie,
  apiKeyHeader,
  authorize,
  authSettings,
  httpBasicAuth,
  httpBearer,
  named,
  optional,
  owned,
  rateLimit,
  requireScopes,
  sessionAuth,
  sessionAuthIsStaff,
  sessionAuthSuperUser,
  throttled,
  withAuth,
  type Authenticator,
} from 'koa-with-auth'
import { describedAs, firstPresent, flatMap, lenient, map, recoverUnavailable } from 'koa-with-auth/fp'
import { audit, seal } from 'koa-with-auth/audit'
import { httpIntrospection, httpJwt, requireAuthentication } from 'koa-with-auth/jwt'
import { generateKeyPairSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { optionsFrom, perform } from '../../src/command/perform.js'
import { functionName } from '../../src/core/functionName.js'
import { auditedBy } from '../../src/audit/application.js'
import { handle, linesFor, textsFor } from '../support/models/audits.js'
import { policyFile } from '../support/papers/policyFile.js'
import { guardOf } from '../support/models/levels.js'

const { lock } = policyFile()

const routed = (...auths: ReadonlyArray<unknown>): RouterInstance => {
  const router = new Router()
  auths.forEach((auth, at) => router.get(`/${at}`, guardOf(auth) as never, handle))
  return router
}
const whoIn = (router: RouterInstance) => linesFor(router).map(({ who }) => who.join(' or '))

const run = (routers: ReadonlyArray<RouterInstance>, ...args: ReadonlyArray<string>) => {
  const options = optionsFrom(['audit', 'app.js', ...args])
  if (E.isLeft(options) || options.right._tag !== 'Audit') throw new Error('the arguments are right')
  const audits = routers.map((router) => audit(router))
  const operations = audits.flatMap((one) => one.operations)
  const middleware = audits.flatMap((one) => one.middleware)
  const deciders = routers.flatMap((router) => auditedBy('audit', router).deciders)
  const reading = { routes: [], middleware: [] }
  return perform(options.right, { audit: { operations, middleware }, reading, routers, deciders }, '1')
}
const written = (...routers: ReadonlyArray<RouterInstance>): string => {
  const result = run(routers, '--write', lock)
  return E.isLeft(result) ? `refused: ${result.left}` : readFileSync(lock, 'utf8')
}

const admin = httpBearer({ authenticate: (_request, token) => token === 'admin' && 'root' })
const user = httpBearer({ authenticate: (_request, token) => token === 'user' && 'anna' })
const basic = httpBasicAuth({ authenticate: (_request, name) => name })
const isAdmin = () => true
const isOther = () => true
const limiterOf = (points: number) => ({ points, duration: 900, consume: async () => {}, reward: async () => {} })
const ruled = (f: () => boolean) => authorize(f)(admin)
const check = (principal: string) => principal
const byName = () => ({ account: 'anna' })
const directory = () => 'anyone'

const { publicKey } = generateKeyPairSync('ed25519')
const jwt = (more: object) =>
  httpJwt({ issuer: { issuer: 'https://login.example', publicKey }, audience: 'api', ...more })
const client = { id: 'api', secret: 's' }
const introspected = (path: string) =>
  httpIntrospection({ endpoint: `https://login.example/${path}`, client, audience: 'api' })

describe('S04 what is around an authenticator is in its line', () => {
  const counted = (more: object) => throttled({ limiter: limiterOf(5), ...more })(basic)
  const keyed = `[basic throttled 5/900 s or unthrottled keys ${functionName(byName)}]`
  const token = '[bearer issuer https://login.example audience b profile rfc9068 authorizedParties web]'
  const pairs: ReadonlyArray<[name: string, was: unknown, is: unknown, words: string]> = [
    ['another plain function', isAdmin, isOther, `[custom ${functionName(isOther)}]`],
    ['recovery', admin, recoverUnavailable(directory)(admin), `[bearer recoverUnavailable ${functionName(directory)}]`],
    ['throttled', basic, counted({}), '[basic throttled 5/900 s]'],
    ['flatMap', admin, flatMap(check)(admin), `[bearer flatMap ${functionName(check)}]`],
    ['authorize', ruled(isAdmin), ruled(isOther), `[bearer | authorized by ${functionName(isOther)}]`],
    ['what a guess counts under', counted({}), counted({ onStoreError: 'unthrottled', keys: byName }), keyed],
    ["fp-ts's own combinators", admin, describedAs(admin)((request) => admin(request)), '[bearer describedAs]'],
    ['a token', jwt({}), jwt({ audience: 'b', profile: 'rfc9068', authorizedParties: ['web'] }), token],
    ['endpoint', introspected('a'), introspected('b'), '[bearer endpoint https://login.example/b audience api]'],
    ['what was sent first', firstPresent([admin, basic]), anyOf([admin, basic]), '[bearer] or [basic]'],
    ['superusers', sessionAuth(), sessionAuthSuperUser(), '[session in cookie koa.sess of a superuser]'],
  ]
  const around: ReadonlyArray<[name: string, f: (a: unknown) => unknown]> = [
    ['alone', (a) => a],
    ['in a list', (a) => [apiKeyHeader({ authenticate: () => true }), a]],
    ['in a list of lists', (a) => anyOf([firstPresent([a as never, apiKeyHeader({ authenticate: () => true })])])],
    ['optional', (a) => optional(a as Authenticator<unknown>)],
    ['lenient', (a) => lenient(a as Authenticator<unknown>)],
    ['in allOf', (a) => allOf([a as never, apiKeyHeader({ authenticate: () => true })])],
    ['under scopes', (a) => requireScopes(['read'], { granted: () => [] })(a as Authenticator<unknown>)],
    ['mapped', (a) => map(() => 1)(a as Authenticator<unknown>)],
  ]
  it.each(pairs.flatMap((pair) => around.map(([where, f]) => [...pair, where, f] as const)))(
    '%s %4$s',
    (_name, was, is, words, where, f) => {
      const [before, after] = [f(was), f(is)].map((auth) => whoIn(routed(auth)))
      expect(before).not.toEqual(after)
      if (where === 'alone') expect(after).toEqual([words])
    },
  )

  it('a function without a name counts by its text', () => {
    const nameless = (text: string) => authorize((0, eval)(`(${text})`) as () => boolean)(admin)
    const texts = ['() => 1 > 0', '() => 1 > 0', '() => 2 > 0']
    const [one, same, other] = texts.map((text) => whoIn(routed(nameless(text))))
    expect(one).toEqual(same)
    expect(one).not.toEqual(other)
  })

  it('a condition is compared by its name: one less is an opening, another one a change', () => {
    const both = pipe(admin, authorize(isAdmin), authorize(isOther))
    const directions = (was: unknown, is: unknown) => {
      written(routed(was))
      const result = run([routed(is)], '--check', lock, '--json')
      if (E.isLeft(result)) throw new Error(result.left)
      const report = JSON.parse(result.right.text) as { differences: Array<{ direction: string }> }
      return report.differences.map(({ direction }) => direction)
    }
    expect(directions(both, ruled(isAdmin))).toEqual(['opened'])
    expect(directions(ruled(isAdmin), both)).toEqual(['closed'])
    expect(directions(ruled(isAdmin), ruled(isOther))).toEqual(['changed'])
  })
})

const anna = { username: 'anna', isActive: true }
type Users = { readonly loadUser?: () => typeof anna; readonly schemeName?: string; readonly refuse?: 'insufficient' }
type SessionKind = (options?: Users) => Authenticator<unknown>
// Safe: each takes these options
const sessionKinds = [
  ['sessionAuth', sessionAuth as SessionKind],
  ['sessionAuthIsStaff', sessionAuthIsStaff as SessionKind],
  ['sessionAuthSuperUser', sessionAuthSuperUser as SessionKind],
] as const
const by = () => 'anna'
// Safe: none of them is called
const cookie = apiKeyCookie({ authenticate: () => true })
const token = httpJwt({ issuer: 'https://login.example', audience: 'api' })
const made = (of: number) => (() => of) as () => never
const nothingGranted = () => []
const trusting = (auth: unknown = cookie, csrf = true) =>
  [1, 2].map((of): RouterInstance => {
    const settings = authSettings({ csrf, trustedOrigins: made(of) })
    return new Router().use(settings).post('/', guardOf(auth) as never, handle)
  })
const readers = () => requireScopes<unknown>(['read'], { granted: nothingGranted })

describe('S04 two that would have the same words', () => {
  const staff = () => httpBearer({ schemeName: 'staff', authenticate: () => 'anna' })
  const saying = (scope: string) => requireScopes(['read'], { granted: () => scope })
  const counted = () => throttled({ limiter: limiterOf(5) })(optional(staff()))
  const listed = (scoped: ReturnType<typeof readers>) => routed([basic, scoped(admin)])
  const rolled = (role: string) => authorize((principal: string) => principal === role)
  it.each<[name: string, routers: () => ReadonlyArray<RouterInstance>, fix: string]>([
    ['two kinds', () => [routed(admin, user)], 'schemeName'],
    ['two kinds in two routers', () => [routed(admin), routed(user)], 'schemeName'],
    ['two kinds in one list', () => [routed([admin, user])], 'schemeName'],
    ['two kinds with one schemeName', () => [routed(staff(), staff())], 'schemeName'],
    ['two kinds with one schemeName in two routers', () => [routed(staff()), routed(staff())], 'schemeName'],
    ['two kinds with one schemeName, inside of the same', () => [routed(counted(), counted())], 'schemeName'],
    ['inside of others', () => [routed(optional(admin), authorize(isAdmin)(user))], 'schemeName'],
    ...sessionKinds.flatMap(([kind, made]): ReadonlyArray<[string, () => ReadonlyArray<RouterInstance>, string]> => {
      const own = () => made({ loadUser: () => anna })
      const limited = () => [basic, throttled({ limiter: limiterOf(5) })(own())]
      return [
        [`two ${kind} with other users`, () => [routed(own(), own())], 'schemeName'],
        [`two ${kind} with other users in two routers`, () => [routed(own()), routed(own())], 'schemeName'],
        [`${kind} with own users, and without`, () => [routed(own(), made())], 'schemeName'],
        [`two throttled ${kind} in lists`, () => [routed(limited(), limited())], 'schemeName'],
        [`two ${kind} under scopes`, () => [routed(readers()(own()), readers()(own()))], 'schemeName'],
      ]
    }),
    ['two functions that find scopes', () => [routed(readers()(admin), saying('read')(admin))], 'granted'],
    ['two functions that find scopes, in lists', () => [listed(readers()), listed(saying('read'))], 'granted'],
    ['two that find scopes, of one factory', () => [routed(saying('read')(admin), saying('write')(admin))], 'granted'],
    ['two conditions that one factory made', () => [routed(rolled('a')(admin), rolled('b')(admin))], 'name'],
    ...['limiter', 'by', 'points'].map((option): [string, () => ReadonlyArray<RouterInstance>, string] => [
      `two ${option} of rate limits that one factory made`,
      () => [routed(...[1, 2].map((of) => rateLimit({ limiter: limiterOf(5), by, [option]: made(of) })(admin)))],
      'different names',
    ]),
    ['two functions that trust origins and that one factory made', () => trusting(), "named('a name', f)"],
    [
      'two functions that find claims and that one factory made',
      () => [routed(...[1, 2].map((of) => requireAuthentication({ maxAge: 60_000, claims: made(of) })(token)))],
      'different names',
    ],
    ['two functions', () => [routed(...['a', 'b'].map((role) => () => role))], 'different names'],
    ['two checks', () => [routed(...['a', 'b'].map((role) => flatMap(() => role)(admin)))], 'different names'],
  ])('are refused by --write, reported by --check, and refused by seal: %s', (_name, routers, fix) => {
    const text = written(...routers())
    expect(text).toMatch(/^refused: .*is not written: .*the policy file has the same words for both/)
    expect(text).toContain(fix)
    written(routed(admin))
    const result = run(routers(), '--check', lock)
    expect(E.isRight(result) && result.right.code).toBe(1)
    expect(E.isRight(result) && result.right.text).toContain('the same words for both')
    const [first, ...more] = routers()
    if (more.length === 0) expect(() => seal(first!, { lock })).toThrow('the same words for both')
  })

  it('are named once: the first that differs', () => {
    const others = [1, 2].map(() => httpBearer({ authenticate: () => 'anna' }))
    expect(written(routed(admin, ...others))).toContain('GET /1: "bearer" is not the same as in GET /0')
  })

  it('are no functions that trust origins, where the check is off or not needed', () => {
    expect([trusting(cookie, false), trusting(admin)].map((two) => written(...two)).join()).not.toContain('refused')
  })

  it('are distinguished by schemeName and by the name of a condition', () => {
    const named = (schemeName: string) => httpBearer({ schemeName, authenticate: () => 'anna' })
    const [staff, others] = [named('staff'), named('others')]
    expect(written(routed(staff, others))).not.toBe(written(routed(others, staff)))
    const isRole = (role: string) => authorize((principal: string) => principal === role, { name: role })
    expect(written(routed(isRole('a')(admin), isRole('b')(admin), isRole('a')(admin)))).toContain('authorized by b')
  })

  it('one authenticator in many combinations is never refused, and the file is the same each time', () => {
    const loadUser = () => anna
    const make = () => {
      const router = withAuth(admin)(new Router())
      const all = [
        optional(admin),
        [admin, basic],
        allOf([admin, basic]),
        authorize(isAdmin)(admin),
        authorize(isAdmin)(basic),
        map(() => 1)(admin),
        ...[1, 2].flatMap(() => [throttled({ limiter: limiterOf(5) })(basic), sessionAuth(), readers()(admin)]),
        ...sessionKinds.flatMap(([, made]) => [
          made(),
          made(),
          made({ loadUser, schemeName: 'own' }),
          optional(made({ loadUser, schemeName: 'own' })),
        ]),
        sessionAuthSuperUser({ refuse: 'insufficient' }),
        sessionAuthSuperUser({ refuse: 'insufficient' }),
        requireScopes(['read'], { granted: () => 'read' })(basic),
        requireScopes(['write'], { granted: () => 'write' })(admin),
        isAdmin,
        [isAdmin, admin],
        flatMap(check)(admin),
        recoverUnavailable(directory)(admin),
        recoverUnavailable(basic)(admin),
      ]
      all.forEach((auth, at) => router.get(`/${at}`, guardOf(auth) as never, handle))
      return router as unknown as RouterInstance
    }
    const once = written(make())
    expect(once).toMatch(/^# koa-with-auth policy 2/)
    expect(written(make())).toBe(once)
    expect(written(make(), routed(admin, optional(basic)))).toContain('GET /0; who=[bearer];')
  })
})

describe('S04 two functions of one text', () => {
  it('are refused, because each can close over other values: a name says that they are the same', () => {
    const isLong = (name?: string) => authorize((one: string) => one.length > 3, { name })(admin)
    expect(written(routed(isLong(), isLong()))).toContain('refused: ')
    expect(written(routed(isLong('long'), isLong('long')))).toContain('authorized by long')
    const one = isLong()
    expect(written(routed(one, one))).toContain('authorized by function ')
  })
})

describe('middleware without a name', () => {
  const texts = (f: unknown) => textsFor(new Router().use(f as never).get('/x', guardOf(admin) as never, handle))
  it('is another one if its text is', () => {
    const nameless = (text: string) => (0, eval)(`(${text})`) as unknown
    expect(texts(nameless('(ctx, next) => next()'))).toEqual(texts(nameless('(ctx, next) => next()')))
    expect(texts(nameless('(ctx, next) => next()'))).not.toEqual(texts(nameless('(ctx, next) => (ctx.body = 1)')))
  })
})

describe('what the text of a function cannot tell apart', () => {
  const rules = { isFor: () => true }
  const routes = (...conditions: ReadonlyArray<unknown>) => {
    const router = new Router()
    router.get('/:id', Reflect.apply(withAuth, undefined, [admin, ...conditions]) as never, handle)
    return router
  }
  const kinds: ReadonlyArray<[name: string, of: (f: () => boolean, name?: string) => RouterInstance]> = [
    ['authorize', (f, name) => routes(authorize(f, { name }))],
    ['owned, find', (f, name) => routes(owned('note', { param: 'id', find: f, name }))],
    ['owned, allow', (f, name) => routes(owned('note', { param: 'id', find: () => 1, allow: f, name }))],
    ['flatMap', (f, name) => routed(flatMap(name === undefined ? f : named(name, f))(admin))],
    ['a plain function', (f, name) => routed(name === undefined ? f : named(name, f))],
    ['revoked', (f, name) => routed(jwt({ revoked: name === undefined ? f : named(name, f) }))],
    ['recovery', (f, name) => routed(recoverUnavailable(name === undefined ? f : named(name, f))(admin))],
  ]

  it.each(kinds)('R24 %s: the file says so, and seal wants a name', (_kind, of) => {
    const bound = () => rules.isFor.bind(rules)
    expect(written(of(bound()))).toContain('(no name, bound, not compared)')
    expect(() => seal(of(bound()), { lock })).toThrow(/cannot tell a bound function from another; give it a name/)
    expect(written(of(bound(), 'rules of notes'))).toContain('rules of notes (bound, not compared)')
    expect(() => seal(of(bound(), 'rules of notes'), { lock })).not.toThrow()
    expect(() => seal(of(bound(), 'rules of others'), { lock })).toThrow(/auth.lock/)
    const other = of(() => true)
    expect(() => seal(other, { lock })).toThrow(/auth.lock/)
  })

  it.each(kinds)('%s: another text of the same name is another function', (_kind, of) => {
    const { f } = { f: () => Date.now() > 0 }
    const { f: other } = { f: () => true }
    written(of(f))
    expect(() => seal(of(f), { lock })).not.toThrow()
    Object.defineProperty(other, 'name', { value: 'f' })
    expect(() => seal(of(other), { lock })).toThrow(/auth.lock/)
    expect(() => seal(of(other, 'f'), { lock })).toThrow(/auth.lock/)
  })

  it('R24 the origins that a function trusts are in the file with a digest of it', () => {
    const trusting = (trustedOrigins: (origin: string) => boolean) => {
      const router = new Router().use(authSettings({ trustedOrigins }))
      router.post('/', withAuth(sessionAuth({ loadUser: () => ({ username: 'anna' }) })), handle)
      return router
    }
    const { trustedOrigins: strict } = { trustedOrigins: (origin: string) => origin === 'https://app.example' }
    const { trustedOrigins: open } = { trustedOrigins: () => true }
    expect(written(trusting(strict))).toMatch(/trusts=function trustedOrigins [0-9a-f]{12}/)
    expect(() => seal(trusting(open), { lock })).toThrow(/trusts=|auth.lock/)
    expect(() => seal(trusting(rulesOf.bind({})), { lock })).toThrow(/bound function/)
  })
})

const rulesOf = () => true
