/** `seal(router, { lock })`: the policy file lists what may be open, and how the rest is guarded. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import Router, { type RouterInstance } from '@koa/router'
import Koa from 'koa'
import { authSettings } from 'koa-with-auth'
import { audit, seal } from 'koa-with-auth/audit'
import { describe, expect, it } from 'vitest'
import { findingsOfDifferences } from '../../src/audit/findings.js'
import { closed, cookie as ambient, cors, guard, handle, open } from '../support/models/audits.js'
import { policyFile } from '../support/papers/policyFile.js'
import { guardOf } from '../support/models/levels.js'

const { folder, lock, keep } = policyFile()

const cookie = guardOf(ambient) as never

const findings = (router: RouterInstance): string[] => {
  try {
    seal(router, { lock })
    return []
  } catch (error) {
    expect(error).toBeInstanceOf(TypeError)
    return (error as TypeError).message.split('\n- ').slice(1)
  }
}

describe('a router that agrees with its policy file', () => {
  it('is sealed, with its public operations and its unguarded middleware; the file is a path or a URL', () => {
    const make = () => new Router().use(cors).get('/health', open, handle).get('/me', guard, handle)
    keep(audit(make()))
    expect(findings(make())).toEqual([])
    const sealed = seal(make(), { lock: pathToFileURL(lock) })
    expect(() => sealed.get('/late', handle)).toThrow(/comes after seal\(router\)/)
  })

  it('may be one of several routers; seal does not see the settings of the application above it', () => {
    const make = () => ({
      first: new Router().post('/order', cookie, handle),
      second: new Router().get('/health', open, handle),
    })
    const { first, second } = make()
    const app = new Koa().use(authSettings({ csrf: false })).use(cors as never)
    keep(audit(app.use(first.routes()).use(second.routes())))
    expect(findings(make().first)).toEqual([])
    expect(findings(make().second)).toEqual([])
    // The opposite is refused: the check is off although the file says that it is on
    keep(audit(new Router().post('/order', cookie, handle)))
    expect(findings(new Router().use(authSettings({ csrf: false }) as never).post('/order', cookie, handle))).toEqual([
      `USE /*: was absent, is unguarded authSettings (${lock})`,
      `POST /order: csrf was checked, is off (${lock})`,
    ])
  })
})

describe('a router whose operations have the names of another router', () => {
  const first = () => new Router().get('/me', cookie, handle)
  const second = () => new Router().get('/me', guard, handle)
  const keepApplication = (...routers: RouterInstance[]) => {
    const app = new Koa()
    for (const router of routers) app.use(router.routes())
    keep(audit(app))
  }
  it('is sealed with the file of the application, in which the other one answers first', () => {
    keepApplication(first(), second())
    expect([findings(first()), findings(second())]).toEqual([[], []])
  })

  it('is refused if its own operations changed places', () => {
    const both = (...guards: never[]) =>
      guards.reduce((router, guard) => router.get('/me', guard, handle), new Router())
    keepApplication(first(), both(guard, open))
    expect(findings(both(guard, open))).toEqual([])
    expect(findings(both(open, guard)).join()).toContain('GET /me')
  })
})

describe('a router that differs from its policy file', () => {
  const of = (health: never, me: never, router = new Router()) =>
    router.get('/health', health, handle).get('/me', me, handle)
  const kept = () => of(open, guard)
  it.each<[name: string, router: () => RouterInstance, finding: string]>([
    ['opened', () => of(open, open), 'GET /me: was bearer, is public'],
    ['new', () => kept().get('/export', open, handle), 'GET /export: was absent, is public'],
    ['new, and guarded', () => kept().get('/export', guard, handle), 'GET /export: was absent, is bearer'],
    ['closed', () => of(guard, guard), 'GET /health: was public, is bearer'],
    ['new middleware', () => of(open, guard, new Router().use(cors)), 'USE /*: was absent, is unguarded cors'],
  ])('is refused: %s', (_name, router, finding) => {
    keep(audit(kept()))
    expect(findings(router())).toEqual([`${finding} (${lock})`])
  })

  it('may lack operations of the file, which can describe several routers', () => {
    keep(audit(kept()))
    expect(findings(new Router().get('/me', guard, handle))).toEqual([])
  })

  it('is refused if a public operation answers first or if no level decided, even if the file says so', () => {
    const undecided = () => new Router().get('/x', handle)
    keep(audit(undecided()))
    expect(findings(undecided())).toEqual([expect.stringMatching(/^GET \/x is undecided/)])
    const shadowed = () => new Router().get('/:id', open, handle).get('/me', guard, handle)
    keep(audit(shadowed()))
    expect(findings(shadowed())).toEqual([expect.stringMatching(/^GET \/me is guarded, but GET \/:id/)])
  })
})

it.each<[direction: 'opened' | 'changed' | 'closed', severity: string]>([
  ['opened', 'error'],
  ['changed', 'warning'],
  ['closed', 'note'],
])('a difference that %s is a finding: %s', (direction, severity) => {
  const differences = [{ direction, operation: 'GET /x', text: 'GET /x: was bearer' }]
  const finding = { severity, operation: 'GET /x', message: 'GET /x: was bearer', line: undefined }
  expect(findingsOfDifferences(differences)).toEqual([{ rule: `policy-${direction}`, ...finding }])
  expect(findingsOfDifferences(differences, 'document')).toEqual([{ rule: 'document-differs', ...finding }])
})

describe('misuse of seal with a policy file', () => {
  it('a file that is missing or is not a policy is refused', () => {
    const missing = join(folder, 'missing.lock')
    expect(() => seal(closed(), { lock: missing })).toThrow(
      /^seal\(router, \{ lock \}\): .*missing\.lock: ENOENT.*; write it with koa-with-auth audit --write$/,
    )
    writeFileSync(lock, 'GET /x; public\n')
    expect(() => seal(closed(), { lock })).toThrow(/auth\.lock: line 1: a policy file begins with/)
  })

  const twice = 'seal(router, { lock }): the policy file lists the public operations; leave out public and middleware'
  it.each([
    [{ lock: '' }, 'seal(router, { lock }) must be the path or the URL of a policy file'],
    [{ lock: 1 }, 'seal(router, { lock }) must be the path or the URL of a policy file'],
    [{ lock, public: [] }, twice],
    [{ lock, middleware: [] }, twice],
  ])('the options %j are a TypeError', (options, message) => {
    expect(() => seal(closed(), options as never)).toThrow(new TypeError(message))
  })
})
