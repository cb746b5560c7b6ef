/** The OpenAPI 3.1 document of a router, read off its layers and guards. It knows the descriptions of `operation`, not the handlers. */
import type { Request } from 'koa'
import type { OpenAPIV3_1 } from 'openapi-types'
import { leaves, schemeOf, type Description, type Leaf } from '../core/Description.js'
import { effective } from '../core/Requirement.js'
import { fromNow, memory } from '../core/memory.js'
import { checkOptions, declareFactory, withoutUndefined } from '../core/options.js'
import { operationsOf } from '../koa/operations.js'
import { checkRouter } from '../koa/router.js'
import { documentChecks, info, root, type OpenApiOptions } from './documentOptions.js'
import { withoutExtensions } from './operation.js'
import type { PathTemplate } from './paths.js'
import { documentedIn, type DocumentedOperation, type Routed, type Undescribed } from './routes.js'
import {
  failureComponents,
  failuresOf,
  headerParametersOf,
  requestBodyOf,
  responsesOf,
  securitySchemesOf,
} from './security.js'

// An option that is undefined counts as left out
const given = (options: OpenApiOptions, isGiven: (name: string) => boolean): object =>
  Object.fromEntries(Object.entries(withoutUndefined(options)).filter(([name]) => isGiven(name)))

type Components = OpenAPIV3_1.ComponentsObject

/** Merges the components of the author with the derived components. Those of the author win. */
const componentsOf = (derived: Components, own: Components = {}): Components => {
  const sections = new Set([...Object.keys(derived), ...Object.keys(own)] as Array<keyof Components>)
  const merged = [...sections].map((section) => [section, { ...derived[section], ...own[section] }] as const)
  return Object.fromEntries(merged.filter(([, content]) => Object.keys(content).length > 0))
}

/**
 * A document that lists paths. Routes that no path can describe are under `x-undescribed`, so nothing is left out
 * silently.
 */
export type ApiDocument = OpenAPIV3_1.Document & {
  readonly paths: OpenAPIV3_1.PathsObject
  readonly 'x-undescribed'?: ReadonlyArray<Undescribed>
}

/**
 * The OpenAPI 3.1 document of a router: a plain router, a router of `withAuth`, or an `apiApp`. Build it after the routes, from
 * the router that the application mounts. With a request, the session's cookie has the name that koa-session was given.
 *
 * Throws a TypeError for options that cannot work, for two security schemes under one name, for an `operationId` that
 * is used twice, and for a path parameter that its route does not have.
 *
 * @example
 * import Router from '@koa/router'
 * import { httpBearer, withAuth } from 'koa-with-auth'
 * import { openApi } from 'koa-with-auth/openapi'
 *
 * const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 * const router = new Router()
 * router.get('/pets/:id', withAuth(bearer), (ctx) => {
 *   ctx.body = ctx.params['id']
 * })
 *
 * const { paths, components } = openApi(router, { title: 'Pets', version: '1.0.0' })
 * assert.deepStrictEqual(paths['/pets/{id}']?.get?.security, [{ bearer: [] }])
 * assert.deepStrictEqual(components?.securitySchemes, { bearer: { type: 'http', scheme: 'bearer' } })
 */
export const openApi = <S, C>(router: Routed<S, C>, options: OpenApiOptions, request?: Request): ApiDocument => {
  checkRouter('openApi(router, options)', router)
  return makeDocument(router, options, request)
}

