/**
 * Gives the operations of a router their places in a document, which has one for each path template and method.
 */
import { undescribedPart, type RouteOperation, type Routes, type UndescribedPart } from './routes.js'

/** An operation in its place. */
export interface Placed extends RouteOperation {
  readonly path: string
  /** The names of the path's parameters in the document. */
  readonly names: ReadonlyArray<string>
}

/** Operations that have a place, and those that have none. */
export interface Places {
  readonly placed: ReadonlyArray<Placed>
  readonly shadowed: ReadonlyArray<UndescribedPart>
}

/** Places operations, one for each path and method. If the router has several, it is the one that runs first. */
export const placedAmong = ({ operations, lastAnswers }: Routes): Places => {
  // OpenAPI 3.1, Paths Object: templates that differ only in names are one path. The first gives the names
  const paths = new Map<string, Pick<Placed, 'path' | 'names'>>()
  const taken = new Map<string, Placed>()
  const shadowed: UndescribedPart[] = []
  for (const operation of operations) {
    const { outline, path, parameters } = operation.template
    const place = paths.get(outline) ?? { path, names: parameters.map(({ name }) => name) }
    paths.set(outline, place)
    const slot = `${operation.method} ${outline}`
    const other = taken.get(slot)
    const one = { ...operation, ...place }
    if (other === undefined || lastAnswers) taken.set(slot, one)
    // If two patterns match the same URLs, one of them never answers. Otherwise both do, and one is reported as
    // shadowed
    if (other === undefined || other.template.shape === one.template.shape) continue
    const [winner, loser] = lastAnswers ? [one, other] : [other, one]
    const reason = `${winner.route.place} has the same path template`
    shadowed.push(undescribedPart(loser.route, loser.template.path, [loser.method.toUpperCase()], reason))
  }
  return { placed: [...taken.values()], shadowed }
}

/**
 * The operations that keep their `operationId`: for a route that has several operations, the first. Throws a TypeError if
 * two routes have the same one.
 */
export const idsAmong = (placed: ReadonlyArray<Placed>): ReadonlySet<Placed> => {
  const holders = new Map<string, Placed>()
  for (const operation of placed) {
    const { described, place } = operation.route
    if (described.operationId === undefined) continue
    const holder = holders.get(described.operationId)
    if (holder === undefined) holders.set(described.operationId, operation)
    else if (holder.route !== operation.route) {
      throw new TypeError(
        `openApi: operationId "${described.operationId}" is in ${holder.route.place} and in ${place}; each needs its own`,
      )
    }
  }
  return new Set(holders.values())
}
