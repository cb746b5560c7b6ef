/**
 * `seal` checks the report of `audit`. Of a router, it knows nothing of middleware above (`app.use`), or of functions that answer if no operation
 * matches.
 */
import { readFileSync } from 'node:fs'
import * as E from 'fp-ts/lib/Either.js'
import { pipe } from 'fp-ts/lib/function.js'
import type { Requirement } from '../core/Requirement.js'
import type { CrossOriginPolicy } from '../core/CrossOrigin.js'
import { aheadOfParams, sealedMark, upgradeMark, withCode } from '../core/data.js'
import * as is from '../core/checks.js'
import { checkOptions, declareFactory, type Checks, type Given } from '../core/options.js'
import type { Layer, RouterInstance } from '../koa/router.js'
import { dropStatefulFlags, isApplication, isGuard, isLayer, labelOf, onMutation, originalOf } from '../koa/layer.js'
import type { AnyApplication, AnyRouter, ReadLayer } from '../koa/layer.js'
import { isEntryOf, listedName, whyMissing } from '../koa/operations.js'
import { missingParameter } from '../koa/parameters.js'
import { guardIndexIn, planned, planOf, writePlan } from '../koa/plan.js'
import { applySettings, isSettings } from '../koa/settings.js'
import type { Audit } from './Audit.js'
import type { Route } from './routes.js'
import { differencesOf, type Difference } from './Difference.js'
import { byOperation, linesOf, nameInFile, readPolicy, whoOf, type PolicyLine } from './policy.js'
import { findingsOf, linesOfRouter, sameWordsIn, uncomparedIn, type AuditFinding, type RuleName } from './findings.js'
import { auditedBy, type Audited } from './application.js'
import { isAllowedMethods } from './router.js'

type Listed = Audited['reading']

type Allowed = Required<Given<Pick<SealOptions, 'public' | 'middleware'>>>

/** The findings that the lists of a router do not allow: open operations, and functions before a guard, must be listed. */
const notAllowed = (findings: AuditFinding[], reading: Listed, audit: Audit, allowed: Allowed): string[] => {
  const isUnlisted = unlistedAmong(reading, allowed)
  const sentences = findings.flatMap((finding) => {
    const { rule, message, fix, at: [at, functionAt] = [-1, undefined] } = finding
    const route = reading.routes[at]
    switch (rule) {
      case 'undecided-operation':
      case 'answered-first':
        return [findingSentence(finding)]
      case 'open-operation':
        if (route === undefined || allowed.public.some((entry) => isEntryOf(route, entry))) return []
        return [`${message}: ${fix}, or list '${listedName(route)}' in public`]
      case 'unguarded-middleware': {
        const f = (message.startsWith('use ') ? reading.middleware[at]?.functions : route?.ahead)?.[functionAt ?? -1]
        return f === undefined || isUnlisted(f) ? [`${message}: ${fix}`] : []
      }
      // an option asks for this rule; the others are about sessions of browsers, policy files and documents
      case 'unchecked-parameter':
      case 'csrf-off':
      case 'same-words':
      case 'policy-opened':
      case 'policy-changed':
      case 'policy-closed':
      case 'document-differs':
        return []
    }
  })
  return [...sentences, ...allowed.public.flatMap((entry) => listing(entry, reading.routes, audit))]
}

const sentencesOf = (findings: ReadonlyArray<AuditFinding>, ...only: ReadonlyArray<RuleName>): ReadonlyArray<string> =>
  findings.filter(({ rule }) => only.includes(rule)).map(findingSentence)

const findingSentence = ({ message, fix }: AuditFinding): string => (fix === undefined ? message : `${message}: ${fix}`)

/** The routes that are decided twice, or for tests. Nothing else is said about them. */
const misuse = ({ name, guard, functions }: Route): string | undefined => {
  if (guard?.isForTests === true)
    return `${name}: withPrincipal admits everyone and is for tests only: seal the original router`
  return functions.filter(isGuard).length > 1 ? `${name}: withAuth(...) is in it twice; remove one` : undefined
}

const sealable = ({ routes }: Listed, audit: Audit): AuditFinding[] =>
  findingsOf(audit).filter(({ rule, at = [-1] }) => {
    const route = routes[at[0]]
    return (rule !== 'open-operation' && rule !== 'undecided-operation') || route === undefined || !misuse(route)
  })

