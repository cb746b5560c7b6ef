/**
 * The policy file: a line for each operation and for each function of middleware, and on it fields, which are separated by `; `.
 *
 * ```text
 * GET /api/reports; who=[bearer | scope=reports]; by=application; csrf=not needed; docs=listed
 * GET /api/notes/:id; who=[bearer | object=note by :id find 0c5b43c1a7f2]; by=operation; csrf=not needed; docs=listed
 * GET /api/keys; who=[API key in header X-Key | authorized by staff] [bearer]; by=operation; csrf=not needed; docs=listed
 * USE /api/*; who=unguarded; runs=cors
 * UPSTREAM https://api.example; tokens=https://login.example, for each session; scope=orders
 * ```
 *
 * A field with several values is written several times. Each `who` is a way in; each credential of it is in brackets, with its conditions.
 * Values stay escaped, as in the file, so reading a line and writing it again changes nothing.
 */
import * as E from 'fp-ts/lib/Either.js'
import { unlessThrown } from '../core/data.js'
import { escaped, isVisible, visible, type Audit, type AuditedOperation, type Protection } from './Audit.js'
import { groupedBy, publicAccess, type AccessPath, type Demanded } from './Way.js'

// The fields in the order of a line, and the form of their values
const fields = {
  /** A way in, or `anonymous`, `public`, `undecided (public)`, and for middleware that no guard covers `unguarded`. */
  who: /^(?:\[.+\](?: anonymous with any credentials)?|(?:anonymous|public|undecided|unguarded)\b.*)$/,
  by: /./,
  /** A parameter that names no object, and why: `slug: all members read all articles`. */
  unchecked: /^[^:]+: ./,
  csrf: /^(?:checked|off|not needed)$/,
  trusts: /./,
  docs: /^(?:listed|hidden|page)$/,
  host: /./,
  /** A function that runs before its guard, and one that runs between its guard and its handler. */
  before: /./,
  behind: /./,
  /** An operation that answers its requests first: all of them, some, or perhaps some. */
  first: /./,
  partly: /./,
  perhaps: /./,
  runs: /./,
  /** Whose tokens go to an upstream, and with which scopes. */
  tokens: /./,
  scope: /./,
} as const

type Field = keyof typeof fields

// Safe: these are its keys
const fieldNames = Object.keys(fields) as ReadonlyArray<Field>

/** The entry of a policy for an operation, a function of middleware (one that runs unguarded, or below `guardApp`), or an upstream. */
export type PolicyLine = Readonly<Record<Field, ReadonlyArray<string>>> & {
  /** Its name: `GET /users/:id`; `USE /api/*` for middleware, and `UPSTREAM https://api.example`. */
  readonly operation: string
}

const line = (operation: string, given: Partial<Record<Field, ReadonlyArray<string>>>): PolicyLine => {
  const all = fieldNames.map((name) => [name, given[name] ?? []])
  // Safe: each field has a list
  return { operation, ...Object.fromEntries(all) } as PolicyLine
}

const UPSTREAM = 'UPSTREAM '

export const linesOf = (audit: Omit<Audit, 'toString'>): ReadonlyArray<PolicyLine> => {
  const { operations, middleware, upstreams = [] } = audit
  const named = groupedBy(operations, ({ operation }) => operation)
  return sorted([
    ...operations.map((audited) => lineOf(audited, (name) => (named.get(name) ?? []).map((one) => whoOf(one).join()))),
    ...middleware.flatMap(({ path, functions, guarded, guard }) => {
      const protection = guard === undefined ? { who: ['unguarded'] } : { who: whoOf(guard), ...crossSiteFields(guard) }
      return guard === undefined && guarded !== 'no'
        ? []
        : functions.map((name) => line(`USE ${value(path)}`, { ...protection, runs: [value(name)] }))
    }),
    ...upstreams.map(({ resource, provider, scope, per }) =>
      line(UPSTREAM + value(resource), { tokens: [value(`${provider}, for each ${per}`)], scope: scope.map(value) }),
    ),
  ])
}

const lineOf = (audited: AuditedOperation, callersOf: (operation: string) => ReadonlyArray<string>): PolicyLine => {
  const { decidedBy, docs, host, shadowedBy, beforeGuard, behindGuard, unchecked } = audited
  const who = whoOf(audited)
  // where the same callers get in, the order does not matter
  const ahead = shadowedBy.filter(({ operation }) => callersOf(operation).some((other) => other !== who.join()))
  const extending = (which: string) =>
    ahead.filter(({ extent }) => extent === which).map(({ operation }) => value(operation))
  return line(nameInFile(audited), {
    who,
    by: decidedBy.length === 0 ? ['nothing'] : decidedBy.map(value),
    unchecked: unchecked.map(({ param, reason }) => value(`${param}: ${reason}`)),
    ...crossSiteFields(audited),
    docs: [docs],
    host: host === undefined ? [] : [value(host)],
    before: beforeGuard.map(value),
    behind: behindGuard.map(value),
    first: extending('all'),
    partly: extending('part'),
    perhaps: extending('unknown'),
  })
}

const crossSiteFields = ({ csrf, trustedOrigins }: Protection): Pick<PolicyLine, 'csrf' | 'trusts'> => ({
  csrf: [csrf],
  trusts: [...trustedOrigins].sort().map(value),
})

export const nameInFile = ({ method, path }: AuditedOperation): string => `${value(method)} ${value(path)}`

