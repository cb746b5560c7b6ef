/** The protection of each operation of a router, as plain data to store and compare, and as a table. */
import type { UncheckedParameter } from '../core/Description.js'
import type { AuditedUpstream } from '../koa/upstreams.js'
import type { AccessPath } from './Way.js'

// A path can contain any character, also one that moves the cursor or changes the direction of writing.
const unseen = /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/u

// A backslash that would look like an escape is escaped, so that two strings never look the same
const hiddenCharacters = new RegExp(`${unseen.source}|${/\\(?=u\{)/.source}`, 'gu')

export const escaped = (char: string): string => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`

/** Escapes every invisible character of a string. */
export const visible = (text: string): string => text.replace(hiddenCharacters, escaped)

export const isVisible = (text: string): boolean => !unseen.test(text)

/**
 * The callers who get in. `guarded`: authenticated callers. `optional`: anonymous callers, too. `public`: anyone, because a level
 * says so. `undecided`: anyone, because no level decided.
 */
export type Access = 'guarded' | 'optional' | 'public' | 'undecided'

/** One operation of a router. */
export interface AuditedOperation {
  /** Its name: `GET /users/:id`. GET also answers HEAD. ALL means every method. */
  readonly operation: string
  readonly method: string
  /** The path, with all prefixes. */
  readonly path: string
  /** The hosts whose requests it answers, if its router names some. */
  readonly host?: string
  readonly access: Access
  /** The protection, in words: `bearer, or API key in header X-API-Key`. */
  readonly protection: string
  /** The accepted credentials, by alternative; empty if no guard asks (`public`, `undecided`). */
  readonly ways: ReadonlyArray<AccessPath>
  /**
   * Whether writes from other sites are refused. `not needed`: it writes nothing, or browsers send no credential by
   * themselves. This is read from `apiApp` and `authSettings`, and from those of `app.use` if the application is
   * audited.
   */
  readonly csrf: 'checked' | 'off' | 'not needed'
  /** The other origins whose writes are accepted. */
  readonly trustedOrigins: ReadonlyArray<string>
  /** Whether the OpenAPI document lists it, or whether it is a part of the docs page. */
  readonly docs: 'listed' | 'hidden' | 'page'
  /** The level that decided: `operation`, `router /api`, `application`. With `also`, all levels, from the outermost. */
  readonly decidedBy: ReadonlyArray<string>
  /** The operations that answer its requests first. */
  readonly shadowedBy: ReadonlyArray<Shadow>
  /** The objects that its guard looks up, such as `note by :id`. */
  readonly objects: ReadonlyArray<string>
  /** The parameters of its path that name no object, and why. */
  readonly unchecked: ReadonlyArray<UncheckedParameter>
  /** The parameters of its path that no condition of its guard reads, or not in every way in; empty if it has no guard. */
  readonly unread: ReadonlyArray<string>
  /** The names of the functions that run before its guard. */
  readonly beforeGuard: ReadonlyArray<string>
  /** The names of the middleware that runs after its guard, before the handler. */
  readonly behindGuard: ReadonlyArray<string>
  /** The parts that cannot be described: a plain function as authenticator, a RegExp as path. */
  readonly undescribed: ReadonlyArray<'authenticator' | 'path'>
}

/**
 * How many requests of an operation an earlier operation answers. `unknown` is possible for a RegExp, and for several captures in
 * one segment.
 */
export type ShadowExtent = 'all' | 'part' | 'unknown'

/** An operation that answers requests of a later operation first. */
export interface Shadow {
  readonly operation: string
  readonly access: Access
  /** How many requests of the later operation it answers. */
  readonly extent: ShadowExtent
  /** A request that it takes: `GET /users/me`. */
  readonly example?: string
}

/** Middleware of `router.use`, which can answer requests itself. */
export interface AuditedMiddleware {
  /** Where it runs: `/api/*` is `/api` and everything below it. */
  readonly path: string
  /** The names of its functions. */
  readonly functions: ReadonlyArray<string>
  /**
   * Whether each request that it sees has passed a guard. `no` if it also runs for an operation that is public, or
   * before a guard.
   */
  readonly guarded: 'yes' | 'no' | 'never runs'
  /** The guard of the application (`guardApp`) that covers it; left out if none does. */
  readonly guard?: Protection
}

