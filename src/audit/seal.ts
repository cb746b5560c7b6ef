/**
 * `seal` refuses a router at the start, unless everything that anonymous callers reach is listed.
 *
 * It checks the report of `audit`. It knows nothing of middleware above the router (`app.use`), or of what answers if
 * no operation matches.
 */
import { declareFactory } from '../core/hooks.js'
import { checkOptions, maybe, type Check, type Checks } from '../core/options.js'
import type { AnyRouter } from '../koa/RoutedOperation.js'
import { auditOf, readingOf } from './auditRouter.js'
import { findingsOf, neverAllowed } from './findings.js'
import { policyFindings } from './sealedPolicy.js'
import { close } from './sealing.js'

/** What may be open. */
export interface SealOptions {
  /**
   * The operations that let in anonymous callers, including `optional(...)`. Write them as the audit does, with all prefixes:
   * `GET /health`, or `ALL /proxy` for `router.all`. An entry for a docs page includes the files that the page loads, but not its
   * OpenAPI document. `docs` means all of these. Default: none.
   */
  readonly public?: ReadonlyArray<string> | undefined
  /**
   * Functions that may run without a guard, such as CORS or a body parser. They are compared by identity. If a tracer wrapped a
   * function, so that it is nowhere in the router, it is compared by name. Default: none.
   */
  readonly middleware?: ReadonlyArray<Function> | undefined
  /**
   * A policy file that `koa-with-auth audit --write` made. It replaces both lists. Everything in the router that is not
   * in the file, or differs from it, is a finding. A path is relative to the working directory. The file is read when
   * `seal` is called, so deploy it with the application.
   */
  readonly lock?: string | URL | undefined
}

const listOf =
  (type: 'string' | 'function', what: string): Check =>
  (place, value) => {
    if (Array.isArray(value) && value.every((each) => typeof each === type)) return
    throw new TypeError(`${place} must be an array of ${what}`)
  }

const checks: Checks<SealOptions> = {
  public: maybe(listOf('string', "operations such as 'GET /health'")),
  middleware: maybe(listOf('function', 'the functions that were passed to router.use')),
  lock: maybe((place, value) => {
    if ((typeof value === 'string' && value !== '') || value instanceof URL) return
    throw new TypeError(`${place} must be the path or the URL of a policy file`)
  }),
}

/**
 * Returns the router, closed, or throws a TypeError that lists every finding with its fix:
 *
 * - an operation that no level decided about;
 * - an operation that is public or optional and not listed, and an entry of the list that matches no such operation;
 * - a guarded operation whose requests a public one answers first;
 * - middleware of `router.use`, or before a guard, that is not listed. `authSettings` and `operation` need not be.
 *
 * Call it before `app.use`, because some tracers replace functions there. Routes, middleware, `param` hooks and prefixes that are
 * added later are a TypeError, too. `withAuth(a)(router)` makes a copy of the router: seal the copy.
 *
 * @example
 * import Koa from 'koa'
 * import { apiApp, httpBearer, withAuth } from 'koa-with-auth'
 * import { seal } from 'koa-with-auth/audit'
 *
 * const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 * const api = apiApp({ prefix: '/api', auth: bearer, docs: false })
 * api.get('/health', withAuth(null), (ctx) => {
 *   ctx.body = 'ok'
 * })
 * api.get('/me', (ctx) => {
 *   ctx.body = ctx.request.auth.user
 * })
 *
 * assert.throws(() => seal(api), /GET \/api\/health is public: guard it, or list 'GET \/api\/health' in public/)
 *
 * const app = new Koa()
 * app.use(seal(api, { public: ['GET /api/health'] }).routes())
 */
export const seal = <R extends AnyRouter>(router: R, options: SealOptions = {}): R => {
  const { lock, ...lists } = checkOptions('seal(router, options)', options, checks)
  if (lock !== undefined && Object.keys(lists).length > 0) {
    throw new TypeError('seal(router, { lock }): the policy file lists what is public; leave out public and middleware')
  }
  const reading = readingOf('seal(router)', router)
  const audit = auditOf(reading)
  const findings =
    lock === undefined
      ? findingsOf(reading, audit, { public: [], middleware: [], ...lists })
      : [...neverAllowed(reading, audit), ...policyFindings('seal(router, { lock })', lock, audit)]
  if (findings.length > 0) {
    const count = findings.length === 1 ? '1 finding' : `${findings.length} findings`
    throw new TypeError([`seal(router): ${count}`, ...findings].join('\n- '))
  }
  close(router)
  return router
}

declareFactory('seal', seal)