export const whoOf = ({ ways, protection }: Pick<Protection, 'ways' | 'protection'>): ReadonlyArray<string> =>
  ways.length === 0 ? [value(protection)] : ways.map(wayText)

const ANY_CREDENTIALS = 'anonymous with any credentials'
const AUTHORIZED = 'authorized by '
const OBJECT = 'object='
const SCOPE = 'scope='

const wayText = ({ demands, takesAnything }: AccessPath): string =>
  demands.length === 0
    ? takesAnything
      ? ANY_CREDENTIALS
      : 'anonymous'
    : `${demands.map(demandText).join(' ')}${takesAnything ? ` ${ANY_CREDENTIALS}` : ''}`

const demandText = ({ credential, scopes, authorizations, objects }: Demanded): string =>
  `[${[
    escapedPart(credential),
    ...scopes.map((scope) => SCOPE + escapedPart(scope)),
    ...authorizations.map((name) => AUTHORIZED + escapedPart(name)),
    ...objects.map((object) => OBJECT + escapedPart(object)),
  ].join(' | ')}]`

/** A value on one line, without the separator of fields. */
const value = (text: string): string => (text === '' ? '\\u{}' : visible(text).replaceAll(';', escaped(';')))

// A part of a way: also without the separators of parts
const escapedPart = (text: string): string => value(text).replace(/[[\]|]/g, escaped)

// No line contains the character that separates the keys
const sorted = (lines: ReadonlyArray<PolicyLine>): ReadonlyArray<PolicyLine> =>
  lines
    .map((one) => ({ one, key: [linePath(one), one.operation, lineText(one)].join('\0') }))
    .sort((first, second) => (first.key < second.key ? -1 : Number(first.key > second.key)))
    .map(({ one }) => one)

const linePath = ({ operation }: PolicyLine): string => operation.slice(operation.indexOf(' ') + 1)

export const lineText = (one: PolicyLine): string =>
  [one.operation, ...fieldNames.flatMap((name) => one[name].map((each) => `${name}=${each}`))].join('; ')

export const byOperation = <L extends PolicyLine>(lines: ReadonlyArray<L>): ReadonlyMap<string, ReadonlyArray<L>> =>
  groupedBy(lines, ({ operation }) => operation)

const lineFrom = (text: string): PolicyLine | undefined => {
  const [operation = '', ...rest] = text.split('; ')
  const given = Object.fromEntries(fieldNames.map((name): [Field, string[]] => [name, []]))
  for (const each of rest) {
    const [, name = '', content = ''] = /^(\w+)=(.+)$/.exec(each) ?? []
    const known = fieldNames.find((one) => one === name)
    if (known === undefined || !fields[known].test(content)) return undefined
    given[known]?.push(content)
  }
  const read = line(operation, given)
  const { who, by, csrf, docs, runs, tokens } = read
  const isMiddleware = operation.startsWith('USE ')
  const isProtected = isMiddleware
    ? runs.length === 1 && by.length === 0 && docs.length === 0
    : by.length > 0 && csrf.length === 1 && docs.length === 1
  const isWhole = operation.startsWith(UPSTREAM)
    ? who.length === 0 && tokens.length === 1
    : who.length > 0 && tokens.length === 0 && isProtected
  return isVisible(text) && /^[A-Z][A-Z-]* ./.test(operation) && isWhole ? read : undefined
}

export const accessPathsOf = ({ who }: PolicyLine): ReadonlyArray<AccessPath> => who.map(wayFrom)

const wayFrom = (text: string): AccessPath => {
  if (text === 'anonymous') return { demands: [], takesAnything: false }
  if (!text.startsWith('[')) return publicAccess
  const end = text.lastIndexOf(']')
  return {
    demands: text.slice(1, end).split('] [').map(demandFrom),
    takesAnything: end < text.length - 1,
  }
}

const demandFrom = (text: string): Demanded => {
  const [credential = '', ...conditions] = text.split(' | ')
  const after = (prefix: string) =>
    conditions.filter((one) => one.startsWith(prefix)).map((one) => one.slice(prefix.length))
  return { credential, scopes: after(SCOPE), authorizations: after(AUTHORIZED), objects: after(OBJECT) }
}

// After the first line there is a sorted line for each operation. So a change of protection is a line in the diff of a
// pull request. Empty lines and lines that begin with `#` are comments.
const FIRST = '# koa-with-auth policy 2'

const explanation = '# Who may call what, read off the guards by `koa-with-auth audit --write`. Do not edit.'

export type PlacedLine = PolicyLine & {
  /** From 1. */
  readonly lineNumber: number
}

export const policyText = (lines: ReadonlyArray<PolicyLine>): string =>
  [FIRST, explanation, ...lines.map(lineText), ''].join('\n')

export const readPolicy = (bytes: Uint8Array): E.Either<string, ReadonlyArray<PlacedLine>> => {
  const text = unlessThrown(() => new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  if (text === undefined) return E.left('is not UTF-8')
  const [first, ...rest] = text.split(/\r?\n/)
  if (first !== FIRST) return E.left(`line 1: a policy file begins with "${FIRST}"`)
  const lines: PlacedLine[] = []
  for (const [index, content] of rest.entries()) {
    if (content === '' || content.startsWith('#')) continue
    const read = lineFrom(content)
    const lineNumber = index + 2
    if (read === undefined) return E.left(`line ${lineNumber} is not a line of a policy file`)
    lines.push({ ...read, lineNumber })
  }
  return E.right(lines)
}
