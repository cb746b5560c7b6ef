/** The audit and the policy file of an application with guards of its own (`guardApp`): what covers its functions, and by which settings. */
import Router from '@koa/router'
import Koa, { type Middleware } from 'koa'
import { apiKeyCookie, authSettings, guardApp, httpBasicAuth, httpBearer, optional, withAuth } from 'koa-with-auth'
import { audit, type AnyApplication } from 'koa-with-auth/audit'
import { describe, expect, it } from 'vitest'
import { readApplication } from '../../src/audit/application.js'
import { sameWordsIn } from '../../src/audit/findings.js'
import { lineText } from '../../src/audit/policy.js'
import { changesOf, textsFor } from '../support/models/audits.js'
import { addUnchecked, guardOf } from '../support/models/levels.js'
import { lineFrom } from '../support/papers/policyLines.js'
import { ask, listen } from '../support/servers/server.js'

const bearer = httpBearer({ authenticate: (_request, token) => token === 'good' && { user: 'anna' } })
const basic = httpBasicAuth({ authenticate: (_request, user) => ({ user }) })
const cookie = apiKeyCookie({ authenticate: (_request, key) => key === 'good' && { user: 'anna' } })
const files: Middleware = (ctx) => void (ctx.body = 'a file')

const below = (guard: typeof bearer | typeof basic | typeof cookie, settings: ReadonlyArray<Middleware> = []) => {
  const app = new Koa()
  for (const one of settings) app.use(one)
  guardApp(guard as typeof bearer)(app)
  return app.use(files)
}

describe('S04 a function of app.use below guardApp has a line', () => {
  it('that says what covers it, and can be read again', () => {
    const app = below(bearer)
    expect(textsFor(app)).toEqual(['USE /*; who=[bearer]; csrf=not needed; runs=files'])
    expect(textsFor(app).map((line) => lineText(lineFrom(line)!))).toEqual(textsFor(app))
    expect(String(audit(app))).toContain('/*          files      by bearer')
    expect(audit(app).middleware).toMatchObject([
      { path: '/*', functions: ['files'], guarded: 'yes', guard: { protection: 'bearer', csrf: 'not needed' } },
    ])
  })

  const routed = () => new Router().get('/x', withAuth(bearer), () => {}).routes() // prettier-ignore
  const csrf = 'csrf was not needed, is checked'
  const [opened, closed] = ['opened: USE /*: was absent, is unguarded files', 'closed: USE /*: was bearer, is gone']
  const listed = () => guardApp([bearer, basic])(new Koa()).use(files)
  const alone = () => new Koa().use(files).use(routed())
  it.each<[string, () => AnyApplication, ...differences: string[]]>([
    ['another authenticator', () => below(basic), `changed: USE /*: was bearer, is basic; ${csrf}`],
    ['a list', listed, `opened: USE /*: was bearer, is bearer, or basic; ${csrf}`],
    ['an optional guard', () => guardApp(optional(bearer))(new Koa()).use(files), opened, closed],
    ['a guard of one router alone', alone, opened, 'changed: GET /x: was absent, is bearer', closed],
  ])('%s is a difference', (_what, after, ...expected) => {
    expect(changesOf(below(bearer), after())).toEqual(expected)
  })

  it('its cross-site check is that of the settings above the guard', () => {
    const off = authSettings({ csrf: false })
    expect(textsFor(below(cookie))).toEqual(['USE /*; who=[API key in cookie key]; csrf=checked; runs=files'])
    expect(textsFor(below(cookie, [off]))).toContain('USE /*; who=[API key in cookie key]; csrf=off; runs=files')
    expect(changesOf(below(cookie), below(cookie, [off]))[0]).toContain('opened: USE /*: csrf was checked, is off')
    expect(textsFor(below(cookie).use(off))).toContain('USE /*; who=[API key in cookie key]; csrf=checked; runs=files')
    const shown = [below(cookie), below(cookie, [off])].map((app) => /files {2,}(.*)/.exec(String(audit(app)))?.[1])
    expect(shown).toEqual(['by API key in cookie key', 'by API key in cookie key; takes writes from other sites'])
  })

  it('names both guards, of which the outer one is first, and their checks together', () => {
    const app = guardApp(cookie)(guardApp(bearer)(new Koa())).use(files)
    expect(textsFor(app)).toEqual(['USE /*; who=[bearer] [API key in cookie key]; csrf=checked; runs=files'])
  })

  it('is none for a function of a router that its guard covers; a guard after its handler adds nothing', () => {
    const router = withAuth(cookie)(new Router()).get('/x', () => {}).use(files) // prettier-ignore
    expect(textsFor(guardApp(bearer)(new Koa()).use(router.routes())).join()).not.toContain('USE')
    const late = addUnchecked(new Router(), '/x', () => {}, guardOf(cookie))
    const [line, ...more] = textsFor(guardApp(bearer)(new Koa()).use(late.routes()))
    expect([line, more]).toEqual([expect.stringContaining('GET /x; who=[bearer]; '), []])
  })

  it.each([
    'USE /*; bearer; runs files',
    'USE /*; who=[bearer]; csrf=off',
    'USE /*; who=unguarded; by=operation; runs=files',
  ])('%s is no line', (line) => {
    expect(lineFrom(line)).toBeUndefined()
  })
})

