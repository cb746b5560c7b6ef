/**
 * The operations of a router, and what each requires after all levels: what OpenAPI and the audit read.
 *
 * Nothing is declared twice: it is read off the guards that the layers carry. `use` middleware is no operation.
 */
import type { Layer, RouterInstance } from '@koa/router'
import * as Requirement from '../core/Requirement.js'
import { isGuard, type Marked } from './guardMark.js'

/** One layer of a router that answers requests; one layer can answer several methods. */
export interface MountedOperation {
  /** As the router has them: GET brings HEAD along. */
  readonly methods: ReadonlyArray<string>
  /** The pattern, with all prefixes; a RegExp as it was given. */
  readonly path: string | RegExp
  /** What the levels decided; `Inherit` where none did. */
  readonly requirement: Requirement.Requirement
  /** Where that was decided. */
  readonly levels: ReadonlyArray<string>
  /** The functions of the layer, in the order in which they run. */
  readonly functions: ReadonlyArray<Function>
}

/** The guard among the functions of a layer. */
export const guardAmong = (functions: ReadonlyArray<Function>): Marked | undefined =>
  functions.find((f): f is typeof f & Marked => isGuard(f))

/** The operations of a router, mounted ones included, in the order in which the router tries them. */
export const operationsOf = <S, C>(router: Pick<RouterInstance<S, C>, 'stack'>): ReadonlyArray<MountedOperation> =>
  router.stack.filter(({ methods }) => methods.length > 0).map(operationOf)

const operationOf = <S, C>({ methods, path, stack }: Layer<S, C>): MountedOperation => {
  const guard = guardAmong(stack)
  return {
    methods,
    path,
    requirement: guard?.requirement ?? Requirement.inherit,
    levels: guard?.levels ?? [],
    functions: stack,
  }
}
