/** The changes between a policy file, or an OpenAPI document, and an application: for the command, SARIF and `seal`. */
import { accessPathsOf, byOperation, lineText, type PolicyLine } from './policy.js'
import { compareAccess, demandOf, groupedBy, publicAccess, waysInWords, withoutThose } from './Way.js'
import type { AccessPath, Comparison } from './Way.js'

/**
 * The meaning of a difference for callers.
 *
 * | the change                                       | it is                                          |
 * |--------------------------------------------------|------------------------------------------------|
 * | more callers get in than before                  | opened                                         |
 * | fewer callers get in                             | closed                                         |
 * | other callers get in, or the same by another level | changed                                    |
 * | middleware after its guard was removed           | opened                                         |
 * | an operation is new                              | opened if anonymous callers get in or CSRF is off, else changed |
 * | an operation is gone                             | closed                                         |
 * | CSRF off, an origin trusted                      | opened; the reverse closed                     |
 * | another operation answers first                  | opened if it lets in others, else changed      |
 * | an upstream or a scope of it is new              | opened; the reverse closed                     |
 */
type Direction = 'opened' | 'changed' | 'closed'

export interface Difference<L extends PolicyLine = PolicyLine> {
  readonly direction: Direction
  readonly operation: string
  /** In words: `GET /export: was bearer, is public`. */
  readonly text: string
  /** The line of a policy before; left out if the operation is new. */
  readonly was?: L
  /** The line now; left out if the operation is gone. */
  readonly is?: PolicyLine
}

export const directions: ReadonlyArray<Direction> = ['opened', 'changed', 'closed']

export const inOrder = <D extends Difference>(all: ReadonlyArray<D>): ReadonlyArray<D> =>
  directions.flatMap((direction) => all.filter((one) => one.direction === direction))

export const differencesOf = <L extends PolicyLine>(
  before: ReadonlyArray<L>,
  after: ReadonlyArray<PolicyLine>,
): ReadonlyArray<Difference<L>> => {
  const [was, is] = [withoutThose(before, after, lineText), withoutThose(after, before, lineText)]
  const order = { before: byOperation(before), after: byOperation(after) }
  const [wasNamed, isNamed] = [groupedBy(was, comparedName), groupedBy(is, comparedName)]
  const names = new Set([...isNamed.keys(), ...wasNamed.keys()])
  return inOrder([...names].flatMap((name) => paired(wasNamed.get(name) ?? [], isNamed.get(name) ?? [], order)))
}

// Another function of middleware is not a change of it
const comparedName = ({ operation, runs, csrf }: PolicyLine): string =>
  [operation, ...runs, runs.length > 0 && csrf.length === 0 ? 'unguarded' : ''].join('; ')

const paired = <L extends PolicyLine>(
  was: ReadonlyArray<L>,
  is: ReadonlyArray<PolicyLine>,
  order: Order,
): ReadonlyArray<Difference<L>> => [
  ...is.map((now, at) => (was[at] === undefined ? addedLine(now) : changedLine(was[at], now, order))),
  ...was.slice(is.length).map(removed),
]

const addedLine = (is: PolicyLine): Difference<never> => {
  const isOff = is.csrf[0] === 'off'
  return {
    direction: lineAdmitsAnonymous(is) || isOff || is.tokens.length > 0 ? 'opened' : 'changed',
    operation: is.operation,
    text: `${is.operation}: was absent, is ${whoInWords(is)}${isOff ? ', csrf is off' : ''}`,
    is,
  }
}

const removed = <L extends PolicyLine>(was: L): Difference<L> => ({
  direction: 'closed',
  operation: was.operation,
  text: `${was.operation}: was ${whoInWords(was)}, is gone`,
  was,
})

/** The callers who may call, in words; of middleware, also its function, and of an upstream, the tokens. */
const whoInWords = (line: PolicyLine): string => {
  const { who, runs, csrf, tokens, scope } = line
  if (tokens.length > 0) return [`tokens of ${tokens.join()}`, ...scope.map((one) => `scope ${one}`)].join(', ')
  const words = who[0]?.startsWith('[') === true || who.length > 1 ? waysInWords(accessPathsOf(line)) : who.join()
  return runs.length > 0 && csrf.length === 0 ? `${words} ${runs.join()}` : words
}

type LinePart = { readonly change: Comparison; readonly text: string }

