/** `seal(router, { lock })`: a policy file as the list of what may be open, and of how the rest is guarded. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import Router, { type RouterInstance } from '@koa/router'
import Koa from 'koa'
import { apiKeyCookie, authSettings, httpBearer, withAuth } from 'koa-with-auth'
import { audit, seal } from 'koa-with-auth/audit'
import { afterAll, describe, expect, it } from 'vitest'
import { auditApplication } from '../../src/audit/auditApplication.js'
import { linesOf } from '../../src/audit/PolicyLine.js'
import { policyText } from '../../src/audit/policyFile.js'
import { guardOf } from '../support/levels.js'

const folder = mkdtempSync(join(tmpdir(), 'koa-with-auth-lock-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const lock = join(folder, 'auth.lock')
const keep = (audited: ReturnType<typeof audit>) => writeFileSync(lock, policyText(linesOf(audited)))

const handle = (): void => {}
function cors(_ctx: unknown, next: () => Promise<unknown>) {
  return next()
}
const bearer = guardOf(httpBearer({ authenticate: () => true })) as never
const cookie = guardOf(apiKeyCookie({ paramName: 'sid', authenticate: () => true })) as never
const open = guardOf(null) as never

const findings = (router: RouterInstance): string[] => {
  try {
    seal(router, { lock })
    return []
  } catch (error) {
    expect(error).toBeInstanceOf(TypeError)
    return (error as TypeError).message.split('\n- ').slice(1)
  }
}

describe('a router as the file says', () => {
  it('is sealed, with public operations and unguarded middleware in it; by a path or a URL', () => {
    const make = () => new Router().use(cors).get('/health', open, handle).get('/me', bearer, handle)
    keep(audit(make()))
    expect(findings(make())).toEqual([])
    const sealed = seal(make(), { lock: pathToFileURL(lock) })
    expect(() => sealed.get('/late', handle)).toThrow(/comes after seal\(router\)/)
  })

  it('one of several routers of an application; what the application sets above it is not missed', () => {
    const make = () => ({
      first: new Router().post('/order', cookie, handle),
      second: new Router().get('/health', open, handle),
    })
    const { first, second } = make()
    const app = new Koa().use(authSettings({ csrf: false })).use(cors as never)
    keep(auditApplication(app.use(first.routes()).use(second.routes()))!)
    expect(findings(make().first)).toEqual([])
    expect(findings(make().second)).toEqual([])
    // the other way round counts: off where the file says that it is checked
    keep(audit(new Router().post('/order', cookie, handle)))
    expect(findings(new Router().use(authSettings({ csrf: false }) as never).post('/order', cookie, handle))).toEqual([
      `USE /*: was absent, is unguarded authSettings (${lock})`,
      `POST /order: csrf was checked, is off (${lock})`,
    ])
  })
})

describe('what the file does not have, or has otherwise, is refused by name', () => {
  const kept = () => new Router().get('/health', open, handle).get('/me', bearer, handle)
  it.each<[name: string, router: () => RouterInstance, finding: string]>([
    [
      'opened',
      () => new Router().get('/health', open, handle).get('/me', open, handle),
      'GET /me: was bearer, is public',
    ],
    ['new', () => kept().get('/export', open, handle), 'GET /export: was absent, is public'],
    ['new, though guarded', () => kept().get('/export', bearer, handle), 'GET /export: was absent, is bearer'],
    [
      'closed',
      () => new Router().get('/health', bearer, handle).get('/me', bearer, handle),
      'GET /health: was public, is bearer',
    ],
    [
      'new middleware',
      () => new Router().use(cors).get('/health', open, handle).get('/me', bearer, handle),
      'USE /*: was absent, is unguarded cors',
    ],
  ])('%s', (_name, router, finding) => {
    keep(audit(kept()))
    expect(findings(router())).toEqual([`${finding} (${lock})`])
  })

  it('what is gone is not: the file may be that of several routers', () => {
    keep(audit(kept()))
    expect(findings(new Router().get('/me', bearer, handle))).toEqual([])
  })

  it('what no list can allow is refused, whatever the file says: undecided, and answered first by what is open', () => {
    const undecided = () => new Router().get('/x', handle)
    keep(audit(undecided()))
    expect(findings(undecided())).toEqual([expect.stringMatching(/^GET \/x is undecided/)])
    const shadowed = () => new Router().get('/:id', open, handle).get('/me', bearer, handle)
    keep(audit(shadowed()))
    expect(findings(shadowed())).toEqual([expect.stringMatching(/^GET \/me is guarded, but GET \/:id/)])
  })
})

describe('misuse', () => {
  const router = () => withAuth(httpBearer({ authenticate: () => true }))(new Router())
  it('a file that is missing, or is none', () => {
    const missing = join(folder, 'missing.lock')
    expect(() => seal(router(), { lock: missing })).toThrow(
      /^seal\(router, \{ lock \}\): .*missing\.lock: ENOENT.*; write it with koa-with-auth audit --write$/,
    )
    writeFileSync(lock, 'GET /x; public\n')
    expect(() => seal(router(), { lock })).toThrow(/auth\.lock: line 1: a policy file begins with/)
  })

  it.each([
    [{ lock: '' }, 'seal(router, { lock }) must be the path or the URL of a policy file'],
    [{ lock: 1 }, 'seal(router, { lock }) must be the path or the URL of a policy file'],
    [
      { lock, public: [] },
      'seal(router, { lock }): the policy file lists what is public; leave out public and middleware',
    ],
    [
      { lock, middleware: [] },
      'seal(router, { lock }): the policy file lists what is public; leave out public and middleware',
    ],
  ])('%j', (options, message) => {
    expect(() => seal(router(), options as never)).toThrow(new TypeError(message))
  })
})
