/**
 * One line of a policy file: an operation and what a reviewer must see of it, in fields that are separated by `; `.
 *
 * ```text
 * GET /api/reports; bearer with scopes reports; by application; csrf not needed; docs listed
 * USE /api/*; unguarded cors
 * USE /*; bearer; csrf not needed; runs serve
 * ```
 *
 * Fields stay escaped, as in the file, so reading a line and writing it again changes nothing.
 */
import * as E from 'fp-ts/lib/Either.js'
import {
  escaped,
  isVisible,
  visible,
  type Audit,
  type AuditedOperation,
  type Protection,
  type Shadow,
} from './Audit.js'
import { compareAccess, publicAccess, type AccessPath } from './Way.js'

/** What a policy says about an operation, or about a function of middleware: one that runs unguarded, or below `guardApp`. */
export interface PolicyLine {
  /** Its name: `GET /users/:id`, or `USE /api/*` for middleware. */
  readonly operation: string
  /** Who may call, in words: `bearer, or anonymous`, `public`; for middleware `unguarded cors`. */
  readonly who: string
  /** Which level decided. This and `docs` are left out for middleware, `csrf` if no guard covers it. */
  readonly by?: string
  readonly csrf?: string
  readonly docs?: string
  /** What runs before and after its guard, and what answers first. */
  readonly notes: ReadonlyArray<string>
}

// -------------------------------------------------------------------------------------
// constructors
// -------------------------------------------------------------------------------------

/** The lines of an audit, in their order in the file. */
export const linesOf = ({ operations, middleware }: Omit<Audit, 'toString'>): ReadonlyArray<PolicyLine> => {
  const callers = new Map<string, Set<string>>()
  for (const audited of operations) {
    callers.set(audited.operation, (callers.get(audited.operation) ?? new Set()).add(whoOf(audited)))
  }
  return sorted([
    ...operations.map((audited) => lineOf(audited, (name) => [...(callers.get(name) ?? [])])),
    ...middleware.flatMap(({ path, functions, guarded, guard }): ReadonlyArray<PolicyLine> => {
      const operation = `USE ${field(path)}`
      if (guard !== undefined) {
        const protection = { who: whoOf(guard), csrf: csrfOf(guard) }
        return functions.map((name) => ({ operation, ...protection, notes: [`${RUNS} ${field(name)}`] }))
      }
      if (guarded !== 'no') return []
      return functions.map((name) => ({ operation, who: `${UNGUARDED} ${field(name)}`, notes: [] }))
    }),
  ])
}

const lineOf = (audited: AuditedOperation, callersOf: (operation: string) => ReadonlyArray<string>): PolicyLine => {
  const { decidedBy, docs, host, shadowedBy, beforeGuard, behindGuard } = audited
  const who = whoOf(audited)
  return {
    operation: nameInFile(audited),
    who,
    by: `by ${decidedBy.length === 0 ? 'nothing' : decidedBy.map(field).join(' + ')}`,
    csrf: csrfOf(audited),
    docs: `docs ${docs}`,
    notes: [
      ...(host === undefined ? [] : [`${HOST} ${field(host)}`]),
      ...(beforeGuard.length > 0 ? [`before its guard ${beforeGuard.map(field).join(', ')}`] : []),
      ...(behindGuard.length > 0 ? [`${BEHIND} ${behindGuard.map(field).join(', ')}`] : []),
      // where the same callers get in, the order does not matter
      ...shadowedBy.filter(({ operation }) => callersOf(operation).some((ahead) => ahead !== who)).map(inNote),
    ],
  }
}

const csrfOf = ({ csrf, trustedOrigins }: Protection): string =>
  `csrf ${csrf}${trustedOrigins.length > 0 ? ` except from ${[...trustedOrigins].sort().map(field).join(' ')}` : ''}`

/** What the file calls an operation. */
export const nameInFile = ({ method, path }: AuditedOperation): string => `${field(method)} ${field(path)}`

