/**
 * The expected result of combinators around a tree: the part of the model that knows several requests. It is as simple
 * as `evaluator.ts`, which has the other part, and imports nothing from the sources either.
 *
 * Each credential is remembered and counted separately, so the tree must have the form that `apiece` makes.
 */
import type { Branch, Leaf, Log, Outcome, Tree, Verdict } from './evaluator.js'
import { maxAges, PATIENCE, points, Silent, WINDOW, type Around, type Kept, type Moment, type World } from './world.js'

interface Model {
  readonly verdictOf: (tree: Tree, log: Log) => Verdict
  readonly offered: (tree: Tree, tag: Outcome) => ReadonlyArray<Branch>
}

// -------------------------------------------------------------------------------------
// results
// -------------------------------------------------------------------------------------

/** The result of a combinator. */
export const ofAround = (tree: Around, log: Log, { verdictOf, offered }: Model): Verdict => {
  const asked = (): Verdict => verdictOf(tree.member, log)
  const failed = (tag: Exclude<Outcome, 'pass'>): Verdict => ({ tag, branches: offered(tree.member, tag) })
  const { world } = log
  if (tree.node === 'timeout') {
    try {
      return asked()
    } catch (error) {
      if (!(error instanceof Silent)) throw error
      log.late = true
      return failed('unavailable')
    }
  }
  if (tree.node === 'remembered') return recalled(tree, world!, log, asked)
  if (tree.node === 'throttled') return counted(tree, world!, log, asked, failed)
  const verdict = asked()
  if (tree.node === 'map') {
    if (verdict.tag !== 'pass' || (verdict.isAnonymous === true && verdict.principal === undefined)) return verdict
    log.calls.push(tree.id)
    return tree.result === 'wraps' ? { ...verdict, principal: { mapped: verdict.principal } } : failed('raised')
  }
  if (verdict.tag !== (tree.node === 'flatMap' ? 'pass' : 'unavailable')) return verdict
  log.calls.push(tree.id)
  log.late ||= tree.late
  // an outage makes no caller anonymous
  if (tree.node === 'recover' && tree.outcome === 'absent') return verdict
  if (tree.outcome !== 'pass') return failed(tree.outcome)
  if (verdict.tag === 'pass') return { ...verdict, principal: { changed: verdict.principal } }
  // The principal of a plain function can come from anywhere
  world!.recovered = true
  return world!.crossSite ? failed('forged') : { tag: 'pass', principal: { recovered: tree.id } }
}

const leafOf = (tree: Tree): Leaf => {
  if (tree.node === 'leaf') return tree
  return leafOf('members' in tree ? tree.members[0]! : tree.member)
}

// As `throttled` compares credentials: by their contents, also those that were sent twice (`fieldsOf` writes the default)
const sentIn = ({ sent, value = 'sent' }: Leaf): string =>
  sent === 'value' ? value : sent === 'empty' ? '' : `twice ${value}`

const release = (world: World, sent: unknown): void => {
  for (const one of world.held) if (one.sent === sent && world.now < one.entry.end) one.entry.guesses--
  world.held = world.held.filter((one) => one.sent !== sent)
}

/**
 * Whether guesses are counted inside: from which address this one comes; `undefined` if the count must be asked first.
 */
const originOf = (tree: Tree, world: World): string | undefined => {
  if (tree.node === 'leaf') return ''
  if ('members' in tree) return originOf(tree.members[0]!, world)
  const inner = originOf(tree.member, world)
  if (tree.node !== 'throttled' || inner === undefined) return inner
  const until = world.refused.get(tree.by)?.get(countedUnder(world)) ?? 0
  return world.now < until ? undefined : world.address + inner
}

// What another site made a browser send has counts of its own
const countedUnder = ({ address, crossSite }: World): string => (crossSite ? `${address} cross-site` : address)

const expiryOf = (principal: unknown): number =>
  typeof principal === 'object' && principal !== null && 'expiresAt' in principal
    ? Number(principal.expiresAt)
    : Infinity

// The greater age counts: a clock can be set back, and time can stop while a machine sleeps
const ageOf = (since: Moment | undefined, { now, date }: World): number =>
  since === undefined ? Infinity : Math.max(now - since.now, date - since.date)

const canRecover = (tree: Tree): boolean => tree.node === 'recover' || ('member' in tree && canRecover(tree.member))

const recalled = ({ id, by, member }: Kept, world: World, log: Log, asked: () => Verdict): Verdict => {
  const leaf = leafOf(member)
  const from = leaf.sent === 'nothing' ? undefined : originOf(member, world)
  if (from === undefined) return asked()
  const { now, date } = world
  const site = leaf.ambient === true && world.crossSite
  const key = `${by} ${[id, leaf.id, site, from, leaf.sent, leaf.value].join(' ')}`
  const before = world.kept.get(key)
  const maxAge = maxAges[by]!
  if (before !== undefined && ageOf(before.since, world) < maxAge && date < before.expiresAt) {
    release(world, sentIn(leaf))
    return before.verdict
  }
  world.kept.delete(key)
  const age = ageOf(world.silent.get(key), world)
  if (age < PATIENCE && age < maxAge) throw new Silent()
  const outer = { late: log.late, recovered: world.recovered }
  log.late = false
  world.recovered = false
  let verdict: Verdict
  try {
    verdict = asked()
  } catch (error) {
    world.silent.set(key, { now, date })
    throw error
  }
  if (log.late) world.silent.delete(key)
  log.late ||= outer.late
  const expiresAt = verdict.tag === 'pass' ? expiryOf(verdict.principal) : 0
  // one recovery in a decision makes all of its parts that can recover its own
  world.recovered ||= outer.recovered && canRecover(member)
  if (date < expiresAt && !world.recovered) world.kept.set(key, { verdict, since: { now, date }, expiresAt })
  world.recovered ||= outer.recovered
  if (verdict.tag === 'pass') release(world, sentIn(leaf))
  return verdict
}

const counted = (
  { by, member }: Kept,
  world: World,
  log: Log,
  asked: () => Verdict,
  failed: (tag: 'forged' | 'throttled') => Verdict,
): Verdict => {
  const leaf = leafOf(member)
  if (leaf.sent === 'nothing') return asked()
  if (leaf.ambient === true && world.crossSite) return failed('forged')
  const { now } = world
  const address = countedUnder(world)
  const sent = sentIn(leaf)
  const isCounted = !world.held.some((one) => one.by === by && one.sent === sent)
  const place = `${by} ${address}`
  let entry = world.guesses.get(place)
  const refused = world.refused.get(by) ?? new Map<string, number>()
  world.refused.set(by, refused)
  if (isCounted) {
    log.late = true
    if (entry === undefined || now >= entry.end) entry = { guesses: 0, end: now + WINDOW }
    world.guesses.set(place, entry)
    if (entry.guesses + 1 >= points[by]!) refused.set(address, entry.end)
    if (entry.guesses >= points[by]!) return failed('throttled')
    entry.guesses++
  }
  const verdict = asked()
  const isGuess = verdict.tag !== 'pass' && verdict.branches.some(({ tag }) => tag === 'malformed' || tag === 'invalid')
  if (isGuess) {
    if (isCounted) world.held = [...world.held, { sent, by, entry: entry! }]
    return verdict
  }
  if (isCounted) {
    refused.delete(address)
    entry!.guesses--
  }
  if (['pass', 'expired', 'forged', 'insufficient', 'notFound'].includes(verdict.tag)) release(world, sent)
  return verdict
}
