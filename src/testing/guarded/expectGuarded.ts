/**
 * `expectGuarded` checks that every operation of a served application refuses callers who are not authenticated.
 *
 * It starts the application on a free port. It sends each operation requests without a credential, with hostile and
 * wrong ones in all places that its description names, and with repeated ones. No handler runs meanwhile. It does not
 * check operations that no router has, or what `use` middleware answers itself.
 */
import { checkOptions, list, maybe, positive, unchecked, type Checks } from '../../core/options.js'
import { checkAll, type CheckedOperation, type GuardedOptions } from './checkOperations.js'
import { checkRouter } from '../../koa/routers.js'
import type { RouterInstance } from '../../koa/routerTypes.js'
import { testedOf } from './operations.js'
import { serve, type Application } from './serve.js'
import { layTripwires } from './tripwires.js'

const checks: Checks<GuardedOptions> = {
  public: maybe(list),
  valid: maybe(list),
  fields: maybe(list),
  statuses: maybe(list),
  within: maybe(positive),
  params: unchecked,
  paths: unchecked,
}
const DEFAULT_WITHIN = 5000

/**
 * Sends requests without a credential, and with wrong ones, to every operation of a router that is mounted in `app`. It resolves to
 * a list of what was checked. It rejects with `LawViolations`, which lists every violation: a wrong status, a missing challenge, a
 * handler that would have run, a credential in an answer, an operation that is public and not listed. Rejects with a TypeError for
 * options that cannot work.
 *
 * @example
 * import Router from '@koa/router'
 * import Koa from 'koa'
 * import { httpBearer, withAuth } from 'koa-with-auth'
 * import { expectGuarded } from 'koa-with-auth/testing'
 *
 * const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 * const router = withAuth(bearer)(new Router())
 * router.get('/pets/:id', (ctx) => {
 *   ctx.body = 'Rex'
 * })
 * router.get('/health', withAuth(null), (ctx) => {
 *   ctx.body = 'ok'
 * })
 * const app = new Koa().use(router.routes())
 *
 * const checked = await expectGuarded(app, router, { public: ['GET /health'] })
 * assert.deepStrictEqual(
 *   checked.map(({ operation, protection }) => `${operation}: ${protection}`),
 *   ['GET /pets/:id: guarded', 'GET /health: public'],
 * )
 */
export const expectGuarded = async (
  app: Application,
  router: object,
  given: GuardedOptions = {},
): Promise<ReadonlyArray<CheckedOperation>> => {
  const place = 'expectGuarded(app, router)'
  const options = checkOptions('expectGuarded(app, router, options)', given, checks)
  const { within = DEFAULT_WITHIN } = options
  const mounted: RouterInstance = checkRouter(place, router)
  const operations = testedOf(mounted, options)
  if (operations.length === 0)
    throw new TypeError(`${place}: the router has no operations; pass the one that is mounted`)
  const wires = layTripwires(mounted, operations)
  try {
    const served = await serve(app, within)
    try {
      return await checkAll(served, wires, operations, options)
    } finally {
      await served.close()
    }
  } finally {
    wires.remove()
  }
}