/** Who may call an operation, in words. */
export const whoOf = ({ ways, protection }: Pick<Protection, 'ways' | 'protection'>): string =>
  ways.length === 0 ? field(protection) : ways.map(wayInWords).join(OR)

// The beginning of a note about the host of a router
const HOST = 'only on'

/** The beginning of a note about middleware after the guard, which may refuse, too. */
export const BEHIND = 'behind its guard'

// The beginnings of a function of middleware: one that no guard covers, and one that a guard of the application covers
const UNGUARDED = 'unguarded'
const RUNS = 'runs'

/** The operation that a note says answers first; `undefined` for another note. */
export const aheadIn = (note: string): string | undefined =>
  /^(?:partly |perhaps )?answered first by (.+)$/.exec(note)?.[1]

const inNote = ({ operation, extent }: Shadow): string =>
  `${{ all: '', part: 'partly ', unknown: 'perhaps ' }[extent]}answered first by ${field(operation)}`

const OR = ', or '
const AND = ', and '
const AUTHORIZED = ' authorized by '

const wayInWords = ({ credentials, scopes, authorizations, takesAnything }: AccessPath): string =>
  [
    credentials.length === 0 ? 'anonymous' : credentials.map(word).join(AND),
    takesAnything ? ' with any credentials' : '',
    scopes.length > 0 ? ` with scopes ${scopes.map(scope).join(' ')}` : '',
    ...authorizations.map((one) => `${AUTHORIZED}${name(one)}`),
  ].join('')

/** A string as a field: on one line, without the characters that separate fields. */
const field = (text: string): string => (text === '' ? '\\u{}' : visible(text).replaceAll(';', escaped(';')))

// as a part of `who`: without the words and characters that have a meaning there
const word = (text: string): string =>
  name(text).replace(/^(?:public|undecided|unguarded|anonymous)/, (first) => escaped(first) + first.slice(1))
const name = (text: string): string =>
  field(text)
    .replace(/,(?= (?:or|and) )/g, escaped(','))
    .replace(/ (?=with |authorized by )/g, escaped(' '))
const scope = (text: string): string =>
  field(text)
    .replaceAll(' ', escaped(' '))
    .replace(/^authorized$/, `${escaped('a')}uthorized`)

const sorted = (lines: ReadonlyArray<PolicyLine>): ReadonlyArray<PolicyLine> =>
  lines
    .map((line) => ({ line, keys: [pathOf(line), line.operation, textOf(line)] }))
    .sort((one, other) => {
      const at = one.keys.findIndex((key, index) => key !== other.keys[index])
      return at < 0 ? 0 : one.keys[at]! < other.keys[at]! ? -1 : 1
    })
    .map(({ line }) => line)

const pathOf = ({ operation }: PolicyLine): string => operation.slice(operation.indexOf(' ') + 1)

// -------------------------------------------------------------------------------------
// destructors
// -------------------------------------------------------------------------------------

/** The line in the file. */
export const textOf = ({ operation, who, by, csrf, docs, notes }: PolicyLine): string =>
  [operation, who, by, csrf, docs, ...notes].filter((one) => one !== undefined).join('; ')

/** Reads a line; `undefined` if it is not a line of a policy. */
export const lineFrom = (text: string): PolicyLine | undefined => {
  if (!isVisible(text)) return undefined
  const [operation = '', who = '', ...rest] = text.split('; ')
  if (who === '') return undefined
  if (/^USE ./.test(operation)) {
    if (/^unguarded ./.test(who)) return rest.length === 0 ? { operation, who, notes: [] } : undefined
    const [checked = '', ...runs] = rest
    const isCovered = isCsrf(checked) && runs.length === 1 && runs.every((note) => /^runs ./.test(note))
    return isCovered ? { operation, who, csrf: checked, notes: runs } : undefined
  }
  const [by = '', csrf = '', docs = '', ...notes] = rest
  const isLine =
    /^[A-Z][A-Z-]* ./.test(operation) &&
    /^by ./.test(by) &&
    isCsrf(csrf) &&
    /^docs (?:listed|hidden|page)$/.test(docs) &&
    notes.every((note) =>
      /^(?:only on|(?:before|behind) its guard|(?:partly |perhaps )?answered first by) ./.test(note),
    )
  return isLine ? { operation, who, by, csrf, docs, notes } : undefined
}

