/**
 * Help for developers. It listens to the records of guards; they know nothing of it.
 *
 * `NODE_DEBUG=koa-with-auth` prints each decision to stderr, without a credential or a principal. `audit` prints the requirements
 * of each router.
 */
import { debuglog } from 'node:util'
import { foreignOrigins } from '../core/CrossOrigin.js'
import { decisions, type Decision } from '../core/events.js'

const log = debuglog('koa-with-auth')

const withCause = (failure: string, why: string | undefined): string =>
  why === undefined || why === failure ? failure : `${failure}: ${why}`

const decisionInWords = (decision: Decision): string => {
  const { method, route, status, outcome, failure, why: cause, scheme, branches = [], level, durationMs } = decision
  const why = failure === undefined || failure === outcome ? '' : ` (${withCause(failure, cause)})`
  const by = scheme === undefined ? '' : ` by ${scheme}`
  const tried = branches.map(
    (branch) => `${branch.scheme} ${branch.skipped === true ? 'skipped' : withCause(branch.failure, branch.why)}`,
  )
  const each = tried.length === 0 ? '' : `: ${tried.join(', ')}`
  return `${method} ${route} ${status} ${outcome}${why}${by}${each}; ${level}, ${durationMs.toFixed(2)} ms`
}

const listeningMark: unique symbol = Symbol.for('koa-with-auth/development')

const listen = (): void => {
  // Safe: only decisions are published on this channel
  decisions.subscribe((record) => log('%s', decisionInWords(record as Decision)))
  // Both are shown as strings, because a client has chosen them
  foreignOrigins.subscribe((compared) => log('refused as the request of another site: %j', compared))
}

// The process has one channel, but may have two copies of the package
const listened: typeof decisions & { [listeningMark]?: true } = decisions
if (log.enabled && listened[listeningMark] === undefined) {
  listened[listeningMark] = true
  listen()
}
