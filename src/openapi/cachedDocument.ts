/**
 * The document of a router, built once. It is built again when the router has changed, or when a request shows another
 * name of a cookie.
 */
import type { Layer } from '../koa/routerTypes.js'
import type { Request } from 'koa'
import { leaves, schemeOf, type Leaf } from '../core/Description.js'
import { declareFactory } from '../core/hooks.js'
import { effective } from '../core/Requirement.js'
import { operationsOf } from '../koa/RoutedOperation.js'
import { documentOf, type ApiDocument } from './document.js'
import { checkOpenApiOptions, type OpenApiOptions } from './documentOptions.js'
import type { Routed } from './routes.js'

/** A document, and its text. */
export interface SerializedDocument {
  readonly document: ApiDocument
  readonly json: string
}

interface Edition<S, C> {
  readonly layers: ReadonlyArray<Seen<S, C>>
  /** The schemes that depend on the application of the request. */
  readonly asked: ReadonlyArray<Leaf>
  /** The documents, by the schemes of a request. */
  readonly documents: Map<string, SerializedDocument>
}

interface Seen<S, C> {
  readonly layer: Layer<S, C>
  // `router.prefix` and levels change these two in place
  readonly path: string | RegExp
  readonly functions: Layer<S, C>['stack']
}

// Usually the session's cookie has one name in each application. A custom `schemeFor` may have more results
const MAX_DOCUMENTS = 8

/**
 * `openApi` for frequent use: it returns the same document and the same JSON until a route is added. TypeErrors of
 * options are thrown here, those of `openApi` at the first request.
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
  checkOpenApiOptions('cachedOpenApi', options)
  const current: { edition: Edition<S, C> | undefined } = { edition: undefined }
  return (request) => {
    const edition = isOf(router, current.edition) ? current.edition : editionOf(router)
    current.edition = edition
    const shown = request === undefined ? '' : JSON.stringify(edition.asked.map((leaf) => schemeOf(leaf, request)))
    const known = edition.documents.get(shown)
    if (known !== undefined) return known
    const document = documentOf(router, options, request)
    const made = { document, json: JSON.stringify(document) }
    if (edition.documents.size >= MAX_DOCUMENTS) edition.documents.clear()
    edition.documents.set(shown, made)
    return made
  }
}

declareFactory('cachedOpenApi', cachedOpenApi)

const isOf = <S, C>({ stack }: Routed<S, C>, edition: Edition<S, C> | undefined): edition is Edition<S, C> =>
  edition !== undefined &&
  edition.layers.length === stack.length &&
  edition.layers.every(({ layer, path, functions }, at) => {
    const now = stack[at]
    return now === layer && now.path === path && now.stack === functions
  })

const editionOf = <S, C>(router: Routed<S, C>): Edition<S, C> => ({
  layers: router.stack.map((layer) => ({ layer, path: layer.path, functions: layer.stack })),
  asked: askedAmong(router),
  documents: new Map(),
})

const askedAmong = <S, C>(router: Routed<S, C>): ReadonlyArray<Leaf> => {
  const requirements = new Set(operationsOf(router).map(({ requirement }) => requirement))
  const all = [...requirements].flatMap((requirement) => {
    const authenticator = effective(requirement)
    return authenticator === undefined ? [] : leaves(authenticator.description)
  })
  return [...new Set(all)].filter(({ schemeFor }) => schemeFor !== undefined)
}