// dd-trace wraps functions when they are added, and keeps their names. So if a listed function is nowhere in the
// router, a function with its name counts as the listed function.
const unlistedAmong = ({ routes, middleware }: Listed, allowed: Allowed): ((f: Function) => boolean) => {
  const present = new Set([...routes, ...middleware].flatMap(({ functions }) => functions.map(originalOf)))
  const wrapped = allowed.middleware.filter((f) => f.name !== '' && !present.has(f))
  return (f) => {
    const original = originalOf(f)
    const isWrapped = wrapped.some(({ name, length }) => name === original.name && length === original.length)
    // `authSettings` and `sessions` answer nothing themselves, and `allowedMethods()` of a router only names methods
    const isListed = isWrapped || allowed.middleware.includes(original)
    return !isListed && !isSettings(f) && !(upgradeMark in f) && !isAllowedMethods(f)
  }
}

const listing = (entry: string, routes: ReadonlyArray<Route>, { operations }: Audit): ReadonlyArray<string> => {
  const named = operations.filter((_, at) => isEntryOf(routes[at]!, entry))
  const [first] = named
  if (first === undefined) {
    const open = operations.filter(({ access }) => access === 'public' || access === 'optional')
    const listed = open.map(({ operation }) => `'${operation}'`).join(', ') || 'none'
    const why = whyMissing(entry, routes) ?? `there is no such operation; anonymous callers reach: ${listed}`
    return [`'${entry}' is listed in public, but ${why}`]
  }
  return named.some(({ access }) => access !== 'guarded')
    ? []
    : [`'${entry}' is listed in public, but it is guarded (${first.protection}): take it off the list`]
}

const linesIn = (caller: string, file: string | URL): ReadonlyArray<PolicyLine> => {
  const read = pipe(
    E.tryCatch(
      () => readFileSync(file),
      (error) => (error instanceof Error ? error.message : String(error)),
    ),
    E.chain(readPolicy),
  )
  if (E.isRight(read)) return read.right
  throw new Error(`${caller}: ${String(file)}: ${read.left}; write it with koa-with-auth audit --write`)
}

type CheckedLayers = ReadonlyMap<unknown, CrossOriginPolicy>

/** The cross-site check of each layer for which the file says that it is on. */
const sitesIn = (lines: ReadonlyArray<PolicyLine>, { routes }: Listed, { operations }: Audit): CheckedLayers => {
  const byName = byOperation(lines)
  return new Map(
    routes.flatMap(({ layer }, at) => {
      const named = byName.get(nameInFile(operations[at]!)) ?? []
      const own = named.filter(({ who }) => who.join() === whoOf(operations[at]!).join())
      const meant = own.length > 0 ? own : named
      return meant.length > 0 && meant.every(({ csrf }) => csrf[0] === 'checked')
        ? [[layer, { csrf: true, trustedOrigins: new Set(meant[0]!.trusts) }] as const]
        : []
    }),
  )
}

const isOfTheApplication = ({ direction, was, is }: Difference): boolean =>
  direction === 'closed' &&
  (['who', 'by', 'docs'] as const).every((name) => was?.[name].join('; ') === is?.[name].join('; '))

const refuseIn = (caller: string, what: string) => (): never => {
  throw new TypeError(`${what} comes after ${caller}, which has not checked it: write it before`)
}

const refuseChange = (what: string) => refuseIn('seal(router)', what)

const refuseLayer = (given: ReadonlyArray<unknown>): never => {
  const layer = given.find(isLayer)
  return refuseChange(layer === undefined ? 'a change of the router' : labelOf(layer))()
}

/** The guard of a sealed layer, and the function that runs at its place: the guard, or a tracer's wrapper of it. */
interface Sealed {
  readonly index: number
  readonly runs: Function
  readonly requirement: Requirement
}

