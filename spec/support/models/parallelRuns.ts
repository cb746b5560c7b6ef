/**
 * A tree whose hooks decide again at each call, sync or when a test lets them settle, and what its callers may get. The
 * model does not say which requests share a verification. It only says that callers get what their own credentials
 * allow.
 */
import { either as E } from 'fp-ts'
import type { Request } from 'koa'
import { AuthError, authenticator, Challenge, fromHeader, type Authenticator } from 'koa-with-auth'
import { flatMap, map, recoverUnavailable, timeout } from 'koa-with-auth/fp'
import { newLimits } from './builtAround.js'
import { leavesOf, type Leaf, type Tree } from './evaluator.js'
import { buildNode } from './trees.js'

/** The outcome of a hook for a credential, and whether it is async. */
export interface Answer {
  readonly outcome: 'pass' | 'invalid' | 'expired' | 'unavailable' | 'raised'
  readonly late: boolean
}

/** A request: what it sends to each leaf, and from where. */
export interface Visit {
  readonly at: number
  readonly sent: ReadonlyMap<string, string>
  readonly crossSite: boolean
}

/** One call of a hook. */
export interface Call extends Answer {
  readonly leaf: string
  readonly value: string
  readonly visit: Visit
  readonly at: number
  readonly settle: () => void
}

/** The exception of a hook. */
export class Raised extends Error {
  readonly value: string
  constructor(value: string) {
    super('raised')
    this.value = value
  }
}

const made = (leaf: string, value: string, call: number, { outcome }: Answer): unknown => {
  if (outcome === 'raised') throw new Raised(value)
  if (outcome === 'pass') return { leaf, value, call }
  if (outcome === 'invalid') return false
  return E.left(outcome === 'expired' ? AuthError.expired : AuthError.unavailable(3))
}

/** Makes the authenticator. `answer` gives the outcome of the next call of a hook. */
export const buildParallel = (of: Tree, visitOf: (request: Request) => Visit, answer: () => Answer) => {
  const calls: Call[] = []
  const limits = newLimits()
  const ask = (leaf: string, value: string, visit: Visit): unknown => {
    const said = answer()
    const call = calls.length
    const make = () => made(leaf, value, call, said)
    let settle = () => {}
    const settled = new Promise<void>((resolve) => (settle = resolve))
    calls.push({ ...said, leaf, value, visit, at: performance.now(), settle })
    return said.late ? settled.then(make) : make()
  }
  const leafOf = ({ id, scheme, ambient = false }: Leaf): Authenticator<unknown> =>
    authenticator({
      challenge: Challenge.make(scheme),
      ambient,
      extract: fromHeader(`x-${id}`),
      authenticate: (request, value: string) => ask(id, value, visitOf(request)),
    })
  const make = (tree: Tree): Authenticator<unknown> => {
    switch (tree.node) {
      case 'leaf':
        return leafOf(tree)
      case 'timeout':
        return timeout(500)(make(tree.member))
      case 'map':
        return map((principal: unknown) => ({ mapped: principal }))(make(tree.member))
      case 'flatMap':
        return flatMap((principal: unknown) => (tree.late ? Promise.resolve({ changed: principal }) : { changed: principal }))(make(tree.member)) // prettier-ignore
      case 'recover':
        return recoverUnavailable((request) => ({ recovered: tree.id, visit: visitOf(request) }))(make(tree.member))
      case 'throttled':
        return limits[tree.by]!(make(tree.member))
      default:
        return buildNode(tree, make)
    }
  }
  return { authenticator: make(of), calls }
}

// --- allowed results

/** The calls that a visit may use. */
interface Due {
  readonly visit: Visit
  readonly calls: ReadonlyArray<Call>
}

const field = (u: unknown, name: string): unknown =>
  typeof u === 'object' && u !== null && Object.hasOwn(u, name) ? Reflect.get(u, name) : undefined

/** Whether a principal is allowed for a visit: each hook in it has accepted what this visit sent to it. */
export const isDue = (tree: Tree, principal: unknown, due: Due): boolean => {
  const within = (member: Tree, part: unknown) => isDue(member, part, due)
  const isSilent = (member: Tree) => leavesOf(member).every(({ id }) => !due.visit.sent.has(id))
  switch (tree.node) {
    case 'leaf':
      return isAccepted(tree, principal, due)
    case 'optional':
      return (principal === undefined && isSilent(tree.member)) || within(tree.member, principal)
    case 'lenient':
      return principal === undefined || within(tree.member, principal)
    case 'authorize':
      return tree.allowed && within(tree.member, principal)
    case 'requireScopes':
      return tree.scopes.every((one) => tree.granted.includes(one)) && within(tree.member, principal)
    case 'map':
      return principal === undefined ? within(tree.member, principal) : within(tree.member, field(principal, 'mapped'))
    case 'flatMap':
      return within(tree.member, field(principal, 'changed'))
    case 'recover':
      if (field(principal, 'recovered') === tree.id)
        return field(principal, 'visit') === due.visit && !due.visit.crossSite
      return within(tree.member, principal)
    case 'timeout':
    case 'throttled':
    case 'own':
      return within(tree.member, principal)
    case 'allOf':
      return tree.members.every((member, at) => within(member, field(principal, tree.keys?.[at] ?? String(at))))
    default:
      return tree.members.some((member, at) => {
        const key = tree.keys?.[at]
        if (key === undefined) return within(member, principal)
        return field(principal, 'via') === key && within(member, field(principal, 'principal'))
      })
  }
}

const isAccepted = (leaf: Leaf, principal: unknown, { visit, calls }: Due): boolean => {
  const call = calls[Number(field(principal, 'call'))]
  if (call === undefined || call.outcome !== 'pass' || call.leaf !== leaf.id) return false
  const isOwn = call.value === visit.sent.get(leaf.id) && field(principal, 'value') === call.value
  // A credential that browsers send counts in no request that another site caused
  return isOwn && (leaf.ambient !== true || !visit.crossSite) && call.visit === visit
}
