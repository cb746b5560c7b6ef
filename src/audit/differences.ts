/**
 * The differences of two policies, for a reviewer: openings come first, closings last.
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
import { aheadIn, BEHIND, originsIn, textOf, accessPathsOf, type PolicyLine } from './policy.js'
import { publicAccess, compareAccess, type AccessPath } from './Way.js'

/** What a difference means for callers. */
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

// A function of middleware is compared as a whole: another function is not a change of it
const nameOf = (line: PolicyLine): string => (line.by === undefined ? textOf(line) : line.operation)

// As multisets, because two operations may have one name
const without = <L extends PolicyLine>(
  lines: ReadonlyArray<L>,
  others: ReadonlyArray<PolicyLine>,
): ReadonlyArray<L> => {
  const left = new Map<string, number>()
  for (const text of others.map(textOf)) left.set(text, (left.get(text) ?? 0) + 1)
  return lines.filter((line) => {
    const text = textOf(line)
    const count = left.get(text) ?? 0
    if (count > 0) left.set(text, count - 1)
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
  ...is.notes
    .filter((note) => !was.notes.includes(note))
    .map((note): Part => ({
      change: admitsAnonymous(was) || isBehind(note) ? 'same' : nowFirst(changesBy(is, note, after)),
      text: `is now ${note}`,
    })),
  ...was.notes
    .filter((note) => !is.notes.includes(note))
    .map((note): Part => ({
      change: isBehind(note) ? 'opened' : noLongerFirst(changesBy(was, note, before), admitsAnonymous(is)),
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

const isBehind = (note: string): boolean => note.startsWith(BEHIND)

const admitsAnonymous = ({ who }: PolicyLine): boolean =>
  accessPathsOf(who).some(({ credentials }) => credentials.length === 0)