/** The protection of an operation, or of a function of middleware. */
export type Protection = Pick<AuditedOperation, 'protection' | 'ways' | 'csrf' | 'trustedOrigins'>

/** The protection of a router. Plain data, in the order of registration; `String(...)` makes a table of it. */
export interface Audit {
  readonly operations: ReadonlyArray<AuditedOperation>
  readonly middleware: ReadonlyArray<AuditedMiddleware>
  /** Where the application sends the tokens of providers (`upstream`); left out if it sends none. */
  readonly upstreams?: ReadonlyArray<AuditedUpstream>
  /** The table. It is not a part of the data. */
  toString(): string
}

export const table = ({ operations, middleware, upstreams = [] }: Omit<Audit, 'toString'>): string =>
  [
    aligned(['OPERATION', 'PROTECTED BY', 'DECIDED BY', 'NOTES'], operations.map(operationCells)),
    ...(middleware.length > 0
      ? [aligned(['MIDDLEWARE', 'FUNCTIONS', 'GUARDED'], middleware.map(middlewareCells))]
      : []),
    ...(upstreams.length > 0 ? [aligned(['UPSTREAM', 'SCOPE', 'TOKENS OF'], upstreams.map(upstreamCells))] : []),
  ].join('\n\n')

type Cells = ReadonlyArray<string>

const operationCells = (audited: AuditedOperation): Cells => [
  audited.operation,
  audited.protection,
  audited.decidedBy.length === 0 ? 'nothing' : audited.decidedBy.join(', '),
  [
    ...(audited.host === undefined ? [] : [`only on ${audited.host}`]),
    ...audited.shadowedBy.map(inNote),
    ...audited.unread.map((param) => unreadNote(audited, param)),
    ...audited.unchecked.map(({ param, reason }) => `:${param} unchecked: ${reason}`),
    ...functionsNote('before its guard', audited.beforeGuard),
    ...functionsNote('behind its guard', audited.behindGuard),
    ...(audited.csrf === 'off' ? ['takes writes from other sites'] : []),
  ].join('; '),
]

export const unreadNote = ({ ways }: Pick<AuditedOperation, 'ways'>, param: string): string =>
  `${ways.length > 1 ? 'not every way in has a condition that reads' : 'no condition reads'} :${param}`

const functionsNote = (where: string, functions: ReadonlyArray<string>): ReadonlyArray<string> =>
  functions.length > 0 ? [`${where}: ${functions.join(', ')}`] : []

const howMuch = { all: 'answered', part: 'partly answered', unknown: 'perhaps answered' }

const inNote = ({ operation, access, extent, example }: Shadow): string =>
  `${howMuch[extent]} first by ${operation} (${access})${extent === 'part' && example !== undefined ? `, as ${example}` : ''}`

const middlewareCells = ({ path, functions, guarded, guard }: AuditedMiddleware): Cells => [
  path,
  functions.join(', '),
  guard === undefined
    ? guarded
    : `by ${guard.protection}${guard.csrf === 'off' ? '; takes writes from other sites' : ''}`,
]

const upstreamCells = ({ resource, scope, provider, per }: AuditedUpstream): Cells => [
  resource,
  scope.join(' '),
  `${provider}, for each ${per}`,
]

const aligned = (head: Cells, rows: ReadonlyArray<Cells>): string => {
  const lines = [head, ...rows].map((cells) => cells.map(visible))
  const widths = head.map((_, column) => Math.max(...lines.map((cells) => cells[column]?.length ?? 0)))
  return lines
    .map((cells) =>
      cells
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
