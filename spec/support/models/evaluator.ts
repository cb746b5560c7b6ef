/**
 * The expected result of a tree of authenticators, from the rules alone. It imports nothing from the sources, and is so
 * simple that reading it is enough to check it. It knows no requests: every leaf has its outcome. `evaluatorAround.ts` has the
 * combinators around one tree, some of which remember earlier requests.
 */
import { ofAround } from './evaluatorAround.js'
import { Silent, type Around, type World } from './world.js'

export type Outcome = keyof typeof strengths

// From the weakest to the strongest. The last three stop a list.
const strengths = {
  pass: -1,
  absent: 0,
  malformed: 1,
  invalid: 2,
  expired: 3,
  forged: 4,
  insufficient: 5,
  notFound: 5,
  throttled: 6,
  unavailable: 6,
  raised: 6,
}
const stops = (tag: Outcome): boolean => strengths[tag] === 6

// Safe: these are its keys
export const outcomes = Object.keys(strengths) as ReadonlyArray<Outcome>

/** One kind of credential: what a client sent, and the outcome of its hook. `late` means async, or never settled. */
export interface Leaf {
  readonly node: 'leaf'
  readonly id: string
  readonly scheme: string
  readonly outcome: Outcome
  readonly sent: 'nothing' | 'empty' | 'twice' | 'value'
  readonly scope?: ReadonlyArray<string>
  readonly late: boolean | 'never'
  /** Which of several values was sent, and its principal; and whether browsers send it by themselves. */
  readonly value?: string
  readonly principal?: unknown
  readonly ambient?: boolean
}

/** A list, or an object if there are `keys`. */
export interface Group {
  readonly node: 'anyOf' | 'firstPresent' | 'allOf' | 'alt'
  readonly keys?: ReadonlyArray<string>
  readonly members: ReadonlyArray<Tree>
}

export type Tree =
  | Leaf
  | Group
  | Around
  | { readonly node: 'optional' | 'lenient' | 'own'; readonly member: Tree }
  | { readonly node: 'authorize'; readonly member: Tree; readonly allowed: boolean; readonly late: boolean }
  | { readonly node: 'requireScopes'; readonly member: Tree; readonly scopes: string[]; readonly granted: string[] }

/** The decisions of levels, from the outermost to the innermost. */
export type Level = 'inherit' | 'public' | { readonly require: Tree } | { readonly also: Tree }

/** What the challenge of one alternative says. */
export interface Branch {
  readonly scheme: string
  readonly tag: Outcome
  readonly scope?: ReadonlyArray<string> | undefined
}

export type Verdict =
  | { readonly tag: 'pass'; readonly principal: unknown; readonly isAnonymous?: true }
  | { readonly tag: Exclude<Outcome, 'pass'>; readonly branches: ReadonlyArray<Branch> }
type Failure = Exclude<Verdict, { readonly tag: 'pass' }>
type Passed = Exclude<Verdict, Failure>

/** The hooks that were called, in order; which outcomes counted; and whether a part of it was async. */
export interface Log {
  readonly calls: string[]
  readonly reached: Outcome[]
  late: boolean
  readonly world?: World
}

const children = (tree: Tree): ReadonlyArray<Tree> =>
  tree.node === 'leaf' ? [] : 'members' in tree ? tree.members : [tree.member]

export const leavesOf = (tree: Tree): ReadonlyArray<Leaf> =>
  tree.node === 'leaf' ? [tree] : children(tree).flatMap(leavesOf)

const isSent = (tree: Tree): boolean => leavesOf(tree).some(({ sent }) => sent !== 'nothing')

const branch = ({ scheme }: Leaf, tag: Outcome, scope?: ReadonlyArray<string>): Branch => ({ scheme, tag, scope })

// Every challenge names the scopes that are demanded around it, the inner ones first
const demandingScopes =
  (scopes: ReadonlyArray<string>) =>
  (one: Branch): Branch => ({ ...one, scope: [...new Set([...(one.scope ?? []), ...scopes])] })

const offered = (tree: Tree, tag: Outcome, scope?: ReadonlyArray<string>): ReadonlyArray<Branch> => {
  if (tree.node === 'leaf') return [branch(tree, tag, scope)]
  const below = children(tree).flatMap((child) => offered(child, tag, scope))
  return tree.node === 'requireScopes' ? below.map(demandingScopes(tree.scopes)) : below
}

