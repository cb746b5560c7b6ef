/**
 * The OpenAPI 3.1 document of a router. What guards an operation is read from the guard itself.
 *
 * It reads the layers of the router, so nothing is declared twice. It does not serve the document. It knows what
 * `operation({ ... })` says, but not what a handler does.
 */
import type { Request } from 'koa'
import type { OpenAPIV3_1 } from 'openapi-types'
import { checkRouter } from '../koa/routers.js'
import { declareFactory } from '../core/hooks.js'
import { checkOpenApiOptions, componentsOf, infoOf, rootOf, type OpenApiOptions } from './documentOptions.js'
import { failureComponents, failuresOf, responsesOf } from './failures.js'
import { parametersOf, resolveAmong, strangerAmong, type Resolve } from './parameters.js'
import { idsAmong, placedAmong, type Placed } from './places.js'
import { routesOf, type Route, type Routed, type Undescribed } from './routes.js'
import { copied, securitySchemesOf } from './security.js'

export type { OpenApiOptions } from './documentOptions.js'

/**
 * A document that lists paths. Routes that no path can describe are under `x-undescribed`, so nothing is left out
 * silently.
 */
export type ApiDocument = OpenAPIV3_1.Document & {
  readonly paths: OpenAPIV3_1.PathsObject
  readonly 'x-undescribed'?: ReadonlyArray<Undescribed>
}

/**
 * The OpenAPI 3.1 document of a router: a plain one, one of `withAuth`, or an `apiApp`. Build it after the routes, from
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
  return documentOf(router, options, request)
}

/** The same for a part of a router, as a docs page shows it: its layers, and how they are tried. */
export const documentOf = <S, C>(router: Routed<S, C>, options: OpenApiOptions, request?: Request): ApiDocument => {
  checkOpenApiOptions('openApi', options)
  const routes = routesOf(router, request)
  const { placed, shadowed } = placedAmong(routes)
  const untold = [...routes.undescribed, ...shadowed]
  const shown = [...new Set([...placed, ...untold].map(({ route }) => route))]
  const resolve = resolveAmong(options.components?.parameters)
  for (const route of shown) checkPathParameters(route, resolve)
  const withIds = idsAmong(placed)

  const paths: Record<string, Record<string, OpenAPIV3_1.OperationObject>> = {}
  for (const operation of placed) {
    const { path, method } = operation
    paths[path] = { ...paths[path], [method]: objectOf(operation, withIds.has(operation), resolve) }
  }
  const written = Object.values(paths).flatMap((item) => Object.values(item))
  const components = componentsOf(
    {
      securitySchemes: securitySchemesOf(
        shown.flatMap(({ place, security }) => security.schemes.map((scheme) => ({ ...scheme, place }))),
      ),
      ...failureComponents(written.flatMap(({ responses }) => (responses === undefined ? [] : [responses]))),
    },
    options.components,
  )
  return {
    openapi: '3.1.0',
    info: infoOf(options),
    ...rootOf(options),
    paths,
    ...(Object.keys(components).length > 0 && { components }),
    ...(untold.length > 0 && { 'x-undescribed': untold.map(({ entry }) => entry) }),
  }
}

declareFactory('openApi', openApi)

const checkPathParameters = ({ place, described, templates }: Route, resolve: Resolve): void => {
  if (templates.length === 0) return
  const paths = templates.map(({ parameters }) => parameters)
  const stranger = strangerAmong(described.parameters ?? [], paths, resolve)
  if (stranger === undefined) return
  throw new TypeError(
    `${place}: operation({ parameters }) names the path parameter "${stranger}", which the path does not have`,
  )
}

// -------------------------------------------------------------------------------------
// one operation
// -------------------------------------------------------------------------------------

const objectOf = (
  { route, template, method, names }: Placed,
  hasId: boolean,
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
  const parameters = parametersOf({ own: template.parameters, names }, declared, resolve)
  return {
    ...own,
    ...(said.length > 0 && { description: said.join('\n\n') }),
    ...(hasId && operationId !== undefined && { operationId }),
    ...(parameters.length > 0 && { parameters }),
    responses: responsesOf(responses, failuresOf(description, method)),
    ...(requirements !== undefined && { security: copied(requirements) }),
  }
}
