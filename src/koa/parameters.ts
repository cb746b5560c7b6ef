/**
 * The parameters of paths that `owned` reads: whether a path has them, and their values in a request.
 *
 * A prefix may bring a parameter until the router is mounted in an application. So a path without it is refused there, and a RegExp,
 * whose groups have no names, at once. A mistake that neither sees is a 500 at each request.
 */
import type { Context } from 'koa'
import { objectConditionsIn, objectsIn, type Description, type ObjectRule, type Scoped } from '../core/Description.js'
import { alternativesOf } from '../core/Alternative.js'
import type { PathParameters } from '../core/Exchange.js'
import { effective, type Requirement } from '../core/Requirement.js'
import { withCode } from '../core/data.js'
import { labelOf, type ReadLayer } from './layer.js'
import { planOf } from './plan.js'
import type { Layer } from './router.js'

/** Throws a TypeError if two objects of an alternative have the same name. */
export const checkObjects = (description: Description): void => {
  if (objectsIn(description).length < 2) return
  for (const { objects } of alternativesOf(description)) {
    const names = objects.flatMap(({ object }) => object?.name ?? [])
    const twice = names.find((name, at) => names.indexOf(name) < at)
    if (twice !== undefined)
      throw new TypeError(`owned('${twice}') is in one operation twice; give each object its own name`)
  }
}

/** Throws a TypeError if a guard that is for no route reads path parameters. */
export const refuseOwnedObjects = (caller: string, description: Description): void => {
  const [object] = objectsIn(description)
  if (object === undefined) return
  throw new TypeError(
    `${caller}: ${ownedInWords(object)}, and not all operations have it; write withAuth(a, owned(...)) at a router or an operation`,
  )
}

const ownedInWords = ({ name, param }: ObjectRule): string => `owned('${name}') reads the parameter :${param}`

/** The layers of a router whose paths match a request, `use` middleware among them. */
export const matchedLayers = (ctx: Context): ReadonlyArray<Layer> =>
  // Safe: a router puts its layers there
  (ctx['matched'] ?? []) as ReadonlyArray<Layer>

/** The layer that runs; one without methods is `use` middleware. */
export const runningLayer = (ctx: Context): Layer | undefined => {
  const path: unknown = ctx['routerPath']
  const matched = matchedLayers(ctx)
  for (let at = 0; at < matched.length; at++) {
    const layer = matched[at]
    if (layer !== undefined && layer.path === path && layer.methods.length > 0) return layer
  }
  return undefined
}

/** Reads the parameters that `owned` reads from the route that runs; `undefined` if it reads none. */
export const parameterReaderOf = (description: Description): ((ctx: Context) => PathParameters) | undefined => {
  const objects = objectsIn(description)
  if (objects.length === 0) return undefined
  return (ctx) => {
    const layer = runningLayer(ctx)
    // Safe: the router sets both for each layer that runs
    const captures = ctx['captures'] as ReadonlyArray<string | undefined>
    const params = ctx['params'] as Readonly<Record<string, unknown>>
    const read: Record<string, string> = Object.create(null)
    for (const object of objects) {
      const at = layer === undefined ? -1 : indexIn(layer, object.param)
      if (at === -1) {
        throw withCode(
          new Error(
            layer === undefined ? absentParameter(object) : `${labelOf(layer)}: ${unreadableParameter(layer, object)}`,
          ),
          'ERR_GUARD_MISPLACED',
        )
      }
      // it is optional in the path: `params` may have that of another route
      if (!captures[at]) continue
      const value = params[object.param]
      if (typeof value === 'string') read[object.param] = value
    }
    return read
  }
}

interface PathOf {
  readonly paramNames: ReadonlyArray<unknown>
}

// The router's own parameter, of `use`, has no name
const parameterKey = (parameter: unknown): unknown =>
  typeof parameter === 'object' && parameter !== null ? Reflect.get(parameter, 'name') : undefined

export const parameterNames = ({ paramNames }: PathOf): ReadonlyArray<string> =>
  [...new Set(paramNames.map(parameterKey))].filter((name) => typeof name === 'string')