// A member that was not tried still offers its plain challenge
const skipped = (members: ReadonlyArray<Tree>): ReadonlyArray<Branch> =>
  members.flatMap((member) => offered(member, 'absent'))

const isAround = (tree: Tree): tree is Around =>
  ['map', 'flatMap', 'recover', 'timeout', 'throttled'].includes(tree.node)

// Of demands that are directly inside each other, the inner one comes first
const demandedBy = (tree: Tree): ReadonlyArray<string> => {
  // A list of one member is this member
  if (tree.node === 'anyOf' && tree.members.length === 1) return demandedBy(tree.members[0]!)
  if (isAround(tree)) return demandedBy(tree.member)
  if (tree.node !== 'requireScopes' && tree.node !== 'authorize') return []
  return [...new Set([...demandedBy(tree.member), ...(tree.node === 'requireScopes' ? tree.scopes : [])])]
}

/** The result of a tree. */
export const verdictOf = (tree: Tree, log: Log): Verdict => {
  switch (tree.node) {
    case 'leaf':
      return ofLeaf(tree, log)
    case 'alt':
    case 'anyOf':
      return ofAnyOf(tree, log)
    case 'firstPresent':
      return ofFirstPresent(tree, log)
    case 'allOf':
      return ofAllOf(tree, log)
    case 'map':
    case 'flatMap':
    case 'recover':
    case 'timeout':
    case 'throttled':
      return ofAround(tree, log, { verdictOf, offered })
    case 'own': {
      const verdict = verdictOf(tree.member, log)
      if (verdict.tag !== 'pass') return verdict
      return { ...verdict, principal: { inherited: undefined, own: verdict.principal } }
    }
    case 'optional':
    case 'lenient': {
      const verdict = verdictOf(tree.member, log)
      const excused = tree.node === 'optional' ? ['absent'] : ['absent', 'malformed', 'invalid', 'expired']
      return excused.includes(verdict.tag) ? anonymous(undefined) : verdict
    }
    case 'authorize':
    case 'requireScopes': {
      const verdict = verdictOf(tree.member, log)
      if (verdict.tag !== 'pass') {
        // An outage offers no challenge
        if (tree.node === 'authorize' || stops(verdict.tag)) return verdict
        return { tag: verdict.tag, branches: verdict.branches.map(demandingScopes(tree.scopes)) }
      }
      if (tree.node === 'authorize' && tree.late) log.late = true
      const scopes = demandedBy(tree)
      const allowed = tree.node === 'authorize' ? tree.allowed : tree.scopes.every((one) => tree.granted.includes(one))
      const branches = offered(tree, 'insufficient', scopes.length > 0 ? scopes : undefined)
      return allowed ? verdict : { tag: 'insufficient', branches }
    }
  }
}

const passed = (principal: unknown): Verdict => ({ tag: 'pass', principal })
// `optional` admits no caller, whatever is made of the anonymous principal
const anonymous = (principal: unknown): Verdict => ({ tag: 'pass', principal, isAnonymous: true })

const ofLeaf = (leaf: Leaf, log: Log): Verdict => {
  log.reached.push(leaf.outcome)
  // 5.1.4: the hook is called only for well-formed credentials
  if (leaf.sent === 'value') {
    log.calls.push(leaf.id)
    log.late ||= leaf.late !== false
    if (leaf.late === 'never') throw new Silent()
  }
  const { outcome: tag } = leaf
  return tag === 'pass' ? passed(leaf.principal ?? leaf.id) : { tag, branches: [branch(leaf, tag, leaf.scope)] }
}

const tagged = ({ keys }: Group, at: number, verdict: Passed): Verdict =>
  keys === undefined ? verdict : { ...verdict, principal: { via: keys[at], principal: verdict.principal } }

