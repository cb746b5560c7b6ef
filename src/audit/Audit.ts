/**
 * What protects each operation of a router: plain data, to be kept and compared, and as text.
 *
 * It is read off a router in `auditRouter.ts`.
 */
import type { Extent } from './shadows.js'
import { visible } from './visible.js'
import type { Way } from './Way.js'

/**
 * Who gets in: `guarded`, who authenticates; `optional`, anonymous callers, too; `public`, anyone, because a level says so;
 * `undecided`, anyone, because no level says anything.
 */
export type Access = 'guarded' | 'optional' | 'public' | 'undecided'

/** One operation of a router. */
export interface AuditedOperation {
  /** What it is called: `GET /users/:id`. GET answers HEAD, too; ALL is every method. */
  readonly operation: string
  readonly method: string
  /** The path, with all prefixes. */
  readonly path: string
  readonly access: Access
  /** What protects it: `bearer, or API key in header X-API-Key`. */
  readonly protection: string
  /** The ways in, one for each alternative; none where no guard asks (`public`, `undecided`). */
  readonly ways: ReadonlyArray<Way>
  /**
   * Whether writes from other sites are refused: `not needed` where nothing is written, or where browsers send no credential
   * by themselves. Read off `apiApp` and `authSettings`, those of `app.use` only where the application is known.
   */
  readonly csrf: 'checked' | 'off' | 'not needed'
  /** The origins whose writes are accepted all the same. */
  readonly trustedOrigins: ReadonlyArray<string>
  /** Whether the OpenAPI document lists it, or it is a part of the docs page. */
  readonly docs: 'listed' | 'hidden' | 'page'
  /** The level that decided, `operation`, `router /api`, `application`; several, from the outermost, where `also` adds. */
  readonly decidedBy: ReadonlyArray<string>
  /** What answers its requests before it does. */
  readonly shadowedBy: ReadonlyArray<Shadow>
  /** The names of the functions that run before its guard. */
  readonly beforeGuard: ReadonlyArray<string>
  /** The names of the middleware that runs behind its guard, before the handler. */
  readonly behindGuard: ReadonlyArray<string>
  /** What cannot be put into words: a plain function as authenticator, a RegExp as path. */
  readonly undescribed: ReadonlyArray<'authenticator' | 'path'>
}

/** An operation that answers first what another one matches, too. */
export interface Shadow {
  readonly operation: string
  readonly access: Access
  /** How much of the other one it takes; of a RegExp, or of several captures in one segment, it may be `unknown`. */
  readonly extent: Extent
  /** A request that it takes: `GET /users/me`. */
  readonly example?: string
}

/** Middleware of `router.use`, which can answer by itself. */
export interface AuditedMiddleware {
  /** Where it runs: `/api/*` is `/api` and everything below it. */
  readonly path: string
  /** The names of its functions. */
  readonly functions: ReadonlyArray<string>
  /** Whether all that it sees has passed a guard: not where an operation behind it, or one that is public, matches. */
  readonly guarded: 'yes' | 'no' | 'never runs'
}

/** What protects a router. Plain data, in the order of registration; `String(...)` makes a table of it. */
export interface Audit {
  readonly operations: ReadonlyArray<AuditedOperation>
  readonly middleware: ReadonlyArray<AuditedMiddleware>
  /** The table; no part of the data. */
  toString(): string
}

// -------------------------------------------------------------------------------------
// destructors
// -------------------------------------------------------------------------------------

/** An audit as text: a line for each operation, then one for each layer of middleware, aligned, in the order of registration. */
export const table = ({ operations, middleware }: Omit<Audit, 'toString'>): string =>
  [
    aligned(['OPERATION', 'PROTECTED BY', 'DECIDED BY', 'NOTES'], operations.map(operationCells)),
    ...(middleware.length > 0
      ? [aligned(['MIDDLEWARE', 'FUNCTIONS', 'GUARDED'], middleware.map(middlewareCells))]
      : []),
  ].join('\n\n')

type Cells = ReadonlyArray<string>

const operationCells = (audited: AuditedOperation): Cells => [
  audited.operation,
  audited.protection,
  audited.decidedBy.length === 0 ? 'nothing' : audited.decidedBy.join(', '),
  [
    ...audited.shadowedBy.map(inNote),
    ...named('before its guard', audited.beforeGuard),
    ...named('behind its guard', audited.behindGuard),
    ...(audited.csrf === 'off' ? ['takes writes from other sites'] : []),
  ].join('; '),
]

const named = (where: string, functions: ReadonlyArray<string>): ReadonlyArray<string> =>
  functions.length > 0 ? [`${where}: ${functions.join(', ')}`] : []

const howMuch = { all: 'answered', part: 'partly answered', unknown: 'perhaps answered' }

const inNote = ({ operation, access, extent, example }: Shadow): string =>
  `${howMuch[extent]} first by ${operation} (${access})${extent === 'part' && example !== undefined ? `, as ${example}` : ''}`

const middlewareCells = ({ path, functions, guarded }: AuditedMiddleware): Cells => [
  path,
  functions.join(', '),
  guarded,
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
