/** Conditions in `withAuth` and `guardApp`: the same as a pipe, in decisions, descriptions, documents and the audit. */
import Router from '@koa/router'
import { pipe } from 'fp-ts/lib/function.js'
import Koa, { type Next } from 'koa'
import {
  allOf,
  also,
  apiKeyHeader,
  authorize,
  guardApp,
  httpBearer,
  optional,
  requireScopes,
  throttled,
  withAuth,
  type AuthContext,
  type Authenticator,
} from 'koa-with-auth'
import { audit } from 'koa-with-auth/audit'
import { lenient, map } from 'koa-with-auth/fp'
import { openApi } from 'koa-with-auth/openapi'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { describe, expect, it } from 'vitest'
import * as Requirement from '../../src/core/Requirement.js'
import { listen } from '../support/servers/server.js'

const requesting = async <S, C>(app: Koa<S, C>) => {
  app.silent = true
  const { port } = await listen(app)
  const ask = async (path: string, headers: Readonly<Record<string, string>> = {}) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers })
    return { status: answer.status, challenge: answer.headers.get('www-authenticate'), text: await answer.text() }
  }
  return { ask }
}

const roles: Readonly<Record<string, string>> = { anna: 'admin', bert: 'member' }
const named = (name: string, role: string | undefined) =>
  role !== undefined && { name, role, scopes: ['read', 'write'] }
const user = httpBearer({ authenticate: (_request, token) => named(token, roles[token]) })
const key = apiKeyHeader({ authenticate: (_request, key) => key === 'k1' && { name: 'cron', role: 'admin' } })
interface Named {
  readonly name: string
  readonly role: string
}
const isAdmin = ({ role }: Named): boolean => role === 'admin'
const isShort = ({ name }: Named): boolean => name.length < 5

const conditions = [
  requireScopes(['write'], { granted: (one: Named & { readonly scopes: readonly string[] }) => one.scopes }),
  authorize(isAdmin),
  authorize(isShort),
] as const