const isCsrf = (text: string): boolean => /^csrf (?:checked(?: except from .+)?|off|not needed)$/.test(text)

/** The other origins whose writes are accepted, from the field `csrf`; `undefined` if the check is off or not needed. */
export const originsIn = (csrf: string): ReadonlyArray<string> | undefined => {
  const [, origins] = /^csrf checked(?: except from (.+))?$/.exec(csrf) ?? [undefined, undefined]
  return csrf.startsWith('csrf checked') ? (origins?.split(' ') ?? []) : undefined
}

/** The ways into an operation, from the words of a line. */
export const accessPathsOf = (who: string): ReadonlyArray<AccessPath> =>
  /^(?:public|undecided|unguarded)\b/.test(who) ? [publicAccess] : who.split(OR).map(wayFrom)

const wayFrom = (text: string): AccessPath => {
  const [admitted = '', ...authorizations] = text.split(AUTHORIZED)
  const [, sent = '', anything, scopes] = /^(.*?)( with any credentials)?(?: with scopes (.*))?$/.exec(admitted) ?? []
  return {
    credentials: sent === 'anonymous' ? [] : sent.split(AND),
    scopes: scopes === undefined ? [] : scopes.split(' '),
    authorizations,
    takesAnything: anything !== undefined,
  }
}

// After the first line there is a sorted line for each operation. So a change of protection is a line in the diff of a
// pull request. Empty lines and lines that begin with `#` are comments.
const FIRST = '# koa-with-auth policy 1'

const explanation = '# Who may call what, read off the guards by `koa-with-auth audit --write`. Do not edit.'

/** A line, and where it is in the file. */
export interface PlacedLine extends PolicyLine {
  /** From 1. */
  readonly lineNumber: number
}

/** A policy as the content of a file. */
export const policyText = (lines: ReadonlyArray<PolicyLine>): string =>
  [FIRST, explanation, ...lines.map(textOf), ''].join('\n')

/** Reads the lines of a file, or returns what is wrong with it. */
export const readPolicy = (bytes: Uint8Array): E.Either<string, ReadonlyArray<PlacedLine>> => {
  const text = decoded(bytes)
  if (text === undefined) return E.left('is not UTF-8')
  const [first, ...rest] = text.split(/\r?\n/)
  if (first !== FIRST) return E.left(`line 1: a policy file begins with "${FIRST}"`)
  const lines: PlacedLine[] = []
  for (const [index, content] of rest.entries()) {
    if (content === '' || content.startsWith('#')) continue
    const line = lineFrom(content)
    const lineNumber = index + 2
    if (line === undefined) return E.left(`line ${lineNumber} is not a line of a policy file`)
    lines.push({ ...line, lineNumber })
  }
  return E.right(lines)
}

