/**
 * The routes of a router as OpenAPI's operations: one for each path template and method, in the order in which the router
 * tries them; and apart from them what OpenAPI has no words for.
 */
import * as E from 'fp-ts/lib/Either.js'
import { modernPath } from '../koa/pathSyntax.js'
import type { Layer } from '../koa/routerTypes.js'
import type { Request } from 'koa'
import type { OpenAPIV3_1 } from 'openapi-types'
import type { Requirement } from '../core/Requirement.js'
import { layersOf, type ReadLayer, type RoutedLayer } from '../koa/RoutedOperation.js'
import { methodsOf, type ListedMethod } from './methods.js'
import { descriptionAmong, type OperationOptions } from './operation.js'
import type { Given } from '../core/options.js'
import { templatesOf, type PathTemplate } from './pathTemplates.js'
import { copied, securityOf, type Security } from './security.js'

/** What of a router is read. */
export interface Routed<S, C> {
  readonly stack: Layer<S, C>[]
  /** Of the layers that match, the last one alone runs. */
  readonly exclusive?: boolean | undefined
  readonly opts?: { readonly exclusive?: boolean | 'specificity' | undefined }
}

/** A layer, and what it says about itself. */
export interface Route {
  /** `GET /pets/:id`, for messages. */
  readonly place: string
  readonly described: Given<OperationOptions>
  readonly security: Security
  /** All of its paths. */
  readonly templates: ReadonlyArray<PathTemplate>
}

/** One operation of a route. */
export interface RouteOperation {
  readonly route: Route
  readonly template: PathTemplate
  readonly method: ListedMethod
}

/** A route, or a part of one, that OpenAPI cannot list among its paths. */
export interface Undescribed {
  /** As the router has it. */
  readonly path: string
  readonly methods: ReadonlyArray<string>
  readonly reason: string
  readonly summary?: string
  /** As in an Operation Object. */
  readonly security?: OpenAPIV3_1.SecurityRequirementObject[]
}

/** What of a route is not among the paths. */
export interface UndescribedPart {
  readonly route: Route
  readonly entry: Undescribed
}

/** The operations of a router, and what is not among them. */
export interface Routes {
  readonly operations: ReadonlyArray<RouteOperation>
  readonly undescribed: ReadonlyArray<UndescribedPart>
  /** Of two for one method and path, whether the last one answers instead of the first. */
  readonly lastAnswers: boolean
}

/** Reads a router. TypeError for a route that says two things about itself. */
export const routesOf = <S, C>(router: Routed<S, C>, request?: Request): Routes => {
  const secured = new Map<Requirement, Security>()
  const securityBehind = (requirement: Requirement): Security => {
    const known = secured.get(requirement) ?? securityOf(requirement, request)
    secured.set(requirement, known)
    return known
  }
  const read = layersOf(router)
    .filter(({ layer }) => layer.methods.length > 0)
    .flatMap((layer) => readOne(layer, securityBehind))
  return {
    operations: read.flatMap(({ operations }) => operations),
    undescribed: read.flatMap(({ undescribed }) => undescribed),
    lastAnswers: router.exclusive === true && router.opts?.exclusive !== 'specificity',
  }
}

const readOne = (
  { layer, label: place, requirement, functions }: RoutedLayer<ReadLayer>,
  securityBehind: (requirement: Requirement) => Security,
) => {
  const { methods, path } = layer
  const { listed, others } = methodsOf(methods)
  const called = [...listed.map((method) => method.toUpperCase()), ...others]
  const described = descriptionAmong(functions, place)
  if (described.undocumented === true) return []

  // older routers write patterns in other words
  const templates = templatesOf(modernPath(layer)?.path ?? path)
  const written = templates.flatMap((template) => (E.isRight(template) ? [template.right] : []))
  const route: Route = { place, described, security: securityBehind(requirement), templates: written }
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

/** Tells of a part of a route that is not among the paths. */
export const undescribedPart = (
  route: Route,
  path: string | RegExp,
  methods: ReadonlyArray<string>,
  reason: string,
): UndescribedPart => {
  const { summary } = route.described
  const { requirements } = route.security
  const entry = {
    path: String(path),
    methods,
    reason,
    ...(summary !== undefined && { summary }),
    ...(requirements !== undefined && { security: copied(requirements) }),
  }
  return { route, entry }
}