describe('S04 a name that two guards of an application would share', () => {
  it('is found, also between guardApp and an operation', () => {
    const other = httpBearer({ authenticate: () => false as const })
    const app = guardApp(bearer)(new Koa()).use(new Router().get('/x', withAuth(other), () => {}).routes())
    expect(sameWordsIn(readApplication(app)!.deciders).map(({ message }) => message)).toEqual([
      'GET /x: "bearer" is not the same as in guardApp(a), and the policy file has the same words for both',
    ])
    const same = guardApp(bearer)(new Koa()).use(new Router().get('/x', withAuth(bearer), () => {}).routes())
    expect(sameWordsIn(readApplication(same)!.deciders)).toEqual([])
  })
})

describe('S10 the cross-site check of an operation below guardApp is what a write meets', () => {
  const A = 'https://a.example'
  const off = () => authSettings({ csrf: false })
  const trusting = (...trustedOrigins: string[]) => authSettings({ trustedOrigins })
  const on = (trustedOrigins: string[] = []) => authSettings({ csrf: true, trustedOrigins })
  const answer = ((ctx) => void (ctx.body = 'done')) as Middleware
  // Safe: both are authenticators, or none
  const router = (auth: typeof cookie | null) =>
    new Router().post('/x', withAuth(auth as never) as never, answer).routes()
  const outer = apiKeyCookie({ paramName: 'outer', authenticate: (_, key) => key === 'good' && { user: 'anna' } })
  const write = async (app: Koa) => {
    const served = await listen(app)
    const headers = { Origin: 'https://a.example', Cookie: 'key=good; outer=good', 'Sec-Fetch-Site': 'cross-site' }
    return (await ask(`${served.url}/x`, { method: 'POST', headers })).status
  }

  it.each<[string, ReadonlyArray<Middleware>, ReadonlyArray<Middleware>, typeof cookie | null, string, number]>([
    ['off above the guard, for everyone below', [off()], [on()], null, 'off', 200],
    ['off above the guard, an origin above the router', [off()], [on([A])], cookie, `checked ${A}`, 200],
    ['off above the router only, for everyone below', [], [off()], null, 'checked', 403],
    ['off above the guard, checked by the operation', [off()], [on()], cookie, 'checked', 403],
    ['off above the router only', [], [off()], cookie, 'checked', 403],
    ['off above both', [off()], [], cookie, 'off', 200],
    ['an origin of both', [trusting(A)], [], cookie, `checked ${A}`, 200],
    ['an origin of the router', [], [trusting(A)], cookie, 'checked', 403],
    ['an origin of the guard', [trusting(A)], [trusting('https://b.example')], null, `checked ${A}`, 200],
  ])('%s', async (_what, above, between, auth, expected, status) => {
    const app = new Koa()
    for (const one of above) app.use(one)
    guardApp(outer)(app)
    for (const one of between) app.use(one)
    app.use(router(auth))
    const [{ csrf, trustedOrigins } = { csrf: '', trustedOrigins: [] }] = audit(app).operations
    expect([csrf, ...trustedOrigins].join(' ')).toBe(expected)
    expect(await write(app)).toBe(status)
  })

  it('is that of the operation, if no browser sends the credential of guardApp by itself', () => {
    const app = guardApp(bearer)(new Koa().use(on())).use(off()).use(router(cookie))
    expect(audit(app).operations).toMatchObject([{ csrf: 'off' }])
  })
})