// A tracer may still replace a function of a layer by a function that calls it, because it does so at `app.use`; but a guard only by a guard:
// else requests are answered with a 500. Copies (`withAuth(a)(router)`, a router that it is mounted on) are separate, and stay open
const close = (router: AnyRouter, csrf: CheckedLayers, file: string): void => {
  // Safe: reading it has checked that it is a router of @koa/router
  const closed = router as unknown as RouterInstance & { readonly [sealedMark]?: boolean }
  if (closed[sealedMark] === true) return
  for (const layer of closed.stack) closeLayer(layer, csrf.get(layer), file)
  const { match } = closed
  Object.defineProperties(closed, {
    // not writable, because the router reads it for each request
    stack: { value: Object.freeze(onMutation([...closed.stack], refuseLayer)), enumerable: true, writable: false },
    // none of these is enumerable: a router that this router is mounted on has its own
    [sealedMark]: { value: true },
    param: { value: refuseChange('router.param(...)'), configurable: true },
    prefix: { value: refuseChange('router.prefix(...)'), configurable: true },
    match: {
      value(this: RouterInstance, path: string, method: string) {
        const matched = match.call(this, path, method)
        for (const layer of matched.pathAndMethod) checkGuard(layer)
        return matched
      },
      configurable: true,
    },
  })
}

const closeApplication = (app: AnyApplication & { readonly [sealedMark]?: boolean }): void => {
  if (app[sealedMark] === true) return
  const late = refuseIn('seal(app)', 'app.use(...)')
  Object.defineProperties(app, {
    middleware: { value: Object.freeze(onMutation([...app.middleware], late)), enumerable: true, writable: false },
    use: { value: late, configurable: true },
    [sealedMark]: { value: true },
  })
}

const closeLayer = (layer: Layer, csrf: CrossOriginPolicy | undefined, file: string): void => {
  if (Object.isFrozen(layer)) return
  dropStatefulFlags(layer)
  const found = planOf(layer)
  const plan =
    csrf === undefined ? found : planned({ ...found, ahead: [...found.ahead, obeying(csrf, labelOf(layer), file)] })
  writePlan(layer, plan)
  const index = guardIndexIn(plan)
  if (plan.guard !== undefined) {
    const sealed = { index, runs: layer.stack[index], requirement: plan.guard.requirement }
    Object.defineProperty(layer, sealedMark, { value: sealed })
  }
  // a tracer can replace its elements, but nothing else can change
  Object.seal(onMutation(layer.stack, () => refuseChange(`a function of ${labelOf(layer)}`)()))
  Object.freeze(layer.methods)
  Object.freeze(layer)
}

/** Settings right before a guard, as strict as the policy file: `seal` cannot know those above the router, so they are compared here. */
const obeying = ({ trustedOrigins }: CrossOriginPolicy, operation: string, file: string): Function => {
  let isWarned = false
  const settings = applySettings((outer) => {
    const others = [...outer.trustedOrigins].filter((origin) => !trustedOrigins.has(origin))
    if (outer.csrf && others.length === 0) return outer
    if (!isWarned) {
      isWarned = true
      const what = outer.csrf ? `trust ${others.join(', ')}, too` : 'switch it off'
      process.emitWarning(
        `seal(router, { lock }): ${operation}: ${file} says that the cross-site check is on, and settings above the router ${what}; the file is obeyed. If they are meant, export the application and write the file again: koa-with-auth audit --write`,
        'SealedPolicyWarning',
      )
    }
    const both = [...outer.trustedOrigins].filter((origin) => trustedOrigins.has(origin))
    return { ...outer, csrf: true, trustedOrigins: new Set(outer.csrf ? both : trustedOrigins) }
  })
  return Object.assign(settings, { param: aheadOfParams, [sealedMark]: true })
}

const checkGuard = (layer: ReadLayer & { readonly [sealedMark]?: Sealed }): void => {
  const { [sealedMark]: sealed, stack } = layer
  if (sealed === undefined) return
  const runs = stack[sealed.index]
  if (runs === sealed.runs || (isGuard(runs) && runs.requirement === sealed.requirement)) return
  throw withCode(
    new Error(
      `${labelOf(layer)}: its guard was replaced after seal(router). A tracer that replaces functions must keep their properties, or skip those that have the property Symbol.for("koa-with-auth/guard")`,
    ),
    'ERR_GUARD_REPLACED',
  )
}

/** The operations and functions that may be open. */
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
  /**
   * Whether each parameter in the path of a guarded operation must be read by a condition: `owned` or `unchecked`. Default `false`.
   */
  readonly objects?: boolean | undefined
}