const changedLine = <L extends PolicyLine>(was: L, is: PolicyLine, order: Order): Difference<L> => {
  const isSameWho = was.who.join('; ') === is.who.join('; ')
  const callers = () => compareAccess(accessPathsOf(was), accessPathsOf(is))
  const parts = [
    ...changedPart('', whoInWords(was), whoInWords(is), callers, isSameWho),
    ...changedPart('decided by: ', was.by.join(' + '), is.by.join(' + ')),
    ...changedPart('csrf ', csrfInWords(was), csrfInWords(is), () => compareAccess(sitesOf(was), sitesOf(is))),
    ...changedPart('docs ', was.docs.join(), is.docs.join()),
    ...changedPart('tokens of ', was.tokens.join(), is.tokens.join(), () => 'other'),
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

const together = (changes: ReadonlyArray<Comparison>): Direction => {
  if (changes.includes('opened')) return 'opened'
  return changes.includes('closed') && !changes.includes('other') ? 'closed' : 'changed'
}

const changedPart = (
  what: string,
  was: string,
  is: string,
  how: () => Comparison = () => 'same',
  isSame = was === is,
): ReadonlyArray<LinePart> => (isSame ? [] : [{ change: how(), text: `${what}was ${was}, is ${is}` }])

const csrfInWords = ({ csrf, trusts }: PolicyLine): string =>
  `${csrf.join()}${trusts.length > 0 ? ` except from ${trusts.join(' ')}` : ''}`

// Exceptions from the cross-site check as ways in, so that `compareAccess` can compare them: every site if the check is off
const sitesOf = ({ csrf, trusts }: PolicyLine): ReadonlyArray<AccessPath> =>
  csrf[0] === 'off'
    ? [publicAccess]
    : trusts.map((credential) => ({ demands: [demandOf(credential)], takesAnything: false }))

type Callers = ReturnType<typeof byOperation>

type Order = Readonly<Record<'before' | 'after', Callers>>

/** Another field of a line, and the effect of a new value and of a lost value; without these, it depends on the operation that is named. */
interface NoteKind {
  readonly words: string
  readonly gained?: Comparison
  readonly lost?: Comparison
}

const noteKinds = {
  // the same callers get in from other hosts
  host: { words: 'only on', gained: 'other', lost: 'other' },
  unchecked: { words: 'unchecked:', gained: 'other', lost: 'other' },
  before: { words: 'before its guard' },
  // middleware after a guard may refuse, so removing some may open
  behind: { words: 'behind its guard', gained: 'same', lost: 'opened' },
  first: { words: 'answered first by' },
  partly: { words: 'partly answered first by' },
  perhaps: { words: 'perhaps answered first by' },
  scope: { words: 'with scope', gained: 'opened', lost: 'closed' },
} satisfies Partial<Record<keyof PolicyLine, NoteKind>>

/** The fields that name operations which answer first. */
export const shadows = ['first', 'partly', 'perhaps'] as const

const notes = (was: PolicyLine, is: PolicyLine, { before, after }: Order): ReadonlyArray<LinePart> =>
  // Safe: these are its keys
  (Object.entries<NoteKind>(noteKinds) as ReadonlyArray<[keyof typeof noteKinds, NoteKind]>).flatMap(
    ([name, { words, gained, lost }]) => [
      ...withoutThose(is[name], was[name]).map((one): LinePart => ({
        // middleware before a guard matters only if there is a guard
        change: gained ?? (lineAdmitsAnonymous(was) ? 'same' : nowFirst(changesBy(is, one, after))),
        text: `is now ${words} ${one}`,
      })),
      ...withoutThose(was[name], is[name]).map((one): LinePart => ({
        change: lost ?? noLongerFirst(changesBy(was, one, before), lineAdmitsAnonymous(is)),
        text: `is no longer ${words} ${one}`,
      })),
    ],
  )

/** How the callers of the operation that is named differ; empty if the policy has no such operation. */
const changesBy = (line: PolicyLine, ahead: string, callers: Callers): ReadonlyArray<Comparison> =>
  (callers.get(ahead) ?? []).map((other) => compareAccess(accessPathsOf(line), accessPathsOf(other)))

// One that only refuses callers does not open
const nowFirst = (changes: ReadonlyArray<Comparison>): Comparison =>
  changes.length > 0 && changes.every((one) => one === 'closed' || one === 'same') ? 'other' : 'opened'

// One that only let in more kept no caller out
const noLongerFirst = (changes: ReadonlyArray<Comparison>, isOpen: boolean): Comparison => {
  if (changes.includes('closed')) return 'opened'
  if (changes.includes('other')) return 'other'
  return isOpen ? 'same' : 'closed'
}

const lineAdmitsAnonymous = (line: PolicyLine): boolean =>
  accessPathsOf(line).some(({ demands }) => demands.length === 0)