const makeDocument = <S, C>(router: Routed<S, C>, options: OpenApiOptions, request?: Request): ApiDocument => {
  checkOptions('openApi', withoutExtensions(options), documentChecks)
  const { operations, routes, undescribed } = documentedIn(router, request)
  const resolve = resolveAmong(options.components?.parameters)
  for (const route of routes) checkPathParameters(route, resolve)

  const paths: Record<string, Record<string, OpenAPIV3_1.OperationObject>> = {}
  const webhooks: Record<string, OpenAPIV3_1.PathItemObject> = {}
  for (const operation of operations) {
    const { path, method } = operation
    paths[path] = { ...paths[path], [method]: operationObject(operation, resolve) }
    for (const sender of sendersOf(operation.route.security.description)) {
      // JSON Pointer (RFC 6901 §3)
      const pointer = path.replaceAll('~', '~0').replaceAll('/', '~1')
      webhooks[`${sender} ${path}`] = { $ref: `#/paths/${encodeURI(pointer)}` }
    }
  }
  const written = Object.values(paths).flatMap((item) => Object.values(item))
  const uses = routes.flatMap(({ where, security }) => security.schemes.map((scheme) => ({ ...scheme, where })))
  const failures = failureComponents(written.map(({ responses = {} }) => responses))
  const components = componentsOf({ securitySchemes: securitySchemesOf(uses), ...failures }, options.components)
  return {
    openapi: '3.1.0',
    info: { title: options.title, ...given(options, (name) => name in info), version: options.version },
    // OpenAPI's default, written out
    servers: [{ url: '/' }],
    ...given(options, (name) => name !== 'components' && (name in root || name.startsWith('x-'))),
    paths,
    ...(Object.keys(webhooks).length > 0 && { webhooks }),
    ...(Object.keys(components).length > 0 && { components }),
    ...(undescribed.length > 0 && { 'x-undescribed': undescribed }),
  }
}

/** The sender of the requests of an operation, if they are deliveries of webhooks. */
const sendersOf = (description: Description | undefined): ReadonlyArray<string> =>
  description === undefined ? [] : leaves(description).flatMap(({ sender }) => sender ?? [])

const checkPathParameters = ({ where, described, templates }: DocumentedOperation['route'], resolve: Resolve): void => {
  if (templates.length === 0) return
  const names = templates.flatMap(({ parameters }) => parameters.map(({ name }) => name))
  const declared = (described.parameters ?? []).map(resolve)
  const stranger = declared.find((one) => one?.in === 'path' && !names.includes(one.name))
  if (stranger === undefined) return
  throw new TypeError(
    `${where}: operation({ parameters }) names the path parameter "${stranger.name}", which the path does not have`,
  )
}

const operationObject = (
  { route, template, method, names, hasId }: DocumentedOperation,
  resolve: Resolve,
): OpenAPIV3_1.OperationObject => {
  const {
    undocumented: _,
    operationId,
    parameters: declared = [],
    responses,
    security: _derived,
    description: text,
    ...own
  } = route.described
  const { description, requirements, remark } = route.security
  const said = [text, remark].filter((part) => part !== undefined && part !== '')
  const isDeclared = ({ name }: OpenAPIV3_1.ParameterObject): boolean =>
    declared.map(resolve).some((one) => one?.in === 'header' && one.name.toLowerCase() === name.toLowerCase())
  const parameters = [
    ...operationParameters(template.parameters, names, declared, resolve),
    ...headerParametersOf(description).filter((one) => !isDeclared(one)),
  ]
  const demanded = requestBodyOf(description, method)
  return {
    ...(demanded !== undefined && { requestBody: demanded }),
    ...own,
    ...(said.length > 0 && { description: said.join('\n\n') }),
    ...(hasId && operationId !== undefined && { operationId }),
    ...(parameters.length > 0 && { parameters }),
    responses: responsesOf(responses, failuresOf(description, method)),
    // a copy, so that a change of one operation changes no other
    ...(requirements !== undefined && { security: structuredClone(requirements) }),
  }
}

type Parameter = OpenAPIV3_1.ParameterObject | OpenAPIV3_1.ReferenceObject

type Resolve = (parameter: Parameter) => OpenAPIV3_1.ParameterObject | undefined