// The first that passes wins. The strongest failure gives the tag, or the first of equals. All branches are kept.
const ofAnyOf = (group: Group, log: Log): Verdict => {
  let all: Failure | undefined
  for (const [at, member] of group.members.entries()) {
    // After a bad credential no request passes
    const isRefused = all !== undefined && all.tag !== 'absent'
    const bare: Failure = { tag: 'absent', branches: skipped([member]) }
    let verdict = isRefused && welcomes(member) && !isSent(member) ? bare : verdictOf(member, log)
    if (verdict.tag === 'pass') {
      if (!isRefused || verdict.isAnonymous !== true) return tagged(group, at, verdict)
      verdict = bare
    }
    const isStronger = all === undefined || strengths[verdict.tag] > strengths[all.tag]
    all = { tag: isStronger ? verdict.tag : all!.tag, branches: [...(all?.branches ?? []), ...verdict.branches] }
    if (stops(verdict.tag)) break
  }
  return all!
}

// The first that is not absent decides
const ofFirstPresent = (group: Group, log: Log): Verdict => {
  let before: ReadonlyArray<Branch> = []
  for (const [at, member] of group.members.entries()) {
    const verdict = verdictOf(member, log)
    if (verdict.tag === 'pass') return tagged(group, at, verdict)
    before = [...before, ...verdict.branches]
    if (verdict.tag !== 'absent') {
      return { tag: verdict.tag, branches: [...before, ...skipped(group.members.slice(at + 1))] }
    }
  }
  return { tag: 'absent', branches: before }
}

// The first that does not pass decides. An absent member is a refusal if the credential of another one was sent.
const ofAllOf = ({ members, keys }: Group, log: Log): Verdict => {
  const principals: unknown[] = []
  for (const [at, member] of members.entries()) {
    const verdict = verdictOf(member, log)
    if (verdict.tag !== 'pass') {
      const isPartial = verdict.tag === 'absent' && members.some((other) => other !== member && isSent(other))
      const branches = [...verdict.branches, ...skipped(members.slice(at + 1))]
      return { tag: isPartial ? 'invalid' : verdict.tag, branches }
    }
    principals.push(verdict.principal)
  }
  return passed(keys === undefined ? principals : Object.fromEntries(keys.map((key, at) => [key, principals[at]])))
}

/** The result of levels: the innermost decision, and what was added inside of it; `undefined` if anyone may call. */
export const foldLevels = (levels: ReadonlyArray<Level>): Tree | undefined =>
  levels.reduce<Tree | undefined>((above, level) => {
    if (level === 'inherit') return above
    if (level === 'public') return undefined
    if ('require' in level) return level.require
    return above === undefined
      ? { node: 'own', member: level.also }
      : { node: 'allOf', keys: ['inherited', 'own'], members: [above, level.also] }
  }, undefined)

/** Whether a request without credentials passes, if every hook is called. */
export const welcomes = (tree: Tree): boolean => {
  if (tree.node === 'leaf') return false
  if (tree.node === 'optional' || tree.node === 'lenient') return true
  return tree.node === 'allOf' ? tree.members.every(welcomes) : children(tree).some(welcomes)
}

/**
 * Whether a tree must be refused when it is built: an optional member that is not last, or of which more is demanded.
 */
export const isMistake = (tree: Tree): boolean =>
  children(tree).some(isMistake) ||
  ('members' in tree && tree.node !== 'allOf' && tree.members.slice(0, -1).some(welcomes)) ||
  ((tree.node === 'authorize' || tree.node === 'requireScopes') && welcomes(tree.member))

/** The status of a response; a pass has the status of the handler. */
export const statusOf = ({ tag }: Verdict): number => {
  if (tag === 'pass') return 200
  if (tag === 'throttled') return 429
  if (tag === 'unavailable') return 503
  if (tag === 'raised') return 500
  if (tag === 'notFound') return 404
  return tag === 'forged' || tag === 'insufficient' ? 403 : 401
}

/**
 * The lines of `WWW-Authenticate`: those of all alternatives for a 401, those of missing scopes for a 403, each once.
 */
export const challengeLines = (verdict: Verdict): ReadonlyArray<string> => {
  const branches = verdict.tag === 'pass' ? [] : verdict.branches
  const status = statusOf(verdict)
  const reported = branches.filter(({ tag }) => status === 401 || (status === 403 && tag === 'insufficient'))
  const lines = reported.map(
    ({ scheme, tag, scope }) =>
      `${scheme} realm="api", error="${tag}"${scope === undefined ? '' : `, scope="${scope.join(' ')}"`}`,
  )
  return [...new Set(lines)]
}
