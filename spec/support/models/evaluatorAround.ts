/**
 * The expected result of combinators around a tree: the part of the model that knows several requests. It is as simple
 * as `evaluator.ts`, which has the other part, and imports nothing from the sources either.
 *
 * Each credential is counted separately, so the tree must have the form that `apiece` makes.
 */
import type { Branch, Leaf, Log, Outcome, Tree, Verdict } from './evaluator.js'
import { points, Silent, WINDOW, type Around, type Kept, type World } from './world.js'

interface Model {
  readonly verdictOf: (tree: Tree, log: Log) => Verdict
  readonly offered: (tree: Tree, tag: Outcome) => ReadonlyArray<Branch>
}

// --- results

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

// What another site made a browser send has counts of its own
const countedUnder = ({ address, crossSite }: World): string => (crossSite ? `${address} cross-site` : address)

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
  if (isCounted) {
    log.late = true
    if (entry === undefined || now >= entry.end) entry = { guesses: 0, end: now + WINDOW }
    world.guesses.set(place, entry)
    if (entry.guesses >= points[by]!) return failed('throttled')
    entry.guesses++
  }
  const verdict = asked()
  const isGuess = verdict.tag !== 'pass' && verdict.branches.some(({ tag }) => tag === 'malformed' || tag === 'invalid')
  if (isGuess) {
    if (isCounted) world.held = [...world.held, { sent, by, entry: entry! }]
    return verdict
  }
  if (isCounted) entry!.guesses--
  if (['pass', 'expired', 'forged', 'insufficient', 'notFound'].includes(verdict.tag)) release(world, sent)
  return verdict
}
