/**
 * The findings for which `seal` refuses a router. Each names the operation and the fix.
 *
 * An operation that lets in anonymous callers must be public on purpose. So it must be listed, also with
 * `optional(...)`. And no unlisted function may answer before a guard.
 */
import { isSettings } from '../koa/authSettings.js'
import { isGuard } from '../koa/guardMark.js'
import { originalOf } from '../koa/layer.js'
import { isEntryOf, listedName, whyMissing } from '../koa/publicList.js'
import type { Audit, AuditedOperation, Shadow } from './Audit.js'
import type { Reading } from './auditRouter.js'
import { middlewareName } from './middleware.js'
import type { Route } from './Route.js'

/** What may be open, and what may run unguarded: the options of `seal`. */
export interface Allowed {
  readonly public: ReadonlyArray<string>
  readonly middleware: ReadonlyArray<Function>
}

/** Everything about a router that is not allowed. */
export const findingsOf = (reading: Reading, audit: Audit, allowed: Allowed): ReadonlyArray<string> => {
  const isUnlisted = unlistedAmong(reading, allowed)
  return [
    ...audit.operations.flatMap((operation, at) => openness(operation, reading.routes[at]!, allowed)),
    ...audit.operations.flatMap(shadowing),
    ...reading.routes.flatMap(({ name, ahead, guard }, at) =>
      // middleware before the guard of a public operation is as public as the operation
      guard === undefined || audit.operations[at]?.access !== 'guarded'
        ? []
        : ahead.filter(isUnlisted).map(beforeGuard(name)),
    ),
    ...reading.middleware
      .filter(({ guarded }) => guarded === 'no')
      .flatMap(({ path, functions }) => functions.filter(isUnlisted).map(unguarded(path))),
    ...allowed.public.flatMap((entry) => listing(entry, reading.routes, audit.operations)),
  ]
}

/**
 * What no list can allow: operations that are undecided, decided twice or for tests, and guarded ones that an open one answers first.
 */
export const neverAllowed = (reading: Reading, audit: Audit): ReadonlyArray<string> => [
  ...audit.operations.flatMap((operation, at) => undecided(operation, reading.routes[at]!)),
  ...audit.operations.flatMap(shadowing),
]

const undecided = ({ operation, access, decidedBy }: AuditedOperation, route: Route): ReadonlyArray<string> => {
  if (route.guard?.isForTests === true) {
    return [`${operation}: withPrincipal admits everyone and is for tests only: seal the original router`]
  }
  if (route.functions.filter(isGuard).length > 1) return [`${operation}: withAuth(...) is in it twice; remove one`]
  if (access !== 'undecided') return []
  return decidedBy.length > 0
    ? [`${operation}: its withAuth(...) comes after the handler and guards nothing; write it right after the path`]
    : [`${operation} is undecided: guard it or its router, or write withAuth(null) and list it`]
}

const openness = (audited: AuditedOperation, route: Route, allowed: Allowed): ReadonlyArray<string> => {
  const { operation, access, protection } = audited
  const never = undecided(audited, route)
  if (never.length > 0) return never
  const isListed = allowed.public.some((entry) => isEntryOf(route, entry))
  if (access === 'guarded' || isListed) return []
  const fix = `list '${listedName(route)}' in public`
  return access === 'public'
    ? [`${operation} is public: guard it, or ${fix}`]
    : [`${operation} lets anonymous callers in (${protection}): remove that, or ${fix}`]
}

const shadowing = ({ operation, access, shadowedBy }: AuditedOperation): ReadonlyArray<string> =>
  access !== 'guarded' ? [] : shadowedBy.filter((shadow) => shadow.access !== 'guarded').map(inFront(operation))

const inFront =
  (operation: string) =>
  (shadow: Shadow): string => {
    const other = `${shadow.operation}, which is ${shadow.access},`
    const fix = `register ${operation} where it is tried before ${shadow.operation}`
    switch (shadow.extent) {
      case 'all':
        return `${operation} is guarded, but ${other} answers it first: ${fix}`
      case 'part':
        return `${operation} is guarded, but ${other} answers ${shadow.example ?? 'some of it'} first: ${fix}`
      case 'unknown':
        return `${operation} is guarded, and it is not known whether ${other} answers it first, because of a RegExp or of several captures in one segment: ${fix}`
    }
  }

// dd-trace wraps functions when they are added, and keeps their names. So if a listed function is nowhere in the
// router, a function with its name counts as the listed one.
const unlistedAmong = ({ routes, middleware }: Reading, allowed: Allowed): ((f: Function) => boolean) => {
  const present = new Set([...routes, ...middleware].flatMap(({ functions }) => functions.map(originalOf)))
  const wrapped = allowed.middleware.filter((f) => f.name !== '' && !present.has(f))
  return (f) => {
    const original = originalOf(f)
    const isWrapped = wrapped.some(({ name, length }) => name === original.name && length === original.length)
    return !isSettings(f) && !allowed.middleware.includes(original) && !isWrapped
  }
}

const beforeGuard =
  (operation: string) =>
  (f: Function): string =>
    `${operation}: ${middlewareName(f)} runs before the guard: put it after withAuth(...), or list the function in middleware`

const unguarded =
  (path: string) =>
  (f: Function): string =>
    `use ${path}: no guard covers ${middlewareName(f)}: list the function itself in middleware, or remove it`

const listing = (
  entry: string,
  routes: ReadonlyArray<Route>,
  operations: ReadonlyArray<AuditedOperation>,
): ReadonlyArray<string> => {
  const named = operations.filter((_, at) => isEntryOf(routes[at]!, entry))
  const [first] = named
  if (first === undefined) {
    const open = operations.filter(({ access }) => access === 'public' || access === 'optional')
    const known = open.map(({ operation }) => `'${operation}'`).join(', ') || 'none'
    const why = whyMissing(entry, routes) ?? `there is no such operation; anonymous callers reach: ${known}`
    return [`'${entry}' is listed in public, but ${why}`]
  }
  return named.some(({ access }) => access !== 'guarded')
    ? []
    : [`'${entry}' is listed in public, but it is guarded (${first.protection}): take it off the list`]
}