describe('conditions of withAuth', () => {
  const written = new Router()
  written.get('/x', withAuth(user, ...conditions), (ctx) => void (ctx.body = ctx.request.auth))
  const piped = new Router()
  piped.get('/x', withAuth(pipe(user, ...conditions)), (ctx) => void (ctx.body = ctx.request.auth))

  it('decide and answer as the same pipe does', async () => {
    const [one, other] = await Promise.all(
      [written, piped].map(async (router) => {
        const { ask } = await requesting(new Koa().use(router.routes()))
        const sent = ['rejecting', 'bert', 'anna'].map((token) => ({ authorization: `Bearer ${token}` }))
        return Promise.all([{}, ...sent].map((headers) => ask('/x', headers)))
      }),
    )
    expect(one?.map(({ status }) => status)).toStrictEqual([401, 401, 403, 200])
    expect(one).toStrictEqual(other)
  })

  it('are described, documented and audited as the same pipe', () => {
    const info = { title: 'X', version: '1' }
    expect(openApi(written, info)).toStrictEqual(openApi(piped, info))
    expect(audit(written).operations).toStrictEqual(audit(piped).operations)
    expect(JSON.stringify(audit(written).operations)).toContain('isAdmin')
  })

  it('are composed once, when the guard is made, from left to right', () => {
    const calls: string[] = []
    const noting =
      (name: string) =>
      <P>(a: Authenticator<P>): Authenticator<P> => {
        calls.push(name)
        return a
      }
    const [a, b, c, d, e, f] = ['a', 'b', 'c', 'd', 'e', 'f'].map(noting)
    withAuth(user, a!, b!, c!, d!, e!, f!, { then: [] })
    expect(calls.join('')).toBe('abcdef')
  })

  it('may follow a list, a plain function, a group, and also(a), and come before a router and options', async () => {
    const router = withAuth(key, authorize(isAdmin))(new Router())
    const seen: unknown[] = []
    router.get('/level', (ctx) => (ctx.body = ctx.request.auth.name))
    router.get('/list', withAuth([user, key], authorize(isAdmin)), (ctx) => (ctx.body = ctx.request.auth.name))
    const group = withAuth(allOf({ user, key }), authorize((both) => isShort(both.user))) // prettier-ignore
    router.get('/group', group, (ctx) => (ctx.body = ctx.request.auth.key.name))
    const ofAddress = withAuth((request) => ({ ip: request.ip }), authorize(({ ip }) => ip === 'x')) // prettier-ignore
    router.get('/function', ofAddress, () => {})
    const then = [(ctx: AuthContext<unknown>, next: Next) => (seen.push(ctx.request.auth), next())]
    const added = withAuth(also(user), authorize(isAdmin), { then })
    router.get('/also', added, (ctx) => (ctx.body = ctx.request.auth.own.name))
    // as the levels of a router join them
    const joined = Requirement.Monoid.concat(also(user), also(key)) as Requirement.Also<Named>
    router.get('/both', withAuth(joined, authorize(isAdmin)), (ctx) => (ctx.body = ctx.request.auth.own.name))
    const mapped = withAuth(user, authorize(isAdmin), map(({ name }) => name)) // prettier-ignore
    router.get('/mapped', mapped, (ctx) => (ctx.body = ctx.request.auth))
    const name = (auth: { name: string } | undefined) => auth?.name ?? 'a guest'
    router.get('/optional', withAuth(user, authorize(isAdmin), optional), (ctx) => (ctx.body = name(ctx.request.auth)))
    router.get('/lenient', withAuth(user, lenient), (ctx) => (ctx.body = name(ctx.request.auth)))
    const { ask } = await requesting(new Koa().use(router.routes()))
    const asked = async (path: string, token?: string, sent = 'k1') => {
      const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` }
      const { status, text } = await ask(path, { key: sent, ...authorization })
      return [status, status === 200 ? text : undefined]
    }
    expect(await asked('/level')).toEqual([200, 'cron'])
    expect(await asked('/level', undefined, 'k2')).toEqual([401, undefined])
    expect(await asked('/list', 'bert')).toEqual([403, undefined])
    expect(await asked('/list', 'anna')).toEqual([200, 'anna'])
    expect(await asked('/list')).toEqual([200, 'cron'])
    expect(await asked('/group', 'anna')).toEqual([200, 'cron'])
    expect(await asked('/function')).toEqual([403, undefined])
    expect(await asked('/also', 'bert')).toEqual([403, undefined])
    expect(await asked('/also', 'anna', 'k2')).toEqual([401, undefined])
    expect(await asked('/also', 'anna')).toEqual([200, 'anna'])
    expect(seen).toMatchObject([{ inherited: { name: 'cron' }, own: { name: 'anna' } }])
    expect(await asked('/both')).toEqual([401, undefined])
    expect(await asked('/both', 'bert')).toEqual([200, 'cron'])
    expect(await asked('/mapped', 'anna')).toEqual([200, 'anna'])
    expect(await asked('/optional', 'anna')).toEqual([200, 'anna'])
    expect(await asked('/optional', 'bert')).toEqual([403, undefined])
    expect(await asked('/optional')).toEqual([200, 'a guest'])
    expect(await asked('/lenient', 'rejecting')).toEqual([200, 'a guest'])
  })

  it('of guardApp decide about all requests', async () => {
    const app = guardApp(user, authorize(isAdmin), { middleware: [] })(new Koa())
    app.use((ctx) => void (ctx.body = ctx.request.auth.name))
    const { ask } = await requesting(app)
    const status = async (token: string) => (await ask('/', { authorization: `Bearer ${token}` })).status
    expect([await status('rejecting'), await status('bert'), await status('anna')]).toEqual([401, 403, 200])
  })
})

describe('what is no condition is a TypeError when the guard is made', () => {
  const good = authorize(isAdmin)
  const guards = [withAuth, guardApp] as ReadonlyArray<(...all: unknown[]) => unknown>
  const a: unknown = user
  it.each<readonly [string, readonly unknown[], RegExp]>([
    ['undefined', [a, undefined], /argument 2 is undefined; is it imported before it is defined/],
    ['undefined before a condition', [a, undefined, good], /argument 2 is undefined/],
    ['undefined after a condition', [a, good, undefined], /argument 3 is undefined/],
    ['undefined before options', [a, good, undefined, {}], /argument 3 is undefined/],
    ['an authenticator that is undefined', [undefined, good], /must be an authenticator|undefined/],
    ['null', [null, good], /takes no conditions/],
    ['null and undefined', [null, undefined], /argument 2 is undefined/],
    ['a factory', [a, authorize], /argument 2 is authorize itself; call it/],
    ['an authenticator', [a, key], /argument 2 is an authenticator, not a condition; write \w+\(\[a, b\]\)/],
    ['a condition first', [good, a], /authorize\(\.\.\.\), a condition; write it after the authenticator: withAuth/],
    ['a guard', [a, withAuth(key)], /argument 2 is a guard/],
    ['a handler', [a, (_ctx: unknown, next: () => unknown) => next()], /takes 2 parameters.+a handler goes after/],
    ['an async handler', [a, async (ctx: unknown) => void ctx], /async function/],
    ['a handler that returns nothing', [a, (ctx: unknown) => void ctx], /returned undefined, not an authenticator/],
    ['a function that returns a string', [a, () => 'yes'], /returned a string, not an authenticator/],
    ['options before a condition', [a, {}, good], /argument 2 must be a function, not an object/],
    ['a string', [a, good, 'admin'], /takes an object of options, not a string/],
    ['a list', [a, [good]], /takes an object of options, not an array/],
    ['an unknown option', [a, good, { granted: 1 }], /no option "granted"/],
    ['a condition of what also admits anonymous callers', [optional(user), good], /a is optional/],
    ['a condition after optional', [a, optional, good], /a is optional/],
  ])('%s', (_name, given, message) => {
    for (const guard of guards) {
      expect(() => guard(...given)).toThrow(TypeError)
      expect(() => guard(...given)).toThrow(message)
    }
  })

  it('an error of a condition says what is wrong, as in a pipe', () => {
    const limited = throttled({ limiter: new RateLimiterMemory({ points: 5, duration: 900 }) })
    expect(() => withAuth(({ ip }) => ip, limited)).toThrow(/a is a plain function, whose credential is unknown/)
  })
})
