/**
 * The operations of a router, and the requirement of each after all levels. This is the only reader of routers. Levels (for
 * messages), OpenAPI, the audit, `seal` and `expectGuarded` use it.
 *
 * It reads the layers that run, also those of mounted routers, so nothing is declared twice. An operation is one method
 * of a layer. `use` middleware is not an operation.
 */
import * as Requirement from '../core/Requirement.js'
import { labelOf, operationMethods, operationNote, pathInWords } from './layer.js'
import type { GuardFunction, OperationNote, ReadLayer, RouterLayer } from './layer.js'
import { planOf, writtenIn, type Plan } from './plan.js'

export interface RoutedLayer<L extends ReadLayer = RouterLayer> {
  readonly layer: L
  /** Its place among the layers, from 0. */
  readonly index: number
  readonly path: string | RegExp
  /** Its operations in words, such as `GET, POST /x`; `use /x` for middleware. */
  readonly label: string
  readonly plan: Plan
  /** The functions as they were written, in the order in which they run, without those of applications. */
  readonly functions: ReadonlyArray<Function>
  readonly guard: GuardFunction | undefined
  /** The decision of the levels; `Inherit` if there is none. */
  readonly requirement: Requirement.Requirement
  readonly levels: ReadonlyArray<string>
  /** The functions that run before the guard, without descriptions. */
  readonly ahead: ReadonlyArray<Function>
  /** Whether its guard comes last. Then the handler runs before it, and is not guarded. */
  readonly isAfterItsHandler: boolean
}

export interface RoutedOperation<L extends ReadLayer = RouterLayer> extends RoutedLayer<L> {
  /** Its name: `GET /users/:id`. */
  readonly name: string
  /** `GET` also answers HEAD. `ALL` means all methods that Node knows. */
  readonly method: string
  readonly methods: ReadonlyArray<string>
}

/** All layers of a router, `use` middleware included, in the order in which it tries them. */
export const layersOf = <L extends ReadLayer>(router: {
  readonly stack: ReadonlyArray<L>
}): ReadonlyArray<RoutedLayer<L>> => router.stack.map(readLayer)

/** The operations of a router, in the order in which it tries them. */
export const operationsOf = <L extends ReadLayer>(router: {
  readonly stack: ReadonlyArray<L>
}): ReadonlyArray<RoutedOperation<L>> => layersOf(router).flatMap(operationsIn)

export const operationsIn = <L extends ReadLayer>(routed: RoutedLayer<L>): ReadonlyArray<RoutedOperation<L>> =>
  Object.entries(operationMethods(routed.layer)).map(([method, methods]) => ({
    ...routed,
    method,
    methods,
    name: `${method} ${pathInWords(routed.layer)}`,
  }))

const readLayer = <L extends ReadLayer>(layer: L, index: number): RoutedLayer<L> => {
  const plan = planOf(layer)
  const { guard, after } = plan
  // without a guard, nothing is ahead of it
  const ahead = plan.ahead.filter((f) => operationNote(f) === undefined)
  return {
    layer,
    index,
    path: layer.path,
    label: labelOf(layer),
    plan,
    functions: writtenIn(plan),
    guard,
    requirement: guard?.requirement ?? Requirement.inherit,
    levels: guard?.levels ?? [],
    ahead,
    isAfterItsHandler: ahead.length > 0 && after.length === 0,
  }
}

/** The part of a docs page that an operation serves, or `file` for a file that a page loads; `undefined` if it serves none. */
export const docsAmong = (functions: ReadonlyArray<Function>): OperationNote['docs'] =>
  functions.flatMap((f) => operationNote(f)?.docs ?? [])[0]

interface Listable {
  readonly name: string
  readonly functions: ReadonlyArray<Function>
}

const DOCS = 'docs'

/** The name to list an operation by. For a file that a docs page loads, it is that of the page. */
export const listedName = ({ name, functions }: Listable): string =>
  docsAmong(functions) === 'file' ? name.slice(0, name.lastIndexOf('/')) : name

/** Whether an entry of `seal` or `expectGuarded` is about an operation. `docs` lists the page, its files and its document. */
export const isEntryOf = (operation: Listable, entry: string): boolean =>
  entry === operation.name ||
  entry === listedName(operation) ||
  (entry === DOCS && docsAmong(operation.functions) !== undefined)

/** Why an entry is about no operation, and the fix; `undefined` if that is unknown. */
export const whyMissing = (entry: string, operations: ReadonlyArray<Listable>): string | undefined => {
  if (operations.some((operation) => isEntryOf(operation, entry))) return undefined
  if (entry === DOCS) return 'the router has no docs page: give apiApp the option docs, or mount docs(router, ...)'
  for (const { name, functions } of operations) {
    const docs = docsAmong(functions)
    if (docs === undefined || docs === 'file' || docs.missingPage === undefined) continue
    if (entry === `${name.slice(0, -docs.path.length)}${docs.missingPage}`) {
      return 'the docs page needs swagger-ui-dist, which is not installed: npm install swagger-ui-dist'
    }
  }
  return undefined
}