/** The numbers of the parameters of a path that have no name: groups of a RegExp, which a handler can read all the same. */
export const unnamedIn = (layer: ReadLayer & PathOf): ReadonlyArray<string> => {
  const names = layer.paramNames.map(parameterKey)
  // some routers do not list the groups of a RegExp; the empty alternative matches, and counts them
  const { path } = layer
  const groups =
    names.length === 0 && path instanceof RegExp ? (new RegExp(`${path.source}|`, path.flags).exec('') ?? []) : []
  return [...names.filter((name) => typeof name === 'number'), ...groups.slice(1).keys()].map(String)
}

// Of two with one name, the router's `params` have the last: -1, because the object would not be the object that it seems
const indexIn = ({ paramNames }: PathOf, param: string): number => {
  const at = paramNames.findIndex((one) => parameterKey(one) === param)
  return at === paramNames.findLastIndex((one) => parameterKey(one) === param) ? at : -1
}

const unreadableParameter = (layer: PathOf, object: ObjectRule): string =>
  parameterNames(layer).includes(object.param)
    ? `${ownedInWords(object)}, which the path has twice, so only the last one would be read; give each its own name`
    : absentParameter(object)

const absentParameter = (object: ObjectRule): string =>
  `${ownedInWords(object)}, which the path does not have; write it into the path or a prefix, or guard the operation without it: withAuth(a)`

/** The mistake if the path does not have the parameters that the guard reads, or has one twice; `undefined` if there is none. */
export const missingParameter = (layer: ReadLayer & PathOf): string | undefined => {
  if (layer.methods.length === 0) return undefined
  const conditions = conditionsOf(planOf(layer).guard?.requirement)
  const object = conditions.find((one) => one.object !== undefined && indexIn(layer, one.object.param) === -1)?.object
  if (object !== undefined)
    return `${labelOf(layer)}: ${isPattern(layer) ? ofPattern(object) : unreadableParameter(layer, object)}`
  const known = [...parameterNames(layer), ...unnamedIn(layer)]
  const other = conditions.find(({ unchecked }) => unchecked !== undefined && !known.includes(unchecked.param))
  if (other?.unchecked === undefined) return undefined
  const { param } = other.unchecked
  return `${labelOf(layer)}: unchecked('${param}') is about the parameter :${param}, which the path does not have; write the name of one that it has, or leave it out`
}

/** Throws a TypeError if an operation among these layers does not have the parameters that its guard reads. */
export const checkParameters = (layers: ReadonlyArray<Layer>): void => {
  // Most operations have the guard of a level, which reads none
  let readsNone: Requirement | undefined
  for (const layer of layers) {
    const requirement = planOf(layer).guard?.requirement
    if (requirement === readsNone) continue
    const message = missingParameter(layer)
    if (message !== undefined) throw new TypeError(message)
    if (conditionsOf(requirement).length === 0) readsNone = requirement
  }
}

/** Throws a TypeError if a guard needs a path parameter but the route is a RegExp without named parameters. */
export const refusePattern = (layer: ReadLayer, requirement: Requirement | undefined): void => {
  if (!isPattern(layer)) return
  const object = conditionsOf(requirement).find((one) => one.object !== undefined)?.object
  if (object !== undefined) throw new TypeError(`${labelOf(layer)}: ${ofPattern(object)}`)
}

const ofPattern = (object: ObjectRule): string =>
  `${ownedInWords(object)}, and the path is a RegExp, whose groups have no names; write it as a string`

/** Whether the path is a RegExp, or the string of a RegExp. */
export const isPattern = ({ path, opts }: Pick<ReadLayer, 'path' | 'opts'>): boolean =>
  typeof path !== 'string' || opts?.pathAsRegExp === true

const conditionsOf = (requirement: Requirement | undefined): ReadonlyArray<Scoped> => {
  const authenticator = requirement === undefined ? undefined : effective(requirement)
  return authenticator === undefined ? [] : objectConditionsIn(authenticator.description)
}