const decoded = (bytes: Uint8Array): string | undefined => {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/**
 * What a difference means for callers.
 *
 * | what changed                                     | it is                                          |
 * |--------------------------------------------------|------------------------------------------------|
 * | more callers get in than before                  | opened                                         |
 * | fewer callers get in                             | closed                                         |
 * | other callers get in, or the same by another level | changed                                    |
 * | middleware after its guard was removed           | opened                                         |
 * | an operation is new                              | opened if anonymous callers get in or CSRF is off, else changed |
 * | an operation is gone                             | closed                                         |
 * | CSRF off, an origin trusted                      | opened; the reverse closed                     |
 * | another operation answers first                  | opened if it lets in others, else changed      |
 */
type Direction = 'opened' | 'changed' | 'closed'

/** One difference between two policies. */
export interface Difference<L extends PolicyLine = PolicyLine> {
  readonly direction: Direction
  readonly operation: string
  /** In words: `GET /export: was bearer, is public`. */
  readonly text: string
  /** The line before; left out if the operation is new. */
  readonly was?: L
  /** The line now; left out if the operation is gone. */
  readonly is?: PolicyLine
}

/** The directions, in the order in which they are listed. */
export const directions: ReadonlyArray<Direction> = ['opened', 'changed', 'closed']

/** All differences, openings first, then other changes, then closings. */
export const differencesOf = <L extends PolicyLine>(
  before: ReadonlyArray<L>,
  after: ReadonlyArray<PolicyLine>,
): ReadonlyArray<Difference<L>> => {
  const [was, is] = [without(before, after), without(after, before)]
  const names = [...new Set([...is, ...was].map(nameOf))]
  const order = { before: callersIn(before), after: callersIn(after) }
  const all = names.flatMap((name) =>
    paired(
      was.filter((line) => nameOf(line) === name),
      is.filter((line) => nameOf(line) === name),
      order,
    ),
  )
  return directions.flatMap((direction) => all.filter((one) => one.direction === direction))
}

// Another function of middleware is not a change of it
const nameOf = (line: PolicyLine): string => {
  if (line.by !== undefined) return line.operation
  return line.csrf === undefined ? textOf(line) : [line.operation, ...line.notes].join('; ')
}

const without = <L extends PolicyLine>(lines: ReadonlyArray<L>, others: ReadonlyArray<PolicyLine>): ReadonlyArray<L> =>
  withoutTexts(lines, others, textOf)

/** Those whose texts are not among the others. As multisets, because two operations may have one name. */
export const withoutTexts = <A extends B, B = A>(
  some: ReadonlyArray<A>,
  others: ReadonlyArray<B>,
  text: (one: B) => string = String,
): ReadonlyArray<A> => {
  const left = new Map<string, number>()
  for (const one of others.map(text)) left.set(one, (left.get(one) ?? 0) + 1)
  return some.filter((one) => {
    const count = left.get(text(one)) ?? 0
    if (count > 0) left.set(text(one), count - 1)
    return count === 0
  })
}

const paired = <L extends PolicyLine>(
  was: ReadonlyArray<L>,
  is: ReadonlyArray<PolicyLine>,
  order: Order,
): ReadonlyArray<Difference<L>> =>
  Array.from({ length: Math.max(was.length, is.length) }, (_, at) => {
    const [old, now] = [was[at], is[at]]
    if (old === undefined) return added(now!)
    return now === undefined ? removed(old) : changed(old, now, order)
  })

const added = (is: PolicyLine): Difference<never> => {
  const isOpen = admitsAnonymous(is) || is.csrf === 'csrf off'
  return {
    direction: isOpen ? 'opened' : 'changed',
    operation: is.operation,
    text: `${is.operation}: was absent, is ${is.who}${is.csrf === 'csrf off' ? ', csrf is off' : ''}`,
    is,
  }
}

const removed = <L extends PolicyLine>(was: L): Difference<L> => ({
  direction: 'closed',
  operation: was.operation,
  text: `${was.operation}: was ${was.who}, is gone`,
  was,
})

// -------------------------------------------------------------------------------------
// an operation that is in both
// -------------------------------------------------------------------------------------

type Change = ReturnType<typeof compareAccess>

interface Part {
  readonly change: Change
  readonly text: string
}

const changed = <L extends PolicyLine>(was: L, is: PolicyLine, order: Order): Difference<L> => {
  const parts = [
    ...part(was.who, is.who, () => compareAccess(accessPathsOf(was.who), accessPathsOf(is.who))),
    ...part(was.by, is.by, () => 'same', 'by'),
    ...part(was.csrf, is.csrf, () => compareAccess(waysOfSites(was.csrf), waysOfSites(is.csrf)), 'csrf'),
    ...part(was.docs, is.docs, () => 'same', 'docs'),
    ...notes(was, is, order),
  ]
  return {
    direction: together(parts.map((one) => one.change)),
    operation: was.operation,
    text: `${was.operation}: ${parts.map(({ text }) => text).join('; ')}`,
    was,
    is,
  }
}

const together = (changes: ReadonlyArray<Change>): Direction => {
  if (changes.includes('opened')) return 'opened'
  return changes.includes('closed') && !changes.includes('other') ? 'closed' : 'changed'
}

// The field `by operation` begins with its name; `who` does not
const part = (was = '', is = '', how: () => Change, name = ''): ReadonlyArray<Part> => {
  if (was === is) return []
  const value = (text: string): string => text.slice(name === '' ? 0 : name.length + 1)
  const what = name === 'by' ? 'decided by: ' : name === '' ? '' : `${name} `
  return [{ change: how(), text: `${what}was ${value(was)}, is ${value(is)}` }]
}

// Exceptions from the cross-site check as ways in, so that `compareAccess` can compare them: every site if the check is off
const waysOfSites = (csrf = ''): ReadonlyArray<AccessPath> => {
  if (csrf === 'csrf off') return [publicAccess]
  return (originsIn(csrf) ?? []).map((origin) => ({ ...publicAccess, takesAnything: false, credentials: [origin] }))
}

/** Who gets into the operations of each policy, by name. */
interface Order {
  readonly before: Callers
  readonly after: Callers
}

type Callers = ReadonlyMap<string, ReadonlyArray<string>>

const callersIn = (lines: ReadonlyArray<PolicyLine>): Callers => {
  const callers = new Map<string, string[]>()
  for (const { operation, who } of lines) callers.set(operation, [...(callers.get(operation) ?? []), who])
  return callers
}

// Middleware before a guard matters only if there is a guard. Middleware after it may refuse, so removing some may open
const notes = (was: PolicyLine, is: PolicyLine, { before, after }: Order): ReadonlyArray<Part> => [
  ...withoutTexts(is.notes, was.notes).map((note): Part => ({
    change: onHost(note) ?? (admitsAnonymous(was) || isBehind(note) ? 'same' : nowFirst(changesBy(is, note, after))),
    text: `is now ${note}`,
  })),
  ...withoutTexts(was.notes, is.notes).map((note): Part => ({
    change:
      onHost(note) ?? (isBehind(note) ? 'opened' : noLongerFirst(changesBy(was, note, before), admitsAnonymous(is))),
    text: `is no longer ${note}`,
  })),
]

/** How the callers differ who get into the operation that a note names; empty if the policy has no such operation. */
const changesBy = ({ who }: PolicyLine, note: string, callers: Callers): ReadonlyArray<Change> =>
  (callers.get(aheadIn(note) ?? '') ?? []).map((ahead) => compareAccess(accessPathsOf(who), accessPathsOf(ahead)))

// One that only refuses callers does not open
const nowFirst = (changes: ReadonlyArray<Change>): Change =>
  changes.length > 0 && changes.every((one) => one === 'closed' || one === 'same') ? 'other' : 'opened'

// One that only let in more kept no caller out
const noLongerFirst = (changes: ReadonlyArray<Change>, isOpen: boolean): Change => {
  if (changes.includes('closed')) return 'opened'
  if (changes.includes('other')) return 'other'
  return isOpen ? 'same' : 'closed'
}

// The same callers get in, from other hosts
const onHost = (note: string): Change | undefined => (note.startsWith(HOST) ? 'other' : undefined)

const isBehind = (note: string): boolean => note.startsWith(BEHIND)

const admitsAnonymous = ({ who }: PolicyLine): boolean =>
  accessPathsOf(who).some(({ credentials }) => credentials.length === 0)