/** Resolves references among the components of a document; `undefined` for other references. */
const resolveAmong =
  (components: Components['parameters'] = {}): Resolve =>
  (parameter) => {
    if (!('$ref' in parameter)) return parameter
    const found = components[/^#\/components\/parameters\/([A-Za-z0-9._-]+)$/.exec(parameter.$ref)?.[1] ?? '']
    return found === undefined || '$ref' in found ? undefined : found
  }

/** All parameters, those of the path first, by their `names` in the document. A declared one of the same name adds to it, and wins. */
const operationParameters = (
  own: PathTemplate['parameters'],
  names: ReadonlyArray<string>,
  declared: ReadonlyArray<Parameter>,
  resolve: Resolve,
): Parameter[] => {
  const inPath = (parameter: Parameter): string | undefined => {
    const found = resolve(parameter)
    return found?.in === 'path' ? found.name : undefined
  }
  const ofPath = own.map((parameter, at): Parameter => {
    const name = names[at]!
    const said = declared.find((one) => inPath(one) === parameter.name)
    if (said !== undefined && '$ref' in said && name === parameter.name) return said
    return { ...parameterObject(parameter, said === undefined ? undefined : resolve(said)), name }
  })
  // A path parameter that this path does not have belongs to another path of the route
  return [...ofPath, ...declared.filter((one) => inPath(one) === undefined)]
}

const parameterObject = (
  { name, wildcard }: PathTemplate['parameters'][number],
  said: OpenAPIV3_1.ParameterObject | undefined,
): OpenAPIV3_1.ParameterObject => ({
  name,
  in: 'path',
  ...(wildcard && { description: 'One or more segments of the path, with the slashes between them' }),
  // a Parameter Object has one of the two
  ...(said?.content === undefined && { schema: { type: 'string' } }),
  ...said,
  // OpenAPI 3.1, Parameter Object: "the value MUST be true"
  required: true,
})

/** A document, and its text. */
export interface SerializedDocument {
  readonly document: ApiDocument
  readonly json: string
}

// One entry for each name of the session's cookie, usually one. Bounded, because `schemeFor` may return anything
const MAX_DOCUMENTS = 8

/**
 * `openApi` for frequent use: it returns the same document and the same JSON until a route is added. TypeErrors of
 * options are thrown here, those of `openApi` at the first request. The document is built again when the router has
 * changed, or when a request shows another name of a cookie.
 *
 * @example
 * import Router from '@koa/router'
 * import { operation } from 'koa-with-auth'
 * import { cachedOpenApi } from 'koa-with-auth/openapi'
 *
 * const router = new Router()
 * const described = cachedOpenApi(router, { title: 'Pets', version: '1.0.0' })
 *
 * router.get('/openapi.json', operation({ undocumented: true }), (ctx) => {
 *   ctx.type = 'application/json'
 *   ctx.body = described(ctx.request).json
 * })
 */
export const cachedOpenApi = <S, C>(
  router: Routed<S, C>,
  options: OpenApiOptions,
): ((request?: Request) => SerializedDocument) => {
  checkOptions('cachedOpenApi', withoutExtensions(options), documentChecks)
  let last = editionOf(router)
  return (request) => {
    const layers = layerVersions(router)
    const isCurrent = layers.length === last.layers.length && layers.every((one, at) => one === last.layers[at])
    if (!isCurrent) last = editionOf(router)
    const { requestDependent, documents } = last
    const schemes = request && requestDependent.map((leaf) => [schemeOf(leaf, request), leaf.alsoFor?.(request)])
    const key = JSON.stringify(schemes) ?? ''
    const cached = documents.get(key)
    if (cached !== undefined) return cached
    const document = makeDocument(router, options, request)
    const made = { document, json: JSON.stringify(document) }
    documents.set(key, fromNow(made))
    return made
  }
}

declareFactory('openApi', openApi)
declareFactory('cachedOpenApi', cachedOpenApi)

// `router.prefix` and levels change path and functions of a layer in place
const layerVersions = <S, C>({ stack }: Routed<S, C>): ReadonlyArray<unknown> =>
  stack.flatMap((layer) => [layer, layer.path, layer.stack])

const editionOf = <S, C>(router: Routed<S, C>) => ({
  layers: layerVersions(router),
  /** The schemes that depend on the application of the request. */
  requestDependent: requestDependentLeaves(router),
  /** By the schemes of a request. */
  documents: memory<SerializedDocument>({ size: MAX_DOCUMENTS, maxAge: Infinity, dropsFirst: 'oldest' }),
})

const requestDependentLeaves = <S, C>(router: Routed<S, C>): ReadonlyArray<Leaf> => {
  const descriptions = new Set(operationsOf(router).map(({ requirement }) => effective(requirement)?.description))
  const all = [...descriptions].flatMap((one) => (one === undefined ? [] : leaves(one)))
  // a session alone has `alsoFor`, and its scheme depends on the request, too
  return [...new Set(all)].filter(({ schemeFor }) => schemeFor !== undefined)
}
