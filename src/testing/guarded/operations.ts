/**
 * The operations of a router, with what is needed to send requests to them: a name, a target for each method, and the
 * layer.
 */
import { compile } from 'path-to-regexp'
import { leaves, admitsAnonymous, type Description } from '../../core/Description.js'
import { effective } from '../../core/Requirement.js'
import { operationsOf, pathInWords } from '../../koa/RoutedOperation.js'
import type { Layer, RouterInstance } from '../../koa/routerTypes.js'
import { locationOf, type CredentialLocation } from '../request/CredentialLocation.js'

/** One operation of a router. */
export interface Tested {
  readonly layer: Layer
  /** The methods that a client can send, HEAD last. */
  readonly methods: ReadonlyArray<string>
  readonly path: string
  /** `GET /pets`; `ALL /pets` if it answers every method. */
  readonly name: string
  /** As they were written, before tripwires. */
  readonly functions: ReadonlyArray<Function>
  /** The path for requests; `undefined` if it is unknown, such as for a RegExp. */
  readonly target: string | undefined
  /** What its guard demands; `undefined` if anyone may call. */
  readonly description: Description | undefined
  readonly locations: ReadonlyArray<CredentialLocation>
}

/** Whether anyone may call, also anonymously. */
export const isOpen = ({ description }: Tested): boolean => description === undefined || admitsAnonymous(description)

/** How paths are filled. */
export interface Filling {
  /** Values of path parameters, by name; `1` for the others. */
  readonly params?: Readonly<Record<string, string>> | undefined
  /** Whole targets, by the operation's name or its path: for a RegExp, or for values that must fit together. */
  readonly paths?: Readonly<Record<string, string>> | undefined
}

/** The operations of a router in the order in which it tries them. */
export const testedOf = (router: RouterInstance, filling: Filling): ReadonlyArray<Tested> =>
  operationsOf(router).map(({ layer, name, methods, functions, requirement, isBehindItsHandler }) => {
    const path = pathInWords(layer)
    const description = isBehindItsHandler ? undefined : effective(requirement)?.description
    return {
      layer,
      methods: [
        ...methods.filter((method) => !/^(?:CONNECT|HEAD)$/.test(method)),
        ...methods.filter((method) => method === 'HEAD'),
      ],
      path,
      name,
      functions,
      target: filling.paths?.[name] ?? filling.paths?.[path] ?? filled(layer, filling),
      description,
      locations: description === undefined ? [] : leaves(description).flatMap((leaf) => locationOf(leaf) ?? []),
    }
  })

const filled = (layer: Layer, { params = {} }: Filling): string | undefined => {
  if (typeof layer.path !== 'string') return undefined
  const values = layer.paramNames.map(({ name, type }) => {
    const value = params[name] ?? '1'
    return [name, type === 'wildcard' ? [value] : value] as const
  })
  try {
    // without the patterns that `compile` cannot read
    return compile(layer.path.replaceAll('(.*)', ''))(Object.fromEntries(values))
  } catch {
    return undefined
  }
}
