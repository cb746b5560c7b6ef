/** The routes of a router as OpenAPI's operations, in the order in which it tries them. Routes that OpenAPI cannot describe are apart. */
import * as E from 'fp-ts/lib/Either.js'
import type { Request } from 'koa'
import type { OpenAPIV3_1 } from 'openapi-types'
import { inherit, type Requirement } from '../core/Requirement.js'
import type { Layer } from '../koa/router.js'
import { layersOf, type RoutedLayer } from '../koa/operations.js'
import { operationNote, type ReadLayer } from '../koa/layer.js'
import { modernPath } from '../koa/pathSyntax.js'
import type { DescribedOperation } from './operation.js'
import { pathItemMethods, templatesOf, type ListedMethod, type PathTemplate } from './paths.js'
import { securityOf, type Security } from './security.js'

export interface Routed<S, C> {
  readonly stack: Layer<S, C>[]
  /** Whether only the last of the matching layers runs. */
  readonly exclusive?: boolean | undefined
  readonly opts?: { readonly exclusive?: boolean | 'specificity' | undefined }
}

interface DescribedRoute {
  /** `GET /pets/:id`, for messages. */
  readonly where: string
  readonly described: DescribedOperation
  readonly security: Security
  readonly templates: ReadonlyArray<PathTemplate>
}

/** A route, or a part of a route, that OpenAPI cannot list among its paths. */
export interface Undescribed {
  readonly path: string
  readonly methods: ReadonlyArray<string>
  readonly reason: string
  readonly summary?: string
  /** As in an Operation Object. */
  readonly security?: OpenAPIV3_1.SecurityRequirementObject[]
}

const readOne = (
  { layer, label: where, requirement, functions, isAfterItsHandler }: RoutedLayer<ReadLayer>,
  securityAfter: (requirement: Requirement) => Security,
) => {
  const { methods, path } = layer
  const { listed, others } = listedMethods(methods)
  const called = [...listed.map((method) => method.toUpperCase()), ...others]
  const described = descriptionAmong(functions, where)
  if (described.undocumented === true) return []

  // older routers have another syntax of patterns
  const templates = templatesOf(modernPath(layer)?.path ?? path)
  const written = templates.flatMap((template) => (E.isRight(template) ? [template.right] : []))
  // a guard that comes after its handler guards nothing
  const security = securityAfter(isAfterItsHandler ? inherit : requirement)
  const route: DescribedRoute = { where, described, security, templates: written }
  const reasons = new Set(templates.flatMap((template) => (E.isLeft(template) ? [template.left] : [])))
  const undescribed = [
    ...[...reasons].map((reason) => undescribedPart(route, path, called, reason)),
    ...(others.length > 0 && written.length > 0
      ? [undescribedPart(route, path, others, 'OpenAPI 3.1 has no field for these methods')]
      : []),
  ]
  const operations = written.flatMap((template) => listed.map((method) => ({ route, template, method })))
  return [{ operations, undescribed }]
}

/** The description of an operation among the functions of its layer. Throws a TypeError that names `where` for two. */
const descriptionAmong = (functions: ReadonlyArray<Function>, where: string): DescribedOperation => {
  const [note, second] = functions.flatMap((f) => operationNote(f) ?? [])
  if (second !== undefined) throw new TypeError(`${where}: operation({ ... }) is in it twice; remove one`)
  // Safe: `described` alone writes it
  return (note?.options ?? {}) as DescribedOperation
}

const undescribedPart = (route: DescribedRoute, path: Layer['path'], methods: string[], reason: string) => {
  const { summary } = route.described
  const { requirements } = route.security
  const entry: Undescribed = {
    path: String(path),
    methods,
    reason,
    ...(summary !== undefined && { summary }),
    ...(requirements !== undefined && { security: structuredClone(requirements) }),
  }
  return { route, entry }
}

/** An operation in its place. A document has one for each path template and method. */
interface PlacedOperation {
  readonly route: DescribedRoute
  readonly template: PathTemplate
  readonly method: ListedMethod
  readonly path: string
  /** The names of the path's parameters in the document. */
  readonly names: ReadonlyArray<string>
}