const sealChecks: Checks<SealOptions> = {
  public: is.maybe(is.listOf((one) => typeof one === 'string', "must be an array of operations such as 'GET /health'")),
  middleware: is.maybe(
    is.listOf((one) => typeof one === 'function', 'must be an array of the functions that were passed to router.use'),
  ),
  lock: is.maybe(
    is.that((value) => is.isFilled(value) || value instanceof URL, 'must be the path or the URL of a policy file'),
  ),
  objects: is.maybe(is.flag),
}

/**
 * Returns the router or the application, closed, or throws a TypeError that lists every finding with its fix:
 *
 * - an operation that no level decided about;
 * - an operation that is public or optional and not listed, and an entry of the list that matches no such operation;
 * - a guarded operation whose requests a public one answers first;
 * - middleware of `router.use`, or before a guard, that is not listed. `authSettings`, `operation` and a parser of `formAuth` need not be;
 * - with `objects`, a path parameter of a guarded operation that no condition reads;
 * - of an application, also functions of `app.use` that no `guardApp` guards. `sessions` need not be listed.
 *
 * Of an application, the routers that `app.use` mounts are closed, too, and `app.use` is a TypeError afterwards. Of a router, call it
 * before `app.use`, because some tracers replace functions there. Routes, middleware, `param` hooks and prefixes that are
 * added later are a TypeError, too. `withAuth(a)(router)` makes a copy of the router: seal the copy.
 *
 * @example
 * import { apiApp, withAuth } from 'koa-with-auth'
 * import { seal } from 'koa-with-auth/audit'
 *
 * const api = apiApp({ prefix: '/api', auth: () => ({ user: 'anna' }), docs: false })
 * api.get('/health', withAuth(null), (ctx) => {
 *   ctx.body = 'ok'
 * })
 * assert.throws(() => seal(api), /GET \/api\/health is public: guard it, or list 'GET \/api\/health' in public/)
 *
 * const routes = seal(api, { public: ['GET /api/health'] }).routes() // for app.use
 */
export const seal = <R extends AnyRouter | AnyApplication>(router: R, options: SealOptions = {}): R => {
  const isWhole = isApplication(router)
  const caller = isWhole ? 'seal(app)' : 'seal(router)'
  const { lock, objects = false, ...lists } = checkOptions(caller.replace(')', ', options)'), options, sealChecks)
  const withLock = caller.replace(')', ', { lock })')
  if (lock !== undefined && Object.keys(lists).length > 0) {
    throw new TypeError(`${withLock}: the policy file lists the public operations; leave out public and middleware`)
  }
  const { reading, audit, routers, deciders } = auditedBy('seal', router)
  const lines = lock === undefined ? [] : linesIn(withLock, lock)
  const own = linesOf(audit)
  // A router does not know the settings above it, nor the routers before it: a finding that can only come from those is no difference, if the
  // file is weaker
  const differing = isWhole
    ? differencesOf(lines, own)
    : differencesOf(linesOfRouter(lines, own), own).filter((one) => one.is !== undefined && !isOfTheApplication(one))
  const found = sealable(reading, audit)
  const findings = [
    ...reading.routes.flatMap((route) => misuse(route) ?? []),
    ...reading.routes.flatMap(({ layer }) => missingParameter(layer) ?? []),
    ...(objects ? sentencesOf(found, 'unchecked-parameter') : []),
    ...(lock === undefined
      ? notAllowed(found, reading, audit, { public: [], middleware: [], ...lists })
      : [
          // no policy file can allow these
          ...sentencesOf(found, 'undecided-operation', 'answered-first'),
          ...sameWordsIn(deciders).map(findingSentence),
          ...uncomparedIn(own),
          ...differing.map(({ text }) => `${text} (${String(lock)})`),
        ]),
  ]
  if (findings.length > 0) {
    const count = findings.length === 1 ? '1 finding' : `${findings.length} findings`
    throw withCode(new TypeError([`${caller}: ${count}`, ...findings].join('\n- ')), 'ERR_NOT_SEALED')
  }
  // of an application, all settings above its routers are known, and were compared
  const csrf = isWhole || lock === undefined ? new Map() : sitesIn(lines, reading, audit)
  for (const one of routers) close(one, csrf, String(lock))
  if (isWhole) closeApplication(router)
  return router
}

declareFactory('seal', seal)