/** One operation for each path and method: the operation that runs first, or if `lastAnswers` the last. */
const placesOf = (
  operations: ReadonlyArray<Pick<PlacedOperation, 'route' | 'template' | 'method'>>,
  lastAnswers: boolean,
) => {
  // OpenAPI 3.1, Paths Object: templates that differ only in names are one path. The first gives the names
  const paths = new Map<string, Pick<PlacedOperation, 'path' | 'names'>>()
  const placedByKey = new Map<string, PlacedOperation>()
  const shadowed: ReturnType<typeof undescribedPart>[] = []
  for (const operation of operations) {
    const { outline, path, parameters } = operation.template
    const shared = paths.get(outline) ?? { path, names: parameters.map(({ name }) => name) }
    paths.set(outline, shared)
    const slot = `${operation.method} ${outline}`
    const other = placedByKey.get(slot)
    const one = { ...operation, ...shared }
    if (other === undefined || lastAnswers) placedByKey.set(slot, one)
    // Same shape: the other never runs, so nothing is lost. Another shape: both run, but OpenAPI can list only one
    if (other === undefined || other.template.shape === one.template.shape) continue
    const [winner, loser] = lastAnswers ? [one, other] : [other, one]
    const reason = `${winner.route.where} has the same path template`
    shadowed.push(undescribedPart(loser.route, loser.template.path, [loser.method.toUpperCase()], reason))
  }
  return { placed: [...placedByKey.values()], shadowed }
}

/** The first operation of each route keeps its `operationId`. Throws a TypeError if two routes have the same `operationId`. */
const idsAmong = (placed: ReadonlyArray<PlacedOperation>): ReadonlySet<PlacedOperation> => {
  const holders = new Map<string, PlacedOperation>()
  for (const operation of placed) {
    const { described, where } = operation.route
    if (described.operationId === undefined) continue
    const holder = holders.get(described.operationId)
    if (holder === undefined) holders.set(described.operationId, operation)
    else if (holder.route !== operation.route) {
      throw new TypeError(
        `openApi: operationId "${described.operationId}" is in ${holder.route.where} and in ${where}; each needs its own`,
      )
    }
  }
  return new Set(holders.values())
}

/** Reads a router. Throws a TypeError for a route with two descriptions, and for two routes with one `operationId`. */
export const documentedIn = <S, C>(router: Routed<S, C>, request?: Request) => {
  const secured = new Map<Requirement, Security>()
  const securityAfter = (requirement: Requirement): Security => {
    const security = secured.get(requirement) ?? securityOf(requirement, request)
    secured.set(requirement, security)
    return security
  }
  const read = layersOf(router)
    .filter(({ layer }) => layer.methods.length > 0)
    .flatMap((layer) => readOne(layer, securityAfter))
  const { placed, shadowed } = placesOf(
    read.flatMap(({ operations }) => operations),
    router.exclusive === true && router.opts?.exclusive !== 'specificity',
  )
  const undescribed = [...read.flatMap((one) => one.undescribed), ...shadowed]
  const withIds = idsAmong(placed)
  return {
    operations: placed.map((operation) => ({ ...operation, hasId: withIds.has(operation) })),
    undescribed: undescribed.map(({ entry }) => entry),
    routes: [...new Set([...placed, ...undescribed].map(({ route }) => route))],
  }
}

/** The methods that OpenAPI has fields for, and the others. The HEAD that the router adds to every GET is left out. */
const listedMethods = (methods: ReadonlyArray<string>) => {
  const times = (method: string): number => methods.filter((one) => one === method).length
  const own = new Set(times('HEAD') > times('GET') ? methods : methods.filter((one) => one !== 'HEAD'))
  // Safe: which of them it is does not matter to `includes`
  const others = [...own].filter((method) => !(pathItemMethods as ReadonlyArray<string>).includes(method.toLowerCase()))
  return { listed: pathItemMethods.filter((method) => own.has(method.toUpperCase())), others }
}

export type DocumentedOperation = ReturnType<typeof documentedIn>['operations'][number]
